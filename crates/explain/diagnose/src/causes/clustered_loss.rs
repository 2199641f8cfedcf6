//! Random loss in clusters (Gilbert-Elliott) keeps the congestion window small.
//!
//! A cluster within one RTT reduces the window once, so the equations take the rate of
//! clusters, not of lost packets:
//!
//! > p = lost share / segments per cluster; then Mathis' or CUBIC's response function
//!
//! Philip et al., "Revisiting TCP Congestion Control Throughput Models & Fairness
//! Properties At Scale", IMC 2021: Mathis holds for the rate of window reductions.

use crate::{
    causes::{Cause, Observed},
    next_limit::NextLimit,
    phrases,
    predict::{self, Prediction},
};
use record::{Limit, Remedy};
use units::percent;

pub(super) struct ClusteredLoss;

impl Cause for ClusteredLoss {
    fn limit(&self) -> Limit {
        Limit::ClusteredLoss
    }

    fn noun(&self) -> &'static str {
        "random loss in clusters"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        let lost = predict::loss_ratio(o.m, o.e)?.fraction();
        if lost > MAX_LOST {
            return None;
        }
        let clusters = model::loss_from_fraction(lost / cluster(o))?;
        let mut p = predict::response(clusters, o.e.losses / cluster(o), o)?;
        p.equation = format!(
            "p = {} / {:.1} = {}; {}",
            percent(lost),
            cluster(o),
            percent(clusters.fraction()),
            p.equation
        );
        Some(p)
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let e = o.e;
        let predicted = self.prediction(o).map_or(String::new(), |p| {
            let rtt = e.loaded_rtt.unwrap_or_default();
            format!(", {} predicted for those clusters and an RTT of {rtt}", p.rate)
        });
        let repair = if e.loses_at_idle_queue() {
            "repair the path (radio link, cable, optics), or "
        } else {
            ""
        };
        format!(
            "Random loss{} keeps the congestion window small: {}{predicted}; {repair}use {}.",
            lost(o),
            o.arrived(),
            phrases::bbr_or_more_streams(o)
        )
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let usual = phrases::about(self.prediction(o));
        format!("random loss{} keeps the congestion window small{usual}", lost(o))
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        next.bbr().into_iter().chain(next.more_streams()).collect()
    }
}

/// The loss ratio above which clusters take whole windows, and timeouts the time between them: the
/// equations count neither.
const MAX_LOST: f64 = 0.05;

/// Segments lost at a time, at least one.
fn cluster(o: &Observed<'_>) -> f64 {
    if o.e.burst.is_finite() { o.e.burst.max(1.0) } else { 1.0 }
}

/// ` of 0.5 % in clusters of 4.2 segments`.
fn lost(o: &Observed<'_>) -> String {
    let share = predict::loss_ratio(o.m, o.e).map(|loss| percent(loss.fraction()));
    let share = share.map_or_else(String::new, |share| format!(" of {share}"));
    match cluster(o) {
        size if size > 1.0 => format!("{share} in clusters of {size:.1} segments"),
        _ => format!("{share} in clusters"),
    }
}

#[cfg(test)]
mod tests {
    use super::ClusteredLoss;
    use crate::{causes::Cause, example::Example};

    /// 1 % in clusters of 4 reduces the window as often as 0.25 % of single losses: Mathis
    /// gives twice the rate.
    #[test]
    fn the_equation_takes_the_rate_of_clusters() {
        let mut example = Example::new(2.8, 100.0);
        (example.e.loss, example.e.burst) = (Some(0.01), 4.0);
        let p = ClusteredLoss.prediction(&example.observed()).unwrap();
        assert!((p.rate.as_f64() / 2.84e6 - 1.0).abs() < 0.01, "{}", p.equation);
        assert!(p.equation.starts_with("p = 1 % / 4.0 = 0.25 %; sqrt(3/2)"), "{}", p.equation);
        let sentence = ClusteredLoss.sentence(&example.observed());
        assert!(sentence.contains("of 1 % in clusters of 4.0 segments"), "{sentence}");
        example.e.burst = f64::NAN;
        assert!(ClusteredLoss.prediction(&example.observed()).is_some());
    }
}
