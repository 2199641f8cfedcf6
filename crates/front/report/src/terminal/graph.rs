//! A calculator's curves, on logarithmic axes or linear ones from zero.

use super::{
    Style, canvas,
    canvas::Canvas,
    line::{Line, columns},
    plot::{End, LABELS, LEFT, ROWS, framed},
    style,
};
use crate::span::Span;
use model::calc::{Curve, Series};

/// The plot, its title above and its legend below; empty without space for it.
pub(super) fn graph(curve: &Curve, style: &Style) -> Vec<Line> {
    let points = || curve.series.iter().flat_map(|series| series.points.iter());
    let heights = points().map(|point| point.1).chain(curve.rule.map(|(_, at)| at));
    let across = Span::over(curve.x, points().map(|point| point.0), true);
    let (Some(x), Some(y)) = (across, Span::over(curve.y, heights, false)) else {
        return Vec::new();
    };
    if style.text_width() < 40 {
        return Vec::new();
    }
    let names = curve.series.iter().map(|series| columns(series.name)).max().unwrap_or(0);
    let width = style.text_width() - LEFT - names.clamp(4, LABELS) - 1;
    let mut canvas = Canvas::new(width, ROWS, style.unicode);
    let ends = draw(curve, &x, &y, &mut canvas);
    let mut lines = vec![Line::new(style).put(style::STRONG, &curve.title)];
    let suffix = if x.log { "" } else { " s" };
    lines.extend(framed(&canvas, (y.unit, y.shares()), (x.shares(), suffix), ends, style));
    lines.push(legend(curve, style));
    lines
}

/// Draws rule, curves and mark; returns the labels at their right ends.
fn draw(curve: &Curve, x: &Span, y: &Span, canvas: &mut Canvas) -> Vec<End<'static>> {
    let mut ends: Vec<End<'static>> = Vec::new();
    let mut end = |height: f64, name: &'static str, text_style, canvas: &Canvas| {
        ends.push(End { row: canvas.row_of(height), height, name, text_style });
    };
    if let Some((name, at)) = curve.rule {
        canvas.rule(y.share(at));
        end(y.share(at), name, style::DIM, canvas);
    }
    // The first is the one asked for: draw it last, above the others.
    for (index, series) in curve.series.iter().enumerate().rev() {
        let shown = |point: &&(f64, f64)| !y.below(point.1);
        let points: Vec<(f64, f64)> = series
            .points
            .iter()
            .filter(shown)
            .map(|(across, up)| (x.share(*across), y.share(*up)))
            .collect();
        canvas.curve(&points, index);
        if let Some(last) = points.last() {
            end(last.1, series.name, style::run(index), canvas);
        }
    }
    if let Some((across, up)) = curve.asked {
        canvas.mark(x.share(across), y.share(up), 0);
    }
    ends
}

fn legend(curve: &Curve, style: &Style) -> Line {
    let mut line = Line::new(style).to(LEFT);
    let mut entry = |text_style, swatch: &str, name: &str| {
        let gap = if line.used() > LEFT { "   " } else { "" };
        let before = std::mem::replace(&mut line, Line::new(style));
        line = before
            .put(style::PLAIN, gap)
            .put(text_style, swatch)
            .put(style::PLAIN, &format!(" {name}"));
    };
    for (index, Series { name, .. }) in curve.series.iter().enumerate() {
        entry(style::run(index), &canvas::swatch(index, style.unicode), name);
    }
    if let Some((name, _)) = curve.rule {
        entry(style::DIM, &canvas::dash(style.unicode).repeat(2), name);
    }
    if curve.asked.is_some() {
        entry(style::run(0), canvas::point(style.unicode), "input");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::calc::Scale;

    proptest::proptest! {
        #[test]
        fn any_points_are_drawn(points in proptest::collection::vec((proptest::num::f64::ANY, proptest::num::f64::ANY), 0..20),
                                rule: Option<f64>, width in 1usize..210, unicode: bool) {
            for (x, y) in [(Scale::LogLoss, Scale::LogRate), (Scale::Seconds, Scale::Bytes)] {
                let series = vec![Series { name: "one", points: points.clone() }];
                let rule = rule.map(|at| ("link", at));
                let curve = Curve { title: String::new(), x, y, series, rule, asked: points.first().copied() };
                for line in graph(&curve, &Style { colour: false, width, unicode }) {
                    proptest::prop_assert!(columns(&line.finish()) <= width);
                }
            }
        }
    }
}
