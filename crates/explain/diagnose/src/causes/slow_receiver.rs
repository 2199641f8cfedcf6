//! A receiving application that reads more slowly than data arrives: its socket buffer
//! fills and the advertised window closes.
//!
//! No equation: the goodput is the rate at which it reads.

use crate::causes::{Cause, Observed};
use record::Limit;
use units::percent;

pub(super) struct SlowReceiver;

impl Cause for SlowReceiver {
    fn limit(&self) -> Limit {
        Limit::SlowReceiver
    }

    fn noun(&self) -> &'static str {
        "a slow receiving application"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        format!(
            "Limited by the receiving application: it reads only {}, and {}. Make it read faster \
             (faster storage, less processing between reads, larger reads); larger buffers and \
             network tuning will not help.",
            o.e.goodput,
            closed(o)
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("limited by the receiving application: it reads {}, and {}", o.e.goodput, closed(o))
    }
}

/// The evidence in the advertised window.
fn closed(o: &Observed<'_>) -> String {
    let floor = o.e.window_floor.filter(|floor| *floor < 1.0);
    let mut text = match floor {
        Some(floor) => format!("its window closed to {} of its maximum", percent(floor)),
        None => "its window closed".to_owned(),
    };
    if let Some(shares) = o.shares.filter(|shares| shares.receive_window > 0.0) {
        text += &format!("; rwnd-limited {} of the time", percent(shares.receive_window));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::SlowReceiver;
    use crate::{causes::Cause, example::Example};
    use record::Shares;

    #[test]
    fn it_states_the_rate_and_the_window() {
        let mut example = Example::new(12.0, 20.0).on_path(100);
        example.e.window_floor = Some(0.02);
        example.shares = Some(Shares { receive_window: 0.8, network: 0.2, ..Shares::default() });
        let sentence = SlowReceiver.sentence(&example.observed());
        for part in ["reads only 12 Mbit/s", "closed to 2 % of its maximum", "80 % of the time"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert!(example.remedies(&SlowReceiver).is_empty());
    }
}
