//! Means over two factors, as fields of a colour.

use super::part_plot::{PartPlot, Plotted, labelled};
use crate::axis::readable;
use crate::html::drawing::{Area, text};
use crate::html::markup::{Markup, Px};
use crate::html::plot::{Chart, tint};
use record::StudyPart;

const ROW: f64 = 30.0;
const TOP: f64 = 6.0;

/// Columns up to which the goodput is written into each field, on a page and on a phone.
const WRITTEN: [usize; 2] = [12, 4];

pub(super) fn draw(part: &StudyPart, plot: &PartPlot) -> Option<Chart> {
    let Plotted::Heatmap { x, y } = plot.plotted else { return None };
    let (across, down) = (&part.plan.factors[x], &part.plan.factors[y]);
    let (columns, rows) = (across.values.len(), down.values.len());
    let height = (rows as f64 * ROW).min(600.0);
    let grid = plot.by_values(part, x, y);
    let most = grid.values().copied().fold(0.0, f64::max);
    let values = plot.values(part);
    Some(Chart::new(plot.caption(part), values, |m, width| {
        let (left, right) = (width.of(110.0, 70.0), width.pixels() - width.of(20.0, 4.0));
        let area = Area { left, right, top: TOP, bottom: TOP + height };
        let (wide, high) = ((area.right - area.left) / columns as f64, height / rows as f64);
        let most_written = width.of(WRITTEN[0], WRITTEN[1]);
        for (column, value) in across.values.iter().enumerate() {
            for (row, other) in down.values.iter().enumerate() {
                let Some(&rate) = grid.get(&(value.as_str(), other.as_str())) else { continue };
                // The largest value of the second factor is at the top, as on an axis.
                let at = (area.left + column as f64 * wide, area.bottom - (row + 1) as f64 * high);
                let written = (columns <= most_written).then(|| readable(rate, plot.shown.units));
                field(m, at, (wide, high), rate / most, written);
            }
        }
        for row in labelled(down, 20) {
            let y = area.bottom - (row as f64 + 0.5) * high + 4.0;
            text(m, "row", (area.left - 8.0, y), &down.values[row]);
        }
        for column in labelled(across, width.of(12, 5)) {
            let x = area.left + (column as f64 + 0.5) * wide;
            text(m, "tick-x", (x, area.bottom + 18.0), &across.values[column]);
        }
        let name = format!("{} (rows: {})", across.name, down.name);
        text(m, "axis", (area.x(0.5), area.bottom + 40.0), &name);
        area.bottom + 50.0
    }))
}

/// A field of a colour by its share of the highest value, 0 to 1, with a text.
pub(super) fn field(
    m: &mut Markup,
    at: (f64, f64),
    size: (f64, f64),
    share: f64,
    written: Option<String>,
) {
    let share = if share.is_finite() { share * 100.0 } else { 0.0 };
    let (fill, style) = (tint(share / 100.0), format!("--p: {share:.0}%"));
    let (x, y, wide, high) = (Px(at.0), Px(at.1), Px(size.0), Px(size.1));
    m.shape(
        "rect",
        &[
            ("class", &"heat"),
            ("fill", &fill),
            ("style", &style),
            ("x", &x),
            ("y", &y),
            ("width", &wide),
            ("height", &high),
        ],
    );
    if let Some(written) = written {
        let class = if share > 55.0 { "value dark" } else { "value" };
        let middle = (at.0 + size.0 / 2.0, at.1 + size.1 / 2.0 + 4.0);
        text(m, class, middle, &written);
    }
}
