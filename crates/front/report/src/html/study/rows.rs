//! The mean of each cell as a row: for factors that are words.

use super::part_plot::PartPlot;
use crate::html::drawing::{Area, circle, line, text};
use crate::html::plot::{Chart, Scale, Width};
use record::StudyPart;

/// Heights of a row: on a phone its label is above it.
const ROW: [f64; 2] = [28.0, 46.0];

/// Characters of a label that fit beside the plot.
const MAX_LABEL: usize = 40;

pub(super) fn draw(part: &StudyPart, plot: &PartPlot) -> Chart {
    let cells: Vec<_> = plot.cells(part).collect();
    let rates =
        cells.iter().flat_map(|cell| [cell.throughput_bps, cell.high_bps, cell.predicted_bps]);
    let across = Scale::of_values(rates.flatten(), plot.shown.units);
    let values = plot.values(part);
    Chart::new(plot.caption(part), values, |m, width| {
        let high = width.of(ROW[0], ROW[1]);
        let bottom = 10.0 + cells.len() as f64 * high;
        let (left, right) = (width.of(300.0, 34.0), width.pixels() - 40.0);
        let area = Area { left, right, top: 10.0, bottom };
        let ticks = across.value_ticks();
        let every = ticks.len().div_ceil(width.of(12, 4)).max(1);
        for (value, label) in ticks.into_iter().step_by(every) {
            let x = area.x(across.share(value));
            line(m, "grid", (x, area.top), (x, area.bottom));
            text(m, "tick-x", (x, area.bottom + 20.0), &label);
        }
        for (row, cell) in cells.iter().enumerate() {
            let y = area.top + (row as f64 + width.of(0.5, 0.7)) * high;
            let values: Vec<&str> = part.values(cell).map(|(_, value)| value).collect();
            let label: String = values.join(" ").chars().take(MAX_LABEL).collect();
            match width {
                Width::Wide => text(m, "row", (area.left - 10.0, y + 4.0), &label),
                Width::Narrow => text(m, "row-above", (0.0, y - 15.0), &label),
            }
            let at = |value: f64| (area.x(across.share(value)), y);
            if let (Some(low), Some(high)) = (cell.low_bps, cell.high_bps) {
                line(m, "whisker q-1", at(low), at(high));
            }
            if let Some(predicted) = cell.predicted_bps {
                let (x, _) = at(predicted);
                line(m, "predicted q-0", (x, y - 9.0), (x, y + 9.0));
            }
            let (x, _) = at(cell.throughput_bps.unwrap_or(0.0));
            circle(m, "point q-1", (x, y), 4.5);
        }
        area.bottom + 34.0
    })
}
