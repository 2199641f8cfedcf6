//! The flows of a cell over time, stacked against the link's capacity, with the NAKs of UDT.

use super::part_plot::label;
use crate::axis::{Axis, ELAPSED, RATE};
use crate::html::drawing::line;
use crate::html::labels::{self, Label};
use crate::html::naks;
use crate::html::plot::{Chart, Scale, Values, Width, area, grid, layer};
use crate::wording;
use record::{FlowFigures, RunStatus, StudyCell, StudyPart, StudyRun};

const BOTTOM: f64 = 250.0;

const DAY: usize = 86_400;

/// Cells of a part that are drawn.
const MAX: usize = 6;

/// Steps of a drawing: a longer run has several seconds in each.
const MAX_STEPS: usize = 600;

/// The first valid run of each cell with several flows, or with NAKs.
pub(super) fn cells<'a>(part: &StudyPart, runs: &'a [StudyRun]) -> Vec<&'a StudyRun> {
    let shown = |run: &&StudyRun| {
        let has_naks = run.flows.iter().any(|flow| !flow.nak_series.is_empty());
        run.status == RunStatus::Valid && (run.flows.len() > 1 || has_naks)
    };
    let mut found: Vec<&StudyRun> = Vec::new();
    for run in runs.iter().filter(shown) {
        let known = part.cells.len() > run.cell && !found.iter().any(|one| one.cell == run.cell);
        if known && found.len() < MAX {
            found.push(run);
        }
    }
    found
}

pub(super) fn draw(part: &StudyPart, run: &StudyRun) -> Option<Chart> {
    let cell = part.cells.get(run.cell)?;
    let title = format!("Flows over time, {}", label(part, cell));
    let capacity = capacity(part, cell);
    let seconds = run.flows.iter().map(end).fold(1, usize::max);
    let step = seconds.div_ceil(MAX_STEPS);
    let count = seconds.div_ceil(step);
    let mean = |flow: &FlowFigures, number: usize| {
        (0..step).map(|second| at(flow, number * step + second)).sum::<f64>() / step as f64
    };
    let sums: Vec<f64> =
        (0..count).map(|number| run.flows.iter().map(|flow| mean(flow, number)).sum()).collect();
    let most = sums.iter().copied().fold(capacity.unwrap_or(0.0), f64::max);
    let up = Scale::Linear(Axis::over(most, RATE, 4.0));
    let column = |flow: &FlowFigures| {
        (flow.name.clone(), (0..count).map(|number| mean(flow, number)).collect())
    };
    let values = Values::over_time(&run.flows.iter().map(column).collect::<Vec<_>>(), step);
    let chart = Chart::new(title, values, |m, width| {
        let area = area(width, BOTTOM);
        let across = Axis::to(seconds as f64, ELAPSED, width.of(8.0, 4.0));
        grid(m, &up, &area);
        area.seconds(m, &across);
        let place = |number: usize, value: f64| {
            (area.x(across.share((number * step) as f64)), area.y(up.share(value)))
        };
        let mut below = vec![0.0; count];
        let (mut names, mut marks) = (Vec::new(), Vec::new());
        for (index, flow) in run.flows.iter().enumerate() {
            let class = format!("q-{}", index % 8);
            let above: Vec<f64> =
                below.iter().enumerate().map(|(number, low)| low + mean(flow, number)).collect();
            layer(m, &class, &below, &above, place);
            let middle = (usize::midpoint(begin(flow), end(flow)) / step).min(count - 1);
            let height = f64::midpoint(below[middle], above[middle]);
            for (number, high) in above.iter().enumerate() {
                let count: u64 =
                    (0..step).map(|second| naks_at(flow, number * step + second)).sum();
                if count > 0 {
                    let (from, to) = (place(number, *high), place(number + 1, *high));
                    let at = (f64::midpoint(from.0, to.0), from.1);
                    marks.push((at, count, format!("of {} at {} s", flow.name, number * step)));
                }
            }
            names.push(Label { text: flow.name.clone(), class, from: place(0, height).1 });
            below = above;
        }
        if let Some(capacity) = capacity {
            let y = area.y(up.share(capacity));
            line(m, "capacity", (area.left, y), (area.right, y));
        }
        // Above every flow.
        marks.iter().for_each(|(at, count, when)| naks::mark(m, *at, *count, when));
        labels::write(m, names, &area, width == Width::Wide);
        area.bottom + 50.0
    });
    let fairness =
        cell.fairness.map(|index| format!(" Jain's fairness index of the means: {index:.3}."));
    let capacity = capacity.map(|rate| format!(" Dashed: link rate {}.", wording::bps(rate)));
    let received = run.flows.iter().filter_map(|flow| Some((flow, flow.naks?)));
    let received: Vec<String> =
        received.map(|(flow, count)| format!("{} {}", flow.name, naks::received(count))).collect();
    let received = if received.is_empty() {
        String::new()
    } else {
        format!(" {}: NAKs received ({}).", naks::SIGN, received.join(", "))
    };
    let note = format!(
        "Goodput in each {}, repeat {}.{}{}{received}",
        if step == 1 { "second".to_owned() } else { format!("{step} s") },
        run.repeat,
        capacity.unwrap_or_default(),
        fairness.unwrap_or_default()
    );
    Some(chart.with_note(note))
}

/// At most a day, as a test has.
fn begin(flow: &FlowFigures) -> usize {
    flow.began_s.clamp(0.0, DAY as f64).round() as usize
}

fn end(flow: &FlowFigures) -> usize {
    begin(flow) + flow.series_bps.len().min(DAY)
}

/// A flow's goodput in a second since the first flow began.
fn at(flow: &FlowFigures, second: usize) -> f64 {
    let index = second.checked_sub(begin(flow));
    index.and_then(|index| flow.series_bps.get(index)).copied().unwrap_or(0.0)
}

/// NAKs of a flow in a second since the first flow began.
fn naks_at(flow: &FlowFigures, second: usize) -> u64 {
    let index = second.checked_sub(begin(flow));
    index.and_then(|index| flow.nak_series.get(index)).copied().unwrap_or(0)
}

/// The link's rate: of the cell, or as the plan fixes it.
fn capacity(part: &StudyPart, cell: &StudyCell) -> Option<f64> {
    let varied = part.plan.factors.iter().zip(&cell.values).find(|(one, _)| one.name == "rate");
    if let Some((factor, value)) = varied {
        let at = factor.values.iter().position(|other| other == value)?;
        return factor.numbers.get(at).copied();
    }
    let rate = part.plan.fixed.iter().find(|fixed| fixed.name == "rate")?;
    rate.numbers.first().copied()
}
