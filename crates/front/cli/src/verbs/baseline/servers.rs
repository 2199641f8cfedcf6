//! The choice of a server from a list: those that are fast enough are pinged, several at once.

use super::{BaselineArgs, host_checks};
use crate::console::Console;
use crate::failure::Failure;
use crate::input;
use baseline::{ListedServer, NeededRate, ProbedServer, ServerList};
use host::clock;
use perf::StopFlag;
use probe::{Family, PingConfig, TcpHandshake};
use record::{RttSource, ServerCandidate, ServerChoice};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use units::BitRate;

/// Servers that are pinged, and at the same time: of a longer list the first.
const MAX_PINGED: usize = 256;
const AT_ONCE: usize = 12;

/// Echo requests to each, their interval, and the wait for the last reply.
const ECHOES: u64 = 3;
const INTERVAL: Duration = Duration::from_millis(150);
const TIMEOUT: Duration = Duration::from_secs(1);

/// Longest wait for the resolver, and for a handshake: one retransmission of the SYN.
const RESOLVE: Duration = Duration::from_secs(5);
const HANDSHAKE: Duration = Duration::from_secs(3);

/// Where this host's link rate is unknown.
const USUAL_RATE: BitRate = BitRate::from_bps(1_000_000_000);

/// A list and the name of its file.
pub(super) struct LoadedList {
    name: String,
    servers: Vec<ListedServer>,
}

/// Reads a list, before anything is sent.
pub(super) fn load(file: &Path) -> Result<LoadedList, Failure> {
    let name = file.display().to_string();
    let text = input::text(file, input::LIST)
        .map_err(|error| Failure::usage(format!("cannot read '{name}': {error}")))?;
    let list = ServerList::parse(&text)
        .map_err(|error| Failure::usage(format!("cannot use '{name}': {error}")))?;
    Ok(LoadedList { name, servers: list.servers })
}

/// Pings the servers that are fast enough, and chooses the nearest.
pub(super) fn choose(
    list: &LoadedList,
    args: &BaselineArgs,
    stop: &StopFlag,
    console: &mut Console,
) -> Result<ServerChoice, Failure> {
    let needed = needed(args);
    let mut worth = baseline::worth_probing(&list.servers, needed.rate);
    worth.truncate(MAX_PINGED);
    let family = Family::from_flags(args.ipv4, args.ipv6);
    let probed = probe_all(&list.servers, &worth, family, stop, console);
    console.clear();
    if stop.is_raised() {
        return Err(Failure::work("interrupted while pinging the servers; run it again"));
    }
    let choice = baseline::choose_server(&list.name, &list.servers, &needed, &probed);
    for server in choice.servers.iter().filter(|server| server.rtt_ms.is_none()) {
        if let Some(why) = server.rejected.as_ref().filter(|why| why.starts_with("dead")) {
            console.say(&format!("{}: {why}", server.host));
        }
    }
    Ok(choice)
}

fn needed(args: &BaselineArgs) -> NeededRate {
    let of = |rate, from: &str| NeededRate { rate, from: from.to_owned() };
    match (args.rate, host_checks::own_link()) {
        (Some(rate), _) => of(rate, "requested"),
        (None, Some(link)) => of(link, "this host's link"),
        (None, None) => of(USUAL_RATE, "assumed, as this host's link rate is unknown"),
    }
}

/// The reply of each server of the list; `None` where it was not asked.
fn probe_all(
    list: &[ListedServer],
    worth: &[usize],
    family: Family,
    stop: &StopFlag,
    console: &mut Console,
) -> Vec<Option<ProbedServer>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let answers: Mutex<Vec<Option<ProbedServer>>> = Mutex::new(vec![None; list.len()]);
    let work = || {
        while let Some(number) = worth.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.is_raised() {
                break;
            }
            let answer = list.get(*number).map(|server| probed(server, family, stop));
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = answers.get_mut(*number) {
                *place = answer;
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE.min(worth.len())).map(|_| scope.spawn(work)).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            let done = done.load(Ordering::Relaxed);
            console.live(&format!("Pinging {} servers: {done} done", worth.len()));
            thread::sleep(Duration::from_millis(50));
        }
    });
    answers.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The RTT of a server: by ICMP, and where that is not answered by a TCP handshake.
fn probed(server: &ListedServer, family: Family, stop: &StopFlag) -> ProbedServer {
    let until = clock::now() + RESOLVE;
    let over = || stop.is_raised() || clock::now() >= until;
    let port = server.ports.0;
    let to = match probe::resolve(&server.host, port, family, None, &over) {
        Ok(to) => to,
        Err(probe::ProbeError::Resolve(error)) => return ProbedServer::Dead(error.reason),
        Err(_) => return ProbedServer::Dead("its name did not resolve within 5 s".to_owned()),
    };
    let config = PingConfig::plain(to, ECHOES, INTERVAL, TIMEOUT);
    let pinged = probe::ping(&config, &mut |_| {}, &|| stop.is_raised());
    let echo = pinged.ok().filter(|report| report.method == "icmp");
    if let Some(trips) = echo.and_then(|report| report.round_trips) {
        return ProbedServer::Alive { rtt_ms: trips.min_ms, from: RttSource::Icmp };
    }
    match probe::probe_handshake(to, HANDSHAKE) {
        Ok(TcpHandshake::Completed(met)) => {
            ProbedServer::Alive { rtt_ms: f64::from(met.rtt_us) / 1e3, from: RttSource::Handshake }
        }
        Ok(TcpHandshake::Refused) => ProbedServer::Dead(format!("port {port} is closed")),
        Ok(TcpHandshake::NoReply(why)) => {
            ProbedServer::Dead(format!("no reply to ICMP; port {port}: {why}"))
        }
        Err(error) => ProbedServer::Dead(error.to_string()),
    }
}

/// The server that is used, in one line.
pub(super) fn chosen(server: &ServerCandidate) -> String {
    let rtt = server.rtt_ms.map_or(String::new(), |rtt| format!("{rtt:.1} ms away"));
    let rate = server.rate_bps.map_or("rate unknown".to_owned(), |rate| rate.to_string());
    let location =
        if server.location.is_empty() { String::new() } else { format!(" ({})", server.location) };
    format!("Using {}{location}, {rtt}, {rate}", server.host)
}

/// No server of the list can be used, in one line.
pub(super) fn none_usable(choice: &ServerChoice) -> Failure {
    let first = choice.servers.first();
    let why = first.and_then(|server| Some((server, server.rejected.as_ref()?)));
    let example =
        why.map_or(String::new(), |(server, why)| format!(", such as {}: {why}", server.host));
    Failure::work(format!(
        "none of the {} servers of '{}' can be used{example}",
        choice.servers.len(),
        choice.list
    ))
}
