//! A finding never contradicts its own evidence.
//!
//! The terms were fitted to some kinds of traffic and are asked about every kind. A limit whose
//! equation, bound or timer disagrees with what was measured is withdrawn, however probable the
//! terms found it: *unknown* is an answer, nonsense is none.

use crate::causes;
use record::{Finding, Limit, Measurement, Shares};
use units::{BitRate, ByteCount, Rtt};

/// The factor between prediction and measurement from which an equation does not describe the
/// transfer.
const FAR_OFF: f64 = 3.0;

/// The tolerance of a bound: windows and RTTs are medians of samples.
const TOLERANCE: f64 = 1.1;

/// iperf3's default block of TCP, in bytes (`DEFAULT_TCP_BLKSIZE`).
const BLOCK: f64 = 131_072.0;

/// The share of the time below which a cause took none: what rounds to 0 %.
const NO_TIME: f64 = 0.005;

/// Why a finding contradicts its own evidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Contradiction {
    /// The equation is off by more than a factor of three.
    FarOff(BitRate),
    /// More arrived than the limit allows.
    Exceeded(BitRate),
    /// The sender never waited for it.
    NoTime,
}

/// Returns the contradiction between a finding and its measurement; `None` if there is none.
#[must_use]
pub fn contradiction(finding: &Finding, m: &Measurement) -> Option<Contradiction> {
    let limit = finding.limit?;
    if finding.shares.and_then(|shares| share(limit, &shares)).is_some_and(|share| share < NO_TIME)
    {
        return Some(Contradiction::NoTime);
    }
    let predicted = finding.predicted_bps?;
    let goodput = finding.throughput_bps.as_f64();
    let ratio = goodput / predicted.as_f64().max(1.0);
    if is_bound(limit) && goodput > TOLERANCE * most(limit, predicted, finding, m) {
        Some(Contradiction::Exceeded(predicted))
    } else if !(1.0 / FAR_OFF..=FAR_OFF).contains(&ratio) {
        Some(Contradiction::FarOff(predicted))
    } else {
        None
    }
}

/// The finding, or an unknown limit where it contradicts its evidence.
pub(crate) fn consistent(finding: Finding, m: &Measurement) -> Finding {
    let Some((why, limit)) = contradiction(&finding, m).zip(finding.limit) else {
        return finding;
    };
    let mut finding = finding;
    finding.sentence = sentence(causes::of(limit).noun(), why, finding.throughput_bps);
    // A receiver alone names a limit or none.
    finding.limit = finding.shares.map(|_| Limit::Unknown);
    (finding.confidence, finding.predicted_bps, finding.equation) = (None, None, None);
    finding.remedies.clear();
    let parts = finding.segments.iter_mut().filter(|segment| segment.limit == limit);
    for segment in parts {
        (segment.limit, segment.confidence) = (Limit::Unknown, None);
    }
    let parts = finding.segments.iter_mut().map(|segment| &mut segment.posterior);
    for posterior in parts.chain([&mut finding.posterior]) {
        withdraw(posterior, limit);
    }
    finding
}

/// Leaves a limit's probability to an unknown one.
fn withdraw(posterior: &mut Vec<record::Probability>, limit: Limit) {
    let sum = |limit| posterior.iter().filter(|p| p.limit == limit).map(|p| p.probability).sum();
    let (withdrawn, unknown): (f64, f64) = (sum(limit), sum(Limit::Unknown));
    posterior.retain(|p| p.limit != limit && p.limit != Limit::Unknown);
    if withdrawn + unknown > 0.0 {
        let probability = withdrawn + unknown;
        posterior.push(record::Probability { limit: Limit::Unknown, probability });
        posterior.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    }
}

/// The share of the time that a limit took, if the sender's timers count it.
const fn share(limit: Limit, shares: &Shares) -> Option<f64> {
    match limit {
        Limit::ReceiveWindow | Limit::WindowScaling | Limit::SlowReceiver => {
            Some(shares.receive_window)
        }
        Limit::SendBuffer => Some(shares.send_buffer),
        Limit::Application => Some(shares.application),
        _ => None,
    }
}

/// Returns true if a limit's equation gives the most that can arrive.
const fn is_bound(limit: Limit) -> bool {
    matches!(
        limit,
        Limit::ReceiveWindow
            | Limit::WindowScaling
            | Limit::SlowReceiver
            | Limit::SendBuffer
            | Limit::Application
            | Limit::Pacing
    ) || limit.is_saturated()
}

/// The most that a limit allows, in bit/s. Windows and buffers allow theirs in each RTT of the empty
/// path. A requested rate allows a block at once in each stream, and catches up after slow start.
fn most(limit: Limit, predicted: BitRate, finding: &Finding, m: &Measurement) -> f64 {
    let predicted = predicted.as_f64();
    match limit {
        Limit::ReceiveWindow | Limit::WindowScaling | Limit::SlowReceiver | Limit::SendBuffer => {
            let rtts = finding.loaded_rtt.zip(finding.min_rtt).filter(|(_, min)| *min > Rtt::ZERO);
            predicted * rtts.map_or(1.0, |(loaded, min)| loaded.secs_f64() / min.secs_f64())
        }
        Limit::Application => {
            let block = m.spec.block_bytes.map_or(BLOCK, ByteCount::as_f64);
            let at_once = m.streams.len() as f64 * block * 8.0 / m.seconds().max(1e-3);
            let caught_up = finding.throughput_bps.as_f64() / finding.average_bps.as_f64().max(1.0);
            (predicted + at_once).max(predicted * caught_up)
        }
        _ => predicted,
    }
}

/// The sentence of a finding whose limit was withdrawn.
fn sentence(noun: &str, contradiction: Contradiction, goodput: BitRate) -> String {
    let why = match contradiction {
        Contradiction::FarOff(predicted) => {
            format!("its equation gives {predicted} while {goodput} arrived")
        }
        Contradiction::Exceeded(most) => {
            format!("it would allow at most {most} while {goodput} arrived")
        }
        Contradiction::NoTime => "the sender never waited for it".to_owned(),
    };
    format!(
        "Cannot identify the limit: the samples resemble {noun}, but {why}. To identify it, run \
         longhaul at both ends with a second test that decides."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{evidence::Evidence, example::Example, unexplained};
    use record::{Confidence, Probability};

    fn finding(limit: Limit, mbit: f64, predicted: f64, share: f64) -> (Finding, Measurement) {
        let Example { m, e, .. } = Example::new(mbit, 50.0);
        let network = 1.0 - 3.0 * share;
        let shares =
            Shares { receive_window: share, send_buffer: share, application: share, network };
        let posterior = vec![Probability { limit, probability: 0.995 }];
        let named = Finding {
            limit: Some(limit),
            confidence: Some(Confidence::Sure),
            predicted_bps: Some(BitRate::from_bps_f64(predicted * 1e6)),
            shares: Some(shares),
            posterior,
            ..unexplained(&m, &Evidence { ..e })
        };
        (named, m)
    }

    fn of(limit: Limit, mbit: f64, predicted: f64, share: f64) -> Option<Contradiction> {
        let (finding, m) = finding(limit, mbit, predicted, share);
        contradiction(&finding, &m)
    }

    #[test]
    fn an_equation_may_be_off_by_a_factor_of_three() {
        for (mbit, withdrawn) in [(29.9, false), (30.1, true), (3.4, false), (3.3, true)] {
            assert_eq!(of(Limit::Loss, mbit, 10.0, 0.1).is_some(), withdrawn, "{mbit}");
        }
    }

    #[test]
    fn no_bound_is_exceeded() {
        for limit in [Limit::ReceiveWindow, Limit::SendBuffer, Limit::Pacing, Limit::PathRate] {
            assert_eq!(of(limit, 10.9, 10.0, 0.1), None, "{limit:?}");
            assert!(matches!(of(limit, 11.1, 10.0, 0.1), Some(Contradiction::Exceeded(_))));
        }
        assert_eq!(of(Limit::CongestionAvoidance, 11.1, 10.0, 0.1), None);
    }

    #[test]
    fn a_cause_that_took_no_time_is_none() {
        for limit in [Limit::ReceiveWindow, Limit::SlowReceiver, Limit::SendBuffer] {
            assert_eq!(of(limit, 10.0, 10.0, 0.005), None, "{limit:?}");
            assert_eq!(of(limit, 10.0, 10.0, 0.0049), Some(Contradiction::NoTime), "{limit:?}");
        }
        assert_eq!(of(Limit::Loss, 10.0, 10.0, 0.0), None);
    }

    #[test]
    fn what_contradicts_itself_is_unknown() {
        let (wrong, m) = finding(Limit::Loss, 81.2, 0.225, 0.1);
        let found = consistent(wrong, &m);
        assert_eq!((found.limit, found.confidence), (Some(Limit::Unknown), None));
        assert_eq!(found.posterior[0].limit, Limit::Unknown);
        assert!(found.sentence.contains("gives 225 kbit/s while 81.2 Mbit/s arrived"));
        assert_eq!(contradiction(&found, &m), None);
    }
}
