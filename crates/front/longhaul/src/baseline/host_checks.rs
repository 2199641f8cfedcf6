//! Checks before the tests: the paths, and conditions on this host that would make the result
//! doubtful (power saving and other traffic).

use super::{BaselineEvent, BaselineRequest, Server, Unmeasured, path};
use crate::cross_traffic::InterfaceCounters;
use crate::doctor::{Asked, Root, this_nic};
use crate::rtt_under_load::pause;
use crate::{Fault, Problem, StopFlag};
use ::doctor::{Facts, Target, examine, link_rate};
use host::clock;
use host::resolve::Family;
use record::{AddressFamily, Area, BaselinePath, Check, Verdict};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt, percent};

/// Doctor's checks of power saving, of other programs, and of settings that waste a link.
const CHECKS: [&str; 7] = [
    "cpu.governor",
    "cpu.frequency",
    "cpu.load",
    "nic.eee",
    "nic.wifi",
    "nic.negotiated",
    "nic.duplex",
];

/// The time for which other traffic is observed.
const OBSERVED: Duration = Duration::from_secs(1);

/// Other traffic above this share of the link distorts the tests; below 1 Mbit/s none does.
const DISTORTS: f64 = 0.01;
const NEGLIGIBLE: BitRate = BitRate::from_bps(1_000_000);

/// The rate that checks assume where the link's is unknown, and the MTU of its device.
const USUAL_RATE: BitRate = BitRate::from_bps(1_000_000_000);
const USUAL_MTU: u32 = 1_500;

/// This host and its paths to the server.
pub(super) struct Examined {
    pub(super) paths: Vec<BaselinePath>,
    pub(super) checks: Vec<Check>,
    /// The rate of the device that sends.
    pub(super) link: Option<BitRate>,
}

impl Examined {
    /// Resolves the server, probes its paths and checks this host.
    pub(super) fn towards(
        server: &Server,
        request: &BaselineRequest,
        stop: &StopFlag,
        on_event: &mut dyn FnMut(BaselineEvent),
    ) -> Result<Self, Unmeasured> {
        let families = match request.family {
            Family::V4 => &[AddressFamily::Ipv4][..],
            Family::V6 => &[AddressFamily::Ipv6],
            Family::Any => &[AddressFamily::Ipv4, AddressFamily::Ipv6],
        };
        on_event(BaselineEvent::Resolving { host: server.host.clone() });
        let addresses: Vec<_> =
            families.iter().map(|family| (*family, path::address(server, *family, stop))).collect();
        let first = addresses.iter().find_map(|(_, found)| found.as_ref().ok());
        let Some(first) = first.map(SocketAddr::ip) else { return Err(unresolved(addresses)) };
        let mut facts = gather(first);
        let device = facts.device.seen();
        let mtu = device.and_then(|device| device.mtu.seen()).copied().unwrap_or(USUAL_MTU);
        let mut paths = Vec::new();
        for (family, found) in addresses {
            if stop.is_raised() {
                return Err(interrupted());
            }
            let (path, seen) = match found {
                Ok(to) => path::probe(server, family, to, mtu, on_event, stop),
                Err(error) => (path::without_address(family, &error), None),
            };
            if facts.path.is_none() {
                facts.path = seen;
            }
            paths.push(path);
        }
        on_event(BaselineEvent::ObservingTraffic);
        let link = link_rate(&facts);
        let mut checks = power_saving(&facts, link);
        let observed = request.duration.map_or(OBSERVED, Duration::from_secs_f64).min(OBSERVED);
        checks.extend(traffic(&facts, link, observed, stop));
        if stop.is_raised() {
            return Err(interrupted());
        }
        if paths.iter().all(|path| path.skipped.is_some()) {
            let why = paths.iter().filter_map(|path| path.skipped.clone()).collect::<Vec<_>>();
            return Err(Unmeasured::Server(Problem::new(Fault::Peer, why.join("; "))));
        }
        Ok(Examined { paths, checks, link })
    }
}

fn interrupted() -> Unmeasured {
    Unmeasured::Fatal(super::interrupted("interrupted before the first test; run it again"))
}

type Resolved = (AddressFamily, Result<SocketAddr, probe::ProbeError>);

fn unresolved(addresses: Vec<Resolved>) -> Unmeasured {
    let errors = addresses.into_iter().filter_map(|(_, found)| found.err());
    let error = errors.last();
    Unmeasured::Server(error.map_or_else(
        || Problem::new(Fault::Request, "the server has no address"),
        |error| match error {
            probe::ProbeError::Interrupted => {
                Problem::new(Fault::Peer, "the resolver did not answer")
            }
            error => Problem::new(Fault::Request, error),
        },
    ))
}

/// Facts of this host, with the device towards an address.
fn gather(to: IpAddr) -> Facts {
    let asked = Asked { to: Some(to), ..Asked::default() };
    crate::doctor::gather(&Root::machine(), &asked, &this_nic)
}

/// The link rate towards the default route.
pub(super) fn own_link() -> Option<BitRate> {
    let facts = crate::doctor::gather(&Root::machine(), &Asked::default(), &this_nic);
    link_rate(&facts)
}

fn power_saving(facts: &Facts, link: Option<BitRate>) -> Vec<Check> {
    let path = facts.path.as_ref();
    let target = Target {
        rate: link.unwrap_or(USUAL_RATE),
        rate_from: "the link's".to_owned(),
        rtt: path.and_then(|path| path.rtt_ns.seen()).copied(),
        rtt_from: "measured".to_owned(),
        streams: 1,
        mss: None,
    };
    let checks = examine(facts, &target);
    checks.into_iter().filter(|check| CHECKS.contains(&check.id.as_str())).collect()
}

/// Bytes that pass the device while nothing is tested.
fn traffic(
    facts: &Facts,
    link: Option<BitRate>,
    length: Duration,
    stop: &StopFlag,
) -> Option<Check> {
    let device = facts.device.seen()?;
    let counters = InterfaceCounters::of_device(device.name.clone())?;
    let begun = clock::now();
    pause(length, stop);
    let took = clock::now().saturating_duration_since(begun);
    let rate = BitRate::of(ByteCount::from_bytes(counters.passed()?), took);
    Some(traffic_check(rate, link, &device.name, Rtt::from_secs(took.as_secs_f64())))
}

fn traffic_check(rate: BitRate, link: Option<BitRate>, device: &str, took: Rtt) -> Check {
    let most = link.map_or(NEGLIGIBLE, |link| link.scaled(DISTORTS).max(NEGLIGIBLE));
    let distorts = rate > most;
    Check {
        id: "nic.traffic".to_owned(),
        area: Area::Nic,
        verdict: if distorts { Verdict::Warn } else { Verdict::Pass },
        seen: format!("{rate} of other traffic on {device} over {took}"),
        needed: format!("at most {most}"),
        why: format!(
            "other traffic takes its share of the path during each test; above {} of the link, \
             it affects the results",
            percent(DISTORTS)
        ),
        remedy: if distorts {
            "stop downloads, backups, updates and calls; longhaul watch names the programs"
                .to_owned()
        } else {
            String::new()
        },
        command: distorts.then(|| "longhaul watch".into()),
        source: "/proc/net/dev; M3AAWG 2025, \"Understanding Network Performance\"".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_traffic_warns_above_a_hundredth_of_the_link() {
        let mbit = |mbit: u64| BitRate::from_bps(mbit * 1_000_000);
        let verdict =
            |rate, link| traffic_check(mbit(rate), link, "eth0", Rtt::from_secs(1.0)).verdict;
        assert_eq!(verdict(10, Some(mbit(1_000))), Verdict::Pass);
        assert_eq!(verdict(11, Some(mbit(1_000))), Verdict::Warn);
        // A slow link, or an unknown one: 1 Mbit/s.
        assert_eq!(
            (verdict(1, Some(mbit(10))), verdict(2, Some(mbit(10)))),
            (Verdict::Pass, Verdict::Warn)
        );
        assert_eq!((verdict(1, None), verdict(2, None)), (Verdict::Pass, Verdict::Warn));
        let check = traffic_check(mbit(50), None, "eth0", Rtt::from_secs(1.0));
        assert!(check.seen.starts_with("50 Mbit/s of other traffic on eth0"), "{}", check.seen);
    }
}
