//! The core of every chart: the plot's rectangle, the shapes on it, and its axes.

use super::markup::{Markup, Px};
use crate::axis::Axis;

/// The rectangle of a plot, in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area {
    /// The place of a share of the horizontal axis.
    pub(super) fn x(&self, share: f64) -> f64 {
        self.left + (self.right - self.left) * share
    }

    /// The place of a share of the vertical axis.
    pub(super) fn y(&self, share: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * share
    }

    /// A horizontal line at each tick: a share of the vertical axis, with its label.
    pub(super) fn levels(&self, m: &mut Markup, ticks: impl Iterator<Item = (f64, String)>) {
        for (share, label) in ticks {
            let y = self.y(share);
            let class = if share > 0.0 { "grid" } else { "base" };
            line(m, class, (self.left, y), (self.right, y));
            text(m, "tick-y", (self.left - 8.0, y + 4.0), &label);
        }
    }

    /// A tick of the horizontal axis, with its label.
    pub(super) fn tick(&self, m: &mut Markup, x: f64, label: &str) {
        line(m, "base", (x, self.bottom), (x, self.bottom + 4.0));
        text(m, "tick-x", (x, self.bottom + 20.0), label);
    }

    /// The ticks of a horizontal axis of time; the last one has the unit.
    pub(super) fn seconds(&self, m: &mut Markup, across: &Axis) {
        let mut ticks = across.shares().peekable();
        while let Some((share, label)) = ticks.next() {
            let unit = if ticks.peek().is_none() { " s" } else { "" };
            self.tick(m, self.x(share), &format!("{label}{unit}"));
        }
    }
}

pub(super) fn line(m: &mut Markup, class: &str, from: (f64, f64), to: (f64, f64)) {
    let (x1, y1, x2, y2) = (Px(from.0), Px(from.1), Px(to.0), Px(to.1));
    m.shape("line", &[("class", &class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)]);
}

pub(super) fn text(m: &mut Markup, class: &str, at: (f64, f64), text: &str) {
    m.leaf("text", &[("class", &class), ("x", &Px(at.0)), ("y", &Px(at.1))], &text);
}

/// A text that rises by 60 degrees, turned about its place.
pub(super) fn turned(m: &mut Markup, class: &str, (x, y): (f64, f64), text: &str) {
    let turn = format!("rotate(-60 {} {})", Px(x), Px(y));
    m.leaf("text", &[("class", &class), ("x", &Px(x)), ("y", &Px(y)), ("transform", &turn)], &text);
}

pub(super) fn rect(m: &mut Markup, class: &str, area: &Area) {
    let (x, y) = (Px(area.left), Px(area.top));
    let wide = Px((area.right - area.left).max(0.0));
    let high = Px((area.bottom - area.top).max(0.0));
    m.shape(
        "rect",
        &[("class", &class), ("x", &x), ("y", &y), ("width", &wide), ("height", &high)],
    );
}

pub(super) fn circle(m: &mut Markup, class: &str, (x, y): (f64, f64), radius: f64) {
    let (cx, cy, r) = (Px(x), Px(y), Px(radius));
    m.shape("circle", &[("class", &class), ("cx", &cx), ("cy", &cy), ("r", &r)]);
}

pub(super) fn polyline(m: &mut Markup, class: &str, places: impl Iterator<Item = (f64, f64)>) {
    m.shape("polyline", &[("class", &class), ("points", &points(places))]);
}

/// Points as of `polyline`.
pub(super) fn points(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|(x, y)| format!("{},{}", Px(x), Px(y))).collect::<Vec<_>>().join(" ")
}
