//! The sender paces below the bottleneck rate: `SO_MAX_PACING_RATE`, `fq maxrate`, BBR.
//!
//! > goodput = pacing rate

use crate::{
    causes::{Cause, Observed},
    next_limit::NextLimit,
    predict::Prediction,
};
use record::{Limit, Remedy};

pub(super) struct Pacing;

impl Cause for Pacing {
    fn limit(&self) -> Limit {
        Limit::Pacing
    }

    fn noun(&self) -> &'static str {
        "the sender's pacing"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        let rate = o.e.pacing?;
        Some(Prediction { rate, equation: format!("pacing rate = {rate} of TCP payload") })
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        format!(
            "Pacing-limited: the sender paces at {}, {} arrived, and the congestion window was \
             not full; raise or remove the pacing limit.",
            o.e.pacing.unwrap_or(o.e.goodput),
            o.e.goodput
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        format!("pacing-limited: the sender paces at {}", o.e.pacing.unwrap_or(o.e.goodput))
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        vec![next.without_pacing()]
    }
}

#[cfg(test)]
mod tests {
    use super::Pacing;
    use crate::{causes::Cause, example::Example};
    use units::BitRate;

    #[test]
    fn the_pacing_rate_is_the_prediction() {
        let mut example = Example::new(30.0, 80.0).on_path(100);
        example.e.pacing = Some(BitRate::from_bps(30_600_000));
        let p = Pacing.prediction(&example.observed()).unwrap();
        assert_eq!(p.rate.bps(), 30_600_000);
        let remedies = example.remedies(&Pacing);
        assert_eq!(remedies[0].command.to_string(), "no --fq-rate");
        assert_eq!(remedies[0].expects_bps.map(|rate| rate.bps() / 1000), Some(96_533));
    }
}
