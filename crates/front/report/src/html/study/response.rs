//! The response function of each congestion control: its mean window over the loss rate, both
//! logarithmic, with the lines of the papers' equations.

use crate::axis::{COUNT, SHARE, readable};
use crate::html::drawing::{Area, line, polyline, text};
use crate::html::markup::Markup;
use crate::html::plot::{Chart, ControlStyle, Entry, Scale, Values, Width, axis_titles, legend};
use control::NamedControl;
use model::{Payload, ResponseFunction, statistics};
use record::{RunStatus, StudyPart, StudyRun};
use std::collections::BTreeMap;

/// Names of the factors.
const CONTROL: &str = "congestion";
const LOSS: [&str; 2] = ["up.loss", "loss"];

/// A full IP packet, bytes.
const PACKET: u32 = 1_500;

/// Points of an equation's line.
const POINTS: u32 = 48;

const TOP: f64 = 30.0;

/// One control.
struct Curve {
    control: String,
    /// (loss, mean window in packets).
    points: Vec<(f64, f64)>,
}

/// The plot of a part with several controls and at least two loss rates above zero; of other
/// factors the cells with the longest queue.
pub(super) fn draw(part: &StudyPart, runs: &[StudyRun]) -> Option<Chart> {
    let curves = curves(part, runs);
    let losses = || curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
    let least = losses().fold(f64::INFINITY, f64::min);
    let most = losses().fold(0.0, f64::max);
    if curves.len() < 2 || most <= least {
        return None;
    }
    let fixed = |name: &str| {
        let fixed = part.plan.fixed.iter().find(|fixed| fixed.name == name)?;
        fixed.numbers.first().copied().filter(|number| *number > 0.0)
    };
    let rtt_s = fixed("rtt");
    let bdp = rtt_s.and_then(|rtt_s| Some(fixed("rate")? * rtt_s / 8.0 / f64::from(PACKET)));
    let windows = || curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1));
    let up = Scale::logarithmic(windows().chain(bdp), COUNT);
    let across = Scale::logarithmic([least, most].into_iter(), SHARE);
    let equation = |control: &str| -> Vec<(f64, f64)> {
        let at = |step: u32| least * (most / least).powf(f64::from(step) / f64::from(POINTS));
        let of = |loss| Some((loss, expected(control, rtt_s?, loss)?));
        (0..=POINTS).map(at).filter_map(of).collect()
    };
    let plot = Plot { curves: &curves, across, up, bdp };
    let values = values(&curves, rtt_s);
    let caption = "Response function: mean window over random loss".to_owned();
    let chart = Chart::new(caption, values, |m, width| plot.draw(m, width, &equation));
    Some(chart.with_note(
        "Points: goodput times mean RTT, in packets, of the valid runs over the longest queue. Thin \
         dashes without points: the equations of Reno (Mathis et al. 1997; PSockets: of all its \
         connections), CUBIC (RFC 9438), HighSpeed (RFC 3649) and Scalable (Kelly 2003). No window is longer than the path and its \
         queue hold, whatever the equation.",
    ))
}

/// The mean window of all connections of a control by its equation, packets.
fn expected(control: &str, rtt_s: f64, loss: f64) -> Option<f64> {
    let control = NamedControl::by_name(control)?;
    let one = ResponseFunction::by_name(control.algorithm().name())?.window(rtt_s, loss)?;
    Some(one * f64::from(control.connections()))
}

struct Plot<'a> {
    curves: &'a [Curve],
    across: Scale,
    up: Scale,
    bdp: Option<f64>,
}

impl Plot<'_> {
    fn draw(
        &self,
        m: &mut Markup,
        width: Width,
        equation: &dyn Fn(&str) -> Vec<(f64, f64)>,
    ) -> f64 {
        let (left, right) = (width.of(72.0, 60.0), width.pixels() - width.of(24.0, 12.0));
        let area = Area { left, right, top: TOP, bottom: TOP + width.of(420.0, 330.0) };
        let ticks = self.up.value_ticks().into_iter();
        area.levels(m, ticks.map(|(value, label)| (self.up.share(value), label)));
        let ticks = self.across.value_ticks();
        let every = ticks.len().div_ceil(width.of(12, 5)).max(1);
        for (value, label) in ticks.into_iter().step_by(every) {
            area.tick(m, area.x(self.across.share(value)), &label);
        }
        axis_titles(m, &area, "loss rate", "mean window, packets");
        let place = |point: &(f64, f64)| {
            (area.x(self.across.share(point.0)), area.y(self.up.share(point.1)))
        };
        let mut entries = Vec::new();
        if let Some(bdp) = self.bdp {
            let y = area.y(self.up.share(bdp));
            line(m, "capacity", (area.left, y), (area.right, y));
            text(m, "better", (area.right - 4.0, y - 6.0), "BDP of the path");
        }
        for curve in self.curves {
            let style = ControlStyle::of(&curve.control);
            let class = style.class();
            let by_equation = equation(&curve.control);
            // What leaves the plot is not drawn along its edge.
            let inside = by_equation
                .iter()
                .filter(|point| (f64::EPSILON..1.0).contains(&self.up.share(point.1)));
            polyline(m, &format!("predicted {class}"), inside.map(place));
            polyline(m, &format!("curve thin {class}"), curve.points.iter().map(place));
            for point in &curve.points {
                style.marker.draw(m, &class, place(point));
            }
            entries.push(Entry::curve(curve.control.clone(), &curve.control));
        }
        let below = area.bottom + 56.0;
        below + legend(m, &entries, (width.of(area.left, 8.0), width.pixels() - 8.0), below)
    }
}

/// The mean windows of each control.
fn curves(part: &StudyPart, runs: &[StudyRun]) -> Vec<Curve> {
    let factor = |name: &str| part.plan.factors.iter().position(|factor| factor.name == name);
    let Some((control, loss)) = factor(CONTROL).zip(LOSS.into_iter().find_map(factor)) else {
        return Vec::new();
    };
    let Some(mss) = Payload::of_ip(PACKET).mss() else { return Vec::new() };
    let longest = part.cells.iter().filter_map(|cell| cell.router_memory_bytes).max();
    let losses = &part.plan.factors[loss];
    let windows = |name: &String| {
        let mut by_loss: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.status == RunStatus::Valid) {
            let cell = part.cells.get(run.cell);
            let cell = cell.filter(|cell| cell.values.get(control) == Some(name));
            let Some(cell) = cell.filter(|cell| cell.router_memory_bytes == longest) else {
                continue;
            };
            let at = losses.values.iter().position(|value| Some(value) == cell.values.get(loss));
            let [flow] = run.flows.as_slice() else { continue };
            if let Some((at, rtt_ms)) = at.zip(flow.mean_rtt_ms) {
                let window = flow.throughput_bps * rtt_ms / 1e3 / 8.0 / f64::from(mss);
                by_loss.entry(at).or_default().push(window);
            }
        }
        let point = |(at, windows): (usize, Vec<f64>)| {
            let loss = losses.numbers.get(at).copied().filter(|loss| *loss > 0.0)?;
            Some((loss, statistics::mean(&windows).filter(|window| *window > 0.0)?))
        };
        let mut points: Vec<(f64, f64)> = by_loss.into_iter().filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Curve { control: name.clone(), points }
    };
    let curves = part.plan.factors[control].values.iter().map(windows);
    curves.filter(|curve| !curve.points.is_empty()).collect()
}

fn values(curves: &[Curve], rtt_s: Option<f64>) -> Values {
    let heads = ["control", "loss rate", "mean window, packets", "by the equation, packets"];
    let rows = curves.iter().flat_map(|curve| {
        curve.points.iter().map(move |(loss, window)| {
            let equation = rtt_s.and_then(|rtt_s| expected(&curve.control, rtt_s, *loss));
            vec![
                curve.control.clone(),
                readable(*loss, SHARE),
                format!("{window:.1}"),
                equation.map_or_else(|| "–".to_owned(), |packets| format!("{packets:.1}")),
            ]
        })
    });
    Values { heads: heads.map(str::to_owned).into(), rows: rows.collect() }
}
