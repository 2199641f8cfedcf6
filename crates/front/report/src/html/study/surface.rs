//! Means over two numeric factors, as a surface in parallel projection.

use super::part_plot::{PartPlot, Plotted, labelled};
use crate::axis::{Unit, readable};
use crate::html::drawing::{line, points, text};
use crate::html::markup::Markup;
use crate::html::plot::{Chart, Scale, Width, tint};
use record::StudyPart;

/// A parallel projection, in pixels.
#[derive(Debug, Clone, Copy)]
struct Projection {
    /// The corner of the lowest values.
    origin: (f64, f64),
    /// One axis to the right and back.
    right: (f64, f64),
    /// The other one to the left and back.
    back: (f64, f64),
    /// The values upwards.
    up: f64,
    /// Of the drawing.
    height: f64,
}

const WIDE: Projection = Projection {
    origin: (430.0, 430.0),
    right: (390.0, -110.0),
    back: (-330.0, -110.0),
    up: -200.0,
    height: 490.0,
};
const NARROW: Projection = Projection {
    origin: (205.0, 350.0),
    right: (170.0, -70.0),
    back: (-120.0, -70.0),
    up: -180.0,
    height: 410.0,
};

impl Projection {
    const fn of(width: Width) -> Self {
        match width {
            Width::Wide => WIDE,
            Width::Narrow => NARROW,
        }
    }

    /// A place in the drawing; all three are shares of their axes.
    fn place(&self, x: f64, y: f64, z: f64) -> (f64, f64) {
        (
            self.origin.0 + self.right.0 * x + self.back.0 * y,
            self.origin.1 + self.right.1 * x + self.back.1 * y + self.up * z,
        )
    }
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
    let values = plot.values(part);
    Some(Chart::new(plot.caption(part), values, |m, width| {
        let view = Projection::of(width);
        let corner = |column: usize, row: usize| {
            let (x, y) =
                (right_scale.share(across.numbers[column]), back_scale.share(back.numbers[row]));
            height(column, row).map(|z| (view.place(x, y, z), z))
        };
        axes(m, &view, most, plot.shown.units);
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
        for at in labelled(across, width.of(6, 4)) {
            let (px, py) = view.place(right_scale.share(across.numbers[at]), 0.0, 0.0);
            text(m, "tick-x", (px + 12.0, py + 20.0), &across.values[at]);
        }
        for at in labelled(back, width.of(6, 4)) {
            let (px, py) = view.place(0.0, back_scale.share(back.numbers[at]), 0.0);
            text(m, "tick-y", (px - 6.0, py + 14.0), &back.values[at]);
        }
        let (px, py) = view.place(0.5, 0.0, 0.0);
        text(m, "axis", (px + width.of(70.0, 30.0), py + 46.0), &across.name);
        let (px, py) = view.place(0.0, 0.5, 0.0);
        text(m, "axis", (px - width.of(80.0, 50.0), py + 40.0), &back.name);
        view.height
    }))
}

fn axes(m: &mut Markup, view: &Projection, most: f64, units: &'static [Unit]) {
    let place = |x, y, z| view.place(x, y, z);
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
