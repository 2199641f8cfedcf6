//! Means over a numeric factor: a line for each value of another, with confidence intervals
//! and what the equations predict.

use super::chart::{Chart, Width};
use super::part_plot::{PartPlot, Plotted, labelled};
use super::scale::Scale;
use super::values::Values;
use crate::html::drawing::{Area, circle, line, polyline, text};
use crate::html::labels::{self, Label};
use crate::html::markup::Markup;
use record::{StudyCell, StudyPart};

const BOTTOM: f64 = 350.0;

/// The plot of a chart whose lines are named at the right, or on a phone within it; `height` of it.
pub(super) fn area(width: Width, height: f64) -> Area {
    Area { left: width.of(92.0, 80.0), right: width.of(760.0, 390.0), top: 16.0, bottom: height }
}

/// Lines that are told apart by their colours; of more, some are left out.
const MAX_SERIES: usize = 8;

pub(super) fn draw(part: &StudyPart, plot: &PartPlot) -> Option<Chart> {
    let Plotted::Lines { x, series } = plot.plotted else { return None };
    let factor = &part.plan.factors[x];
    if factor.numbers.len() != factor.values.len() {
        return None;
    }
    let across = Scale::of_factor(&factor.numbers);
    let cells = plot.cells(part);
    let rates =
        cells.clone().flat_map(|cell| [cell.throughput_bps, cell.predicted_bps, cell.high_bps]);
    let up = Scale::of_values(rates.flatten(), plot.shown.units);
    let values = Values::of_cells(part, plot);
    let chart = Chart::new(plot.caption(part), values, |m, width| {
        let area = area(width, BOTTOM);
        grid(m, &up, &area);
        for at in labelled(factor, width.of(12, 4)) {
            area.tick(m, area.x(across.share(factor.numbers[at])), &factor.values[at]);
        }
        text(m, "axis", (area.x(0.5), area.bottom + 42.0), &factor.name);
        let mut names = Vec::new();
        for (index, (name, cells)) in lines(part, plot, x, series).into_iter().enumerate() {
            let class = format!("q-{index}");
            let at = |cell: &StudyCell, value: f64| {
                let number = factor.values.iter().position(|v| Some(v) == cell.values.get(x));
                let number = number.map_or(0.0, |at| factor.numbers[at]);
                (area.x(across.share(number)), area.y(up.share(value)))
            };
            one(m, &class, &cells, at);
            let last = cells.last().and_then(|cell| Some(at(cell, cell.throughput_bps?)));
            names.extend(last.map(|last| Label { text: name, class, from: last.1 }));
        }
        labels::write(m, names, &area, width == Width::Wide);
        area.bottom + 50.0
    });
    let predicted = plot.cells(part).any(|cell| cell.predicted_bps.is_some());
    let dashed = if predicted { " Dashed: predicted." } else { "" };
    let note = format!("Points: mean of the valid runs. Bars: 95 % confidence interval.{dashed}");
    Some(chart.with_note(note))
}

/// Horizontal lines at round values.
pub(super) fn grid(m: &mut Markup, up: &Scale, area: &Area) {
    area.levels(m, up.value_ticks().into_iter().map(|(value, label)| (up.share(value), label)));
}

/// The cells of each line, in the order of the axis, with the line's name.
fn lines<'a>(
    part: &'a StudyPart,
    plot: &'a PartPlot,
    x: usize,
    series: Option<usize>,
) -> Vec<(String, Vec<&'a StudyCell>)> {
    let factor = &part.plan.factors[x];
    let place = |cell: &&StudyCell| {
        let at = factor.values.iter().position(|value| Some(value) == cell.values.get(x));
        at.map_or(0.0, |at| factor.numbers[at])
    };
    let sorted = |mut cells: Vec<&'a StudyCell>| {
        cells.sort_by(|a, b| place(a).total_cmp(&place(b)));
        cells
    };
    let Some(series) = series else {
        return vec![(plot.shown.title.to_lowercase(), sorted(plot.cells(part).collect()))];
    };
    let other = &part.plan.factors[series];
    let shown = labelled(other, MAX_SERIES).into_iter().map(|at| &other.values[at]);
    let of = |value: &String| {
        let cells = plot.cells(part).filter(|cell| cell.values.get(series) == Some(value));
        (format!("{}={value}", other.name), sorted(cells.collect()))
    };
    shown.map(of).filter(|(_, cells)| !cells.is_empty()).collect()
}

fn one(
    m: &mut Markup,
    class: &str,
    cells: &[&StudyCell],
    at: impl Fn(&StudyCell, f64) -> (f64, f64),
) {
    type Figure = fn(&StudyCell) -> Option<f64>;
    let curves: [(_, Figure); 2] =
        [("predicted", |cell| cell.predicted_bps), ("curve", |cell| cell.throughput_bps)];
    for (kind, value) in curves {
        let places = cells.iter().filter_map(|cell| Some(at(cell, value(cell)?)));
        polyline(m, &format!("{kind} {class}"), places);
    }
    for cell in cells {
        if let (Some(low), Some(high)) = (cell.low_bps, cell.high_bps) {
            line(m, &format!("whisker {class}"), at(cell, low), at(cell, high));
        }
        let Some(rate) = cell.throughput_bps else { continue };
        circle(m, &format!("point {class}"), at(cell, rate), 3.5);
    }
}
