//! Convergence to fairness: the goodput of every flow on that of the others, over time.

use super::capacity;
use super::drawn_flow::DrawnFlow;
use crate::axis::{Axis, ELAPSED, RATE};
use crate::html::drawing::{Area, line};
use crate::html::labels::{self, Label};
use crate::html::markup::Markup;
use crate::html::plot::{
    Chart, ControlStyle, Entry, Scale, Values, Width, axis_titles, grid, layer, legend, shown,
};
use crate::series;
use record::{Measurement, SimReport};

/// `None` for a single flow.
pub(super) fn draw(
    report: &SimReport,
    measurement: &Measurement,
    drawn: &[DrawnFlow<'_>],
) -> Option<Chart> {
    if report.flows.len() < 2 {
        return None;
    }
    let sets: Vec<_> =
        drawn.iter().map(|one| one.streams.iter().copied().flatten().collect()).collect();
    let (edges, rates) = series::side_by_side(&sets);
    let steps = edges.len().checked_sub(1).filter(|steps| *steps > 0)?;
    let capacity = capacity(measurement);
    let sum = |step: usize| rates.iter().filter_map(|one| one.get(step)).sum::<f64>();
    let most = (0..steps).map(sum).fold(capacity.unwrap_or(0.0), f64::max);
    let up = Scale::Linear(Axis::over(most, RATE, 4.0));
    let values = values(drawn, &edges, &rates);
    let plot = Plot { drawn, edges: &edges, rates: &rates, capacity, up, seconds: report.seconds };
    let caption = "Goodput of each flow over time, stacked".to_owned();
    let chart = Chart::new(caption, values, |m, width| plot.draw(m, width));
    let jain = report.jain.map_or_else(
        || "The flows were never all active.".to_owned(),
        |jain| format!("Jain's fairness index while all are active: {jain:.3} (1: all alike)."),
    );
    let note = format!(
        "Each area is the payload delivered to one flow, in the order of the legend from the bottom \
         up; areas of equal height are a fair share. {jain}"
    );
    Some(chart.with_note(note))
}

struct Plot<'a> {
    drawn: &'a [DrawnFlow<'a>],
    /// Of the bins, s.
    edges: &'a [f64],
    /// Of each flow in each bin, bit/s.
    rates: &'a [Vec<f64>],
    capacity: Option<f64>,
    up: Scale,
    seconds: f64,
}

impl Plot<'_> {
    fn draw(&self, m: &mut Markup, width: Width) -> f64 {
        let area = Area {
            left: width.of(92.0, 80.0),
            right: width.of(780.0, 388.0),
            top: 30.0,
            bottom: width.of(330.0, 280.0),
        };
        let across = Axis::to(self.seconds, ELAPSED, width.of(8.0, 4.0));
        grid(m, &self.up, &area);
        for (share, label) in across.shares() {
            area.tick(m, area.x(share), &label);
        }
        axis_titles(m, &area, "time, s", "goodput");
        let (names, mut entries) = self.layers(m, &area, &across);
        if let Some(capacity) = self.capacity {
            let y = area.y(self.up.share(capacity));
            line(m, "capacity", (area.left, y), (area.right, y));
            entries.push(Entry::line("payload rate of the link", "capacity"));
        }
        if width == Width::Wide {
            labels::write(m, names, &area, true);
        }
        let edges = (width.of(area.left, 8.0), width.pixels() - 8.0);
        area.bottom + 56.0 + legend(m, &entries, edges, area.bottom + 56.0)
    }

    /// The area of each flow; returns their names, and the entries of the legend.
    fn layers(&self, m: &mut Markup, area: &Area, across: &Axis) -> (Vec<Label>, Vec<Entry>) {
        let place = |step: usize, value: f64| {
            let t_s = self.edges.get(step).copied().unwrap_or_default();
            (area.x(across.share(t_s)), area.y(self.up.share(value)))
        };
        let mut below = vec![0.0; self.edges.len().saturating_sub(1)];
        let (mut names, mut entries) = (Vec::new(), Vec::new());
        for (index, (one, rates)) in self.drawn.iter().zip(self.rates).enumerate() {
            let class = ControlStyle::of(one.control).class();
            let shade = if index % 2 == 1 { " alternate" } else { "" };
            let shaded = format!("{class}{shade}");
            let above: Vec<f64> = below.iter().zip(rates).map(|(low, rate)| low + rate).collect();
            layer(m, &shaded, &below, &above, place);
            let last = rates.iter().rposition(|rate| *rate > 0.0);
            let middle = last.and_then(|at| Some(f64::midpoint(*below.get(at)?, *above.get(at)?)));
            let from = area.y(self.up.share(middle.unwrap_or_default()));
            names.push(Label { text: one.name.clone(), class, from });
            entries.push(Entry::area(one.name.clone(), shaded));
            below = above;
        }
        (names, entries)
    }
}

fn values(drawn: &[DrawnFlow<'_>], edges: &[f64], rates: &[Vec<f64>]) -> Values {
    let names = drawn.iter().map(|one| one.name.clone());
    let row = |(step, edge): (usize, &f64)| {
        let of_step = rates.iter().map(|one| shown(one.get(step).copied(), RATE));
        std::iter::once(format!("{edge:.2}")).chain(of_step).collect()
    };
    let steps = edges.len().saturating_sub(1);
    Values {
        heads: std::iter::once("from, s".to_owned()).chain(names).collect(),
        rows: edges.iter().take(steps).enumerate().map(row).collect(),
    }
}
