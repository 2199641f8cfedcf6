//! What several tests come to, and whether two results differ.

use crate::curve::total;
use crate::evidence::{Evidence, arrived};
use model::statistics::{self, Welch};
use record::{Comparison, Measurement, RepeatSummary, RunFigures};
use units::BitRate;

/// How sure an interval is.
const CONFIDENCE: f64 = 0.95;

/// A spread over the mean above which runs disagree.
const DISAGREE: f64 = 0.1;

/// Bytes of others over our own, above which the path was shared.
const SHARED: f64 = 0.05;

/// Least round trips apart by this factor, and by more than 5 ms, say that
/// the way or its queues changed.
const RTT_CHANGED: f64 = 1.25;

/// Least and most blocks that the steady part is cut into.
const BLOCKS: (usize, usize) = (2, 120);

/// Goodput over blocks of the part after the ramp-up, and the length of one in
/// seconds. A second or four round trips each, whichever is longer: shorter ones
/// resemble their neighbours.
#[must_use]
pub fn blocks(m: &Measurement) -> (f64, Vec<f64>) {
    let evidence = Evidence::gather(m);
    let (from, to) = (evidence.steady.from_s, evidence.steady.to_s);
    let rtt = evidence.loaded_rtt.or(evidence.min_rtt).map_or(0.0, units::Rtt::secs_f64);
    let count = ((to - from) / (4.0 * rtt).max(1.0)) as usize;
    let curves = arrived(m);
    if count < BLOCKS.0 || curves.iter().all(|curve| curve.end().is_none()) {
        return (0.0, Vec::new());
    }
    let count = count.min(BLOCKS.1);
    let length = (to - from) / count as f64;
    let at = |index: usize| total(&curves, from + length * index as f64);
    (length, (0..count).map(|i| (at(i + 1) - at(i)) * 8.0 / length).collect())
}

/// What is kept of one test.
#[must_use]
pub fn figures(m: &Measurement) -> RunFigures {
    let (length, blocks) = blocks(m);
    RunFigures::of(m, &crate::explain(m), length, blocks)
}

/// What the runs come to, and what makes that doubtful.
#[must_use]
pub fn summary(runs: &[RunFigures]) -> RepeatSummary {
    let rates: Vec<f64> = runs.iter().map(|run| run.throughput_bps.as_f64()).collect();
    let mean = statistics::mean(&rates);
    let variation = statistics::deviation(&rates).zip(mean.filter(|mean| *mean > 0.0));
    let variation = variation.map(|(deviation, mean)| deviation / mean);
    let groups = statistics::two_groups(&rates);
    let (low, high) = statistics::mean_interval(&rates, CONFIDENCE).unzip();
    let mut warnings = Vec::new();
    if let Some(variation) = variation.filter(|variation| *variation > DISAGREE) {
        warnings.push(format!(
            "the runs disagree: their standard deviation is {:.0} % of the mean; run more of \
             them, or longer ones (-t)",
            variation * 100.0
        ));
    }
    if let Some(share) = groups {
        let lower = (share * runs.len() as f64).round();
        warnings.push(format!(
            "the runs fall into two groups, {lower:.0} of {} in the lower one: the mean is \
             neither; look for two ways, two hosts behind one name, or something that comes and goes",
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
        mean_low_bps: low.map(|low| low.max(0.0)),
        mean_high_bps: high,
        confidence: CONFIDENCE,
        variation,
        two_groups: groups.is_some(),
        warnings,
    }
}

/// Whether the interface carried more than the tests, in a sentence.
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
        "something else used this host's interface in {} of {} runs, in run {} with {:.0} % of \
         the test's own bytes; stop it, or read the figures as what was left over",
        count.count(),
        runs.len(),
        worst.1,
        worst.0 * 100.0
    ))
}

/// Whether the least round trip was another from run to run.
fn changed(runs: &[RunFigures]) -> Option<String> {
    let trips = || runs.iter().filter_map(|run| run.min_rtt_ms);
    let (least, most) = (trips().reduce(f64::min)?, trips().reduce(f64::max)?);
    (most > least * RTT_CHANGED && most > least + 5.0).then(|| {
        format!(
            "the least round trip was {least:.1} ms in one run and {most:.1} ms in another: \
             another way, or a queue that somebody else filled"
        )
    })
}

/// Compares results: by the goodputs of their runs where both have two at least,
/// else by blocks of time within the runs there are.
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
        low_bps: test.map(|test| test.interval.0),
        high_bps: test.map(|test| test.interval.1),
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
            "{after} against {before} before; too little was measured to say whether that differs: \
             give --repeat 3 or longer tests"
        );
    };
    let basis = if by_runs {
        "by Welch's t test over the runs"
    } else {
        "by Welch's t test over blocks of time within the tests, which does not know how tests \
         differ from one to the next: --repeat on both sides does"
    };
    let span = |value: f64| {
        let sign = if value < 0.0 { "-" } else { "+" };
        format!("{sign}{}", rate(value.abs()))
    };
    let (low, high) = (span(test.interval.0), span(test.interval.1));
    if test.p >= 1.0 - CONFIDENCE {
        return format!(
            "No real difference can be told: {after} against {before} before, and the true \
             difference lies between {low} and {high} (95 %), {basis}."
        );
    }
    let word = if test.difference > 0.0 { "faster" } else { "slower" };
    let by = share.map_or(String::new(), |share| format!(" by {:.1} %", share.abs() * 100.0));
    format!(
        "It is really {word}{by}: {after} against {before} before, and the true difference lies \
         between {low} and {high} (95 %), {basis}."
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
    fn doubts_are_said() {
        let told = |runs: &[RunFigures]| summary(runs).warnings.join("\n");
        assert!(told(&runs(&[50.0, 90.0, 70.0])).contains("disagree"));
        let two = told(&runs(&[50.0, 90.0, 51.0, 90.5, 91.0]));
        assert!(two.contains("two groups, 2 of 5"), "{two}");
        let mut shared = runs(&[90.0, 90.1, 90.2]);
        shared[1].other_bytes = Some(300_000);
        assert!(told(&shared).contains("in 1 of 3 runs, in run 2 with 30 %"), "{}", told(&shared));
        shared[1].other_bytes = Some(20_000);
        shared[2].min_rtt_ms = Some(31.0);
        assert!(told(&shared).starts_with("the least round trip was 20.0 ms"));
        let one = summary(&runs(&[90.0]));
        assert_eq!((one.mean_low_bps, one.variation, one.median_bps), (None, None, Some(90e6)));
        assert_eq!(summary(&[]).mean_bps, None);
    }

    #[test]
    fn a_difference_is_real_or_not() {
        let (slow, fast) = (runs(&[80.0, 81.0, 82.0]), runs(&[90.0, 91.0, 92.0]));
        let better = compare(&slow, &fast);
        assert_eq!((better.method.as_str(), better.real, better.count), ("runs", Some(true), 3));
        assert!(better.sentence.starts_with("It is really faster by 12.3 %"), "{better:?}");
        assert!(compare(&fast, &slow).sentence.contains("really slower"));
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
        assert!(open.sentence.contains("too little") && open.baseline_bps > 79e6, "{open:?}");
    }
}
