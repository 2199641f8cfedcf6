//! The summary of repeated tests, and whether two results differ.

use crate::curve::total;
use crate::evidence::{Evidence, arrived};
use model::statistics::{self, Welch};
use record::{Comparison, Limit, LimitCount, Measurement, RepeatSummary, RunFigures};
use std::collections::BTreeMap;
use units::{BitRate, change, percent, percent_with};

/// The confidence level of intervals.
const CONFIDENCE: f64 = 0.95;

/// The coefficient of variation above which runs disagree.
const DISAGREE: f64 = 0.1;

/// Other traffic over the test's own bytes, above which the interface was shared.
const SHARED: f64 = 0.05;

/// The ratio between minimum RTTs, which also differ by more than 5 ms, from which the
/// route or its queues changed.
const RTT_CHANGED: f64 = 1.25;

/// The minimum and maximum number of blocks in a steady part.
const BLOCKS: (usize, usize) = (2, 120);

/// The steady part in blocks of equal length.
struct Blocks {
    /// The length of one, in seconds.
    length_s: f64,
    /// The goodput of each, in bit/s.
    goodput_bps: Vec<f64>,
}

/// Blocks of a second or four RTTs, whichever is longer: shorter ones are correlated
/// with their neighbours.
fn blocks(m: &Measurement) -> Blocks {
    let evidence = Evidence::gather(m);
    let (from, to) = (evidence.steady.from_s, evidence.steady.to_s);
    let rtt = evidence.loaded_rtt.or(evidence.min_rtt).map_or(0.0, units::Rtt::secs_f64);
    let count = ((to - from) / (4.0 * rtt).max(1.0)) as usize;
    let curves = arrived(m);
    if count < BLOCKS.0 || curves.iter().all(|curve| curve.end().is_none()) {
        return Blocks { length_s: 0.0, goodput_bps: Vec::new() };
    }
    let count = count.min(BLOCKS.1);
    let length_s = (to - from) / count as f64;
    let at = |index: usize| total(&curves, from + length_s * index as f64);
    let goodput_bps = (0..count).map(|i| (at(i + 1) - at(i)) * 8.0 / length_s).collect();
    Blocks { length_s, goodput_bps }
}

/// The figures of one run.
#[must_use]
pub fn figures(m: &Measurement) -> RunFigures {
    let Blocks { length_s, goodput_bps } = blocks(m);
    RunFigures::of(m, &crate::explain(m), length_s, goodput_bps)
}

/// The summary of the runs, with warnings where they disagree.
#[must_use]
pub fn summary(runs: &[RunFigures]) -> RepeatSummary {
    let rates: Vec<f64> = runs.iter().map(|run| run.throughput_bps.as_f64()).collect();
    let mean = statistics::mean(&rates);
    let variation = statistics::deviation(&rates).zip(mean.filter(|mean| *mean > 0.0));
    let variation = variation.map(|(deviation, mean)| deviation / mean);
    let groups = statistics::two_groups(&rates);
    let interval = statistics::mean_interval(&rates, CONFIDENCE);
    let limits = limits(runs);
    let mut warnings = Vec::new();
    if let Some(variation) = variation.filter(|variation| *variation > DISAGREE) {
        warnings.push(format!(
            "the runs disagree: the standard deviation is {} of the mean; run more or longer \
             tests",
            percent(variation)
        ));
    }
    if let Some(share) = groups {
        let lower = (share * runs.len() as f64).round();
        warnings.push(format!(
            "the runs fall into two groups, {lower:.0} of {} in the lower one, so the mean \
             represents neither; check for load balancing over two paths or hosts, and for \
             intermittent traffic",
            runs.len()
        ));
    }
    warnings.extend(shared(runs));
    warnings.extend(changed(runs));
    RepeatSummary {
        count: runs.len() as u64,
        median_bps: statistics::median(&rates),
        mean_bps: mean,
        min_bps: rates.iter().copied().reduce(f64::min),
        max_bps: rates.iter().copied().reduce(f64::max),
        mean_low_bps: interval.map(|interval| interval.low.max(0.0)),
        mean_high_bps: interval.map(|interval| interval.high),
        confidence: CONFIDENCE,
        variation,
        two_groups: groups.is_some(),
        limit: agreed(&limits),
        limit_sentence: limits_in_words(&limits, runs.len()),
        limits,
        warnings,
    }
}

/// In how many runs each limit was found, the most frequent first.
fn limits(runs: &[RunFigures]) -> Vec<LimitCount> {
    let mut counts: BTreeMap<Limit, u64> = BTreeMap::new();
    for run in runs {
        *counts.entry(run.limit.unwrap_or(Limit::Unknown)).or_default() += 1;
    }
    let mut counts: Vec<LimitCount> =
        counts.into_iter().map(|(limit, runs)| LimitCount { limit, runs }).collect();
    // Stable: of equal counts the order of the limits.
    counts.sort_by_key(|count| std::cmp::Reverse(count.runs));
    counts
}

/// The limit of all runs.
fn agreed(limits: &[LimitCount]) -> Option<Limit> {
    let [only] = limits else { return None };
    Some(only.limit).filter(|limit| *limit != Limit::Unknown)
}

fn limits_in_words(limits: &[LimitCount], runs: usize) -> String {
    let words: Vec<String> = limits
        .iter()
        .map(|count| format!("{} in {} of {runs}", count.limit.name(), count.runs))
        .collect();
    let plural = if runs == 1 { "run" } else { "runs" };
    match limits {
        [] => "no run completed".to_owned(),
        [only] if only.limit == Limit::Unknown => {
            format!("cannot identify it in any of {runs} {plural}")
        }
        [_] => format!("{} {plural}", words.concat()),
        _ => format!("the runs differ: {} {plural}", words.join(", ")),
    }
}

/// The warning for other traffic on the interface.
fn shared(runs: &[RunFigures]) -> Option<String> {
    let worst = runs
        .iter()
        .zip(1..)
        .filter(|(run, _)| run.received_bytes > 0)
        .filter_map(|(run, number)| {
            Some((run.other_bytes? as f64 / run.received_bytes as f64, number))
        })
        .max_by(|x, y| x.0.total_cmp(&y.0))
        .filter(|(share, _)| *share > SHARED)?;
    let count = runs.iter().filter(|run| {
        run.other_bytes.is_some_and(|other| other as f64 > SHARED * run.received_bytes as f64)
    });
    Some(format!(
        "other traffic used this host's interface in {} of {} runs, up to {} of the test's own \
         bytes in run {}; stop it, or read the results as the remaining capacity",
        count.count(),
        runs.len(),
        percent(worst.0),
        worst.1,
    ))
}

/// The warning for a minimum RTT that changed between runs.
fn changed(runs: &[RunFigures]) -> Option<String> {
    let rtts = || runs.iter().filter_map(|run| run.min_rtt_ms);
    let (least, most) = (rtts().reduce(f64::min)?, rtts().reduce(f64::max)?);
    (most > least * RTT_CHANGED && most > least + 5.0).then(|| {
        format!(
            "the minimum RTT was {least:.1} ms in one run and {most:.1} ms in another: the route \
             changed, or other traffic filled a queue"
        )
    })
}

/// Compares two results by the goodput of their runs if both have at least two, else by
/// the goodput of blocks within the runs.
#[must_use]
pub fn compare(baseline: &[RunFigures], now: &[RunFigures]) -> Comparison {
    let by_runs = baseline.len() >= 2 && now.len() >= 2;
    let values = |runs: &[RunFigures]| -> Vec<f64> {
        if by_runs {
            runs.iter().map(|run| run.throughput_bps.as_f64()).collect()
        } else {
            runs.iter().flat_map(|run| run.blocks_bps.iter().copied()).collect()
        }
    };
    let (before, after) = (values(baseline), values(now));
    let mean = |values: &[f64], runs: &[RunFigures]| {
        let rates: Vec<f64> = runs.iter().map(|run| run.throughput_bps.as_f64()).collect();
        statistics::mean(values).or_else(|| statistics::mean(&rates)).unwrap_or_default()
    };
    let (mean_before, mean_after) = (mean(&before, baseline), mean(&after, now));
    let difference = mean_after - mean_before;
    let test = statistics::welch(&before, &after, CONFIDENCE);
    let share = (mean_before > 0.0).then(|| difference / mean_before);
    Comparison {
        method: if by_runs { "runs" } else { "blocks" }.to_owned(),
        baseline_count: before.len() as u64,
        baseline_bps: mean_before,
        count: after.len() as u64,
        now_bps: mean_after,
        difference_bps: difference,
        difference_share: share,
        low_bps: test.map(|test| test.interval.low),
        high_bps: test.map(|test| test.interval.high),
        confidence: CONFIDENCE,
        p: test.map(|test| test.p.clamp(0.0, 1.0)),
        real: test.map(|test| test.p < 1.0 - CONFIDENCE),
        sentence: sentence(test, share, (mean_before, mean_after), by_runs),
    }
}

fn sentence(test: Option<Welch>, share: Option<f64>, means: (f64, f64), by_runs: bool) -> String {
    let rate = BitRate::from_bps_f64;
    let (before, after) = (rate(means.0), rate(means.1));
    let Some(test) = test else {
        return format!(
            "{after}, {before} before: too few samples to test for a difference; repeat each test \
             three times, or run longer tests (-t)"
        );
    };
    let basis = if by_runs {
        "Welch's t-test over runs"
    } else {
        "Welch's t-test over blocks within runs, which ignores the variance between runs; \
         repeat both tests to include it"
    };
    let span = |value: f64| {
        let sign = if value < 0.0 { "-" } else { "+" };
        format!("{sign}{}", rate(value.abs()))
    };
    let (low, high) = (span(test.interval.low), span(test.interval.high));
    if test.p >= 1.0 - CONFIDENCE {
        return format!(
            "No significant difference: {after}, {before} before; 95 % confidence interval of \
             the difference {low} to {high} ({basis})."
        );
    }
    let word = if test.difference > 0.0 { "faster" } else { "slower" };
    let by = match share {
        None => String::new(),
        Some(share) if share >= 1.0 => format!(" ({})", change(share)),
        Some(share) => format!(" by {}", percent_with(share.abs(), 3)),
    };
    format!(
        "Significantly {word}{by}: {after}, {before} before; 95 % confidence interval of the \
         difference {low} to {high} ({basis})."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mbit: f64) -> RunFigures {
        RunFigures {
            started_unix_s: 0,
            throughput_bps: BitRate::from_bps_f64(mbit * 1e6),
            average_bps: BitRate::from_bps_f64(mbit * 1e6),
            block_s: 1.0,
            blocks_bps: vec![mbit * 1e6, mbit * 1.02e6, mbit * 0.98e6],
            received_bytes: 1_000_000,
            retransmits: Some(0),
            limit: None,
            min_rtt_ms: Some(20.0),
            other_bytes: Some(0),
            latency: None,
            sentence: String::new(),
            notes: Vec::new(),
        }
    }

    fn runs(mbit: &[f64]) -> Vec<RunFigures> {
        mbit.iter().copied().map(run).collect()
    }

    #[test]
    fn three_runs_by_hand() {
        // 90, 94, 95: mean 93, squares 9 + 1 + 4 = 14, deviation sqrt(7) = 2.6458;
        // t(0.95, 2) = 4.303, half = 4.303 x 2.6458 / sqrt(3) = 6.573.
        let summary = summary(&runs(&[95.0, 90.0, 94.0]));
        assert_eq!((summary.median_bps, summary.mean_bps), (Some(94e6), Some(93e6)));
        let (low, high) = (summary.mean_low_bps.unwrap(), summary.mean_high_bps.unwrap());
        assert!((low - 86.427e6).abs() < 2e3 && (high - 99.573e6).abs() < 2e3, "{low} {high}");
        assert!((summary.variation.unwrap() - 0.028_449).abs() < 1e-5);
        assert!(summary.warnings.is_empty() && !summary.two_groups, "{summary:?}");
    }

    #[test]
    fn doubts_become_warnings() {
        let warnings = |runs: &[RunFigures]| summary(runs).warnings.join("\n");
        assert!(warnings(&runs(&[50.0, 90.0, 70.0])).contains("disagree"));
        let two = warnings(&runs(&[50.0, 90.0, 51.0, 90.5, 91.0]));
        assert!(two.contains("two groups, 2 of 5"), "{two}");
        let mut shared = runs(&[90.0, 90.1, 90.2]);
        shared[1].other_bytes = Some(300_000);
        assert!(
            warnings(&shared).contains("in 1 of 3 runs, up to 30 % of"),
            "{}",
            warnings(&shared)
        );
        shared[1].other_bytes = Some(20_000);
        shared[2].min_rtt_ms = Some(31.0);
        assert!(warnings(&shared).starts_with("the minimum RTT was 20.0 ms"));
        let one = summary(&runs(&[90.0]));
        assert_eq!((one.mean_low_bps, one.variation, one.median_bps), (None, None, Some(90e6)));
        assert_eq!(summary(&[]).mean_bps, None);
    }

    #[test]
    fn the_limit_over_all_runs_is_named_where_they_agree() {
        let of = |limits: &[Option<Limit>]| {
            let runs = limits.iter().map(|limit| RunFigures { limit: *limit, ..run(90.0) });
            let found = summary(&runs.collect::<Vec<_>>());
            (found.limit, found.limit_sentence)
        };
        let (window, loss) = (Some(Limit::ReceiveWindow), Some(Limit::Loss));
        assert_eq!(of(&[window; 5]), (window, "receive-window in 5 of 5 runs".to_owned()));
        let differ = "the runs differ: loss in 3 of 5, receive-window in 2 of 5 runs";
        assert_eq!(of(&[window, loss, loss, window, loss]), (None, differ.to_owned()));
        // Unknown is no agreement, with a name or without.
        let unknown = of(&[None, Some(Limit::Unknown)]);
        assert_eq!(unknown, (None, "cannot identify it in any of 2 runs".to_owned()));
        assert!(of(&[window, None]).1.starts_with("the runs differ: receive-window in 1 of 2"));
        assert_eq!(of(&[window]), (window, "receive-window in 1 of 1 run".to_owned()));
        assert_eq!(of(&[]).1, "no run completed");
    }

    #[test]
    fn a_difference_is_significant_or_not() {
        let (slow, fast) = (runs(&[80.0, 81.0, 82.0]), runs(&[90.0, 91.0, 92.0]));
        let better = compare(&slow, &fast);
        assert_eq!((better.method.as_str(), better.real, better.count), ("runs", Some(true), 3));
        assert!(better.sentence.starts_with("Significantly faster by 12.3 %"), "{better:?}");
        assert!(compare(&fast, &slow).sentence.contains("Significantly slower"));
        let same = compare(&runs(&[80.0, 90.0]), &runs(&[81.0, 91.0]));
        assert_eq!(same.real, Some(false), "{same:?}");
        // One run against three: by blocks.
        let blocks = compare(&slow[..1], &fast);
        assert_eq!((blocks.method.as_str(), blocks.baseline_count, blocks.count), ("blocks", 3, 9));
        assert_eq!(blocks.real, Some(true));
        let mut short = slow[..1].to_vec();
        short[0].blocks_bps.clear();
        let open = compare(&short, &fast);
        assert_eq!((open.real, open.p), (None, None));
        assert!(open.sentence.contains("too few") && open.baseline_bps > 79e6, "{open:?}");
    }
}
