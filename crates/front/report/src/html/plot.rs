//! Drawings of studies and simulations: each in two widths, with its caption, a note and its
//! values, and the styles by which controls are told apart.

mod bars;
mod cdf;
mod chart;
mod control_style;
mod delay;
mod legend;
mod marker;
mod name_places;
mod range;
mod scale;
mod stack;
mod values;

pub(super) use bars::{Bar, bars};
pub(super) use cdf::cdf;
pub(super) use chart::{Chart, Width, tint};
pub(super) use control_style::{ControlStyle, page_style as control_styles};
pub(super) use delay::{AgainstDelay, Tradeoff};
pub(super) use legend::{Entry, write as legend};
pub(super) use marker::Marker;
pub(super) use name_places::{Named, write as names};
pub(super) use range::Range;
pub(super) use scale::Scale;
pub(super) use stack::{layer, steps};
pub(super) use values::{Values, shown};

use super::drawing::{Area, text};
use super::markup::Markup;

/// The style sheet of drawings in a page.
pub(super) const STYLE: &str = include_str!("plot/plot.css");

/// The plot of a chart whose lines are named at the right, or on a phone within it; `height` of it.
pub(super) fn area(width: Width, height: f64) -> Area {
    Area { left: width.of(92.0, 80.0), right: width.of(760.0, 390.0), top: 16.0, bottom: height }
}

/// Horizontal lines at round values.
pub(super) fn grid(m: &mut Markup, up: &Scale, area: &Area) {
    area.levels(m, up.value_ticks().into_iter().map(|(value, label)| (up.share(value), label)));
}

/// The titles of both axes, with their units: below the one, above the other.
pub(super) fn axis_titles(m: &mut Markup, area: &Area, across: &str, up: &str) {
    text(m, "axis", (area.x(0.5), area.bottom + 42.0), across);
    text(m, "axis-up", (area.left - 40.0, area.top - 12.0), up);
}

/// A quantity with its unit, as the title of an axis.
pub(super) fn in_unit(what: &str, unit: &str) -> String {
    if unit.is_empty() { what.to_owned() } else { format!("{what}, {unit}") }
}
