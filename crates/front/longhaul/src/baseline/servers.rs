//! The choice of a server from a list: those that are fast enough are pinged, several at once.

use super::{BaselineEvent, BaselineRequest, host_checks, interrupted};
use crate::{Fault, Field, Problem, StopFlag};
use baseline::{ListedServer, NeededRate, ProbedServer, ServerList};
use host::clock;
use probe::{Family, PingConfig, TcpHandshake};
use record::{RttSource, ServerChoice};
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

/// The servers of a list.
pub(super) fn parse(name: &str, text: &str) -> Result<Vec<ListedServer>, Problem> {
    let wrong = |error| {
        Problem::field(Field::Servers, format!("cannot use '{name}': {error}"), "such a list")
    };
    Ok(ServerList::parse(text).map_err(wrong)?.servers)
}

/// Pings the servers that are fast enough, and chooses the nearest.
pub(super) fn choose(
    name: &str,
    list: &[ListedServer],
    request: &BaselineRequest,
    rate: Option<BitRate>,
    on_event: &mut dyn FnMut(BaselineEvent),
    stop: &StopFlag,
) -> Result<ServerChoice, Problem> {
    let needed = needed(rate);
    let mut worth = baseline::worth_probing(list, needed.rate);
    worth.truncate(MAX_PINGED);
    let probed = probe_all(list, &worth, request.family, stop, on_event);
    if stop.is_raised() {
        return Err(interrupted("interrupted while pinging the servers; run it again"));
    }
    let choice = baseline::choose_server(name, list, &needed, &probed);
    for server in choice.servers.iter().filter(|server| server.rtt_ms.is_none()) {
        if let Some(why) = server.rejected.as_ref().filter(|why| why.starts_with("dead")) {
            let (host, reason) = (server.host.clone(), why.clone());
            on_event(BaselineEvent::Unreachable { host, reason });
        }
    }
    Ok(choice)
}

fn needed(rate: Option<BitRate>) -> NeededRate {
    let of = |rate, from: &str| NeededRate { rate, from: from.to_owned() };
    match (rate, host_checks::own_link()) {
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
    on_event: &mut dyn FnMut(BaselineEvent),
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
            on_event(BaselineEvent::Pinging { servers: worth.len(), done });
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
        Err(error) => ProbedServer::Dead(problem::stored(error)),
    }
}

/// No server of the list can be used, in one line.
pub(super) fn none_usable(choice: &ServerChoice) -> Problem {
    let first = choice.servers.first();
    let why = first.and_then(|server| Some((server, server.rejected.as_ref()?)));
    let example =
        why.map_or(String::new(), |(server, why)| format!(", such as {}: {why}", server.host));
    let (count, list) = (choice.servers.len(), &choice.list);
    Problem::new(
        Fault::Peer,
        format!("none of the {count} servers of '{list}' can be used{example}"),
    )
}
