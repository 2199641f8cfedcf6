//! The bottleneck is saturated, and its drop-tail queue is deep.
//!
//! > goodput = rate x payload / packet

use crate::{
    causes::{Cause, Observed},
    phrases,
    predict::{self, Prediction},
};
use record::Limit;

pub(super) struct PathRate;

impl Cause for PathRate {
    fn limit(&self) -> Limit {
        Limit::PathRate
    }

    fn noun(&self) -> &'static str {
        "a saturated bottleneck"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        predict::bottleneck(o)
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let rate = phrases::goodput_of_path(o);
        let queue = phrases::with_queueing(o.e);
        format!("Bottleneck saturated: {rate} of TCP payload{queue}; only a faster link will help.")
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let queue = o.e.queueing().filter(|_| o.e.has_standing_queue());
        let queue = queue.map_or(String::new(), |q| format!(", {q} of queueing delay"));
        format!("bottleneck saturated at {}{queue}", o.e.goodput)
    }
}

#[cfg(test)]
mod tests {
    use super::PathRate;
    use crate::{causes::Cause, example::Example};
    use units::Rtt;

    #[test]
    fn the_payload_of_the_rate_is_the_prediction() {
        let mut example = Example::new(96.4, 173.0);
        let p = PathRate.prediction(&example.observed()).unwrap();
        assert_eq!(p.equation, "median delivery rate = 96.4 Mbit/s of TCP payload");
        example = example.on_path(100);
        example.e.loaded_rtt = Some(Rtt::from_micros(344_000));
        assert_eq!(
            PathRate.sentence(&example.observed()),
            "Bottleneck saturated: 96.4 of at most 96.5 Mbit/s of TCP payload, with 171 ms of \
             queueing delay; only a faster link will help."
        );
        assert!(example.remedies(&PathRate).is_empty());
    }
}
