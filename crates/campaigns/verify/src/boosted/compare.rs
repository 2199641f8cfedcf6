//! The gain of boosted over direct runs, and the sentence that says it.

use super::BoostRuns;
use model::statistics;
use record::{
    BOOST_VERIFY_SCHEMA, BOOST_WORTH, BoostGain, BoostMeasure, BoostRun, BoostVerdict,
    BoostVerification, BoostWay, BoostWaySummary, CubicHarm,
};
use units::{BitRate, significant};

/// The confidence level of intervals.
const CONFIDENCE: f64 = 0.95;

/// Payload for which the CPU time is given, in bytes.
const GB: f64 = 1e9;

/// The document of runs of `command` through `far`, over the emulated `path`.
#[must_use]
pub fn compare(
    done: BoostRuns,
    command: String,
    far: Option<String>,
    path: Option<String>,
) -> BoostVerification {
    let BoostRuns { runs, harm, notes, interrupted } = done;
    let measure = measure(&runs);
    let bytes = median(completed(&runs, BoostWay::Boosted).filter_map(payload));
    let [direct, boosted] =
        [BoostWay::Direct, BoostWay::Boosted].map(|way| summary(&runs, way, bytes));
    let gain = gain(&runs, measure);
    let verdict = verdict(gain.as_ref());
    let sentence = sentence(verdict, gain.as_ref(), measure, [&direct, &boosted], harm.as_ref());
    BoostVerification {
        schema: BOOST_VERIFY_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        far,
        path,
        measure,
        runs,
        direct,
        boosted,
        gain,
        verdict,
        harm,
        sentence,
        interrupted,
        notes,
        next: None,
    }
}

fn completed(runs: &[BoostRun], way: BoostWay) -> impl Iterator<Item = &BoostRun> {
    runs.iter().filter(move |run| run.way == way && run.failed.is_none())
}

fn payload(run: &BoostRun) -> Option<f64> {
    run.bytes.map(|bytes| bytes.bytes() as f64).filter(|bytes| *bytes > 0.0)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    statistics::median(&values.collect::<Vec<_>>())
}

/// Goodput, if every run that completed reports it.
fn measure(runs: &[BoostRun]) -> BoostMeasure {
    let mut completed = runs.iter().filter(|run| run.failed.is_none()).peekable();
    let all_report = completed.peek().is_some() && completed.all(|run| run.goodput_bps.is_some());
    if all_report { BoostMeasure::Goodput } else { BoostMeasure::Time }
}

/// The runs of one way; `bytes` are the payload of each where a run does not count its own.
pub(super) fn summary(runs: &[BoostRun], way: BoostWay, bytes: Option<f64>) -> BoostWaySummary {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let of_way = runs.iter().filter(|run| run.way == way).count();
    let completed = || completed(runs, way);
    let payload = median(completed().filter_map(payload)).or(bytes);
    let rates = completed().filter_map(|run| run.goodput_bps).map(BitRate::as_f64);
    BoostWaySummary {
        completed: count(completed().count()),
        failed: count(of_way.saturating_sub(completed().count())),
        median_s: median(completed().map(|run| run.seconds)),
        median_bps: median(rates).map(BitRate::from_bps_f64),
        cpu_s_per_gb: median(completed().map(|run| run.cpu_s))
            .zip(payload)
            .map(|(cpu, bytes)| cpu / (bytes / GB)),
    }
}

/// The rate of a run: of its payload, or of the command itself.
fn rate(run: &BoostRun, measure: BoostMeasure) -> Option<f64> {
    let rate = match measure {
        BoostMeasure::Goodput => run.goodput_bps.map(BitRate::as_f64)?,
        BoostMeasure::Time => 1.0 / run.seconds,
    };
    (run.failed.is_none() && rate.is_finite() && rate > 0.0).then_some(rate)
}

fn gain(runs: &[BoostRun], measure: BoostMeasure) -> Option<BoostGain> {
    let ratio = |pair: &[BoostRun]| {
        let of = |way| rate(pair.iter().find(|run| run.way == way)?, measure);
        Some((of(BoostWay::Boosted)? / of(BoostWay::Direct)?).ln())
    };
    let logarithms: Vec<f64> = runs.chunks_exact(2).filter_map(ratio).collect();
    let mean = statistics::mean(&logarithms)?;
    let interval = statistics::mean_interval(&logarithms, CONFIDENCE);
    Some(BoostGain {
        ratio: mean.exp(),
        low: interval.map(|interval| interval.low.exp()),
        high: interval.map(|interval| interval.high.exp()),
        confidence: CONFIDENCE,
        pairs: u32::try_from(logarithms.len()).unwrap_or(u32::MAX),
    })
}

fn verdict(gain: Option<&BoostGain>) -> BoostVerdict {
    let Some(BoostGain { ratio, low: Some(low), high: Some(high), .. }) = gain else {
        return BoostVerdict::CannotTell;
    };
    if *low > 1.0 && *ratio >= BOOST_WORTH {
        BoostVerdict::Gain
    } else if *high < BOOST_WORTH {
        BoostVerdict::NoGain
    } else {
        BoostVerdict::CannotTell
    }
}

fn sentence(
    verdict: BoostVerdict,
    gain: Option<&BoostGain>,
    measure: BoostMeasure,
    ways: [&BoostWaySummary; 2],
    harm: Option<&CubicHarm>,
) -> String {
    let worth = times(BOOST_WORTH);
    let mut text = match (verdict, gain) {
        (_, None) => "Cannot tell: no pair of a direct and a boosted run has completed".to_owned(),
        (BoostVerdict::Gain, Some(gain)) => format!("Gain {}", interval(gain)),
        (BoostVerdict::NoGain, Some(gain)) if gain.high.is_some_and(|high| high < 1.0) => {
            format!("No gain: boosted runs are slower, {}", interval(gain))
        }
        (BoostVerdict::NoGain, Some(gain)) => format!("No gain: {}", interval(gain)),
        (BoostVerdict::CannotTell, Some(gain)) if gain.low.is_none() => {
            format!("Cannot tell: {} in a single pair has no interval", times(gain.ratio))
        }
        (BoostVerdict::CannotTell, Some(gain)) => format!(
            "Cannot tell whether the gain is {worth} or more: {}; repeat more often",
            interval(gain)
        ),
    };
    let [direct, boosted] = ways;
    match (measure, direct.median_s.zip(boosted.median_s), direct.median_bps, boosted.median_bps) {
        (BoostMeasure::Goodput, _, Some(direct), Some(boosted)) => {
            text += &format!("; medians {direct} direct, {boosted} boosted");
        }
        (_, Some((direct, boosted)), ..) => {
            let [direct, boosted] = [direct, boosted].map(|time| significant(time, 3));
            text += &format!("; medians {direct} s direct, {boosted} s boosted");
        }
        _ => {}
    }
    for (way, summary) in [BoostWay::Direct, BoostWay::Boosted].into_iter().zip(ways) {
        if summary.failed > 0 {
            let of = summary.failed + summary.completed;
            text += &format!("; {} of {of} {} runs failed", summary.failed, way.name());
        }
    }
    text += ".";
    if let Some((direct, boosted)) = direct.cpu_s_per_gb.zip(boosted.cpu_s_per_gb) {
        let [direct, boosted] = [direct, boosted].map(|cpu| significant(cpu, 2));
        text += &format!(" CPU time per GB: {direct} s direct, {boosted} s boosted.");
    }
    if let Some(harm) = harm {
        text += &format!(
            " A CUBIC flow on the same path gets {} alone, {} beside the direct and {} beside the \
             boosted transfer: harm {:.2} and {:.2}.",
            harm.alone_bps,
            harm.beside_direct_bps,
            harm.beside_boosted_bps,
            harm.direct,
            harm.boosted
        );
    }
    text
}

fn times(ratio: f64) -> String {
    format!("×{}", significant(ratio, 3))
}

fn interval(gain: &BoostGain) -> String {
    let ratio = times(gain.ratio);
    match gain.low.zip(gain.high) {
        Some((low, high)) => format!(
            "{ratio} ({:.0} % interval {} to {}, {} pairs)",
            gain.confidence * 100.0,
            times(low),
            times(high),
            gain.pairs
        ),
        None => ratio,
    }
}

/// The harm by the goodputs of the CUBIC flow alone, beside the direct and beside the boosted
/// transfer. `None` without one of them.
pub(super) fn harm(rates: &[Vec<f64>; 3], seconds: f64) -> Option<CubicHarm> {
    let completed = rates.iter().map(Vec::len).min().unwrap_or_default();
    let [alone, direct, boosted] = rates.each_ref().map(|rates| statistics::median(rates));
    let (alone, direct, boosted) = (alone.filter(|alone| *alone > 0.0)?, direct?, boosted?);
    let rate = BitRate::from_bps_f64;
    Some(CubicHarm {
        seconds,
        rounds: u32::try_from(completed).unwrap_or(u32::MAX),
        alone_bps: rate(alone),
        beside_direct_bps: rate(direct),
        beside_boosted_bps: rate(boosted),
        direct: (alone - direct) / alone,
        boosted: (alone - boosted) / alone,
    })
}
