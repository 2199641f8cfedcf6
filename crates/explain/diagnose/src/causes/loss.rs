//! Independent random loss keeps the congestion window small.
//!
//! > Reno: goodput = sqrt(3/2) x MSS / (RTT x sqrt(p)) (Mathis et al. 1997)
//! >
//! > CUBIC: 1.054 x (RTT / p)^(3/4) x MSS / RTT (RFC 9438, section 5.1), or Reno's if more

use crate::{
    causes::{Cause, Observed},
    next_limit::NextLimit,
    phrases,
    predict::{self, Prediction},
};
use record::{Limit, Remedy};
use units::percent;

pub(super) struct Loss;

impl Cause for Loss {
    fn limit(&self) -> Limit {
        Limit::Loss
    }

    fn noun(&self) -> &'static str {
        "random loss"
    }

    fn prediction(&self, o: &Observed<'_>) -> Option<Prediction> {
        predict::response(predict::loss_ratio(o.m, o.e)?, o.e.losses, o)
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        let e = o.e;
        let share = predict::loss_ratio(o.m, e).map(|loss| percent(loss.fraction()));
        let share = share.map_or_else(String::new, |share| format!(" of {share}"));
        let rtt = e.loaded_rtt.unwrap_or_default();
        let mut text = format!("Random loss{share} keeps the congestion window small: ");
        text += &o.arrived();
        if let Some(prediction) = self.prediction(o) {
            text += &format!(", {} predicted for that loss and an RTT of {rtt}", prediction.rate);
        }
        let rate = o.m.path.as_ref().and_then(|path| path.rate_bps);
        let budget = rate.zip(e.mss).and_then(|(rate, mss)| {
            let each = rate.scaled(1.0 / e.streams.max(1) as f64);
            Some((rate, model::loss_budget_cubic(each, mss, rtt)?))
        });
        if let Some((rate, budget)) = budget {
            let budget = percent(budget.fraction());
            text += &format!("; {rate} tolerates a loss of at most {budget}");
        }
        let repair = if e.loses_at_idle_queue() { "repair the path, or " } else { "" };
        format!("{text}; {repair}use {}.", phrases::bbr_or_more_streams(o))
    }

    fn one_line(&self, o: &Observed<'_>) -> String {
        let lost = o.e.loss.map_or(String::new(), |loss| format!(" of {}", percent(loss)));
        let usual = phrases::about(self.prediction(o));
        format!("random loss{lost} keeps the congestion window small{usual}")
    }

    fn remedies(&self, next: &NextLimit<'_>) -> Vec<Remedy> {
        next.bbr().into_iter().chain(next.more_streams()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Loss;
    use crate::{causes::Cause, example::Example};

    fn lossy() -> Example {
        let mut example = Example::new(1.47, 100.0);
        example.e.loss = Some(0.01);
        example
    }

    #[test]
    fn mathis_or_cubic_is_the_prediction() {
        let p = Loss.prediction(&lossy().observed()).unwrap();
        assert!(p.equation.starts_with("sqrt(3/2)"), "{}", p.equation);
        let mut light = lossy();
        light.e.loss = Some(1e-5);
        let p = Loss.prediction(&light.observed()).unwrap();
        assert!(p.equation.starts_with("1.054 x"), "{}", p.equation);
        light.m.streams[0].congestion = Some("bbr".to_owned());
        assert_eq!(Loss.prediction(&light.observed()), None);
    }

    /// A loss behind a queue may be that queue's own drop.
    #[test]
    fn the_path_is_to_be_repaired_only_for_losses_at_an_idle_queue() {
        let mut example = lossy();
        for (backlog, repair) in [(None, false), (Some(0.4), true), (Some(35.0), false)] {
            example.e.backlog_at_losses = backlog;
            let sentence = Loss.sentence(&example.observed());
            assert_eq!(sentence.contains("repair the path"), repair, "{sentence}");
        }
    }

    #[test]
    fn bbr_or_streams_are_expected_to_help() {
        let remedies = lossy().on_path(100).remedies(&Loss);
        let names: Vec<String> = remedies.iter().map(|one| one.command.to_string()).collect();
        assert_eq!(names, ["-C bbr", "-P 8"]);
        let rates: Vec<u64> = remedies
            .iter()
            .flat_map(|one| one.expects_bps)
            .map(|rate| rate.bps() / 1_000)
            .collect();
        // 96.53 x 0.99, less 250 ms of each 10 s; 8 x 1.47 Mbit/s.
        assert_eq!(rates, [93_178, 11_760], "{remedies:?}");
    }
}
