//! The causes: what can limit a transfer, one file each.
//!
//! A cause holds its prediction with the equation, its sentence, its line for watched
//! connections, its remedies, and their tests. To add one, write its file and add two
//! lines here: its module, and its entry in [`ALL`]. Causes do not use each other; what
//! several need is in `predict`, `phrases`, `next_limit` and `facts`.

mod ack_path;
mod application;
mod aqm;
mod clustered_loss;
mod congestion_avoidance;
mod cpu;
mod ecn_marks;
mod fixed_window;
mod loss;
mod memory;
mod outage;
mod pacing;
mod pacing_timers;
mod path_change;
mod path_rate;
mod pmtu_black_hole;
mod policer;
mod ramp;
mod receive_window;
mod reordering;
mod send_buffer;
mod shallow_queue;
mod shared_bottleneck;
mod slow_receiver;
mod unknown;
mod window_scaling;

use crate::{
    evidence::Evidence, facts::Facts, next_limit::NextLimit, phrases, predict::Prediction,
};
use record::{Limit, Measurement, Remedy, Shares};
use units::{ByteCount, Rtt};

/// Every cause.
pub(crate) static ALL: &[&dyn Cause] = &[
    &receive_window::ReceiveWindow,
    &window_scaling::WindowScaling,
    &slow_receiver::SlowReceiver,
    &send_buffer::SendBuffer,
    &application::Application,
    &pacing::Pacing,
    &cpu::Cpu,
    &memory::Memory,
    &pacing_timers::PacingTimers,
    &ramp::Ramp,
    &congestion_avoidance::CongestionAvoidance,
    &path_rate::PathRate,
    &shallow_queue::ShallowQueue,
    &aqm::Aqm,
    &shared_bottleneck::SharedBottleneck,
    &policer::Policer,
    &ecn_marks::EcnMarks,
    &loss::Loss,
    &clustered_loss::ClusteredLoss,
    &reordering::Reordering,
    &ack_path::AckPath,
    &path_change::PathChange,
    &fixed_window::FixedWindow,
    &outage::Outage,
    &pmtu_black_hole::PmtuBlackHole,
    &unknown::Unknown,
];

/// What a cause is explained from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) m: &'a Measurement,
    pub(crate) facts: Facts<'a>,
    pub(crate) e: &'a Evidence,
    /// `None` without the sender's timers.
    pub(crate) shares: Option<Shares>,
}

impl Observed<'_> {
    /// `96.4 Mbit/s arrived`, of the steady part.
    pub(crate) fn arrived(&self) -> String {
        phrases::arrived(self.m, self.e.goodput)
    }
}

/// Something that can limit a transfer.
pub(crate) trait Cause: Sync {
    /// Its name in a finding.
    fn limit(&self) -> Limit;

    /// It as a noun phrase: `random loss`.
    fn noun(&self) -> &'static str;

    /// The goodput that its equation predicts; `None` if no equation applies.
    fn prediction(&self, _: &Observed<'_>) -> Option<Prediction> {
        None
    }

    /// The window that bounds the data in flight, and the RTT of its prediction; `None` if none
    /// does, or if either is unknown.
    fn window(&self, _: &Observed<'_>) -> Option<(ByteCount, Rtt)> {
        None
    }

    /// The finding of a test: what limits it, by how much, and what to do.
    fn sentence(&self, o: &Observed<'_>) -> String;

    /// The finding of a watched connection: short, and without options of a test.
    fn one_line(&self, o: &Observed<'_>) -> String;

    /// What would raise the goodput, best first.
    fn remedies(&self, _: &NextLimit<'_>) -> Vec<Remedy> {
        Vec::new()
    }
}

/// The cause of `limit`.
pub(crate) fn of(limit: Limit) -> &'static dyn Cause {
    let found = ALL.iter().find(|cause| cause.limit() == limit);
    found.copied().unwrap_or(&unknown::Unknown)
}

#[cfg(test)]
mod tests {
    use super::{ALL, of};
    use crate::example::Example;
    use record::Limit;

    #[test]
    fn each_limit_has_one_cause() {
        for limit in Limit::ALL {
            let count = ALL.iter().filter(|cause| cause.limit() == limit).count();
            assert_eq!((count, of(limit).limit()), (1, limit));
        }
        assert_eq!(ALL.len(), Limit::ALL.len());
    }

    /// Sentences end with a full stop; lines do not, and name no options of a test.
    #[test]
    fn sentences_and_lines_have_one_form() {
        for example in [Example::new(50.0, 40.0), Example::nothing()] {
            for cause in ALL {
                let sentence = cause.sentence(&example.observed());
                let line = cause.one_line(&example.observed());
                let name = cause.limit().name();
                assert!(sentence.ends_with('.') && sentence.len() > 40, "{name}: {sentence}");
                assert!(!line.ends_with('.') && line.len() < 160, "{name}: {line}");
                for option in ["-w ", "-b ", "-C ", "-P ", "-t ", "test"] {
                    assert!(!line.contains(option), "{name}: {line}");
                }
                for text in [&sentence, &line] {
                    assert!(!text.contains("NaN") && !text.contains("inf "), "{name}: {text}");
                    assert!(!text.contains("  ") && !text.contains('\n'), "{name}: {text}");
                }
            }
        }
    }

    /// Over an RTT that no kernel can measure, a window allows no particular rate.
    #[test]
    fn no_sentence_prints_an_impossible_rate() {
        let example = Example::new(9_000.0, 0.001);
        for cause in ALL {
            let sentence = cause.sentence(&example.observed());
            let line = cause.one_line(&example.observed());
            let name = cause.limit().name();
            for text in [sentence, line] {
                assert!(!text.contains("Tbit") && !text.contains("1 µs"), "{name}: {text}");
            }
            let rate = cause.prediction(&example.observed()).map_or(0, |p| p.rate.bps());
            assert!(rate < 1_000_000_000_000, "{name}: {rate}");
        }
    }
}
