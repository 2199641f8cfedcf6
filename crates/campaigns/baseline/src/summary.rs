//! What the tests of one condition say together.

use crate::CONFIDENCE;
use diagnose::{latency, repeats};
use model::statistics;
use record::{
    BaselineCondition, BaselineLatency, Finding, LatencyUnderLoad, Limit, RunFigures, TestCondition,
};

/// One test of a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct TestRun {
    /// Its figures.
    pub figures: RunFigures,
    /// What limited it.
    pub finding: Finding,
}

/// The tests of a condition; `None` without any.
#[must_use]
pub fn summary(
    condition: TestCondition,
    runs: &[TestRun],
    failed: u32,
) -> Option<BaselineCondition> {
    let rates: Vec<f64> = runs.iter().map(|run| run.figures.throughput_bps.as_f64()).collect();
    let median = statistics::median(&rates)?;
    let interval = statistics::median_interval(&rates, CONFIDENCE);
    let (limit, limit_runs) = frequent_limit(runs);
    let distance = |run: &&TestRun| (run.figures.throughput_bps.as_f64() - median).abs();
    let typical = runs
        .iter()
        .filter(|run| run.finding.limit == limit)
        .min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let latencies: Vec<&LatencyUnderLoad> =
        runs.iter().filter_map(|run| run.figures.latency.as_ref()).collect();
    let figures: Vec<RunFigures> = runs.iter().map(|run| without_probes(&run.figures)).collect();
    Some(BaselineCondition {
        condition,
        summary: repeats::summary(&figures),
        runs: figures,
        failed,
        median_low_bps: interval.map(|found| found.interval.low),
        median_high_bps: interval.map(|found| found.interval.high),
        median_confidence: interval.map(|found| found.confidence),
        limit,
        limit_runs,
        finding: typical.map(|run| run.finding.clone()),
        latency: latency_of(&latencies),
    })
}

/// The most frequent limit, of several the one that was found first, and its tests.
fn frequent_limit(runs: &[TestRun]) -> (Option<Limit>, u32) {
    let mut counts: Vec<(Option<Limit>, u32)> = Vec::new();
    for run in runs {
        match counts.iter_mut().find(|(limit, _)| *limit == run.finding.limit) {
            Some((_, count)) => *count += 1,
            None => counts.push((run.finding.limit, 1)),
        }
    }
    // max_by_key takes the last of equals.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).unwrap_or_default()
}

/// The figures without the hundreds of single probes, whose statistics are kept.
fn without_probes(figures: &RunFigures) -> RunFigures {
    let mut figures = figures.clone();
    if let Some(latency) = &mut figures.latency {
        latency.probes.clear();
    }
    figures
}

fn latency_of(all: &[&LatencyUnderLoad]) -> Option<BaselineLatency> {
    if all.is_empty() {
        return None;
    }
    let values = |of: fn(&LatencyUnderLoad) -> Option<f64>| -> Vec<f64> {
        all.iter().filter_map(|one| of(one)).filter(|value| value.is_finite()).collect()
    };
    let median = |of| statistics::median(&values(of));
    let rises = values(|one| one.rise_ms);
    let rise = statistics::median(&rises);
    let interval = statistics::median_interval(&rises, CONFIDENCE).map(|found| found.interval);
    Some(BaselineLatency {
        count: rises.len() as u64,
        before_ms: median(|one| one.before.p50_ms),
        during_ms: median(|one| one.during.p50_ms),
        during_p95_ms: median(|one| one.during.p95_ms),
        rise_ms: rise,
        rise_low_ms: interval.map(|interval| interval.low),
        rise_high_ms: interval.map(|interval| interval.high),
        grade: rise.map(|rise| latency::grade(rise).to_owned()),
        rpm_tcp: median(|one| one.rpm_tcp),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{condition, run};

    #[test]
    fn the_median_its_interval_and_the_finding_nearest_to_it() {
        let runs = [
            run(90.0, Limit::Loss, Some(4.0)),
            run(95.0, Limit::PathRate, Some(70.0)),
            run(99.0, Limit::PathRate, Some(90.0)),
        ];
        let found = summary(condition("IPv4 upload 4"), &runs, 1).unwrap();
        assert_eq!((found.summary.median_bps, found.failed), (Some(95e6), 1));
        assert_eq!((found.median_low_bps, found.median_high_bps), (Some(90e6), Some(99e6)));
        assert!((found.median_confidence.unwrap() - 0.75).abs() < 1e-9);
        assert_eq!((found.limit, found.limit_runs), (Some(Limit::PathRate), 2));
        assert_eq!(found.finding.as_ref().unwrap().throughput_bps.as_f64(), 95e6);
        let latency = found.latency.unwrap();
        assert_eq!((latency.count, latency.rise_ms), (3, Some(70.0)));
        assert_eq!((latency.rise_low_ms, latency.grade.as_deref()), (Some(4.0), Some("C")));
        assert!(found.runs.iter().all(|run| run.latency.as_ref().unwrap().probes.is_empty()));
    }

    #[test]
    fn a_single_test_has_no_interval_and_none_no_summary() {
        let one = summary(condition("IPv6 download 1"), &[run(90.0, Limit::Loss, None)], 0);
        let one = one.unwrap();
        assert_eq!((one.summary.median_bps, one.median_low_bps), (Some(90e6), None));
        assert_eq!(one.latency, None);
        assert_eq!(summary(condition("IPv6 download 1"), &[], 2), None);
    }
}
