//! Runs of a study, by part and by the values of their factors.

use crate::plan::Plan;
use crate::study::Study;
use model::statistics;
use record::{FlowFigures, RunStatus, StudyRun};
use units::BitRate;

/// The runs of a study, of each part in the order of the parts.
pub(super) struct Runs<'a> {
    pub(super) study: &'a Study,
    pub(super) runs: &'a [Vec<StudyRun>],
}

/// Names of factors, and the values wanted.
pub(super) type Where<'a> = &'a [(&'a str, &'a str)];

impl<'a> Runs<'a> {
    fn part(&self, name: &str) -> Option<(&'a Plan, &'a [StudyRun])> {
        let at = self.study.parts.iter().position(|part| part.name == name)?;
        Some((&self.study.parts[at].plan, self.runs.get(at)?))
    }

    /// The valid runs of the cells that have those values.
    pub(super) fn valid(&self, part: &str, values: Where<'_>) -> Vec<&'a StudyRun> {
        let Some((plan, runs)) = self.part(part) else { return Vec::new() };
        let fits = |run: &&StudyRun| {
            let cell = plan.cell(run.cell);
            values.iter().all(|(name, value)| {
                let mut pairs = plan.factors.iter().zip(&cell.levels);
                pairs.any(|(f, level)| f.setting.to_string() == *name && level.text == *value)
            })
        };
        runs.iter().filter(|run| run.status == RunStatus::Valid).filter(fits).collect()
    }

    /// The mean of a figure over the valid runs; `None` without one.
    pub(super) fn mean(
        &self,
        part: &str,
        values: Where<'_>,
        figure: impl Fn(&StudyRun) -> Option<f64>,
    ) -> Option<f64> {
        let figures: Vec<f64> = self.valid(part, values).into_iter().filter_map(figure).collect();
        statistics::mean(&figures)
    }

    /// What the equations predict for a run's cell.
    pub(super) fn prediction(&self, part: &str, run: &StudyRun) -> Option<BitRate> {
        let plan = self.part(part)?.0;
        Some(plan.test(&plan.cell(run.cell)).ok()?.predict()?.rate)
    }

    /// The rate of the link of a run's cell, in bit/s.
    pub(super) fn link_bps(&self, part: &str, run: &StudyRun) -> Option<f64> {
        let plan = self.part(part)?.0;
        Some(plan.test(&plan.cell(run.cell)).ok()?.spec.rate()?.as_f64())
    }

    /// The mean goodput in bit/s.
    pub(super) fn goodput(&self, part: &str, values: Where<'_>) -> Option<f64> {
        self.mean(part, values, |run| Some(run.throughput_bps()))
    }

    /// The values of the part's factor, as text, in the order of the plan.
    pub(super) fn values(&self, part: &str, factor: &str) -> Vec<String> {
        let factors = self.part(part).map_or(&[][..], |(plan, _)| &plan.factors);
        let found = factors.iter().find(|known| known.setting.to_string() == factor);
        found.map_or(Vec::new(), |factor| factor.levels.iter().map(|l| l.text.clone()).collect())
    }

    /// A value of the part's factor as a number, in the unit of its kind.
    pub(super) fn number(&self, part: &str, factor: &str, value: &str) -> Option<f64> {
        let factors = &self.part(part)?.0.factors;
        let found = factors.iter().find(|known| known.setting.to_string() == factor)?;
        found.levels.iter().find(|level| level.text == value)?.number()
    }
}

/// A goodput, for texts.
pub(super) fn mbit(bps: f64) -> BitRate {
    BitRate::from_bps_f64(bps)
}

/// Whether a value differs by at most that share.
pub(super) fn near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

/// A flow begins some milliseconds before or after its time: a second of another one that
/// is within them by this share of it counts as whole.
const NEARLY_S: f64 = 0.05;

/// The mean goodput of a flow between two times since the first flow began, over the whole
/// seconds between them; `None` if it has none there.
pub(super) fn seconds(flow: &FlowFigures, from_s: f64, to_s: f64) -> Option<f64> {
    let from = (from_s - flow.began_s - NEARLY_S).ceil().max(0.0) as usize;
    let to =
        ((to_s - flow.began_s + NEARLY_S).floor().max(0.0) as usize).min(flow.series_bps.len());
    statistics::mean(flow.series_bps.get(from..to)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_whole_but_for_some_milliseconds() {
        let series_bps = vec![1.0, 2.0, 3.0, 4.0];
        let flow = FlowFigures { began_s: 3.0005, series_bps, ..FlowFigures::default() };
        assert_eq!(seconds(&flow, 4.0, 5.9998), Some(2.5));
        assert_eq!(seconds(&flow, 0.0, 99.0), Some(2.5));
        // A second and most of the next one.
        assert_eq!(seconds(&flow, 4.0, 5.9), Some(2.0));
        assert_eq!([seconds(&flow, 0.0, 3.0), seconds(&flow, 4.5, 5.5)], [None, None]);
    }
}
