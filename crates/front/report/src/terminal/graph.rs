//! A calculator's curves, on logarithmic axes or linear ones from zero.

use super::{
    Style, canvas,
    canvas::Canvas,
    line::{Line, columns},
    plot::{End, LABELS, LEFT, ROWS, framed},
    style,
};
use crate::axis::{Axis, ELAPSED, RATE, SIZE};
use model::calc::{Curve, Scale, Series};

/// Most decades of a logarithmic axis in a plot of few rows.
const MAX_DECADES: f64 = 9.0;

/// One axis: its range and ticks.
struct Span {
    /// Both ends; decadic logarithms if `log`.
    from: f64,
    to: f64,
    log: bool,
    unit: &'static str,
    ticks: Vec<(f64, String)>,
}

impl Span {
    /// Covers the values; ends at the last value if `tight`, else at the next tick.
    fn over(scale: Scale, values: impl Iterator<Item = f64>, tight: bool) -> Option<Self> {
        let log = matches!(scale, Scale::LogRate | Scale::LogLoss | Scale::LogSeconds);
        let fits = |value: &f64| value.is_finite() && (*value > 0.0 || !log);
        let values: Vec<f64> = values.filter(fits).collect();
        let most = values.iter().copied().reduce(f64::max)?;
        let least = values.into_iter().reduce(f64::min)?;
        Some(if log {
            Span::decades(scale, least, most, tight)
        } else {
            Span::linear(scale, most, tight)
        })
    }

    fn linear(scale: Scale, most: f64, tight: bool) -> Self {
        let units = match scale {
            Scale::Bytes => SIZE,
            Scale::Seconds => ELAPSED,
            _ => RATE,
        };
        let axis =
            if tight { Axis::to(most, units, 8.0) } else { Axis::over(most * 1.04, units, 6.0) };
        Span { from: 0.0, to: axis.max, log: false, unit: axis.unit, ticks: axis.ticks() }
    }

    fn decades(scale: Scale, least: f64, most: f64, tight: bool) -> Self {
        let (mut from, mut to) = (least.log10(), most.log10());
        if !tight {
            (from, to) = (from.floor(), to.ceil());
            from = from.max(to - MAX_DECADES);
        }
        if to - from < 1e-9 {
            to = from + 1.0;
        }
        // Decadic logarithms of doubles: within ±308.
        let powers = (from - 1e-9).ceil() as i32..=(to + 1e-9).floor() as i32;
        let ticks = powers.map(|power| (10f64.powi(power), power_label(scale, power))).collect();
        let unit = if scale == Scale::LogRate { "bit/s" } else { "" };
        Span { from, to, log: true, unit, ticks }
    }

    /// Each tick: how far along the axis it lies, and its label.
    fn shares(&self) -> impl Iterator<Item = (f64, String)> {
        self.ticks.iter().map(|(value, label)| (self.share(*value), label.clone()))
    }

    fn share(&self, value: f64) -> f64 {
        let value = if self.log { value.max(1e-300).log10() } else { value };
        ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// Whether a value is below the axis, where it would be clamped.
    fn below(&self, value: f64) -> bool {
        self.log && value.max(1e-300).log10() < self.from - 1e-9
    }
}

/// The axis label of a power of ten: `10M`, `0.01%`, `100 ms`.
fn power_label(scale: Scale, power: i32) -> String {
    match scale {
        Scale::LogLoss => {
            let places = usize::try_from(-2 - power).unwrap_or(0);
            format!("{:.places$}%", 10f64.powi(power + 2))
        }
        Scale::LogSeconds => {
            let (units, base) = match power {
                0.. => ("s", 0),
                -3..0 => ("ms", -3),
                -6..-3 => ("µs", -6),
                _ => ("ns", -9),
            };
            format!("{:.0} {units}", 10f64.powi(power - base))
        }
        _ => {
            let prefixes = ["", "k", "M", "G", "T", "P"];
            let thousands = power.div_euclid(3).clamp(0, 5);
            let prefix = usize::try_from(thousands).ok().and_then(|i| prefixes.get(i));
            format!("{}{}", 10f64.powi(power - 3 * thousands), prefix.unwrap_or(&""))
        }
    }
}

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

    #[test]
    fn powers_have_short_labels() {
        for (scale, power, text) in [
            (Scale::LogRate, 7, "10M"),
            (Scale::LogRate, 0, "1"),
            (Scale::LogRate, 18, "1000P"),
            (Scale::LogLoss, -6, "0.0001%"),
            (Scale::LogLoss, -1, "10%"),
            (Scale::LogSeconds, -2, "10 ms"),
            (Scale::LogSeconds, 0, "1 s"),
        ] {
            assert_eq!(power_label(scale, power), text);
        }
    }

    #[test]
    fn decades_end_at_powers_of_ten() {
        let span = Span::over(Scale::LogRate, [2e6, 9e8].into_iter(), false).unwrap();
        let labels: Vec<&str> = span.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(labels, ["1M", "10M", "100M", "1G"]);
        assert!((span.share(31_622_776.6) - 0.5).abs() < 1e-6);
        assert!(Span::over(Scale::LogRate, [0.0, f64::NAN].into_iter(), false).is_none());
    }

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
