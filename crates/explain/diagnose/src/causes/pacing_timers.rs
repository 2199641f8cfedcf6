//! BBR's pacing on a path of under 1 ms: without the `fq` qdisc, TCP arms a high-resolution
//! timer before each segment of up to 64 KiB (Linux `tcp_internal_pacing`). No measurement has the
//! queue discipline of the sender's device, so what is said of the timers depends on it.
//!
//! No equation covers what a timer costs: it depends on the host, most of all on whether it is
//! a virtual machine. Measured in one: 15 timers per MB, 0.18 to 0.26 ns of CPU time per byte
//! with four streams, and 2.2 to 3.3 times the goodput with CUBIC
//! (docs/design/local-paths.md).

use crate::{
    causes::{Cause, Observed},
    next_limit::{Expectation, NextLimit, call},
};
use record::{Limit, Remedy, RemedyCommand};

/// Bytes of a segment for which a timer is armed at these rates: GSO's limit.
const SEGMENT: f64 = 65_536.0;

pub(super) struct PacingTimers;

impl Cause for PacingTimers {
    fn limit(&self) -> Limit {
        Limit::PacingTimers
    }

    fn noun(&self) -> &'static str {
        "BBR's pacing timers"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        format!(
            "Limited by BBR's pacing timers at {}, unless the sender's qdisc is fq: the sender \
             waits for a timer before each 64 KiB segment, {:.0} times a second; use CUBIC on this \
             path (-C cubic). Larger buffers will not help.",
            o.e.goodput,
            timers(o)
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let timers = timers(o);
        format!(
            "limited by BBR's pacing timers, unless the qdisc is fq: {timers:.0} a second; use \
             CUBIC"
        )
    }

    fn remedies(&self, _: &NextLimit<'_>) -> Vec<Remedy> {
        let why = "no prediction: the cost of a timer depends on the host; measured in a virtual \
                   machine: 1.3 to 3.3 times the goodput";
        vec![call(RemedyCommand::CongestionControl("cubic".to_owned()), Expectation::none(why))]
    }
}

/// Timers per second: at least one for each segment.
fn timers(o: &Observed<'_>) -> f64 {
    o.e.goodput.as_f64() / 8.0 / SEGMENT
}

#[cfg(test)]
mod tests {
    use super::PacingTimers;
    use crate::{causes::Cause, example::Example};

    #[test]
    fn cubic_is_the_remedy_and_promises_nothing() {
        let example = Example::new(32_000.0, 0.1);
        let sentence = PacingTimers.sentence(&example.observed());
        assert!(
            sentence.contains("at 32 Gbit/s") && sentence.contains("61035 times a second"),
            "{sentence}"
        );
        // With it TCP arms none, and the record does not say which one there is.
        for text in [sentence, PacingTimers.one_line(&example.observed())] {
            assert!(text.contains("unless the ") && text.contains("qdisc is fq"), "{text}");
        }
        let remedies = example.remedies(&PacingTimers);
        assert_eq!(remedies[0].command.to_string(), "-C cubic");
        assert_eq!(remedies[0].expects_bps, None);
    }
}
