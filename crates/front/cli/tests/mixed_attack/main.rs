//! Every kind of attack at once on servers with their default limits, beside four
//! iperf3 clients, a client that copies and a capture of every packet: each iperf3 client
//! keeps 0.95 of its throughput beside the same copies and capture without attackers, every
//! new client is served, no copy is refused, the servers' memory stays bounded, and no
//! address that only appears as a forged source gets a byte.
//!
//! Servers, clients and attackers are in a network namespace of their own, each at
//! addresses of its own. What an attacker does is limited in rate, so that it is the
//! servers' decisions that are tested and not the machine's processors.
//! `LONGHAUL_LONG=1` attacks for a minute. Without it, some seconds on a machine that
//! others use as well: half the throughput is enough then, and a stall is no failure.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod addresses;
mod attack;
mod background;
mod clients;
mod processes;
mod schedule;
mod server;
mod session;
mod spoofed;

use background::Background;
use clients::Client;
use host::netns::NetNs;
use host::sandbox::{self, Ended};
use libtest_mimic::Arguments;
use processes::Served;
use schedule::Stop;
use server::Server;
use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

/// Names the role in the environment: a sandbox needs a process with one thread.
const ROLE: &str = "LONGHAUL_TEST_ROLE";

/// Most memory of a server, in bytes.
const MEMORY: u64 = 256 << 20;

/// What is asked of the servers, and for how long.
struct Span {
    /// Duration without attackers, seconds.
    before: u32,
    /// Duration of the attack, seconds.
    attack: u32,
    /// Least share of its throughput without attackers that a client keeps.
    share: f64,
}

/// What clients got, and how far attackers came.
struct Phase {
    /// Throughput of the clients that run all the time, Mbit/s.
    rates: Vec<Result<f64, String>>,
    newcomers: Served,
    copies: Served,
    attacks: BTreeMap<&'static str, u32>,
    /// Bytes sent to an address that was forged.
    reflected: usize,
}

fn main() -> ExitCode {
    if std::env::var_os(ROLE).is_some_and(|role| role == "probe") {
        std::process::exit(in_a_sandbox(|| 0));
    }
    if std::env::var_os(ROLE).is_some() {
        std::process::exit(in_a_sandbox(|| i32::from(!clients_are_served())));
    }
    let arguments = Arguments::from_args();
    let role = |role: &str| {
        let mut command = Command::new("/proc/self/exe");
        command.env(ROLE, role).stdin(Stdio::null());
        command
    };
    let worked = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let iperf3 = arguments.list || clients::are_there();
    let sandbox = arguments.list || worked(role("probe").stderr(Stdio::null()));
    if !iperf3 {
        eprintln!("iperf3 is not installed: the test is skipped");
    }
    if !sandbox {
        eprintln!("no namespaces can be made here: the test is skipped");
    }
    assert!(
        !stall_retry::required() || (iperf3 && sandbox),
        "LONGHAUL_REQUIRE_PEERS=1 asks for iperf3 and for namespaces"
    );
    let served = move || assert!(worked(&mut role("attack")), "see above");
    let trial = stall_retry::trial("clients_are_served_while_many_attack", served)
        .with_ignored_flag(!iperf3 || !sandbox);
    stall_retry::run(&arguments, vec![trial])
}

fn in_a_sandbox(inside: impl FnOnce() -> i32 + Send) -> i32 {
    let inside = || {
        let network = NetNs::create().unwrap();
        network.run(inside).unwrap()
    };
    match sandbox::run(inside).unwrap() {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    }
}

/// Whether clients keep their share; says on standard error what they got.
fn clients_are_served() -> bool {
    let long = std::env::var("LONGHAUL_LONG").as_deref() == Ok("1");
    let span = if long {
        Span { before: 20, attack: 60, share: 0.95 }
    } else {
        Span { before: 1, attack: 6, share: 0.5 }
    };
    addresses::add();
    let port = addresses::PORT.to_string();
    let server = Server::start(&["--port", &port], addresses::PORT);
    let mut background = Background::start();
    let before = phase(span.before, &background, false);
    let during = phase(span.attack, &background, true);
    let mut failures = unattacked(&before);
    failures.extend(lost_throughput(&before, &during, span.share));
    failures.extend(refused(&during));
    failures.extend(background.end_capture().map(|packets| eprintln!("captured: {packets}")).err());
    let servers = [("the server", &server), ("the server for copies", &background.server)];
    for (name, server) in servers {
        match server.peak_memory() {
            Some(bytes) if bytes <= MEMORY => eprintln!("{name}'s peak: {} MB", bytes >> 20),
            Some(bytes) => failures.push(format!("{name} used {} MB", bytes >> 20)),
            None => failures.push(format!("{name} has ended")),
        }
    }
    for failure in &failures {
        eprintln!("{failure}");
    }
    if !failures.is_empty() {
        for (name, server) in servers {
            eprintln!("{name}'s last lines:\n{}", server.last_lines());
        }
    }
    failures.is_empty()
}

/// Runs all clients for so many seconds, beside the background.
fn phase(seconds: u32, background: &Background, attacked: bool) -> Phase {
    let stop = Stop::after(seconds + 60);
    thread::scope(|scope| {
        let _ends = stop.guard();
        let victim = spoofed::watch(scope, &stop);
        let attacks =
            if attacked { attack::start(scope, &stop, &background.preamble) } else { Vec::new() };
        let newcomers = clients::newcomers(scope, &stop);
        let copies = background.copies(scope, &stop);
        let rates = clients::at_once(seconds);
        stop.raise();
        let mut came_through = BTreeMap::new();
        for (name, thread) in attacks {
            *came_through.entry(name).or_default() += thread.join().unwrap();
        }
        Phase {
            rates,
            attacks: came_through,
            newcomers: newcomers.join().unwrap(),
            copies: copies.join().unwrap(),
            reflected: victim.join().unwrap(),
        }
    })
}

/// What failed although nobody attacked.
fn unattacked(before: &Phase) -> Vec<String> {
    let rates = before.rates.iter().filter_map(|rate| rate.as_ref().err());
    let others = [&before.newcomers, &before.copies];
    let failures = rates.chain(others.into_iter().flat_map(|served| &served.failures));
    failures.map(|error| format!("without attackers: {error}")).collect()
}

/// Clients that lost more of their throughput than they may.
fn lost_throughput(before: &Phase, during: &Phase, share: f64) -> Vec<String> {
    let mut failures = Vec::new();
    for ((client, before), during) in Client::ALL.iter().zip(&before.rates).zip(&during.rates) {
        let name = client.name;
        match (before, during) {
            (Ok(before), Ok(during)) => {
                let kept = during / before;
                let text = format!("{name}: {kept:.3}: {during:.1} of {before:.1} Mbit/s");
                if kept >= share {
                    eprintln!("{text}");
                } else {
                    failures.push(text);
                }
            }
            (_, Err(error)) => failures.push(format!("{name}: {error}")),
            (Err(_), Ok(_)) => {}
        }
    }
    failures
}

/// Clients that were refused during the attack, attacks that did not reach a server, and what
/// was reflected.
fn refused(during: &Phase) -> Vec<String> {
    let mut failures = Vec::new();
    for (name, times) in &during.attacks {
        eprintln!("{name}: {times}");
        // An attack that does not reach the server shows nothing.
        if *times == 0 && *name != attack::OF_ONE_NETWORK {
            failures.push(format!("{name}: none came as far as it should"));
        }
    }
    for (name, served) in [("new clients", &during.newcomers), ("copies", &during.copies)] {
        let refused = served.failures.len();
        eprintln!("{name} served: {}, refused: {refused}", served.count);
        if served.count == 0 {
            failures.push(format!("{name}: none was served during the attack"));
        }
        failures.extend(served.failures.iter().map(|error| format!("one of the {name}: {error}")));
    }
    if during.reflected > 0 {
        failures.push(format!("{} bytes were sent to a forged source address", during.reflected));
    }
    failures
}
