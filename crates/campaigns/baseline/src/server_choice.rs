//! The choice of a server: the nearest of those that are fast enough, by RTT.

use crate::server_list::ListedServer;
use record::{RttSource, ServerCandidate, ServerChoice};
use std::cmp::Ordering;
use units::BitRate;

/// The rate that a server must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededRate {
    /// The rate.
    pub rate: BitRate,
    /// Where it is from, in words: `this host's link`.
    pub from: String,
}

/// The reply of a server, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbedServer {
    /// It answers.
    Alive {
        /// The RTT that counts, ms.
        rtt_ms: f64,
        /// The source of the RTT.
        from: RttSource,
    },
    /// It does not, or its port is closed.
    Dead(String),
}

/// How fast the servers have to be so that any remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standard {
    /// The rate needed.
    Needed,
    /// None of them states enough: those that state no rate.
    Unstated,
    /// All of them state too little: the highest rate of the list.
    Highest(BitRate),
}

fn standard(list: &[ListedServer], needed: BitRate) -> Standard {
    let highest = list.iter().filter_map(|server| server.rate).max();
    match highest {
        Some(rate) if rate >= needed => Standard::Needed,
        _ if list.iter().any(|server| server.rate.is_none()) => Standard::Unstated,
        Some(rate) => Standard::Highest(rate),
        None => Standard::Unstated,
    }
}

/// Why a server is not even probed.
fn too_slow(server: &ListedServer, standard: Standard, needed: BitRate) -> Option<String> {
    let slow = |rate: BitRate| Some(format!("too slow: {rate}, {needed} needed"));
    match (standard, server.rate) {
        (Standard::Needed, Some(rate)) if rate < needed => slow(rate),
        (Standard::Needed, None) => Some("the list does not state its rate".to_owned()),
        (Standard::Unstated, Some(rate)) => slow(rate),
        (Standard::Highest(highest), Some(rate)) if rate < highest => slow(rate),
        _ => None,
    }
}

/// The numbers of the servers that are fast enough, so that only those are probed. Where none
/// states enough, those without a stated rate; where there is none of those, the fastest.
#[must_use]
pub fn worth_probing(list: &[ListedServer], needed: BitRate) -> Vec<usize> {
    let standard = standard(list, needed);
    let servers = list.iter().enumerate();
    servers
        .filter(|(_, server)| too_slow(server, standard, needed).is_none())
        .map(|(number, _)| number)
        .collect()
}

/// The choice among probed servers: `probed` of each server of the list, `None` where it was
/// not probed.
#[must_use]
pub fn choose_server(
    name: &str,
    list: &[ListedServer],
    needed: &NeededRate,
    probed: &[Option<ProbedServer>],
) -> ServerChoice {
    let standard = standard(list, needed.rate);
    let candidate = |(number, server): (usize, &ListedServer)| {
        let answer = probed.get(number).and_then(Option::as_ref);
        let slow = too_slow(server, standard, needed.rate);
        let (rtt, from, rejected) = match (slow, answer) {
            (Some(slow), _) => (None, None, Some(slow)),
            (None, Some(ProbedServer::Alive { rtt_ms, from })) => {
                (Some(*rtt_ms), Some(*from), None)
            }
            (None, Some(ProbedServer::Dead(why))) => {
                (None, None, Some(format!("unreachable: {why}")))
            }
            (None, None) => (None, None, Some("not probed".to_owned())),
        };
        ServerCandidate {
            host: server.host.clone(),
            ports: server.ports,
            rate_bps: server.rate,
            location: server.location.clone(),
            rtt_ms: rtt,
            rtt_from: from,
            rejected,
        }
    };
    let mut servers: Vec<ServerCandidate> = list.iter().enumerate().map(candidate).collect();
    servers.sort_by(|a, b| match (a.rtt_ms, b.rtt_ms) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        // Faster ones first: they were rejected for another reason.
        (None, None) => b.rate_bps.cmp(&a.rate_bps),
    });
    let nearest = servers.first().and_then(|first| first.rtt_ms);
    for server in servers.iter_mut().skip(1) {
        if let (Some(rtt), Some(nearest)) = (server.rtt_ms, nearest) {
            server.rejected =
                Some(format!("farther: {rtt:.1} ms, the nearest is at {nearest:.1} ms"));
        }
    }
    ServerChoice {
        list: name.to_owned(),
        needed_bps: needed.rate,
        needed_from: match standard {
            Standard::Needed => needed.from.clone(),
            Standard::Unstated => format!("{}; no server states such a rate", needed.from),
            Standard::Highest(highest) => {
                format!(
                    "{}; the fastest server offers {highest}, which limits the tests",
                    needed.from
                )
            }
        },
        servers,
    }
}

/// Rejects the chosen server, which could not be used, and takes the next nearest. `false` if
/// there is none.
pub fn reject_chosen(choice: &mut ServerChoice, why: &str) -> bool {
    let alive = choice.servers.iter().filter(|server| server.rtt_ms.is_some()).count();
    let Some(at) = choice.servers.iter().position(|server| server.rejected.is_none()) else {
        return false;
    };
    if let Some(chosen) = choice.servers.get_mut(at) {
        chosen.rejected = Some(why.to_owned());
    }
    match choice.servers.get_mut(at + 1) {
        Some(next) if at + 1 < alive => {
            next.rejected = None;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(host: &str, gbps: Option<f64>) -> ListedServer {
        ListedServer {
            host: host.to_owned(),
            ports: (5201, 5201),
            rate: gbps.map(|gbps| BitRate::from_bps_f64(gbps * 1e9)),
            location: String::new(),
        }
    }

    fn needed() -> NeededRate {
        NeededRate { rate: BitRate::from_bps(2_500_000_000), from: "this host's link".to_owned() }
    }

    fn alive(rtt_ms: f64) -> Option<ProbedServer> {
        Some(ProbedServer::Alive { rtt_ms, from: RttSource::Icmp })
    }

    #[test]
    fn the_nearest_that_is_fast_enough_is_chosen_and_the_others_say_why_not() {
        let list = [
            listed("far", Some(10.0)),
            listed("slow", Some(1.0)),
            listed("dead", Some(100.0)),
            listed("near", Some(2.5)),
            listed("unstated", None),
        ];
        assert_eq!(worth_probing(&list, needed().rate), [0, 2, 3]);
        let dead = Some(ProbedServer::Dead("no reply".to_owned()));
        let probed = [alive(80.0), None, dead, alive(9.0), None];
        let mut choice = choose_server("list", &list, &needed(), &probed);
        let shown = |choice: &ServerChoice| -> Vec<(String, Option<String>)> {
            choice.servers.iter().map(|s| (s.host.clone(), s.rejected.clone())).collect()
        };
        let expected = [
            ("near", None),
            ("far", Some("farther: 80.0 ms, the nearest is at 9.0 ms")),
            ("dead", Some("unreachable: no reply")),
            ("slow", Some("too slow: 1 Gbit/s, 2.5 Gbit/s needed")),
            ("unstated", Some("the list does not state its rate")),
        ];
        let expected = expected.map(|(host, why)| (host.to_owned(), why.map(str::to_owned)));
        assert_eq!(shown(&choice), expected);
        assert!(reject_chosen(&mut choice, "busy"));
        assert_eq!(shown(&choice)[0].1.as_deref(), Some("busy"));
        assert_eq!(shown(&choice)[1], ("far".to_owned(), None));
        assert!(!reject_chosen(&mut choice, "busy too"));
        assert!(choice.servers.iter().all(|server| server.rejected.is_some()));
    }

    #[test]
    fn without_a_fast_one_those_of_unknown_rate_and_then_the_fastest_remain() {
        let list = [listed("slow", Some(1.0)), listed("unstated", None)];
        assert_eq!(worth_probing(&list, needed().rate), [1]);
        let list = [listed("slow", Some(0.1)), listed("fastest", Some(1.0))];
        assert_eq!(worth_probing(&list, needed().rate), [1]);
        let choice = choose_server("list", &list, &needed(), &[None, alive(20.0)]);
        assert_eq!(choice.servers[0].host, "fastest");
        assert_eq!(choice.servers[0].rejected, None);
        assert!(choice.needed_from.contains("which limits the tests"), "{choice:?}");
        // Exactly enough is enough.
        assert_eq!(worth_probing(&[listed("a", Some(2.5))], needed().rate), [0]);
    }

    #[test]
    fn with_dead_servers_only_nothing_is_chosen() {
        let list = [listed("a", Some(10.0))];
        let dead = [Some(ProbedServer::Dead("refused".to_owned()))];
        let mut choice = choose_server("list", &list, &needed(), &dead);
        assert_eq!(choice.servers[0].rejected.as_deref(), Some("unreachable: refused"));
        assert!(!reject_chosen(&mut choice, "again"));
    }
}
