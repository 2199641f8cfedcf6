//! The mean of each cell as a row: for factors that are words.

use super::chart::Chart;
use super::drawing::{Area, PartPlot, line, text};
use super::scale::Scale;
use crate::html::markup::Px;
use record::StudyPart;

const WIDTH: f64 = 960.0;
const ROW: f64 = 28.0;

/// Characters of a label that fit beside the plot.
const MOST_LABEL: usize = 40;

pub(super) fn draw(part: &StudyPart, plot: &PartPlot) -> Chart {
    let cells: Vec<_> = plot.cells(part).collect();
    let rates =
        cells.iter().flat_map(|cell| [cell.throughput_bps, cell.high_bps, cell.predicted_bps]);
    let across = Scale::of_values(rates.flatten(), plot.shown.units);
    let bottom = 10.0 + cells.len() as f64 * ROW;
    let area = Area { left: 300.0, right: WIDTH - 40.0, top: 10.0, bottom };
    Chart::new(plot.caption(part), (WIDTH, bottom + 34.0), |m| {
        for (value, label) in across.value_ticks() {
            let x = area.x(across.share(value));
            line(m, "grid", (x, area.top), (x, area.bottom));
            text(m, "tick-x", (x, area.bottom + 20.0), &label);
        }
        for (row, cell) in cells.iter().enumerate() {
            let y = area.top + (row as f64 + 0.5) * ROW;
            let values: Vec<&str> = part.values(cell).map(|(_, value)| value).collect();
            let label: String = values.join(" ").chars().take(MOST_LABEL).collect();
            text(m, "row", (area.left - 10.0, y + 4.0), &label);
            let at = |value: f64| (area.x(across.share(value)), y);
            if let (Some(low), Some(high)) = (cell.low_bps, cell.high_bps) {
                line(m, "whisker q-1", at(low), at(high));
            }
            if let Some(predicted) = cell.predicted_bps {
                let (x, _) = at(predicted);
                line(m, "predicted q-0", (x, y - 9.0), (x, y + 9.0));
            }
            let (x, _) = at(cell.throughput_bps.unwrap_or(0.0));
            let place = (Px(x), Px(y), Px(4.5));
            m.shape(
                "circle",
                &[("class", &"point q-1"), ("cx", &place.0), ("cy", &place.1), ("r", &place.2)],
            );
        }
    })
}
