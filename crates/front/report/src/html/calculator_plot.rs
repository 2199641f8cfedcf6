//! The plot of a calculator: curves on logarithmic or linear axes, in a wide and a narrow drawing.

use super::drawing::{Area, circle, line, polyline, text};
use super::labels::{self, Label};
use super::markup::Markup;
use crate::span::Span;
use model::calc::Curve;

/// A drawing: its class, width and height, the margin for labels at the right, and the least
/// distance between two ticks; with no margin, labels go inside the plot.
type Shape = (&'static str, f64, f64, f64, f64);

const SHAPES: [Shape; 2] =
    [("wide", 960.0, 400.0, 130.0, 70.0), ("narrow", 400.0, 300.0, 12.0, 62.0)];
const LEFT: f64 = 58.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 34.0;

/// The plot; nothing where no point can be drawn.
pub(super) fn write(m: &mut Markup, curve: &Curve) {
    let points = || curve.series.iter().flat_map(|series| series.points.iter());
    let heights = points().map(|point| point.1).chain(curve.rule.map(|(_, at)| at));
    let across = Span::over(curve.x, points().map(|point| point.0), true);
    let (Some(x), Some(y)) = (across, Span::over(curve.y, heights, false)) else { return };
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &super::header::capital(&curve.title));
        m.element("figure", &[("class", &"chart")], |m| {
            for shape in SHAPES {
                draw(m, curve, (&x, &y), shape);
            }
        });
    });
}

fn draw(m: &mut Markup, curve: &Curve, (x, y): (&Span, &Span), shape: Shape) {
    let (class, width, height, margin, least) = shape;
    let area = Area { left: LEFT, right: width - margin, top: TOP, bottom: height - BOTTOM };
    let names: Vec<&str> = curve.series.iter().map(|series| series.name).collect();
    let label = format!("{}: {}", curve.title, names.join(", "));
    let view = format!("0 0 {width} {height}");
    let attributes: super::Attributes<'_> =
        &[("class", &class), ("viewBox", &view), ("role", &"img"), ("aria-label", &label)];
    m.element("svg", attributes, |m| {
        text(m, "unit", (area.left - 8.0, area.top - 14.0), y.unit);
        area.levels(m, y.shares());
        let mut last = f64::NEG_INFINITY;
        for (share, label) in x.shares() {
            let place = area.x(share);
            if place - last >= least {
                last = place;
                let unit = if x.log { "" } else { " s" };
                area.tick(m, place, &format!("{label}{unit}"));
            }
        }
        let names = lines(m, curve, (x, y), &area);
        labels::write(m, names, &area, class == "wide");
    });
}

/// The rule, the curves and the point of the given values; returns their labels.
fn lines(m: &mut Markup, curve: &Curve, (x, y): (&Span, &Span), area: &Area) -> Vec<Label> {
    let mut names = Vec::new();
    if let Some((name, at)) = curve.rule {
        let from = area.y(y.share(at));
        line(m, "mark link", (area.left, from), (area.right, from));
        names.push(Label { text: name.to_owned(), class: "link".to_owned(), from });
    }
    let place = |point: &(f64, f64)| (area.x(x.share(point.0)), area.y(y.share(point.1)));
    // The first is that of the calculator: drawn last, above the others.
    for (index, series) in curve.series.iter().enumerate().rev() {
        let shown = series
            .points
            .iter()
            .filter(|point| point.0.is_finite() && point.1.is_finite() && !y.below(point.1));
        let places: Vec<(f64, f64)> = shown.map(place).collect();
        let Some(last) = places.last().copied() else { continue };
        let class = format!("run-{}", index % 4);
        polyline(m, &format!("curve {class}"), places.into_iter());
        names.push(Label { text: series.name.to_owned(), class, from: last.1 });
    }
    if let Some(asked) = &curve.asked {
        circle(m, "dot run-0", place(asked), 5.0);
    }
    names
}
