//! What a plot shows of each run: its title, its unit, and the value of a cell.

use crate::axis::{COUNT, MILLIS, RATE, SHARE, SIZE, Unit};
use model::statistics;
use record::{Figure, Quantity, RunStatus, StudyCell, StudyPart, StudyPlot, StudyRun};
use std::collections::BTreeMap;

/// Of a mean.
const CONFIDENCE: f64 = 0.95;

/// What is plotted.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// Such as `Goodput`, with the flow where there are several.
    pub(super) title: String,
    pub(super) units: &'static [Unit],
}

impl Shown {
    /// The goodput of the cells.
    pub(super) fn goodput() -> Self {
        Shown { title: Figure::Throughput.title().to_owned(), units: RATE }
    }

    pub(super) fn of(plot: &StudyPlot) -> Self {
        let flow = plot.flow.as_ref().map_or(String::new(), |flow| format!(" of {flow}"));
        let units = match plot.y.quantity() {
            Quantity::Rate => RATE,
            Quantity::Millis => MILLIS,
            Quantity::Bytes => SIZE,
            Quantity::Share => SHARE,
            Quantity::Count => COUNT,
        };
        Shown { title: plot.y.title().to_owned() + &flow, units }
    }
}

/// The values of the valid runs of each cell.
pub(super) fn values(plot: &StudyPlot, runs: &[StudyRun]) -> BTreeMap<usize, Vec<f64>> {
    let mut all: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.status == RunStatus::Valid) {
        if let Some(value) = plot.value(run).filter(|value| value.is_finite()) {
            all.entry(run.cell).or_default().push(value);
        }
    }
    all
}

/// The part with a figure's means in the place of its cells' goodputs; without predictions,
/// which are of the goodput.
pub(super) fn part_of(part: &StudyPart, runs: &[StudyRun], plot: &StudyPlot) -> StudyPart {
    if plot.y == Figure::Throughput && plot.flow.is_none() {
        return part.clone();
    }
    let values = values(plot, runs);
    let cells = part.cells.iter().map(|cell| {
        let values = values.get(&cell.cell).map_or(&[][..], Vec::as_slice);
        let interval = statistics::mean_interval(values, CONFIDENCE);
        StudyCell {
            throughput_bps: statistics::mean(values),
            low_bps: interval.map(|interval| interval.low.max(0.0)),
            high_bps: interval.map(|interval| interval.high),
            predicted_bps: None,
            equation: None,
            ..cell.clone()
        }
    });
    StudyPart { cells: cells.collect(), ..part.clone() }
}
