//! Where the queue is, with one server: the first router whose RTT grows under load, and whether
//! arrivals are aggregated. Each alone is evidence; a place is named where both agree.

use super::gaps::Gaps;
use super::hops::{DOWNLOAD, IDLE, NotProbed, UPLOAD};
use super::message::StepKind;
use super::step::Outcome;
use model::statistics;
use probe::ConnectionRoute;
use serde::Serialize;

/// The increase of the visitor's RTT below which there is no queue to be found, ms.
const MIN_INCREASE_MS: f64 = 5.0;
/// Shares of the visitor's increase from which a router is behind the queue, and up to which it is
/// before it.
const BEHIND: f64 = 0.5;
const BEFORE: f64 = 0.25;
/// RTTs of a router without load and under it, below which it is not judged.
const MIN_IDLE: usize = 2;
const MIN_LOADED: usize = 3;

/// Where the RTT grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum QueueLocation {
    /// Behind the last router before the visitor.
    LastHop,
    /// Before this router, behind the one before it.
    Line,
    /// Before routers that are farther from the visitor.
    BeforeLine,
}

/// A router on the route.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Hop {
    /// Its number, from the server on. Its address is not told: it says where a visitor is.
    pub(super) ttl: u8,
    /// Median RTTs, ms.
    pub(super) rtt_idle: f64,
    pub(super) rtt_loaded: f64,
}

/// The evidence of a direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Evidence {
    /// Where the RTT grows; null if that is unknown, or nothing grows.
    growth: Option<QueueLocation>,
    /// The place, where arrivals agree.
    pub(super) place: Option<QueueLocation>,
    /// The number of the last router before the visitor, if both directions take the same route.
    last_router: Option<u8>,
    hops: Vec<Hop>,
    /// RTT to the visitor's browser, ms.
    visitor: Option<[f64; 2]>,
    arrivals: Option<Gaps>,
    sentence: String,
}

/// The evidence of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct QueuePlace {
    download: Option<Evidence>,
    upload: Option<Evidence>,
    /// Why no router was probed.
    not_probed: Option<&'static str>,
}

/// The evidence that a run's steps and probes show; `None` if it loaded nothing.
pub(super) fn of(
    outcomes: &[Outcome],
    route: &Result<ConnectionRoute, NotProbed>,
) -> Option<QueuePlace> {
    let of = |kind, phase| {
        let loaded: Vec<&Outcome> =
            outcomes.iter().filter(|outcome| outcome.is_plain(kind)).collect();
        let gaps = loaded.iter().rev().find_map(|outcome| outcome.gaps);
        let rtts: Vec<f64> = loaded.iter().flat_map(|outcome| outcome.rtts_under_load()).collect();
        let idle = outcomes.iter().find_map(|outcome| outcome.result.rtt_idle);
        let visitor = idle.zip(statistics::median(&rtts)).map(|(idle, loaded)| [idle, loaded]);
        (!loaded.is_empty()).then(|| evidence(route.as_ref().ok(), phase, visitor, gaps))
    };
    let (download, upload) = (of(StepKind::Download, DOWNLOAD), of(StepKind::Upload, UPLOAD));
    if download.is_none() && upload.is_none() {
        return None;
    }
    let not_probed = route.as_ref().err().map(NotProbed::words);
    Some(QueuePlace { download, upload, not_probed })
}

fn evidence(
    route: Option<&ConnectionRoute>,
    phase: u8,
    visitor: Option<[f64; 2]>,
    arrivals: Option<Gaps>,
) -> Evidence {
    let hops = route.map(|route| hops(route, phase)).unwrap_or_default();
    let last_router = route.and_then(|route| route.passed);
    let found = growth(&hops, last_router, visitor);
    let growth = found.as_ref().ok().map(|(place, _)| *place);
    let place = growth.filter(|place| {
        let expected = *place == QueueLocation::LastHop;
        arrivals.is_some_and(|arrivals| arrivals.is_aggregated() == expected)
    });
    let sentence = sentence(&found, place, arrivals.as_ref());
    Evidence { growth, place, last_router, hops, visitor, arrivals, sentence }
}

/// The routers with enough RTTs.
fn hops(route: &ConnectionRoute, loaded: u8) -> Vec<Hop> {
    let median = |ttl, phase, least: usize| {
        let of = route.rtts.iter().filter(|rtt| rtt.ttl == ttl && rtt.phase == phase);
        let all: Vec<f64> = of.map(|rtt| rtt.rtt_ms).collect();
        statistics::median(&all).filter(|_| all.len() >= least)
    };
    let hop = |ttl: &u8| {
        let rtt_idle = median(*ttl, IDLE, MIN_IDLE)?;
        Some(Hop { ttl: *ttl, rtt_idle, rtt_loaded: median(*ttl, loaded, MIN_LOADED)? })
    };
    route.routers.iter().filter_map(hop).collect()
}

/// The place at which the RTT grows, in words as well; or why it is unknown.
fn growth(
    hops: &[Hop],
    last_router: Option<u8>,
    visitor: Option<[f64; 2]>,
) -> Result<(QueueLocation, String), String> {
    let Some([idle, loaded]) = visitor else {
        return Err("the RTT under load was not measured".to_owned());
    };
    let increase = loaded - idle;
    if increase < MIN_INCREASE_MS {
        return Err(format!("there is no queue to find: the RTT grew by {increase:.1} ms"));
    }
    let Some(nearest) = hops.last() else {
        return Err("no router answered often enough".to_owned());
    };
    let share = |hop: &Hop| (hop.rtt_loaded - hop.rtt_idle) / increase;
    // Routers may answer late for reasons of their own: from one on, all must have grown.
    let before = hops.iter().take_while(|hop| share(hop) <= BEFORE).count();
    let (before, behind) = hops.split_at(before);
    if !behind.iter().all(|hop| share(hop) >= BEHIND) {
        return Err("the RTTs of the routers do not grow from one of them on".to_owned());
    }
    let Some(last) = last_router else {
        return Err("it is unknown how many routers there are".to_owned());
    };
    let from = match before.last() {
        Some(hop) => format!("hop {}", hop.ttl),
        None => "the server".to_owned(),
    };
    let grew = format!("under load the RTT grew by {increase:.0} ms");
    match behind.first() {
        None if nearest.ttl == last => {
            let words = format!("{grew}, and only behind the last router before you (hop {last})");
            Ok((QueueLocation::LastHop, words))
        }
        None => Err(format!(
            "{grew} behind hop {}, and the routers after it do not answer",
            nearest.ttl
        )),
        Some(hop) if hop.ttl == last => {
            let words =
                format!("{grew} between {from} and the last router before you (hop {last})");
            Ok((QueueLocation::Line, words))
        }
        Some(hop) if hop.ttl < last => {
            Ok((QueueLocation::BeforeLine, format!("{grew} between {from} and hop {}", hop.ttl)))
        }
        Some(_) => Err("the two directions take different routes".to_owned()),
    }
}

fn sentence(
    found: &Result<(QueueLocation, String), String>,
    place: Option<QueueLocation>,
    arrivals: Option<&Gaps>,
) -> String {
    let (growth, words) = match found {
        Ok((growth, words)) => (*growth, words),
        Err(why) => return format!("I cannot tell where the queue is: {why}."),
    };
    let bursts = arrivals.map(|arrivals| arrivals.paused * 100.0);
    match (place, bursts) {
        (Some(QueueLocation::LastHop), Some(paused)) => format!(
            "Evidence for your Wi-Fi: {words}; data arrived in bursts, with pauses for {paused:.0} % \
             of the time, as Wi-Fi sends."
        ),
        (Some(QueueLocation::Line), Some(_)) => {
            format!("Evidence for your line: {words}; data arrived evenly.")
        }
        (Some(QueueLocation::BeforeLine), Some(_)) => {
            format!("Evidence for a link before your line: {words}; data arrived evenly.")
        }
        (_, None) => format!("I cannot tell: {words}, but how data arrived is unknown."),
        (None, Some(_)) if growth == QueueLocation::LastHop => {
            format!("I cannot tell: {words}, but data arrived evenly, and not as Wi-Fi sends.")
        }
        (None, Some(paused)) => format!(
            "I cannot tell: {words}, but data arrived in bursts, with pauses for {paused:.0} % of the \
             time, as Wi-Fi sends; cable and mobile lines do so as well."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::HopRtt;

    /// A route whose routers have an RTT of their number without load, and more under it.
    fn route(more: &[f64], passed: Option<u8>) -> ConnectionRoute {
        let mut route = ConnectionRoute { passed, ..ConnectionRoute::default() };
        for (ttl, more) in (1u8..).zip(more) {
            route.routers.push(ttl);
            for (phase, more, count) in [(IDLE, 0.0, MIN_IDLE), (DOWNLOAD, *more, MIN_LOADED)] {
                let rtt = HopRtt { ttl, phase, rtt_ms: f64::from(ttl) + more };
                route.rtts.extend(vec![rtt; count]);
            }
        }
        route
    }

    fn told(more: &[f64], passed: u8, paused: Option<f64>) -> Evidence {
        let route = route(more, Some(passed));
        evidence(Some(&route), DOWNLOAD, Some([5.0, 105.0]), paused.map(Gaps::with_paused))
    }

    #[test]
    fn a_place_is_named_where_both_agree() {
        for (more, growth) in [
            ([0.0, 1.0, 0.0], QueueLocation::LastHop),
            ([0.0, 0.0, 100.0], QueueLocation::Line),
            ([0.0, 90.0, 101.0], QueueLocation::BeforeLine),
            ([95.0, 90.0, 101.0], QueueLocation::BeforeLine),
        ] {
            let is_last = growth == QueueLocation::LastHop;
            let agrees = told(&more, 3, Some(if is_last { 0.8 } else { 0.1 }));
            assert_eq!((agrees.growth, agrees.place), (Some(growth), Some(growth)));
            assert!(agrees.sentence.starts_with("Evidence for "), "{}", agrees.sentence);
            let conflicts = told(&more, 3, Some(if is_last { 0.1 } else { 0.8 }));
            assert_eq!((conflicts.growth, conflicts.place), (Some(growth), None));
            assert!(conflicts.sentence.starts_with("I cannot tell: "), "{}", conflicts.sentence);
            let alone = told(&more, 3, None);
            assert_eq!(alone.place, None);
            assert!(alone.sentence.ends_with("is unknown."), "{}", alone.sentence);
        }
    }

    #[test]
    fn what_does_not_fit_is_not_told() {
        let unknown = |more: &[f64], passed| {
            let told = told(more, passed, Some(0.8));
            assert_eq!((told.growth, told.place), (None, None), "{more:?}");
            told.sentence
        };
        // One router in the middle, one between the bounds, the last one silent, none at all.
        assert!(unknown(&[0.0, 90.0, 0.0], 3).contains("do not grow"));
        assert!(unknown(&[0.0, 0.0, 40.0], 3).contains("do not grow"));
        assert!(unknown(&[0.0, 0.0, 0.0], 4).contains("do not answer"));
        assert!(unknown(&[0.0, 0.0, 99.0], 2).contains("different routes"));
        assert!(unknown(&[], 0).contains("no router"));
        let still = evidence(None, DOWNLOAD, Some([5.0, 9.0]), Some(Gaps::with_paused(0.8)));
        assert!(still.growth.is_none() && still.sentence.contains("no queue"), "{still:?}");
        let route = route(&[0.0, 99.0], None);
        let lost =
            evidence(Some(&route), DOWNLOAD, Some([5.0, 105.0]), Some(Gaps::with_paused(0.1)));
        assert!(lost.sentence.contains("how many routers"), "{lost:?}");
    }

    #[test]
    fn routers_with_few_answers_are_not_judged() {
        let mut route = route(&[0.0, 0.0, 99.0], Some(3));
        let at = route.rtts.iter().position(|rtt| rtt.ttl == 3 && rtt.phase == DOWNLOAD).unwrap();
        route.rtts.remove(at);
        let told =
            evidence(Some(&route), DOWNLOAD, Some([5.0, 105.0]), Some(Gaps::with_paused(0.1)));
        assert_eq!((told.hops.len(), told.growth), (2, None));
    }
}
