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
    /// Before the caption: the plan's title of the plot, such as `Figure 1: `.
    pub(super) prefix: String,
    /// Such as `Goodput`, with the flow where there are several.
    pub(super) title: String,
    pub(super) units: &'static [Unit],
}

impl Shown {
    /// The goodput of the cells.
    pub(super) fn goodput() -> Self {
        let title = Figure::Throughput.title().to_owned();
        Shown { prefix: String::new(), title, units: RATE }
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
        let prefix = plot.title.as_ref().map_or(String::new(), |title| format!("{title}: "));
        Shown { prefix, title: plot.y.title().to_owned() + &flow, units }
    }
}

/// The values of the valid runs of each cell.
pub(super) fn values(
    part: &StudyPart,
    plot: &StudyPlot,
    runs: &[StudyRun],
) -> BTreeMap<usize, Vec<f64>> {
    let mut all: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.status == RunStatus::Valid) {
        let streams = streams(part, plot, run.cell);
        if let Some(value) = plot.value(run, streams).filter(|value| value.is_finite()) {
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
    let values = values(part, plot, runs);
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

/// The streams of a flow of a cell: those of the flow, or of all; a factor's value, a fixed one,
/// or one.
fn streams(part: &StudyPart, plot: &StudyPlot, cell: usize) -> u32 {
    const STREAMS: &str = "streams";
    let own = plot.flow.as_ref().map(|flow| format!("{flow}.{STREAMS}"));
    let names = own.as_deref().into_iter().chain([STREAMS]);
    let values = names.filter_map(|name| {
        let factor = part.plan.factors.iter().position(|factor| factor.name == name);
        let varied = factor.and_then(|at| part.cells.get(cell)?.values.get(at));
        let fixed = part.plan.fixed.iter().find(|fixed| fixed.name == name);
        varied.or_else(|| fixed.and_then(|fixed| fixed.values.first()))
    });
    values.into_iter().find_map(|text| text.parse().ok()).unwrap_or(1)
}
