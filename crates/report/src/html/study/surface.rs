//! Means over two numeric factors, as a surface in parallel projection.

use super::chart::{Chart, tint};
use super::drawing::{PartPlot, Plotted, labelled, line, points, text};
use super::scale::Scale;
use crate::axis::{Unit, readable};
use crate::html::markup::Markup;
use record::StudyPart;

const SIZE: (f64, f64) = (960.0, 490.0);
/// The corner of the lowest values, in pixels.
const ORIGIN: (f64, f64) = (430.0, 430.0);
/// One axis to the right and back, the other to the left and back, and the goodput upwards.
const RIGHT: (f64, f64) = (390.0, -110.0);
const BACK: (f64, f64) = (-330.0, -110.0);
const UP: f64 = -200.0;

/// A place in the drawing; all three are shares of their axes.
fn place(x: f64, y: f64, z: f64) -> (f64, f64) {
    (ORIGIN.0 + RIGHT.0 * x + BACK.0 * y, ORIGIN.1 + RIGHT.1 * x + BACK.1 * y + UP * z)
}

pub(super) fn draw(part: &StudyPart, plot: &PartPlot) -> Option<Chart> {
    let Plotted::Surface { x, y } = plot.plotted else { return None };
    let (across, back) = (&part.plan.factors[x], &part.plan.factors[y]);
    if [across, back].iter().any(|factor| factor.numbers.len() != factor.values.len()) {
        return None;
    }
    let (right_scale, back_scale) =
        (Scale::of_factor(&across.numbers), Scale::of_factor(&back.numbers));
    let grid = plot.by_values(part, x, y);
    let most = grid.values().copied().fold(f64::MIN_POSITIVE, f64::max);
    // The highest goodput is the full height.
    let height = |column: usize, row: usize| {
        let values = (across.values[column].as_str(), back.values[row].as_str());
        grid.get(&values).map(|rate| rate / most)
    };
    let corner = |column: usize, row: usize| {
        let (x, y) =
            (right_scale.share(across.numbers[column]), back_scale.share(back.numbers[row]));
        height(column, row).map(|z| (place(x, y, z), z))
    };
    Some(Chart::new(plot.caption(part), SIZE, |m| {
        axes(m, most, plot.shown.units);
        // From the back to the front, so that the front covers what is behind it.
        for row in (0..back.values.len().saturating_sub(1)).rev() {
            for column in (0..across.values.len().saturating_sub(1)).rev() {
                let corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
                    .map(|(right, behind)| corner(column + right, row + behind));
                let Some(corners) = corners.into_iter().collect::<Option<Vec<_>>>() else {
                    continue;
                };
                let mean = corners.iter().map(|(_, z)| z).sum::<f64>() / 4.0;
                let (fill, share) = (tint(mean), format!("--p: {:.0}%", mean * 100.0));
                let outline = points(corners.into_iter().map(|(at, _)| at));
                m.shape(
                    "polygon",
                    &[
                        ("class", &"facet"),
                        ("fill", &fill),
                        ("style", &share),
                        ("points", &outline),
                    ],
                );
            }
        }
        for at in labelled(across, 6) {
            let (px, py) = place(right_scale.share(across.numbers[at]), 0.0, 0.0);
            text(m, "tick-x", (px + 12.0, py + 20.0), &across.values[at]);
        }
        for at in labelled(back, 6) {
            let (px, py) = place(0.0, back_scale.share(back.numbers[at]), 0.0);
            text(m, "tick-y", (px - 6.0, py + 14.0), &back.values[at]);
        }
        let (px, py) = place(0.5, 0.0, 0.0);
        text(m, "axis", (px + 70.0, py + 46.0), &across.name);
        let (px, py) = place(0.0, 0.5, 0.0);
        text(m, "axis", (px - 80.0, py + 40.0), &back.name);
    }))
}

fn axes(m: &mut Markup, most: f64, units: &'static [Unit]) {
    line(m, "axis3", place(0.0, 0.0, 0.0), place(1.0, 0.0, 0.0));
    line(m, "axis3", place(0.0, 0.0, 0.0), place(0.0, 1.0, 0.0));
    line(m, "axis3", place(0.0, 1.0, 0.0), place(1.0, 1.0, 0.0));
    line(m, "axis3", place(1.0, 0.0, 0.0), place(1.0, 1.0, 0.0));
    for share in [0.25, 0.5, 0.75, 1.0] {
        line(m, "grid", place(0.0, 1.0, share), place(1.0, 1.0, share));
        let (px, py) = place(0.0, 1.0, share);
        let label = readable(share * most, units);
        text(m, "tick-y", (px - 6.0, py + 4.0), &label);
    }
    line(m, "axis3", place(0.0, 1.0, 0.0), place(0.0, 1.0, 1.0));
}
