//! A baseline against an earlier one, condition by condition.

use crate::CONFIDENCE;
use diagnose::repeats;
use model::statistics;
use record::{
    BaselineComparison, BaselineCondition, BaselineReport, ComparedCondition, ComparedRise,
};
use std::collections::BTreeSet;
use units::{BitRate, change};

/// Two baselines without a common condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the baselines have no condition in common: the same IP version, direction and number of \
     streams"
)]
pub struct NothingInCommon;

/// Compares the conditions that both have; significance is that of all comparisons together.
///
/// # Errors
/// [`NothingInCommon`].
pub fn compare(
    earlier: &BaselineReport,
    now: &BaselineReport,
) -> Result<BaselineComparison, NothingInCommon> {
    let pair = |now: &BaselineCondition| {
        let before = earlier.conditions.iter().find(|one| one.condition == now.condition)?;
        Some(ComparedCondition {
            condition: now.condition,
            comparison: repeats::compare(&before.runs, &now.runs),
            significant: None,
            rise: rise(before, now),
        })
    };
    let mut conditions: Vec<ComparedCondition> = now.conditions.iter().filter_map(pair).collect();
    if conditions.is_empty() {
        return Err(NothingInCommon);
    }
    mark_significant(&mut conditions);
    let unmatched =
        (earlier.conditions.len() + now.conditions.len()).saturating_sub(2 * conditions.len());
    Ok(BaselineComparison {
        target: earlier.target.clone(),
        started_unix_s: earlier.started_unix_s,
        sentence: sentence(&conditions),
        warnings: warnings(earlier, now),
        unmatched: u32::try_from(unmatched).unwrap_or(u32::MAX),
        conditions,
    })
}

/// The rises of the mean RTT under load of each test, ms.
fn rises(of: &BaselineCondition) -> Vec<f64> {
    let runs = of.runs.iter().filter_map(|run| run.latency.as_ref()?.rise_ms);
    runs.filter(|rise| rise.is_finite()).collect()
}

fn rise(before: &BaselineCondition, now: &BaselineCondition) -> Option<ComparedRise> {
    let (before, now) = (rises(before), rises(now));
    let test = statistics::welch(&before, &now, CONFIDENCE);
    Some(ComparedRise {
        baseline_ms: statistics::mean(&before)?,
        now_ms: statistics::mean(&now)?,
        low_ms: test.map(|test| test.interval.low),
        high_ms: test.map(|test| test.interval.high),
        p: test.map(|test| test.p.clamp(0.0, 1.0)),
        significant: None,
    })
}

fn mark_significant(conditions: &mut [ComparedCondition]) {
    let goodputs = conditions.iter().map(|one| one.comparison.p);
    let rises = conditions.iter().map(|one| one.rise.and_then(|rise| rise.p));
    let p: Vec<Option<f64>> = goodputs.chain(rises).collect();
    let marks = statistics::holm(&p, CONFIDENCE);
    let (of_goodput, of_rise) = marks.split_at(conditions.len());
    for ((one, goodput), rise) in conditions.iter_mut().zip(of_goodput).zip(of_rise) {
        one.significant = *goodput;
        if let Some(compared) = &mut one.rise {
            compared.significant = *rise;
        }
    }
}

fn sentence(conditions: &[ComparedCondition]) -> String {
    let count = conditions.len();
    let tested = conditions.iter().filter(|one| one.significant.is_some()).count();
    if tested == 0 {
        return format!("None of {count} conditions has enough tests to compare.");
    }
    let differ: Vec<String> = conditions
        .iter()
        .filter(|one| one.significant == Some(true))
        .map(|one| {
            let found = &one.comparison;
            let [before, now] = [found.baseline_bps, found.now_bps].map(BitRate::from_bps_f64);
            let by = found.difference_share.map_or(String::new(), |s| format!("{}, ", change(s)));
            format!("{} {by}{now} vs. {before}", one.condition)
        })
        .collect();
    let rises: Vec<String> = conditions
        .iter()
        .filter_map(|one| Some((one, one.rise.filter(|rise| rise.significant == Some(true))?)))
        .map(|(one, rise)| {
            format!("{} {:.0} ms vs. {:.0} ms", one.condition, rise.now_ms, rise.baseline_ms)
        })
        .collect();
    let goodput = match differ.as_slice() {
        [] => format!("The goodput did not change significantly in any of {tested} conditions"),
        all => format!(
            "The goodput changed significantly in {} of {tested} conditions: {}",
            all.len(),
            all.join("; ")
        ),
    };
    match rises.as_slice() {
        [] => format!("{goodput}."),
        all => format!("{goodput}. The RTT rise under load changed: {}.", all.join("; ")),
    }
}

/// Causes besides the path that may explain a difference.
fn warnings(earlier: &BaselineReport, now: &BaselineReport) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differs = |what: &str, before: &str, after: &str| {
        if before != after {
            warnings.push(format!("{what} differs: {after}, {before} before"));
        }
    };
    differs("the server", &earlier.target, &now.target);
    differs("the server software", &earlier.peer, &now.peer);
    differs("the kernel", &earlier.host.kernel, &now.host.kernel);
    let seconds = |report: &BaselineReport| format!("{} s", report.duration_s);
    differs("the test duration", &seconds(earlier), &seconds(now));
    let link = |report: &BaselineReport| {
        report.link_bps.map_or_else(|| "unknown".to_owned(), |rate| rate.to_string())
    };
    differs("this host's link rate", &link(earlier), &link(now));
    let text = |of: &BaselineReport, part: &str| {
        let note = of.architecture.iter().find(|note| note.part == part);
        note.map_or_else(|| "not noted".to_owned(), |note| note.text.clone())
    };
    let notes = earlier.architecture.iter().chain(&now.architecture);
    let parts: BTreeSet<&str> = notes.map(|note| note.part.as_str()).collect();
    for part in parts {
        differs(&format!("the {part}"), &text(earlier, part), &text(now, part));
    }
    for path in &now.paths {
        let before = earlier.paths.iter().find(|before| before.family == path.family);
        let addresses =
            before.and_then(|before| before.address.as_ref()).zip(path.address.as_ref());
        if let Some((before, after)) = addresses {
            differs(&format!("the server's {} address", path.family.name()), before, after);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::report;
    use record::AddressFamily::{Ipv4, Ipv6};
    use record::ArchitectureNote;
    use record::TestCondition;

    #[test]
    fn next_week_is_the_same_or_slower() {
        let before = report(&[Ipv4, Ipv6], |_| 90.0, 20.0);
        let same = compare(&before, &report(&[Ipv4, Ipv6], |_| 90.01, 20.1)).unwrap();
        assert_eq!((same.conditions.len(), same.unmatched), (8, 0));
        assert!(same.conditions.iter().all(|one| one.significant == Some(false)));
        assert_eq!(
            same.sentence,
            "The goodput did not change significantly in any of 8 conditions."
        );
        let slow = |c: &TestCondition| if c.family == Ipv6 && c.streams == 4 { 45.0 } else { 90.0 };
        let mut later = report(&[Ipv4, Ipv6], slow, 80.0);
        later.target = "elsewhere".to_owned();
        let found = compare(&before, &later).unwrap();
        let slower: Vec<_> =
            found.conditions.iter().filter(|one| one.significant == Some(true)).collect();
        assert_eq!(slower.len(), 2);
        assert!(slower.iter().all(|one| one.condition.family == Ipv6));
        assert!(found.sentence.contains("in 2 of 8 conditions: IPv6 upload, 4 streams -50 %"));
        assert!(found.sentence.contains("80 ms vs. 20 ms"), "{}", found.sentence);
        assert_eq!(found.warnings, ["the server differs: elsewhere, server.example.net before"]);
        let note = |part: &str, text: &str| ArchitectureNote {
            part: part.to_owned(),
            text: text.to_owned(),
        };
        let with = |notes: &[ArchitectureNote]| {
            let mut one = before.clone();
            one.architecture = notes.to_vec();
            one
        };
        let [then, now] = [
            with(&[note("cable", "Cat 5e"), note("router", "A")]),
            with(&[note("cable", "Cat 6"), note("router", "A"), note("NIC", "B")]),
        ];
        let changed =
            ["the NIC differs: B, not noted before", "the cable differs: Cat 6, Cat 5e before"];
        assert_eq!(compare(&then, &now).unwrap().warnings, changed);
        // Only conditions with several streams measure it.
        let rises = found.conditions.iter().filter(|one| one.rise.is_some()).count();
        assert_eq!(rises, 4);
    }

    #[test]
    fn conditions_of_one_baseline_alone_are_counted_and_none_in_common_is_refused() {
        let both = report(&[Ipv4, Ipv6], |_| 90.0, 20.0);
        let found = compare(&both, &report(&[Ipv4], |_| 90.0, 20.0)).unwrap();
        assert_eq!((found.conditions.len(), found.unmatched), (4, 4));
        let other = report(&[Ipv6], |_| 90.0, 20.0);
        let v4 = report(&[Ipv4], |_| 90.0, 20.0);
        assert!(compare(&other, &v4).unwrap_err().to_string().contains("no condition in common"));
    }

    #[test]
    fn a_single_test_is_not_compared_with_one() {
        let mut before = report(&[Ipv4], |_| 90.0, 20.0);
        before.conditions.iter_mut().for_each(|one| one.runs.truncate(1));
        let found = compare(&before, &before).unwrap();
        assert!(found.sentence.contains("enough tests"), "{}", found.sentence);
    }
}
