//! The legend of a drawing: a line with its marker for each name.

use super::control_style::ControlStyle;
use crate::html::drawing::{Area, line, rect, text};
use crate::html::markup::Markup;

/// Width of a character, and between entries, in pixels.
const CHARACTER: f64 = 6.8;
const SPACE: f64 = 18.0;
const ROW: f64 = 19.0;

/// A name and how it is drawn.
pub(in crate::html) struct Entry {
    pub(in crate::html) name: String,
    sample: Sample,
}

/// A piece of what is named.
enum Sample {
    /// A line of these classes.
    Line(String),
    /// An area of these classes.
    Area(String),
    /// A curve with a control's dashes and marker.
    Curve(&'static ControlStyle),
    /// A control's marker alone.
    Marker(&'static ControlStyle),
}

impl Entry {
    /// A line of a class.
    pub(in crate::html) fn line(name: impl Into<String>, class: impl Into<String>) -> Self {
        Entry { name: name.into(), sample: Sample::Line(class.into()) }
    }

    /// An area of a class.
    pub(in crate::html) fn area(name: impl Into<String>, class: impl Into<String>) -> Self {
        Entry { name: name.into(), sample: Sample::Area(class.into()) }
    }

    /// The curve of a control, with its marker.
    pub(in crate::html) fn curve(name: impl Into<String>, control: &str) -> Self {
        Entry { name: name.into(), sample: Sample::Curve(ControlStyle::of(control)) }
    }

    /// The marker of a control.
    pub(in crate::html) fn marker(name: impl Into<String>, control: &str) -> Self {
        Entry { name: name.into(), sample: Sample::Marker(ControlStyle::of(control)) }
    }

    /// The markers of controls, each once, in their order.
    pub(in crate::html) fn markers<'a>(controls: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let mut entries: Vec<Self> = Vec::new();
        for control in controls {
            if entries.iter().all(|entry| entry.name != control) {
                entries.push(Entry::marker(control, control));
            }
        }
        entries
    }

    /// Width of its sample, with the space after it.
    const fn reach(&self) -> f64 {
        match self.sample {
            Sample::Line(_) | Sample::Curve(_) => 38.0,
            Sample::Area(_) => 22.0,
            Sample::Marker(_) => 18.0,
        }
    }

    fn width(&self) -> f64 {
        self.reach() + self.name.chars().count() as f64 * CHARACTER
    }

    fn draw(&self, m: &mut Markup, (x, y): (f64, f64)) {
        let end = x + self.reach() - 8.0;
        match &self.sample {
            Sample::Line(class) => line(m, class, (x, y), (end, y)),
            Sample::Area(class) => {
                let area = Area { left: x, right: end, top: y - 6.0, bottom: y + 6.0 };
                rect(m, &format!("stack {class}"), &area);
            }
            Sample::Curve(style) => {
                line(m, &format!("curve {}", style.class()), (x, y), (end, y));
                style.marker.draw(m, &style.class(), (f64::midpoint(x, end), y));
            }
            Sample::Marker(style) => style.marker.draw(m, &style.class(), (x + 5.0, y)),
        }
        text(m, "key", (x + self.reach(), y + 4.5), &self.name);
    }
}

/// Writes entries in rows from the top on, between two edges; returns the height.
pub(in crate::html) fn write(
    m: &mut Markup,
    entries: &[Entry],
    (left, right): (f64, f64),
    top: f64,
) -> f64 {
    let (mut x, mut row) = (left, 0.0);
    for entry in entries {
        if x > left && x + entry.width() > right {
            (x, row) = (left, row + 1.0);
        }
        entry.draw(m, (x, top + (row + 0.5) * ROW));
        x += entry.width() + SPACE;
    }
    if entries.is_empty() { 0.0 } else { (row + 1.0) * ROW + 8.0 }
}
