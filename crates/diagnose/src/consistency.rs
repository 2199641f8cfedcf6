//! A finding never contradicts its own evidence.
//!
//! The terms were fitted to some kinds of traffic and are asked about every kind. A limit whose
//! equation, bound or timer disagrees with what was measured is withdrawn, however probable the
//! terms found it: *unknown* is an answer, nonsense is none.

use crate::{causes::Observed, predict::Prediction};
use record::Limit;
use units::BitRate;

/// The factor between prediction and measurement from which an equation does not describe the
/// transfer.
const FAR_OFF: f64 = 3.0;

/// What may pass a bound: windows and RTTs are medians of samples.
const TOLERANCE: f64 = 1.1;

/// The share of the time below which a cause took none: what rounds to 0 %.
const NO_TIME: f64 = 0.005;

/// Why a limit is withdrawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Contradiction {
    /// The equation is off by more than a factor of three.
    FarOff(BitRate),
    /// More arrived than the limit allows.
    Exceeded(BitRate),
    /// The sender never waited for it.
    NoTime,
}

/// What contradicts a limit; `None` if nothing does.
pub(crate) fn contradiction(
    limit: Limit,
    prediction: Option<&Prediction>,
    o: &Observed<'_>,
) -> Option<Contradiction> {
    if let (Some(shares), true) = (o.shares, waits(limit)) {
        let share = match limit {
            Limit::SendBuffer => shares.send_buffer,
            Limit::Application => shares.application,
            _ => shares.receive_window,
        };
        if share < NO_TIME {
            return Some(Contradiction::NoTime);
        }
    }
    let predicted = prediction?.rate;
    let ratio = o.e.goodput.as_f64() / predicted.as_f64().max(1.0);
    if is_bound(limit) && ratio > TOLERANCE {
        Some(Contradiction::Exceeded(predicted))
    } else if !(1.0 / FAR_OFF..=FAR_OFF).contains(&ratio) {
        Some(Contradiction::FarOff(predicted))
    } else {
        None
    }
}

/// Whether the sender's timers count the time that the limit takes.
const fn waits(limit: Limit) -> bool {
    matches!(
        limit,
        Limit::ReceiveWindow
            | Limit::WindowScaling
            | Limit::SlowReceiver
            | Limit::SendBuffer
            | Limit::Application
    )
}

/// Whether a limit's equation gives the most that can arrive.
const fn is_bound(limit: Limit) -> bool {
    waits(limit) || matches!(limit, Limit::Pacing) || limit.is_saturated()
}

/// The sentence of a finding whose limit was withdrawn.
pub(crate) fn sentence(noun: &str, contradiction: Contradiction, o: &Observed<'_>) -> String {
    let goodput = o.e.goodput;
    let why = match contradiction {
        Contradiction::FarOff(predicted) => {
            format!("its equation gives {predicted}, and {goodput} arrived")
        }
        Contradiction::Exceeded(most) => {
            format!("it would allow at most {most}, and {goodput} arrived")
        }
        Contradiction::NoTime => "the sender never waited for it".to_owned(),
    };
    format!(
        "Cannot identify the limit: the samples resemble {noun}, but {why}. Run longhaul on both \
         hosts (longhaul server, longhaul test --decide) to identify it."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example;
    use record::Shares;

    fn of(limit: Limit, mbit: f64, predicted: f64, share: f64) -> Option<Contradiction> {
        let mut example = Example::new(mbit, 50.0);
        example.shares = Some(Shares {
            receive_window: share,
            send_buffer: share,
            application: share,
            network: 1.0 - 3.0 * share,
        });
        let rate = BitRate::from_bps_f64(predicted * 1e6);
        let prediction = Prediction { rate, equation: String::new() };
        contradiction(limit, Some(&prediction), &example.observed())
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
}
