//! Two BBR flows for ten minutes: whether the link stays full, and how their shares move.

use super::super::Measured;
use super::super::runs::{Runs, mbit, seconds};
use model::statistics;
use units::percent;

const PART: &str = "pairs-long";
/// What 50 Mbit/s of IP packets carries.
const LINK_BPS: f64 = 5e7 * 1_448.0 / 1_500.0;
/// Totals and shares are those of spans of this length: one of BBR's periods of the least RTT.
const SPAN_S: f64 = 10.0;
/// Stable flows fill this share of the link in each span, and none has less of it than this.
const FULL: f64 = 0.85;
const STARVED: f64 = 0.1;

pub(super) fn measure(runs: &Runs<'_>) -> Option<Measured> {
    let run = runs.valid(PART, &[]).into_iter().next()?;
    let (first, second) = (run.flow("first")?, run.flow("second")?);
    let length = first.series_bps.len().min(second.series_bps.len()) as f64;
    let begin = first.began_s.max(second.began_s);
    let spans = (0..(length / SPAN_S) as u32).map(|at| {
        let from = begin + f64::from(at) * SPAN_S;
        let [one, two] = [first, second].map(|flow| seconds(flow, from, from + SPAN_S));
        Some((one? + two?, one? / (one? + two?).max(1.0)))
    });
    // One that ends some milliseconds early lacks the last span.
    let spans: Vec<(f64, f64)> = spans.flatten().collect();
    let totals: Vec<f64> = spans.iter().map(|(total, _)| *total).collect();
    let shares: Vec<f64> = spans.iter().map(|(_, share)| *share).collect();
    let least = totals.iter().copied().reduce(f64::min)?;
    let low = shares.iter().copied().reduce(f64::min)?;
    let high = shares.iter().copied().fold(0.0, f64::max);
    let is_stable = least >= LINK_BPS * FULL && low >= STARVED && high <= 1.0 - STARVED;
    let verdict = match is_stable {
        true => "not the published instability, but the shares that are expected",
        false => "unstable, as published",
    };
    Some(Measured {
        text: format!(
            "over {:.0} s, in spans of {SPAN_S:.0} s: {} together, {} at least; the first flow's \
             share is {} to {}, {} in the mean: {verdict}",
            length,
            mbit(statistics::mean(&totals)?),
            mbit(least),
            percent(low),
            percent(high),
            percent(statistics::mean(&shares)?)
        ),
        holds: is_stable,
    })
}
