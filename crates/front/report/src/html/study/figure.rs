//! What a plot shows of each run: its title, its unit, and the value of a cell.

use crate::axis::{COUNT, MILLIS, RATE, SHARE, SIZE, Unit};
use model::statistics;
use record::{Figure, Quantity, Reference, RunStatus, StudyCell, StudyPart, StudyPlot, StudyRun};
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
    /// A line that it is compared with.
    pub(super) reference: Option<Reference>,
    /// The plan's remark.
    remark: Option<String>,
}

impl Shown {
    /// The goodput of the cells.
    pub(super) fn goodput() -> Self {
        let title = Figure::Throughput.title().to_owned();
        Shown { prefix: String::new(), title, units: RATE, reference: None, remark: None }
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
        let title = plot.y.title().to_owned() + &flow;
        let (reference, remark) = (plot.reference, plot.note.clone());
        Shown { prefix, title, units, reference, remark }
    }

    /// How to read the plot, with the plan's remark.
    pub(super) fn note(&self, how: &str) -> String {
        self.remark.iter().fold(how.to_owned(), |how, remark| format!("{how} {remark}"))
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
        let streams = streams(part, plot, run);
        if let Some(value) = plot.value(run, streams).filter(|value| value.is_finite()) {
            all.entry(run.cell).or_default().push(value);
        }
    }
    all
}

/// The part with a figure's means in the place of its cells' goodputs; without predictions,
/// which are of the goodput, and which the steady one does without a ramp-up.
pub(super) fn part_of(part: &StudyPart, runs: &[StudyRun], plot: &StudyPlot) -> StudyPart {
    if plot.y == Figure::Throughput && plot.flow.is_none() {
        return part.clone();
    }
    let values = values(part, plot, runs);
    let is_predicted = plot.y == Figure::Steady;
    let cells = part.cells.iter().map(|cell| {
        let values = values.get(&cell.cell).map_or(&[][..], Vec::as_slice);
        let interval = statistics::mean_interval(values, CONFIDENCE);
        StudyCell {
            throughput_bps: statistics::mean(values),
            low_bps: interval.map(|interval| interval.low.max(0.0)),
            high_bps: interval.map(|interval| interval.high),
            predicted_bps: cell.predicted_bps.filter(|_| is_predicted),
            equation: cell.equation.clone().filter(|_| is_predicted),
            ..cell.clone()
        }
    });
    StudyPart { cells: cells.collect(), ..part.clone() }
}

/// The streams of a flow of a cell: its share of all; those of the flow, or of all; a factor's value,
/// a fixed one, or one.
fn streams(part: &StudyPart, plot: &StudyPlot, run: &StudyRun) -> u32 {
    const STREAMS: &str = "streams";
    const TOTAL: &str = "total_streams";
    let cell = part.cells.get(run.cell);
    let settings = || part.plan.factors.iter().chain(&part.plan.fixed);
    if let Some(cell) = cell.filter(|_| settings().any(|setting| setting.name == TOTAL)) {
        let flows = u32::try_from(run.flows.len()).unwrap_or(u32::MAX).max(1);
        return cell.streams / flows;
    }
    let own = plot.flow.as_ref().map(|flow| format!("{flow}.{STREAMS}"));
    let names = own.as_deref().into_iter().chain([STREAMS]);
    let values = names.filter_map(|name| {
        let factor = part.plan.factors.iter().position(|factor| factor.name == name);
        let varied = factor.and_then(|at| cell?.values.get(at));
        let fixed = part.plan.fixed.iter().find(|fixed| fixed.name == name);
        varied.or_else(|| fixed.and_then(|fixed| fixed.values.first()))
    });
    values.into_iter().find_map(|text| text.parse().ok()).unwrap_or(1)
}
