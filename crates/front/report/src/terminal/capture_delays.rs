//! One-way delay between two captures over time, in braille dots or ASCII.

use super::{
    Style,
    canvas::{self, Canvas},
    line::Line,
    plot::{End, LABELS, LEFT, ROWS, framed},
    style,
};
use crate::axis::{Axis, DELAY, ELAPSED};
use capture_merge::{Merge, Transit};

/// Median delays over time, as far as there is room.
pub(super) fn graph(merge: &Merge, style: &Style) -> Vec<Line> {
    let names = LABELS.min(6);
    let Some(width) = style.text_width().checked_sub(LEFT + names + 1).filter(|it| *it >= 32)
    else {
        return Vec::new();
    };
    let start = merge.spans[0].0.min(merge.spans[1].0);
    let end = merge.spans[0].1.max(merge.spans[1].1);
    let seconds = end.saturating_sub(start) as f64 / 1e9;
    let curves = Transit::ALL.map(|transit| medians(merge, transit, (start, end), width));
    let points = || curves.iter().flatten();
    if points().count() < 2 || seconds <= 0.0 {
        return Vec::new();
    }
    let top = points().map(|point| point.1).fold(0.0, f64::max);
    let y = Axis::over(top * 1.04, DELAY, 6.0);
    let x = Axis::to(seconds, ELAPSED, 8.0);
    let mut canvas = Canvas::new(width, ROWS, style.unicode);
    let mut ends: Vec<End<'_>> = Vec::new();
    for (index, (curve, transit)) in curves.iter().zip(Transit::ALL).enumerate() {
        let shares: Vec<(f64, f64)> =
            curve.iter().map(|(at, delay)| (x.share(*at), y.share(*delay))).collect();
        canvas.curve(&shares, index);
        if let Some((_, height)) = shares.last() {
            let (height, name) = (*height, transit.name());
            let row = canvas.row_of(height);
            ends.push(End { row, height, name, text_style: style::run(index) });
        }
    }
    let mut lines = vec![
        Line::new(style),
        Line::new(style).put(style::STRONG, "one-way delay over time, medians"),
    ];
    lines.extend(framed(&canvas, (y.unit, y.shares()), (x.shares(), " s"), ends, style));
    let mut legend = Line::new(style).to(LEFT);
    for (index, transit) in Transit::ALL.iter().enumerate() {
        let swatch = canvas::swatch(index, style.unicode);
        legend = legend.put(style::run(index), &swatch);
        legend = legend.put(style::PLAIN, &format!(" {}   ", transit.name()));
    }
    lines.push(legend);
    lines
}

/// Seconds and the median delay in seconds of the packets around them.
fn medians(
    merge: &Merge,
    transit: Transit,
    (start, end): (i64, i64),
    count: usize,
) -> Vec<(f64, f64)> {
    let mut bins = vec![Vec::new(); count];
    let width = (end.saturating_sub(start) as f64 / count as f64).max(1.0);
    for row in merge.rows.iter().filter(|row| row.transit == transit) {
        let Some(delay) = row.delay_ns else { continue };
        let place = (row.time_ns.saturating_sub(start) as f64 / width).max(0.0) as usize;
        if let Some(bin) = bins.get_mut(place.min(count - 1)) {
            bin.push(delay);
        }
    }
    let middle = |bin: &mut Vec<i64>| {
        let middle = bin.len() / 2;
        (!bin.is_empty()).then(|| *bin.select_nth_unstable(middle).1 as f64 / 1e9)
    };
    let each = bins.iter_mut().enumerate();
    each.filter_map(|(place, bin)| Some(((place as f64 + 0.5) * width / 1e9, middle(bin)?)))
        .collect()
}
