//! BBR's shares of a link: beside CUBIC, and of two BBR flows.

use super::super::Measured;
use super::super::runs::Runs;
use model::statistics;

/// The equal share of one of five flows.
const FAIR_OF_FIVE: f64 = 0.2;

/// BBR's share of a link with CUBIC flows, by queue.
fn by_queue(runs: &Runs<'_>, part: &str) -> Option<Vec<(String, f64)>> {
    let share = |queue: String| {
        let share = runs.mean(part, &[("queue", &queue)], |run| {
            let (bbr, cubic) = (run.flow("bbr")?, run.flow("cubic")?);
            Some(bbr.throughput_bps / (bbr.throughput_bps + cubic.throughput_bps))
        });
        Some((queue, share?))
    };
    runs.values(part, "queue").into_iter().map(share).collect()
}

fn in_words(shares: &[(String, f64)]) -> String {
    let words = shares.iter().map(|(queue, share)| format!("{:.0} % at {queue}", share * 100.0));
    words.collect::<Vec<_>>().join(", ")
}

pub(super) fn sharing(runs: &Runs<'_>) -> Option<Measured> {
    let shares = by_queue(runs, "sharing")?;
    let (shallow, deep) = (shares.first()?.1, shares.last()?.1);
    Some(Measured {
        text: format!("BBR's share: {}", in_words(&shares)),
        holds: shallow > 0.5 && deep < 0.5,
    })
}

pub(super) fn crowd(runs: &Runs<'_>) -> Option<Measured> {
    let shares = by_queue(runs, "crowd")?;
    let largest = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    Some(Measured {
        text: format!("BBR's share, of five flows: {}", in_words(&shares)),
        holds: largest > 1.5 * FAIR_OF_FIVE,
    })
}

/// The smaller share of two BBR flows; it must be larger than that of a BBR and a CUBIC flow over
/// the same queues.
pub(super) fn pairs(runs: &Runs<'_>) -> Option<Measured> {
    let smaller = |queue: String| {
        let share = runs.mean("pairs", &[("queue", &queue)], |run| {
            let (first, second) = (run.flow("first")?, run.flow("second")?);
            let [first, second] = [first, second].map(|flow| flow.throughput_bps);
            Some(first.min(second) / (first + second))
        });
        Some((queue, share?))
    };
    let shares: Vec<(String, f64)> =
        runs.values("pairs", "queue").into_iter().map(smaller).collect::<Option<_>>()?;
    let beside_cubic: Vec<(String, f64)> = by_queue(runs, "sharing")?
        .into_iter()
        .filter(|(queue, _)| shares.iter().any(|(known, _)| known == queue))
        .map(|(queue, share)| (queue, share.min(1.0 - share)))
        .collect();
    let mean = |shares: &[(String, f64)]| {
        let shares: Vec<f64> = shares.iter().map(|(_, share)| *share).collect();
        statistics::mean(&shares)
    };
    Some(Measured {
        text: format!(
            "the smaller share of two BBR flows: {}; of BBR and CUBIC: {}",
            in_words(&shares),
            in_words(&beside_cubic)
        ),
        holds: mean(&shares)? > mean(&beside_cubic)?,
    })
}
