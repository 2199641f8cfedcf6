//! A figure of each control as a bar, with the range of the runs.

use super::{Chart, ControlStyle, Values, in_unit};
use crate::axis::{Axis, Unit, readable};
use crate::html::drawing::{Area, line, rect, text};
use crate::html::markup::Markup;
use record::RunRange;

/// A control and its figure.
pub(in crate::html) struct Bar {
    pub(in crate::html) control: String,
    pub(in crate::html) figure: RunRange,
}

const ROW: f64 = 26.0;
const TOP: f64 = 30.0;

/// Bars in the order given, from zero on; `reference` is a control that the others are compared with.
pub(in crate::html) fn bars(
    caption: &str,
    (what, units): (&str, &'static [Unit]),
    bars: &[Bar],
    reference: Option<&str>,
) -> Chart {
    let most = bars.iter().map(|bar| bar.figure.high).fold(0.0, f64::max);
    let across = Axis::over(most, units, 5.0);
    let compared = bars.iter().find(|bar| Some(bar.control.as_str()) == reference);
    let values = Values {
        heads: ["control", what, "lowest run", "highest run"].map(str::to_owned).into(),
        rows: bars.iter().map(|bar| row(bar, units)).collect(),
    };
    Chart::new(caption.to_owned(), values, |m, width| {
        let bottom = TOP + bars.len() as f64 * ROW;
        let (left, right) = (width.of(110.0, 84.0), width.pixels() - width.of(90.0, 62.0));
        let area = Area { left, right, top: TOP, bottom };
        for (share, label) in across.shares() {
            let x = area.x(share);
            line(m, if share > 0.0 { "grid" } else { "base" }, (x, area.top), (x, area.bottom));
            text(m, "tick-x", (x, area.bottom + 20.0), &label);
        }
        text(m, "axis", (area.x(0.5), area.bottom + 42.0), &in_unit(what, across.unit));
        if let Some(compared) = compared {
            let x = area.x(across.share(compared.figure.median));
            line(m, "reference", (x, area.top - 6.0), (x, area.bottom));
            text(m, "key-middle", (x, area.top - 11.0), &compared.control);
        }
        for (index, bar) in bars.iter().enumerate() {
            let y = area.top + (index as f64 + 0.5) * ROW;
            one(m, bar, (y, &area), &across, units);
        }
        area.bottom + 50.0
    })
}

fn one(m: &mut Markup, bar: &Bar, (y, area): (f64, &Area), across: &Axis, units: &'static [Unit]) {
    let style = ControlStyle::of(&bar.control);
    let class = style.class();
    let [low, middle, high] = [bar.figure.low, bar.figure.median, bar.figure.high]
        .map(|value| area.x(across.share(value)));
    let half = ROW * 0.32;
    let (top, bottom) = (y - half, y + half);
    rect(m, &format!("stack {class}"), &Area { left: area.left, right: middle, top, bottom });
    let whisker = format!("whisker {class}");
    line(m, &whisker, (low, y), (high, y));
    for x in [low, high] {
        line(m, &whisker, (x, y - 4.0), (x, y + 4.0));
    }
    style.marker.draw(m, &class, (area.left - 12.0, y));
    text(m, "tick-y", (area.left - 22.0, y + 4.5), &bar.control);
    text(m, "key", (high + 8.0, y + 4.5), &readable(bar.figure.median, units));
}

fn row(bar: &Bar, units: &'static [Unit]) -> Vec<String> {
    let figures = [bar.figure.median, bar.figure.low, bar.figure.high];
    let figures = figures.map(|value| readable(value, units));
    std::iter::once(bar.control.clone()).chain(figures).collect()
}
