//! Every kind of attack at once on a server with its default limits, beside four
//! iperf3 clients: all of them finish, each at 0.8 of its throughput alone or more,
//! new clients are admitted, the server's memory stays bounded, and no address
//! that only appears as a forged source gets a byte.
//!
//! Server, clients and attackers are in a network namespace of their own, each at
//! addresses of its own. What an attacker does is limited in rate, so that it is the
//! server's decisions that are tested and not the machine's processors.
//! `LONGHAUL_LONG=1` attacks for a minute. Without it, some seconds on a machine that
//! others use as well: half the throughput is enough then, and a stall is no failure.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod attack;
mod clients;
mod schedule;
mod server;
mod session;
mod spoofed;

use clients::Client;
use host::netlink::{Netlink, await_local_route};
use host::netns::NetNs;
use host::sandbox::{self, Ended};
use libtest_mimic::Arguments;
use schedule::Stop;
use server::Server;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

/// Names the role in the environment: a sandbox needs a process with one thread.
const ROLE: &str = "LONGHAUL_TEST_ROLE";

/// Most memory of the server, in bytes.
const MEMORY: u64 = 256 << 20;

/// Where everyone is.
pub(crate) mod addresses {
    use std::net::{Ipv4Addr, Ipv6Addr};

    pub(crate) const PORT: u16 = 5201;
    pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 1);
    pub(crate) const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 1);

    /// Of the clients that run all the time.
    pub(crate) const fn client(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 66, 1, number)
    }

    /// Of the clients that come during the attack.
    pub(crate) const fn newcomer(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 66, 2, number)
    }

    /// Kinds of attackers: none is refused for what another kind has done.
    pub(crate) const KINDS: u8 = 7;

    /// Addresses of each kind.
    pub(crate) const EACH: u8 = 6;

    /// One of the addresses of a kind, in turn.
    pub(crate) fn attacker(kind: u8, turn: u32) -> Ipv4Addr {
        let number = u8::try_from(turn % u32::from(EACH)).unwrap() + 1;
        Ipv4Addr::new(10, 66, 10 + kind, number)
    }

    /// Addresses of one /64: an attacker with IPv6 has as many as it wants.
    pub(crate) fn attacker6(turn: u32) -> Ipv6Addr {
        let number = u16::try_from(turn % u32::from(EACH)).unwrap() + 1;
        Ipv6Addr::new(0xfd66, 0, 0, 1, 0, 0, 0, number)
    }

    /// Of those whose addresses are forged.
    pub(crate) const VICTIM: Ipv4Addr = Ipv4Addr::new(10, 66, 4, 1);
}

/// What is asked of the server, and for how long.
struct Span {
    /// Duration of the clients alone, seconds.
    alone: u32,
    /// Duration of the attack, seconds.
    attack: u32,
    /// Least share of its throughput alone that a client keeps.
    share: f64,
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

fn addresses() -> Vec<IpAddr> {
    let v4 = |address: Ipv4Addr| IpAddr::V4(address);
    let v6 = |address: Ipv6Addr| IpAddr::V6(address);
    let mut all = vec![v4(addresses::SERVER), v6(addresses::SERVER6), v4(addresses::VICTIM)];
    all.extend((1..=clients::COUNT).map(addresses::client).map(v4));
    all.extend((1..=clients::NEWCOMERS).map(addresses::newcomer).map(v4));
    for turn in 0..u32::from(addresses::EACH) {
        all.extend((0..addresses::KINDS).map(|kind| v4(addresses::attacker(kind, turn))));
        all.push(v6(addresses::attacker6(turn)));
    }
    all
}

fn clients_are_served() -> bool {
    let long = std::env::var("LONGHAUL_LONG").as_deref() == Ok("1");
    let span = if long {
        Span { alone: 3, attack: 60, share: 0.8 }
    } else {
        Span { alone: 1, attack: 6, share: 0.5 }
    };
    let netlink = Netlink::open().unwrap();
    let device = netlink.index("lo").unwrap();
    netlink.bring_up(device, None, None).unwrap();
    for address in addresses() {
        // A host without IPv6 is attacked by IPv4 alone.
        let added = netlink.add_address(device, address);
        assert!(added.is_ok() || address.is_ipv6(), "{address}: {added:?}");
        if added.is_ok() && address.is_ipv6() {
            await_local_route(address, Duration::from_secs(20)).unwrap();
        }
    }
    let server = Server::start();
    // One after the other where there is time; a paced client does no better alone.
    let alone: Vec<f64> = if long {
        Client::ALL.iter().map(|client| client.run(span.alone).unwrap()).collect()
    } else {
        clients::at_once(span.alone).into_iter().map(Result::unwrap).collect()
    };
    let mut failures = Vec::new();
    let stop = Stop::after(span.attack + 60);
    let (during, newcomers, reflected, attacks) = thread::scope(|scope| {
        let _ends = stop.guard();
        let victim = spoofed::watch(scope, &stop);
        let attacks = attack::start(scope, &stop);
        let newcomers = clients::newcomers(scope, &stop);
        let during = clients::at_once(span.attack);
        stop.raise();
        let attacks: Vec<(&str, u32)> =
            attacks.into_iter().map(|(name, thread)| (name, thread.join().unwrap())).collect();
        (during, newcomers.join().unwrap(), victim.join().unwrap(), attacks)
    });
    for (name, times) in attacks {
        eprintln!("{name}: {times}");
        // An attack that does not reach the server shows nothing.
        if times == 0 && name != "half-open connections of one /64" {
            failures.push(format!("{name}: none came as far as it should"));
        }
    }
    for ((client, alone), during) in Client::ALL.iter().zip(alone).zip(during) {
        let name = client.name;
        match during {
            Ok(rate) if rate >= span.share * alone => {
                eprintln!("{name}: {rate:.1} Mbit/s, alone {alone:.1}");
            }
            Ok(rate) => failures.push(format!("{name}: {rate:.1} Mbit/s, alone {alone:.1}")),
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    failures.extend(newcomers.failures.iter().map(|error| format!("a new client: {error}")));
    eprintln!("new clients served: {}", newcomers.served);
    if newcomers.served == 0 {
        failures.push("no new client was served during the attack".to_owned());
    }
    if reflected > 0 {
        failures.push(format!("{reflected} bytes were sent to a forged source address"));
    }
    match server.peak_memory() {
        Some(bytes) if bytes <= MEMORY => {
            eprintln!("the server's peak memory: {} MB", bytes >> 20);
        }
        Some(bytes) => failures.push(format!("the server used {} MB", bytes >> 20)),
        None => failures.push("the server has ended".to_owned()),
    }
    for failure in &failures {
        eprintln!("{failure}");
    }
    if !failures.is_empty() {
        eprintln!("the server's last lines:\n{}", server.last_lines());
    }
    failures.is_empty()
}
