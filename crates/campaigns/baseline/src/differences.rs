//! Pairs of conditions that differ in one respect: IPv6 against IPv4, download against upload,
//! several streams against one.

use crate::CONFIDENCE;
use diagnose::repeats;
use model::statistics;
use record::{
    AddressFamily, BaselineCondition, BaselineDifference, Comparison, ConditionFactor, Direction,
    TestCondition,
};
use units::{BitRate, change};

/// The smallest difference to act on, as a share. IPv6's longer header alone makes 1.4 % with
/// packets of 1500 bytes: 20 bytes of 1448.
const MATTERS: f64 = 0.03;

/// Every pair, by factor; significance is that of all pairs together.
#[must_use]
pub fn differences(conditions: &[BaselineCondition]) -> Vec<BaselineDifference> {
    use ConditionFactor::{Direction as ByDirection, Family, Streams};
    let mut all: Vec<BaselineDifference> = [Family, ByDirection, Streams]
        .into_iter()
        .flat_map(|factor| {
            conditions.iter().filter_map(move |first| {
                let second = conditions
                    .iter()
                    .find(|second| differ_in(factor, &first.condition, &second.condition))?;
                Some(difference(factor, first, second))
            })
        })
        .collect();
    let p: Vec<Option<f64>> = all.iter().map(|one| one.comparison.p).collect();
    for (one, significant) in all.iter_mut().zip(statistics::holm(&p, CONFIDENCE)) {
        one.significant = significant;
        let share = one.comparison.difference_share.map_or(f64::INFINITY, f64::abs);
        one.matters = significant == Some(true) && share >= MATTERS;
        one.comparison.sentence = sentence(one);
    }
    all
}

/// Returns true if the second is the first but for this factor: the first is IPv4, upload, one
/// stream.
fn differ_in(factor: ConditionFactor, first: &TestCondition, second: &TestCondition) -> bool {
    let family = first.family == second.family;
    let direction = first.direction == second.direction;
    let streams = first.streams == second.streams;
    match factor {
        ConditionFactor::Family => {
            direction && streams && first.family == AddressFamily::Ipv4 && !family
        }
        ConditionFactor::Direction => {
            family && streams && first.direction == Direction::Forward && !direction
        }
        ConditionFactor::Streams => family && direction && first.streams == 1 && !streams,
    }
}

fn difference(
    factor: ConditionFactor,
    first: &BaselineCondition,
    second: &BaselineCondition,
) -> BaselineDifference {
    BaselineDifference {
        factor,
        first: first.condition,
        second: second.condition,
        comparison: repeats::compare(&first.runs, &second.runs),
        significant: None,
        matters: false,
    }
}

/// The compared properties, and the conditions that both have in common.
fn names(one: &BaselineDifference) -> (String, String, String) {
    let (first, second) = (&one.first, &one.second);
    let [family, direction, streams] =
        [first.family.name().to_owned(), first.direction_name().to_owned(), first.streams_name()];
    match one.factor {
        ConditionFactor::Family => {
            (second.family.name().to_owned(), family, format!("{direction}, {streams}"))
        }
        ConditionFactor::Direction => {
            (second.direction_name().to_owned(), direction, format!("{family}, {streams}"))
        }
        ConditionFactor::Streams => {
            (second.streams_name(), streams, format!("{family} {direction}"))
        }
    }
}

fn sentence(one: &BaselineDifference) -> String {
    let (what, against, both) = names(one);
    let Comparison { baseline_bps, now_bps, difference_share, .. } = one.comparison;
    let [before, now] = [baseline_bps, now_bps].map(BitRate::from_bps_f64);
    let by = difference_share.map_or(String::new(), |share| format!(" ({})", change(share)));
    let verdict = match (one.significant, one.matters) {
        (None, _) => "too few tests to compare",
        (Some(false), _) => "not significant",
        (Some(true), true) => "significant",
        (Some(true), false) if one.factor == ConditionFactor::Family => {
            "significant, but hardly more than IPv6's longer header explains"
        }
        (Some(true), false) => "significant, but small",
    };
    format!("{what} vs. {against} ({both}): {now} vs. {before}{by}; {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::report;
    use AddressFamily::{Ipv4, Ipv6};

    #[test]
    fn every_pair_differs_in_one_respect() {
        let found = report(&[Ipv4, Ipv6], |_| 90.0, 10.0).differences;
        // 4 of IP versions, 4 of directions, 4 of streams.
        assert_eq!(found.len(), 12);
        assert!(found.iter().all(|one| one.significant == Some(false) && !one.matters));
        assert_eq!(report(&[Ipv4], |_| 90.0, 10.0).differences.len(), 4);
    }

    #[test]
    fn a_slow_ip_version_is_found_and_the_header_is_no_finding() {
        let by_header = |c: &TestCondition| if c.family == Ipv6 { 928.5 } else { 941.5 };
        for one in report(&[Ipv4, Ipv6], by_header, 10.0).differences {
            let is_family = one.factor == ConditionFactor::Family;
            assert_eq!(one.significant, Some(is_family), "{one:?}");
            assert!(!one.matters, "{one:?}");
        }
        let slow = |c: &TestCondition| if c.family == Ipv6 { 400.0 } else { 941.5 };
        let found = report(&[Ipv4, Ipv6], slow, 10.0).differences;
        let first = &found[0];
        assert!(first.matters && first.factor == ConditionFactor::Family);
        assert_eq!(
            first.comparison.sentence,
            "IPv6 vs. IPv4 (upload, 1 stream): 400 Mbit/s vs. 942 Mbit/s (-57.5 %); significant"
        );
        assert!(found[4..].iter().all(|one| !one.matters));
    }

    #[test]
    fn streams_and_directions_are_compared_in_their_order() {
        let rate = |c: &TestCondition| f64::from(c.streams) * 20.0;
        let found = report(&[Ipv4], rate, 10.0).differences;
        let streams: Vec<_> = found.iter().filter(|one| one.matters).collect();
        assert_eq!(streams.len(), 2);
        assert_eq!((streams[0].first.streams, streams[0].second.streams), (1, 4));
        assert_eq!(streams[0].comparison.difference_share, Some(3.0));
    }
}
