//! What a limit's probability is where the evidence for it is missing: in results of other
//! tools (`Measurement::tool`).
//!
//! The terms were fitted to samples that have everything, and take a statistic that is absent
//! for no evidence. Where two limits differ in that statistic alone, the others then decide by
//! chance. The shares below are assumptions: no labelled runs bound them.

use crate::{posterior::Posterior, statistics::Statistics};
use record::{Limit, Measurement, Unavailable};

/// Of the congestion window, in the median, less than this share in flight shows that neither
/// it nor what reduces it is the limit, and the probability that it then has at most.
const HALF_FILLED: f64 = 0.6;
const UNFILLED: f64 = 0.95;

/// The limits with which the congestion window is not filled.
const ENDS: [Limit; 9] = [
    Limit::ReceiveWindow,
    Limit::WindowScaling,
    Limit::SlowReceiver,
    Limit::SendBuffer,
    Limit::Application,
    Limit::Pacing,
    Limit::Cpu,
    Limit::Memory,
    Limit::PacingTimers,
];

/// Those of the receiver.
const RECEIVER: [Limit; 3] = [Limit::ReceiveWindow, Limit::WindowScaling, Limit::SlowReceiver];

/// Those that leave the same samples where neither the timers, nor the window, nor the
/// requested rate are known.
const ALIKE: [Limit; 3] = [Limit::ReceiveWindow, Limit::SendBuffer, Limit::Application];

/// A policer and a shallow queue drop packets with little or no delay before them. Without the
/// RTT of the empty path they are told apart by chance, and policers are the rarer: 7 % of lossy
/// transfers (Flach et al., SIGCOMM 2016).
const POLICERS: f64 = 0.25;

/// Bytes in flight and rates vary by less than this where a window fixes them; and the queueing
/// delay, of the minimum RTT, is less than that.
const LEVEL: f64 = 0.05;
const QUEUED: f64 = 0.1;

/// A requested rate makes up for slow start: the average is at least this share of the level.
const CAUGHT_UP: f64 = 0.98;

/// The posterior, with no more certainty than the tool's figures allow.
pub(crate) fn apply(posterior: Posterior, m: &Measurement, s: &Statistics) -> Posterior {
    let lacks = |figure| m.lacks(figure);
    let mut posterior = posterior;
    // A pacing rate that was not reported does not show.
    let unpaced = lacks(Unavailable::SenderTimers) && lacks(Unavailable::RequestedRate);
    if unpaced && s.get("of_max_pacing").or_else(|| s.get("of_pacing")).is_none() {
        posterior = posterior.moved(Limit::Pacing, Limit::Unknown);
    }
    if lacks(Unavailable::SenderTimers)
        && s.get("cwnd_filled").is_some_and(|filled| filled < HALF_FILLED)
    {
        posterior = posterior.at_least(UNFILLED, |limit| ENDS.contains(&limit));
        if lacks(Unavailable::ReceiveWindow) && has_fixed_window(m, s) {
            let windows = [Limit::SlowReceiver, Limit::WindowScaling].into_iter().chain(ALIKE);
            posterior = windows.fold(posterior, |all, limit| all.moved(limit, Limit::FixedWindow));
        } else if lacks(Unavailable::ReceiveWindow) && lacks(Unavailable::RequestedRate) {
            posterior = posterior
                .moved(Limit::SlowReceiver, Limit::ReceiveWindow)
                .moved(Limit::WindowScaling, Limit::ReceiveWindow)
                .levelled(&ALIKE);
        }
    }
    // A congestion window that is filled is the limit, unless the receive window is known to be.
    if lacks(Unavailable::SenderTimers)
        && lacks(Unavailable::ReceiveWindow)
        && s.get("cwnd_filled").is_some_and(|filled| filled >= HALF_FILLED)
    {
        posterior =
            RECEIVER.into_iter().fold(posterior, |all, limit| all.moved(limit, Limit::Unknown));
    }
    if lacks(Unavailable::IdleRtt) {
        posterior = posterior.split(Limit::Policer, Limit::ShallowQueue, POLICERS);
    }
    if lacks(Unavailable::Retransmissions) {
        // Which of both it is shows in the losses alone, and random loss is the more common.
        posterior = posterior.moved(Limit::ClusteredLoss, Limit::Loss);
    }
    posterior
}

/// Whether the bytes in flight grow to one value and stay there, and no requested rate explains
/// it: iperf3 sends faster after a slow start until the average is what was requested
/// (`iperf_check_throttle`), so an average below the level excludes one.
fn has_fixed_window(m: &Measurement, s: &Statistics) -> bool {
    let below = |name: &str, most: f64| s.get(name).is_some_and(|value| value < most);
    let is_level = below("flight_variation", LEVEL)
        && below("block_variation", LEVEL.ln())
        && below("q95_per_rtt", QUEUED.ln());
    let requested = m.lacks(Unavailable::RequestedRate) && !falls_short(m, s);
    is_level && !requested && crate::facts::requested_rate(m).is_none()
}

/// Whether the whole test's average is below the level, as no requested rate leaves it.
fn falls_short(m: &Measurement, s: &Statistics) -> bool {
    let level = s.get("ln_mbps").map_or(f64::INFINITY, f64::exp) * 1e6;
    let bits = m.received().as_f64() * 8.0;
    m.seconds() > 0.0 && bits / m.seconds() < CAUGHT_UP * level
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        example::{sampled, samples},
        prepared,
    };
    use record::{Sample, ToolResult};

    /// Probabilities with and without the figures that are missing.
    fn found(unavailable: &[Unavailable], change: impl Fn(&mut Sample)) -> (Posterior, Posterior) {
        let mut m = sampled(samples(4.0, 20.0, |_, s| change(s)));
        m.tool = Some(ToolResult {
            tool: "tool".to_owned(),
            transfer: String::new(),
            unavailable: unavailable.to_vec(),
            next_test: String::new(),
        });
        let statistics = prepared(&m).over(0.0, 4.0);
        let before = Posterior::of(&statistics);
        (before.clone(), apply(before, &m, &statistics))
    }

    const UNKNOWN_SENDER: [Unavailable; 3] =
        [Unavailable::SenderTimers, Unavailable::ReceiveWindow, Unavailable::RequestedRate];

    #[test]
    fn a_window_that_is_not_filled_is_not_what_limits() {
        let half = |s: &mut Sample| (s.cwnd_bytes, s.in_flight_bytes) = (100_000, 59_000);
        let full = |s: &mut Sample| (s.cwnd_bytes, s.in_flight_bytes) = (100_000, 61_000);
        let ends = |p: &Posterior| ENDS.iter().map(|limit| p.probability(*limit)).sum::<f64>();
        assert!(ends(&found(&UNKNOWN_SENDER[..1], half).1) >= UNFILLED - 1e-9);
        let (before, after) = found(&UNKNOWN_SENDER[..1], full);
        assert_eq!(before, after);
        let (before, after) = found(&[], half);
        assert_eq!(before, after, "with timers");
    }

    #[test]
    fn what_leaves_the_same_samples_is_as_probable() {
        let half = |s: &mut Sample| (s.cwnd_bytes, s.in_flight_bytes) = (100_000, 50_000);
        let (_, after) = found(&UNKNOWN_SENDER, half);
        let each = ALIKE.map(|limit| after.probability(limit));
        assert!((each[0] - each[1]).abs() < 1e-9 && (each[1] - each[2]).abs() < 1e-9, "{each:?}");
    }

    #[test]
    fn without_the_idle_rtt_a_policer_is_the_rarer() {
        let (before, after) = found(&[Unavailable::IdleRtt], |_| {});
        let both =
            |p: &Posterior| p.probability(Limit::Policer) + p.probability(Limit::ShallowQueue);
        assert!((both(&before) - both(&after)).abs() < 1e-9);
        assert!((after.probability(Limit::Policer) - POLICERS * both(&after)).abs() < 1e-9);
    }
}
