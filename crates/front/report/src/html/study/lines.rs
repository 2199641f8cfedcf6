//! Means over a numeric factor: a line for each value of another, with confidence intervals
//! and what the equations predict.

use super::part_plot::{PartPlot, Plotted, WINDOW_PER_STREAM, labelled, tick};
use crate::html::drawing::{Area, circle, line, polyline, text};
use crate::html::labels::{self, Label};
use crate::html::markup::Markup;
use crate::html::plot::{Chart, ControlStyle, Entry, Marker, Scale, Width, area, grid, legend};
use record::{StudyCell, StudyFactor, StudyPart};
use units::{ByteCount, Rtt};

const BOTTOM: f64 = 350.0;

/// Lines that are told apart by their colours; of more, some are left out.
const MAX_SERIES: usize = 8;

pub(super) fn draw(part: &StudyPart, plot: &PartPlot) -> Option<Chart> {
    let Plotted::Lines { x, series, per_stream } = plot.plotted else { return None };
    let across = Across::of(part, plot, x, per_stream)?;
    let rates =
        plot.cells(part).flat_map(|cell| [cell.throughput_bps, cell.predicted_bps, cell.high_bps]);
    let up = Scale::of_values(rates.flatten(), plot.shown.units);
    let values = plot.values(part);
    let rtt_s = plot.shown.reference.and_then(|_| rtt_s(part));
    let is_control =
        series.and_then(|at| part.plan.factors.get(at)).is_some_and(|one| is_control(&one.name));
    let chart = Chart::new(plot.caption(part), values, |m, width| {
        let area = area(width, BOTTOM);
        grid(m, &up, &area);
        for (number, label) in across.ticks(width.of(12, 4)) {
            area.tick(m, area.x(across.scale.share(number)), &label);
        }
        text(m, "axis", (area.x(0.5), area.bottom + 42.0), across.name());
        let mut names = Vec::new();
        let mut entries = Vec::new();
        for (index, (name, cells)) in lines(part, plot, &across, series).into_iter().enumerate() {
            let control = is_control.then(|| control(&name));
            let (class, marker) = match control {
                Some(control) => {
                    let style = ControlStyle::of(control);
                    entries.push(Entry::curve(control, control));
                    (style.class(), Some(style.marker))
                }
                None => (format!("q-{index}"), None),
            };
            let at = |cell: &StudyCell, value: f64| {
                (area.x(across.scale.share(across.number(cell))), area.y(up.share(value)))
            };
            one(m, (&class, marker), &cells, at);
            let last = cells.last().and_then(|cell| Some(at(cell, cell.throughput_bps?)));
            names.extend(last.map(|last| Label { text: name, class, from: last.1 }));
        }
        if let Some(rtt_s) = rtt_s {
            names.extend(window_over_rtt(m, &across, &up, &area, rtt_s));
        }
        // Within a narrow plot the names of many controls would cover the curves.
        if entries.is_empty() || width == Width::Wide {
            labels::write(m, names, &area, width == Width::Wide);
            return area.bottom + 50.0;
        }
        area.bottom + 56.0 + legend(m, &entries, (8.0, width.pixels() - 8.0), area.bottom + 56.0)
    });
    let predicted = plot.cells(part).any(|cell| cell.predicted_bps.is_some());
    let dashed = if predicted { " Dashed: predicted." } else { "" };
    let reference = rtt_s.map_or(String::new(), |rtt_s| {
        format!(" Long dashes: window/RTT, with an RTT of {}.", Rtt::from_secs(rtt_s))
    });
    let note = format!(
        "Points: mean of the valid runs. Bars: 95 % confidence interval.{dashed}{reference}"
    );
    Some(chart.with_note(plot.shown.note(&note)))
}

/// Whether a factor is the congestion control of a flow.
fn is_control(factor: &str) -> bool {
    factor.rsplit('.').next() == Some("congestion")
}

/// The control in a line's name: `congestion=cubic`.
fn control(name: &str) -> &str {
    name.split_once('=').map_or(name, |(_, control)| control)
}

/// What stands along the axis: a factor, or the window of each stream.
struct Across<'a> {
    factor: &'a StudyFactor,
    x: usize,
    per_stream: bool,
    /// Of its least and its greatest value.
    ends: [f64; 2],
    scale: Scale,
}

impl<'a> Across<'a> {
    /// `None` where its values are no numbers.
    fn of(part: &'a StudyPart, plot: &PartPlot, x: usize, per_stream: bool) -> Option<Self> {
        let factor = part.plan.factors.get(x)?;
        let windows = plot.cells(part).filter_map(|cell| cell.window_bytes);
        let numbers: Vec<f64> = match per_stream {
            true => windows.map(|bytes| bytes as f64).collect(),
            false => factor.numbers.clone(),
        };
        if numbers.is_empty() || !per_stream && numbers.len() != factor.values.len() {
            return None;
        }
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = numbers.iter().copied().fold(0.0, f64::max);
        let scale = Scale::of_factor(&numbers);
        Some(Across { factor, x, per_stream, ends: [low, high], scale })
    }

    fn name(&self) -> &str {
        if self.per_stream { WINDOW_PER_STREAM } else { &self.factor.name }
    }

    fn number(&self, cell: &StudyCell) -> f64 {
        if self.per_stream {
            return cell.window_bytes.map_or(0.0, |bytes| bytes as f64);
        }
        let at = self.factor.values.iter().position(|value| Some(value) == cell.values.get(self.x));
        at.map_or(0.0, |at| self.factor.numbers[at])
    }

    /// Its values, or powers of two; at most so many.
    fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        if !self.per_stream {
            let labelled = labelled(self.factor, most).into_iter();
            return labelled.map(|at| (self.factor.numbers[at], tick(self.factor, at))).collect();
        }
        let [low, high] = self.ends;
        let powers = (0..u64::BITS).map(|power| 1u64 << power);
        let powers: Vec<u64> =
            powers.filter(|power| (low..=high).contains(&(*power as f64))).collect();
        let step = powers.len().div_ceil(most.max(1)).max(1);
        let shown = powers.into_iter().step_by(step);
        shown.map(|power| (power as f64, ByteCount::from_bytes(power).to_string())).collect()
    }
}

/// The RTT of the path, if the plan fixes one.
fn rtt_s(part: &StudyPart) -> Option<f64> {
    let rtt = part.plan.fixed.iter().find(|fixed| fixed.name == "rtt")?;
    rtt.numbers.first().copied().filter(|rtt| rtt.is_finite() && *rtt > 0.0)
}

/// Points of the line of window over RTT, which is curved where only one scale is logarithmic.
const POINTS: u32 = 64;

/// Draws window over RTT as far as it is within the plot.
fn window_over_rtt(
    m: &mut Markup,
    across: &Across<'_>,
    up: &Scale,
    area: &Area,
    rtt_s: f64,
) -> Option<Label> {
    let [low, high] = across.ends;
    let low = low.max(1.0);
    let at = |step: u32| {
        let window = low * (high / low).powf(f64::from(step) / f64::from(POINTS));
        (across.scale.share(window), up.share(window * 8.0 / rtt_s))
    };
    let within = (0..=POINTS).map(at).filter(|(_, height)| *height > 0.0 && *height < 1.0);
    let places: Vec<(f64, f64)> =
        within.map(|(along, height)| (area.x(along), area.y(height))).collect();
    polyline(m, "reference", places.iter().copied());
    let (_, from) = *places.last()?;
    Some(Label { text: "window/RTT".to_owned(), class: String::new(), from })
}

/// The cells of each line, in the order of the axis, with the line's name.
fn lines<'a>(
    part: &'a StudyPart,
    plot: &'a PartPlot,
    across: &Across<'_>,
    series: Option<usize>,
) -> Vec<(String, Vec<&'a StudyCell>)> {
    let sorted = |mut cells: Vec<&'a StudyCell>| {
        cells.sort_by(|a, b| across.number(a).total_cmp(&across.number(b)));
        cells
    };
    let Some(series) = series else {
        return vec![(plot.shown.title.to_lowercase(), sorted(plot.cells(part).collect()))];
    };
    let other = &part.plan.factors[series];
    // Controls are told apart by their dashes and markers too.
    let most = if is_control(&other.name) { usize::MAX } else { MAX_SERIES };
    let shown = labelled(other, most).into_iter().map(|at| &other.values[at]);
    let of = |value: &String| {
        let cells = plot.cells(part).filter(|cell| cell.values.get(series) == Some(value));
        (format!("{}={value}", other.name), sorted(cells.collect()))
    };
    shown.map(of).filter(|(_, cells)| !cells.is_empty()).collect()
}

fn one(
    m: &mut Markup,
    (class, marker): (&str, Option<Marker>),
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
        match marker {
            Some(marker) => marker.draw(m, class, at(cell, rate)),
            None => circle(m, &format!("point {class}"), at(cell, rate), 3.5),
        }
    }
}
