//! Congestion experienced (CE) marks reduce the congestion window as losses would
//! (RFC 3168, section 6.1.2), without a retransmission.
//!
//! > goodput = Mathis' or CUBIC's response function, with marks in the place of losses

use crate::{
    causes::{Cause, Observed},
    next_limit::{NextLimit, unpromised},
    phrases,
    predict::{self, Prediction},
};
use record::{Limit, Remedy};
use units::percent;

pub(super) struct EcnMarks;

impl Cause for EcnMarks {
    fn limit(&self) -> Limit {
        Limit::EcnMarks
    }

    fn noun(&self) -> &'static str {
        "ECN marks"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        predict::response(
            model::loss_from_fraction(o.e.marked.filter(|p| *p > 0.0)?)?,
            f64::INFINITY,
            o,
        )
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let share = marked(o);
        let predicted = self.prediction(o).map_or(String::new(), |p| {
            format!(", {} predicted for {name} with those marks", p.rate, name = control(o))
        });
        format!(
            "ECN marks{share} keep the congestion window small: {}{predicted}{}; the \
             bottleneck signals congestion before its queue builds up: raise its marking \
             threshold, or reduce the other traffic there.",
            o.arrived(),
            phrases::with_queueing(o.e)
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("ECN marks{} keep the congestion window small at {}", marked(o), o.e.goodput)
    }

    /// BBRv1 ignores marks, but no equation covers a queue that marks.
    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        let why = "BBR's model does not cover ECN marks";
        Vec::from_iter(next.bbr().map(|remedy| unpromised(remedy, why)))
    }
}

fn marked(o: &Observed<'_>) -> String {
    match o.e.marked.filter(|share| *share > 0.0) {
        Some(share) => format!(" on {} of the packets", percent(share)),
        None => String::new(),
    }
}

fn control<'a>(o: &Observed<'a>) -> &'a str {
    o.facts.congestion_control.unwrap_or("CUBIC")
}

#[cfg(test)]
mod tests {
    use super::EcnMarks;
    use crate::{causes::Cause, example::Example};

    #[test]
    fn marks_count_as_losses_in_the_equation() {
        let mut example = Example::new(1.4, 100.0);
        assert_eq!(EcnMarks.prediction(&example.observed()), None);
        example.e.marked = Some(0.01);
        let p = EcnMarks.prediction(&example.observed()).unwrap();
        assert!((p.rate.as_f64() / 1.42e6 - 1.0).abs() < 0.01, "{}", p.equation);
        let sentence = EcnMarks.sentence(&example.observed());
        assert!(sentence.starts_with("ECN marks on 1 % of the packets keep"), "{sentence}");
    }
}
