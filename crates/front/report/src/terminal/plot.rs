//! Throughput over time, in braille dots or ASCII.

use super::{
    Style,
    canvas::{self, Canvas},
    line::{Line, block, columns},
    style,
};
use crate::{
    axis::{Axis, ELAPSED, RATE},
    series::{self, Bin},
};
use record::Measurement;
use units::BitRate;

/// Rows of the plot area.
pub(super) const ROWS: usize = 14;
/// Columns for the vertical axis and its numbers.
pub(super) const LEFT: usize = 7;
/// Most columns for the labels at the right end of the curves.
pub(super) const LABELS: usize = 12;

/// One curve of a plot.
#[derive(Debug, Clone, Copy)]
pub struct Trace<'a> {
    /// Its label: `before`.
    pub label: &'a str,
    /// The measurement.
    pub measurement: &'a Measurement,
}

/// The curves in one plot on one scale, with the link rate as a horizontal line.
#[must_use]
pub fn plot(traces: &[Trace<'_>], link: Option<BitRate>, style: &Style) -> String {
    let curves: Vec<(&str, Vec<Bin>)> = traces
        .iter()
        .map(|t| (t.label, series::throughput(t.measurement).map_or(Vec::new(), |s| s.1)))
        .collect();
    let end = traces.iter().map(|t| series::end_s(t.measurement)).fold(0.0, f64::max);
    if curves.iter().all(|(_, bins)| bins.is_empty()) || style.text_width() < 40 {
        return block(legend(&curves, link, style));
    }
    let peaks = curves.iter().map(|(_, bins)| peak(bins));
    let top = peaks.chain(link).max().unwrap_or(BitRate::ZERO).as_f64();
    // Some space above, so that the line of the link rate is inside the plot.
    let y = Axis::over(top * 1.04, RATE, 6.0);
    let x = Axis::to(end, ELAPSED, 8.0);
    let names = curves.iter().map(|(label, _)| columns(label)).max().unwrap_or(0).clamp(4, LABELS);
    let width = style.text_width() - LEFT - names - 1;

    let mut canvas = Canvas::new(width, ROWS, style.unicode);
    if let Some(link) = link {
        canvas.rule(y.share(link.as_f64()));
    }
    let mut ends: Vec<End<'_>> = Vec::new();
    let mut end = |height: f64, name, text_style, canvas: &Canvas| {
        ends.push(End { row: canvas.row_of(height), height, name, text_style });
    };
    if let Some(link) = link {
        end(y.share(link.as_f64()), "link", style::DIM, &canvas);
    }
    for (index, (label, bins)) in curves.iter().enumerate() {
        let at = |bin: &Bin| (x.share(bin.middle_s()), y.share(bin.rate.as_f64()));
        canvas.curve(&bins.iter().map(at).collect::<Vec<_>>(), index);
        if let Some(last) = bins.last() {
            end(at(last).1, label, style::run(index), &canvas);
        }
    }
    let mut lines = framed(&canvas, (y.unit, y.shares()), (x.shares(), " s"), ends, style);
    lines.extend(legend(&curves, link, style));
    block(lines)
}

/// A canvas with the unit above it, the ticks of both axes, each as its share of the axis and its
/// label, a suffix of the last one below, and labels at the ends of the curves.
pub(super) fn framed(
    canvas: &Canvas,
    (unit, up): (&str, impl Iterator<Item = (f64, String)>),
    (across, suffix): (impl Iterator<Item = (f64, String)>, &str),
    mut ends: Vec<End<'_>>,
    style: &Style,
) -> Vec<Line> {
    spread(&mut ends);
    let mut lines = vec![Line::new(style).right(style::DIM, unit, LEFT - 1)];
    let ticks: Vec<(usize, String)> =
        up.map(|(share, label)| (canvas.row_of(share), label)).collect();
    for row in 0..ROWS {
        let tick = ticks.iter().find(|tick| tick.0 == row).map(|tick| tick.1.as_str());
        lines.push(plot_row(row, tick, canvas, &ends, style));
    }
    lines.extend(axis_below(&across.collect::<Vec<_>>(), suffix, canvas.width(), style));
    lines
}

/// A label at the right end of a curve.
pub(super) struct End<'a> {
    pub(super) row: usize,
    pub(super) height: f64,
    pub(super) name: &'a str,
    pub(super) text_style: anstyle::Style,
}

fn peak(bins: &[Bin]) -> BitRate {
    bins.iter().map(|b| b.rate).max().unwrap_or(BitRate::ZERO)
}

/// Gives each label a row of its own: from the top, each moves below the one before;
/// at the bottom they are pushed up again.
fn spread(ends: &mut [End<'_>]) {
    ends.sort_by(|a, b| b.height.total_cmp(&a.height));
    let mut free = 0;
    for end in ends.iter_mut() {
        end.row = end.row.max(free);
        free = end.row + 1;
    }
    let mut most = ROWS;
    for end in ends.iter_mut().rev() {
        end.row = end.row.min(most.saturating_sub(1));
        most = end.row;
    }
}

fn plot_row(
    row: usize,
    tick: Option<&str>,
    canvas: &Canvas,
    ends: &[End<'_>],
    style: &Style,
) -> Line {
    let (plain, ticked) = if style.unicode { ("│", "┤") } else { ("|", "+") };
    let mut line = Line::new(style)
        .right(style::DIM, tick.unwrap_or(""), LEFT - 2)
        .to(LEFT - 1)
        .put(style::DIM, if tick.is_some() { ticked } else { plain });
    for (curve, text) in canvas.row(row) {
        line = line.put(curve.map_or(style::DIM, style::run), &text);
    }
    let full = LEFT + canvas.width();
    match ends.iter().find(|end| end.row == row) {
        Some(end) => {
            let name: String = end.name.chars().take(LABELS).collect();
            line.to(full + 1).put(end.text_style, &name)
        }
        None => line,
    }
}

/// The axis below a plot and its labels: each number is centred below its tick, the
/// suffix follows the last one. A label that would overlap is omitted.
fn axis_below(ticks: &[(f64, String)], suffix: &str, width: usize, style: &Style) -> [Line; 2] {
    let (corner, dash, tick) = if style.unicode { ("└", '─', '┬') } else { ("+", '-', '+') };
    let mut axis: Vec<char> = vec![dash; width];
    let mut labels = Line::new(style);
    for (index, (share, label)) in ticks.iter().enumerate() {
        let after = if index + 1 == ticks.len() { suffix } else { "" };
        let column = (share * (width - 1) as f64).round() as usize;
        if let Some(cell) = axis.get_mut(column) {
            *cell = tick;
        }
        let start = (LEFT + column).saturating_sub(columns(label) / 2);
        if start > labels.used() || index == 0 {
            labels = labels.to(start).put(style::DIM, &format!("{label}{after}"));
        }
    }
    let axis: String = axis.into_iter().collect();
    [Line::new(style).to(LEFT - 1).put(style::DIM, &format!("{corner}{axis}")), labels]
}

fn legend(curves: &[(&str, Vec<Bin>)], link: Option<BitRate>, style: &Style) -> Vec<Line> {
    let mut entries: Vec<(anstyle::Style, String, String)> = Vec::new();
    for (index, (label, bins)) in curves.iter().enumerate() {
        let text = match bins.is_empty() {
            true => format!("{label}: no samples"),
            false => format!("{label}, peak {}", peak(bins)),
        };
        entries.push((style::run(index), canvas::swatch(index, style.unicode), text));
    }
    if let Some(link) = link {
        entries.push((
            style::DIM,
            canvas::dash(style.unicode).repeat(2),
            format!("link rate {link}"),
        ));
    }
    let mut lines = Vec::new();
    let mut line = Line::new(style).to(LEFT);
    for (text_style, swatch, text) in entries {
        let wide = columns(&swatch) + 1 + columns(&text);
        if line.used() > LEFT {
            if line.used() + 3 + wide > style.text_width() {
                lines.push(std::mem::replace(&mut line, Line::new(style).to(LEFT)));
            } else {
                line = line.put(style::PLAIN, "   ");
            }
        }
        line = line.put(text_style, &swatch).put(style::PLAIN, " ").put(style::PLAIN, &text);
    }
    lines.push(line);
    lines
}
