//! What a limit's probability is where the evidence for it is missing: in results of other
//! tools (`Measurement::tool`).
//!
//! The terms were fitted to samples that have everything, and take a statistic that is absent
//! for no evidence. Where two limits differ in that statistic alone, the others then decide by
//! chance. The shares below are assumptions: no labelled runs bound them.

use crate::{
    facts::Facts,
    fixed_window::Reason,
    posterior::Posterior,
    statistics::{Statistic, Statistics},
};
use record::{Limit, Unavailable};

/// Of the congestion window, in the median, less than this share in flight shows that neither
/// it nor what reduces it is the limit, and the probability that it then has at most.
const HALF_FILLED: f64 = 0.6;
const UNFILLED: f64 = 0.95;

/// The limits with which the congestion window is not filled.
const ENDS: [Limit; 10] = [
    Limit::FixedWindow,
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

/// A policer and a shallow queue drop packets with little or no delay before them. The terms were
/// fitted to as many of the one as of the other, but policers are the rarer: 7 % of lossy transfers
/// (Flach et al., SIGCOMM 2016). What another tool measured cannot be measured again, with a train
/// that tells them apart: there the samples' odds count times those of the two, and where the RTT
/// of the empty path is missing too, samples tell nothing.
const POLICERS: f64 = 0.25;

/// The rate of a segment at the level of a fixed window, as shares of that: slow start is part of
/// a whole test.
const AT_LEVEL: std::ops::RangeInclusive<f64> = 0.6..=1.1;

/// The posterior, with no more certainty than the tool's figures allow.
pub(crate) fn apply(posterior: Posterior, facts: &Facts<'_>, s: &Statistics) -> Posterior {
    let lacks = |figure| facts.m.lacks(figure);
    let mut posterior = posterior;
    if lacks(Unavailable::SenderTimers)
        && s.get(Statistic::CwndFilled).is_some_and(|filled| filled < HALF_FILLED)
    {
        posterior = posterior.at_least(UNFILLED, |limit| ENDS.contains(&limit));
        if lacks(Unavailable::ReceiveWindow) {
            // Only the window tells a receiver that is slow, or one that scales nothing, from the
            // commoner one whose buffer is small.
            posterior = posterior
                .moved(Limit::SlowReceiver, Limit::ReceiveWindow)
                .moved(Limit::WindowScaling, Limit::ReceiveWindow);
            if lacks(Unavailable::RequestedRate) {
                posterior = posterior.levelled(&ALIKE);
            }
        }
    }
    // A congestion window that is filled is the limit, unless the receive window is known to be.
    if lacks(Unavailable::SenderTimers)
        && lacks(Unavailable::ReceiveWindow)
        && s.reaches(Statistic::CwndFilled, HALF_FILLED)
    {
        posterior =
            RECEIVER.into_iter().fold(posterior, |all, limit| all.moved(limit, Limit::Unknown));
    }
    if lacks(Unavailable::SenderTimers) {
        if !facts.shows_pacing {
            // A rate that was set and is not in the file is rare.
            posterior = posterior.moved(Limit::Pacing, Limit::Unknown);
        }
        if let Some(found) = facts.constant_rate.filter(|found| is_at_level(found.rate, s)) {
            let only = |all: Posterior, limit| all.at_least(UNFILLED, |other| other == limit);
            posterior = match found.reason {
                Reason::Window => only(posterior, Limit::FixedWindow),
                Reason::SendBuffer => only(posterior, Limit::SendBuffer),
                Reason::Line => only(posterior, Limit::PathRate),
                Reason::Undecided => {
                    posterior.at_least(UNFILLED, |limit| ALIKE.contains(&limit)).levelled(&ALIKE)
                }
            };
        }
    }
    if facts.m.tool.is_some() {
        let [policer, queue] = match lacks(Unavailable::IdleRtt) {
            true => [0.5; 2],
            false => [Limit::Policer, Limit::ShallowQueue].map(|it| posterior.probability(it)),
        };
        let [policer, queue] = [policer * POLICERS, queue * (1.0 - POLICERS)];
        let share = policer / (policer + queue).max(f64::MIN_POSITIVE);
        posterior = posterior.split(Limit::Policer, Limit::ShallowQueue, share);
    }
    if lacks(Unavailable::Retransmissions) {
        // Which of both it is shows in the losses alone, and random loss is the more common.
        posterior = posterior.moved(Limit::ClusteredLoss, Limit::Loss);
    }
    posterior
}

fn is_at_level(rate: f64, s: &Statistics) -> bool {
    let found = s.get(Statistic::LnMbps).map_or(0.0, f64::exp) * 1e6;
    AT_LEVEL.contains(&(found / rate))
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
        (before.clone(), apply(before, &Facts::of(&m), &statistics))
    }

    const UNKNOWN_SENDER: [Unavailable; 3] =
        [Unavailable::SenderTimers, Unavailable::ReceiveWindow, Unavailable::RequestedRate];

    #[test]
    fn a_window_that_is_not_filled_is_not_what_limits() {
        // A window that grows, so that it is not fixed.
        let filled = |share: f64| {
            move |s: &mut Sample| {
                let cwnd = 100_000.0 + 5_000.0 * s.t_s;
                (s.cwnd_bytes, s.in_flight_bytes) = (cwnd as u64, (share * cwnd) as u64);
            }
        };
        let (half, full) = (filled(0.59), filled(0.61));
        // A pacing rate that the file does not have is unknown.
        let ends = |p: &Posterior| {
            let named = ENDS.iter().map(|limit| p.probability(*limit)).sum::<f64>();
            named + p.probability(Limit::Unknown)
        };
        assert!(ends(&found(&UNKNOWN_SENDER[..1], half).1) >= UNFILLED - 1e-9);
        // But for a policer and a shallow queue.
        let same = |a: &Posterior, b: &Posterior| {
            let levelled =
                |p: &Posterior| p.clone().levelled(&[Limit::Policer, Limit::ShallowQueue]);
            let (a, b) = (levelled(a), levelled(b));
            Limit::ALL.iter().all(|it| (a.probability(*it) - b.probability(*it)).abs() < 1e-9)
        };
        let (before, after) = found(&UNKNOWN_SENDER[..1], full);
        assert!(same(&before.moved(Limit::Pacing, Limit::Unknown), &after));
        let (before, after) = found(&[], half);
        assert!(same(&before, &after), "with timers");
    }

    #[test]
    fn what_leaves_the_same_samples_is_as_probable() {
        let half = |s: &mut Sample| (s.cwnd_bytes, s.in_flight_bytes) = (100_000, 50_000);
        let (_, after) = found(&UNKNOWN_SENDER, half);
        let each = ALIKE.map(|limit| after.probability(limit));
        assert!((each[0] - each[1]).abs() < 1e-9 && (each[1] - each[2]).abs() < 1e-9, "{each:?}");
    }

    #[test]
    fn a_policer_is_the_rarer_where_no_train_can_tell() {
        let both =
            |p: &Posterior| p.probability(Limit::Policer) + p.probability(Limit::ShallowQueue);
        let odds =
            |p: &Posterior| p.probability(Limit::Policer) / p.probability(Limit::ShallowQueue);
        let (before, without) = found(&[Unavailable::IdleRtt], |_| {});
        assert!((both(&before) - both(&without)).abs() < 1e-9);
        assert!((odds(&without) - POLICERS / (1.0 - POLICERS)).abs() < 1e-9);
        let (before, with) = found(&[], |_| {});
        assert!((both(&before) - both(&with)).abs() < 1e-9);
        assert!((odds(&with) - odds(&before) * POLICERS / (1.0 - POLICERS)).abs() < 1e-9);
    }
}
