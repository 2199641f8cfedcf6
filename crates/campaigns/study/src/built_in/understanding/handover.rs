//! Handovers between satellites: what the second of one costs.

use super::super::Measured;
use super::super::runs::{Runs, mbit};
use model::statistics;

const PART: &str = "handover";
/// A handover shows where the lowest second has less than this share of the median one: 0.1 s
/// without a satellite are a tenth of it.
const SHOWS: f64 = 0.9;

pub(super) fn measure(runs: &Runs<'_>) -> Option<Measured> {
    let mut words = Vec::new();
    let mut holds = true;
    for congestion in runs.values(PART, "congestion") {
        let cell = [("congestion", congestion.as_str())];
        let mean = runs.goodput(PART, &cell)?;
        let series = &runs.valid(PART, &cell).into_iter().next()?.flows.first()?.series_bps;
        let median = statistics::median(series)?;
        let lowest = series.iter().copied().reduce(f64::min)?;
        holds &= lowest < median * SHOWS;
        words.push(format!(
            "{congestion} {} in the mean, {} in the median second and {} in the lowest one",
            mbit(mean),
            mbit(median),
            mbit(lowest)
        ));
    }
    Some(Measured {
        text: format!("a handover each 15 s, RTT 25 to 100 ms: {}", words.join("; ")),
        holds: holds && !words.is_empty(),
    })
}
