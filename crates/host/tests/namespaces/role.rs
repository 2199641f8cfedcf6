//! The parts this program plays when it starts itself again.

use crate::{masquerading, routing};
use host::control::{self, Listener};
use host::join::{Entrance, JoinError};
use host::nat::Masquerade;
use host::netns::NetNs;
use host::program::Reaper;
use host::tun::Tun;
use host::world::{self, Ended};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names the role in the environment; what it needs beside stands in its arguments.
const ROLE: &str = "LONGHAUL_TEST_ROLE";

/// `nobody` of every system.
const USER: &str = "65534";

/// Bounds what must come, generously.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// This program in `role`.
pub(crate) fn start(role: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env(ROLE, role).args(arguments).stdin(Stdio::null());
    command
}

/// The same as an ordinary user.
pub(crate) fn start_as_user(role: &str, arguments: &[&str]) -> Command {
    // The program may lie where its user cannot reach it: a copy of its own is
    // handed on as standard input.
    let mut command = Command::new("setpriv");
    command
        .args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"])
        .arg("/proc/self/fd/0")
        .env(ROLE, role)
        .args(arguments)
        .stdin(std::fs::File::open("/proc/self/exe").unwrap());
    command
}

/// Whether a world can be made here.
pub(crate) fn world() -> bool {
    start("world", &[]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Whether TUN devices can be made and looked at.
pub(crate) fn devices() -> bool {
    start("device", &[]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        && routing::has_ip()
}

/// Whether the kernel masquerades.
pub(crate) fn netfilter() -> bool {
    start("netfilter", &[]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A role that says by its exit code whether all was as it should.
pub(crate) fn passes(role: &str) {
    let output = start(role, &[]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Whether we can become an ordinary user who can make one.
pub(crate) fn root() -> bool {
    start_as_user("world", &[]).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

pub(crate) fn is_asked() -> bool {
    std::env::var_os(ROLE).is_some()
}

pub(crate) fn play() -> i32 {
    let role = std::env::var(ROLE).unwrap();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let name = arguments.first().and_then(|name| name.to_str()).unwrap_or_default();
    match role.as_str() {
        "world" => in_a_world(|| i32::from(NetNs::create().is_err())),
        "device" => in_a_world(|| {
            NetNs::create().unwrap().run(|| i32::from(Tun::create("a").is_err())).unwrap()
        }),
        "netfilter" => in_a_world(|| {
            let any = (Ipv4Addr::UNSPECIFIED.into(), 0);
            let rules = || i32::from(Masquerade::start("probe", &[any]).is_err());
            NetNs::create().unwrap().run(rules).unwrap()
        }),
        "masquerade" => in_a_world(masquerading::play),
        "routes" => in_a_world(routing::play),
        "lab" => in_a_world(|| lab(name)),
        "join" => join(name, &arguments[1..]),
        "stranger" => stranger(name),
        "impostor" => impostor(name),
        "running" => {
            control::running().unwrap().iter().for_each(|name| println!("{name}"));
            0
        }
        other => panic!("no role is called {other}"),
    }
}

fn in_a_world(inside: impl FnOnce() -> i32) -> i32 {
    match world::run(inside).unwrap() {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    }
}

/// One host without a device, and a word on where it is for whoever asks.
fn lab(name: &str) -> i32 {
    let Ok(listener) = Listener::bind(name) else { return 98 };
    let host = NetNs::create().unwrap();
    let _reaper = Reaper::start(None);
    println!("ready");
    loop {
        let Ok(Some(mut connection)) = listener.accept(None) else { return 99 };
        assert_eq!(connection.peer_pid(), None, "a caller is outside");
        let Ok(Some(line)) = connection.receive_line(PATIENCE) else { continue };
        match line.as_str() {
            "end" => return 0,
            question @ ("host" | "wrong") => {
                let number = if question == "host" { host.as_fd().as_raw_fd() } else { 1 };
                connection.send_line(&number.to_string(), PATIENCE).unwrap();
                // Its end is the caller's to choose.
                let _ = connection.receive_line(PATIENCE);
            }
            line => connection.send_line(line, PATIENCE).unwrap(),
        }
    }
}

/// Runs a program on the lab's host. 97: the lab cannot be called; 96: it has
/// ended; 95: its host cannot be entered.
fn join(name: &str, command: &[OsString]) -> i32 {
    let mut connection = match control::connect(name) {
        Ok(connection) => connection,
        Err(error) => {
            eprintln!("{error}");
            return 97;
        }
    };
    let question = if command == ["wrong"] { "wrong" } else { "host" };
    connection.send_line(question, PATIENCE).unwrap();
    let number = connection.receive_line(PATIENCE).unwrap().unwrap().parse().unwrap();
    let joined = Entrance::open(&connection, number).and_then(|way| way.run(command, None));
    match joined {
        Ok(code) => code,
        Err(JoinError::Ended) => 96,
        Err(error) => {
            eprintln!("{error}");
            95
        }
    }
}

/// Calls root's lab past the library and tells whether it answers.
fn stranger(name: &str) -> i32 {
    let mut stream = UnixStream::connect_addr(&roots(name)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    // A lab that has hung up already takes no line.
    let _ = stream.write_all(b"x\n").and_then(|()| stream.shutdown(Shutdown::Write));
    let _ = stream.read_to_string(&mut answer);
    i32::from(answer == "x\n")
}

/// Takes the name of a lab of root's.
fn impostor(name: &str) -> i32 {
    let listener = UnixListener::bind_addr(&roots(name)).unwrap();
    println!("ready");
    let _ = listener.accept().unwrap().0.read(&mut [0]);
    0
}

fn roots(name: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("longhaul-lab/0/{name}")).unwrap()
}
