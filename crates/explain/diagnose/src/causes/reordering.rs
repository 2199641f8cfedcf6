//! Reordered packets are mistaken for lost ones: segments are retransmitted although they
//! arrive, and each time the congestion window is reduced.
//!
//! RACK (RFC 8985) waits a quarter of the minimum RTT for a late segment once it has seen
//! reordering; segments that are later than that count as lost.
//!
//! No equation: the kernel undoes reductions (DSACK, RFC 3708), so the response to as many losses
//! is a lower bound, at times a thousandth of the goodput.

use crate::{
    causes::{Cause, Observed},
    next_limit::{NextLimit, unpromised},
};
use record::{Limit, Remedy};
use units::percent;

pub(super) struct Reordering;

impl Cause for Reordering {
    fn limit(&self) -> Limit {
        Limit::Reordering
    }

    fn noun(&self) -> &'static str {
        "reordering"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let bbr = if o.facts.is_bbr() { "" } else { ", or use BBR (-C bbr)" };
        format!(
            "Reordered segments are mistaken for lost ones: {}, {}; find the cause (per-packet \
             load balancing, link aggregation, radio-link retransmissions){bbr}.",
            o.arrived(),
            retransmitted(o)
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("reordering is mistaken for loss: {}", retransmitted(o))
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        let why = "BBR's model does not cover reordering";
        Vec::from_iter(next.bbr().map(|remedy| unpromised(remedy, why)))
    }
}

fn retransmitted(o: &Observed<'_>) -> String {
    match o.e.loss.filter(|share| *share > 0.0) {
        Some(share) => {
            format!("and {} of the segments were retransmitted needlessly", percent(share))
        }
        None => "and the congestion window was reduced needlessly".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Reordering;
    use crate::{causes::Cause, example::Example};

    #[test]
    fn needless_retransmissions_have_no_equation() {
        let mut example = Example::new(1.5, 100.0).on_path(100);
        example.e.loss = Some(0.01);
        assert_eq!(Reordering.prediction(&example.observed()), None);
        let sentence = Reordering.sentence(&example.observed());
        assert!(sentence.contains("1 % of the segments"), "{sentence}");
        assert!(!sentence.contains("repair the path"), "{sentence}");
        assert_eq!(example.remedies(&Reordering)[0].expects_bps, None);
    }
}
