//! Throughput over time, drawn with braille dots or plain ASCII.

use super::{
    Style,
    canvas::{self, Canvas},
    ink,
    line::{Line, block, columns},
};
use crate::{
    axis::{Axis, COURSE, RATE},
    series::{self, Bin},
};
use record::Measurement;
use units::BitRate;

/// Rows of the plot itself.
pub(super) const ROWS: usize = 14;
/// Room for the numbers of the vertical axis, and its line.
pub(super) const LEFT: usize = 7;
/// Most room for the names at the right end of the curves.
pub(super) const NAMES: usize = 12;

/// One curve of a plot.
#[derive(Debug, Clone, Copy)]
pub struct Trace<'a> {
    /// Its name: `before`.
    pub label: &'a str,
    /// Where it comes from.
    pub measurement: &'a Measurement,
}

/// The curves in one plot on one scale, the link's rate as a line across.
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
    // A little room above, or the link's line would be the frame.
    let y = Axis::over(top * 1.04, RATE, 6.0);
    let x = Axis::to(end, COURSE, 8.0);
    let names = curves.iter().map(|(label, _)| columns(label)).max().unwrap_or(0).clamp(4, NAMES);
    let width = style.text_width() - LEFT - names - 1;

    let mut canvas = Canvas::new(width, ROWS, style.unicode);
    if let Some(link) = link {
        canvas.rule(y.share(link.as_f64()));
    }
    let mut ends: Vec<End<'_>> = Vec::new();
    let mut end = |height: f64, name, ink, canvas: &Canvas| {
        ends.push(End { row: canvas.row_of(height), height, name, ink });
    };
    if let Some(link) = link {
        end(y.share(link.as_f64()), "link", ink::DIM, &canvas);
    }
    for (index, (label, bins)) in curves.iter().enumerate() {
        let at = |bin: &Bin| (x.share(bin.middle_s()), y.share(bin.rate.as_f64()));
        canvas.curve(&bins.iter().map(at).collect::<Vec<_>>(), index);
        if let Some(last) = bins.last() {
            end(at(last).1, label, ink::run(index), &canvas);
        }
    }
    spread(&mut ends);

    let mut lines = vec![Line::new(style).right(ink::DIM, y.unit, LEFT - 1)];
    let ticks: Vec<(usize, String)> =
        y.ticks().into_iter().map(|(v, label)| (canvas.row_of(y.share(v)), label)).collect();
    for row in 0..ROWS {
        let tick = ticks.iter().find(|t| t.0 == row).map(|t| t.1.as_str());
        lines.push(plot_row(row, tick, &canvas, &ends, style));
    }
    lines.extend(time_axis(&x, width, style));
    lines.extend(legend(&curves, link, style));
    block(lines)
}

/// A name at the right end of a curve.
pub(super) struct End<'a> {
    pub(super) row: usize,
    pub(super) height: f64,
    pub(super) name: &'a str,
    pub(super) ink: anstyle::Style,
}

fn peak(bins: &[Bin]) -> BitRate {
    bins.iter().map(|b| b.rate).max().unwrap_or(BitRate::ZERO)
}

/// Names at the right must not share a row: from the top, each moves down
/// past the one before; at the bottom they are pushed up again.
pub(super) fn spread(ends: &mut [End<'_>]) {
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

pub(super) fn plot_row(
    row: usize,
    tick: Option<&str>,
    canvas: &Canvas,
    ends: &[End<'_>],
    style: &Style,
) -> Line {
    let (plain, ticked) = if style.unicode { ("│", "┤") } else { ("|", "+") };
    let mut line = Line::new(style)
        .right(ink::DIM, tick.unwrap_or(""), LEFT - 2)
        .to(LEFT - 1)
        .put(ink::DIM, if tick.is_some() { ticked } else { plain });
    for (curve, text) in canvas.row(row) {
        line = line.put(curve.map_or(ink::DIM, ink::run), &text);
    }
    let full = LEFT + canvas.width();
    match ends.iter().find(|end| end.row == row) {
        Some(end) => {
            let name: String = end.name.chars().take(NAMES).collect();
            line.to(full + 1).put(end.ink, &name)
        }
        None => line,
    }
}

fn time_axis(x: &Axis, width: usize, style: &Style) -> [Line; 2] {
    let mut ticks: Vec<Tick> =
        x.ticks().into_iter().map(|(at, label)| (x.share(at), label, "")).collect();
    if let Some(last) = ticks.last_mut() {
        last.2 = " s";
    }
    axis_below(&ticks, width, style)
}

/// Where along the axis, 0 to 1, its label, and what follows the label.
pub(super) type Tick = (f64, String, &'static str);

/// The axis below a plot, and its labels: the number stands under its tick, the
/// unit after it. A label without room is left out.
pub(super) fn axis_below(ticks: &[Tick], width: usize, style: &Style) -> [Line; 2] {
    let (corner, dash, tick) = if style.unicode { ("└", '─', '┬') } else { ("+", '-', '+') };
    let mut axis: Vec<char> = vec![dash; width];
    let mut labels = Line::new(style);
    for (index, (share, label, after)) in ticks.iter().enumerate() {
        let column = (share * (width - 1) as f64).round() as usize;
        if let Some(cell) = axis.get_mut(column) {
            *cell = tick;
        }
        let start = (LEFT + column).saturating_sub(columns(label) / 2);
        if start > labels.used() || index == 0 {
            labels = labels.to(start).put(ink::DIM, &format!("{label}{after}"));
        }
    }
    let axis: String = axis.into_iter().collect();
    [Line::new(style).to(LEFT - 1).put(ink::DIM, &format!("{corner}{axis}")), labels]
}

fn legend(curves: &[(&str, Vec<Bin>)], link: Option<BitRate>, style: &Style) -> Vec<Line> {
    let mut entries: Vec<(anstyle::Style, String, String)> = Vec::new();
    for (index, (label, bins)) in curves.iter().enumerate() {
        let says = match bins.is_empty() {
            true => format!("{label}: no samples"),
            false => format!("{label}, peak {}", peak(bins)),
        };
        entries.push((ink::run(index), canvas::swatch(index, style.unicode), says));
    }
    if let Some(link) = link {
        entries.push((ink::DIM, canvas::dash(style.unicode).repeat(2), format!("link {link}")));
    }
    let mut lines = Vec::new();
    let mut line = Line::new(style).to(LEFT);
    for (ink, swatch, says) in entries {
        let wide = columns(&swatch) + 1 + columns(&says);
        if line.used() > LEFT {
            if line.used() + 3 + wide > style.text_width() {
                lines.push(std::mem::replace(&mut line, Line::new(style).to(LEFT)));
            } else {
                line = line.put(ink::PLAIN, "   ");
            }
        }
        line = line.put(ink, &swatch).put(ink::PLAIN, " ").put(ink::PLAIN, &says);
    }
    lines.push(line);
    lines
}
