//! The bottleneck is saturated, and active queue management keeps its queue short: CoDel
//! at 5 ms (RFC 8289), PIE at 15 ms (RFC 8033).
//!
//! > goodput = rate x payload / packet

use crate::{
    causes::{Cause, Observed},
    phrases,
    predict::{self, Prediction},
};
use record::Limit;

pub(super) struct Aqm;

impl Cause for Aqm {
    fn limit(&self) -> Limit {
        Limit::Aqm
    }

    fn noun(&self) -> &'static str {
        "a saturated bottleneck with active queue management"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        predict::bottleneck(o)
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let rate = phrases::goodput_of_path(o);
        let drops = match o.e.retransmits {
            0 => String::new(),
            1 => "; its one drop is a signal to the sender, not a fault".to_owned(),
            n => format!("; its {n} drops are signals to the sender, not a fault"),
        };
        format!(
            "Bottleneck saturated: {rate} of TCP payload, and active queue management (AQM) keeps \
             the queue short{}{drops}. Only a faster link will help.",
            queue(o)
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("bottleneck saturated at {}, queue managed by AQM{}", o.e.goodput, queue(o))
    }
}

fn queue(o: &Observed<'_>) -> String {
    match o.e.queueing().filter(|queueing| queueing.nanos() > 0) {
        Some(queueing) => format!(" ({queueing} of queueing delay)"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::Aqm;
    use crate::{causes::Cause, example::Example};
    use units::Rtt;

    #[test]
    fn drops_are_signals() {
        let mut example = Example::new(96.0, 30.0).on_path(100);
        example.e.loaded_rtt = Some(Rtt::from_micros(35_000));
        example.e.retransmits = 3;
        let sentence = Aqm.sentence(&example.observed());
        for part in ["96 of at most 96.5 Mbit/s", "5 ms of queueing delay", "its 3 drops are"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        assert!(!sentence.contains("repair") && example.remedies(&Aqm).is_empty());
        let p = Aqm.prediction(&example.observed()).unwrap();
        assert_eq!(p.rate.bps() / 1000, 96_533);
    }
}
