//! The roles in which this program starts itself again.

use crate::{confinement, disk, interception, masquerading, routing, transmit_times};
use host::control::{self, Listener, Owner};
use host::join::{HostNamespaces, JoinError};
use host::nat::Masquerade;
use host::netns::NetNs;
use host::program::{Reaper, Streams};
use host::sandbox::{self, Ended};
use host::tun::Tun;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Environment variable with the role; further input is in the arguments.
const ROLE: &str = "LONGHAUL_TEST_ROLE";

/// `nobody` on every system.
const USER: &str = "65534";

/// Timeout for events that must happen; generous.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// This program in `role`.
pub(crate) fn start(role: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env(ROLE, role).args(arguments).stdin(Stdio::null());
    command
}

/// The same as an ordinary user.
pub(crate) fn start_as_user(role: &str, arguments: &[&str]) -> Command {
    // The user may not be able to reach the program: passes a copy as standard input.
    let mut command = Command::new("setpriv");
    command
        .args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"])
        .arg("/proc/self/fd/0")
        .env(ROLE, role)
        .args(arguments)
        .stdin(std::fs::File::open("/proc/self/exe").unwrap());
    command
}

/// This program in `role`, with few descriptors.
pub(crate) fn start_with_few_files(role: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 32; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, role)
        .args(arguments)
        .stdin(Stdio::null());
    command
}

/// Whether a sandbox can be created here.
pub(crate) fn sandbox_available() -> bool {
    start("sandbox_available", &[])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether TUN devices can be created and inspected.
pub(crate) fn devices() -> bool {
    start("device", &[]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        && routing::has_ip()
}

/// Whether the kernel can masquerade.
pub(crate) fn netfilter() -> bool {
    start("netfilter", &[]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a role whose exit code says whether all checks passed.
pub(crate) fn passes(role: &str) {
    passes_with(&mut start(role, &[]));
}

/// The same as an ordinary user.
pub(crate) fn passes_as_user(role: &str) {
    passes_with(&mut start_as_user(role, &[]));
}

fn passes_with(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Whether we can become an ordinary user who can create a sandbox.
pub(crate) fn root() -> bool {
    start_as_user("sandbox_available", &[])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub(crate) fn is_asked() -> bool {
    std::env::var_os(ROLE).is_some()
}

pub(crate) fn run() -> i32 {
    let role = std::env::var(ROLE).unwrap();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let name = arguments.first().and_then(|name| name.to_str()).unwrap_or_default();
    match role.as_str() {
        "sandbox_available" => in_sandbox(|| i32::from(NetNs::create().is_err())),
        "device" => in_sandbox(|| {
            NetNs::create().unwrap().run(|| i32::from(Tun::create("a").is_err())).unwrap()
        }),
        "netfilter" => in_sandbox(|| {
            let any = (Ipv4Addr::UNSPECIFIED.into(), 0);
            let rules = || i32::from(Masquerade::start("probe", &[any]).is_err());
            NetNs::create().unwrap().run(rules).unwrap()
        }),
        "interception" => in_sandbox(interception::run),
        "gateway" => in_sandbox(interception::gateway),
        "supervisor" => supervised(),
        "masquerade" => in_sandbox(masquerading::run),
        "transmit times" => transmit_times::run(),
        "routes" => in_sandbox(routing::run),
        "lab" => in_sandbox(|| lab(name)),
        "join" => join(name, &arguments[1..]),
        "stranger" => stranger(name),
        "crowded" => crowded(name),
        "reuse" => in_sandbox(reuse),
        "impostor" => impostor(name),
        "running" => {
            control::running(Owner::Lab).unwrap().iter().for_each(|name| println!("{name}"));
            0
        }
        "confined" => in_sandbox(confinement::role),
        "disk" => in_sandbox(disk::role),
        other => panic!("no role is called {other}"),
    }
}

/// However the work ends, what it left is cleaned up, in the process that did not do it.
fn supervised() -> i32 {
    let ends: [(fn() -> i32, Ended); 2] = [
        (|| 7, Ended::Code(7)),
        (|| Command::new("sh").args(["-c", "kill -9 $PPID"]).status().map_or(1, |_| 1), {
            Ended::Signal(9)
        }),
    ];
    for (work, expected) in ends {
        let mut cleaned = 0;
        let ended = host::supervisor::run(work, || cleaned += 1).unwrap();
        assert_eq!((ended, cleaned), (expected, 1));
    }
    0
}

fn in_sandbox(inside: impl FnOnce() -> i32) -> i32 {
    match sandbox::run(inside).unwrap() {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    }
}

/// One host without a device, whose namespace is sent to every client.
fn lab(name: &str) -> i32 {
    let Ok(listener) = Listener::bind(Owner::Lab, name) else { return 98 };
    let host = NetNs::create().unwrap();
    let _reaper = Reaper::start(None);
    println!("ready");
    loop {
        let Ok(Some(mut connection)) = listener.accept(None) else { return 99 };
        assert_eq!(connection.peer_pid(), None, "a caller is outside");
        let Ok(Some(line)) = connection.receive_line(TIMEOUT) else { continue };
        match line.as_str() {
            "end" => return 0,
            question @ ("host" | "wrong") => {
                let number = if question == "host" { host.as_fd().as_raw_fd() } else { 1 };
                connection.send_line(&number.to_string(), TIMEOUT).unwrap();
                // The client decides when the connection ends.
                let _ = connection.receive_line(TIMEOUT);
            }
            line => connection.send_line(line, TIMEOUT).unwrap(),
        }
    }
}

/// A lab that keeps all clients until no more arrive, and then answers them all.
/// 99: it cannot accept any more.
fn crowded(name: &str) -> i32 {
    let Ok(listener) = Listener::bind(Owner::Lab, name) else { return 98 };
    println!("ready");
    let mut kept = Vec::new();
    loop {
        match listener.accept(Some(Duration::from_millis(50))) {
            Ok(Some(caller)) => kept.push(caller),
            Ok(None) => {
                for mut caller in kept.drain(..) {
                    // It may have disconnected.
                    let _ = caller.send_line("here", TIMEOUT);
                }
            }
            Err(_) => return 99,
        }
    }
}

/// A program gets the process ID of one that has ended, deliberately instead of
/// by chance.
fn reuse() -> i32 {
    let host = NetNs::create().unwrap();
    let reaper = Reaper::start(None);
    let start = |line: &str| {
        let words = ["sh", "-c", line].map(OsString::from);
        reaper.start_program(&host, &words, Streams::Errors).unwrap()
    };
    let first = start("exit 7");
    assert_eq!(first.wait(), 7);
    for _ in 0..100 {
        // The next process gets the ID after this one (proc_sys_kernel(5)).
        let last = (first.id() - 1).to_string();
        if std::fs::write("/proc/sys/kernel/ns_last_pid", last).is_err() {
            eprintln!("this kernel lets nobody choose a process id");
            return 0;
        }
        let second = start("exec sleep 60");
        let ended = second.wait_at_most(Duration::from_millis(50));
        second.signal(9);
        if second.id() == first.id() {
            assert_eq!(ended, None, "the end of the first program is not its own");
            assert_eq!((second.wait(), first.wait()), (137, 7));
            assert_eq!((first.ended(), second.ended()), (Some(7), Some(137)));
            return 0;
        }
        let _ = second.wait();
    }
    1
}

/// Runs a program on the lab's host. 97: cannot connect to the lab; 96: it has
/// ended; 95: its host cannot be entered.
fn join(name: &str, command: &[OsString]) -> i32 {
    let mut connection = match control::connect(Owner::Lab, name) {
        Ok(connection) => connection,
        Err(error) => {
            eprintln!("{error}");
            return 97;
        }
    };
    let question = if command == ["wrong"] { "wrong" } else { "host" };
    connection.send_line(question, TIMEOUT).unwrap();
    let number = connection.receive_line(TIMEOUT).unwrap().unwrap().parse().unwrap();
    let joined = HostNamespaces::open(&connection, number)
        .and_then(|way| way.run(command, None, Stdio::inherit()));
    match joined {
        Ok(code) => code,
        Err(JoinError::Ended) => 96,
        Err(error) => {
            eprintln!("{error}");
            95
        }
    }
}

/// Connects to root's lab without the library; the exit code says whether it answers.
fn stranger(name: &str) -> i32 {
    let mut stream = UnixStream::connect_addr(&roots(name)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut answer = String::new();
    // A lab that has disconnected accepts no line.
    let _ = stream.write_all(b"x\n").and_then(|()| stream.shutdown(Shutdown::Write));
    let _ = stream.read_to_string(&mut answer);
    i32::from(answer == "x\n")
}

/// Binds the name of a lab of root's.
fn impostor(name: &str) -> i32 {
    let listener = UnixListener::bind_addr(&roots(name)).unwrap();
    println!("ready");
    let _ = listener.accept().unwrap().0.read(&mut [0]);
    0
}

fn roots(name: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("longhaul-lab/0/{name}")).unwrap()
}
