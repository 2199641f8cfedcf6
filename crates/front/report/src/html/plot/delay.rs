//! Goodput against delay, as Pantheon plots it (Yan et al. 2018, figure 2): the delay falls to the
//! right, so that the best place is at the top right.

use super::{
    Chart, ControlStyle, Entry, Named, Range, Values, Width, axis_titles, in_unit, legend, names,
};
use crate::axis::{MILLIS, RATE, readable};
use crate::html::drawing::{Area, line, text};
use crate::html::markup::Markup;
use record::RunRange;

/// A point.
pub(in crate::html) struct Tradeoff {
    pub(in crate::html) name: String,
    pub(in crate::html) control: String,
    pub(in crate::html) delay_ms: RunRange,
    pub(in crate::html) rate_bps: RunRange,
}

/// The plot's texts and its points.
pub(in crate::html) struct AgainstDelay<'a> {
    pub(in crate::html) caption: &'a str,
    /// The delay: `queueing delay, 95th percentile`.
    pub(in crate::html) delay: &'a str,
    /// The rate: `goodput`.
    pub(in crate::html) rate: &'a str,
    pub(in crate::html) points: Vec<Tradeoff>,
}

const TOP: f64 = 30.0;

impl AgainstDelay<'_> {
    /// `None` without a point.
    pub(in crate::html) fn draw(&self) -> Option<Chart> {
        if self.points.is_empty() {
            return None;
        }
        let ends = |of: fn(&Tradeoff) -> RunRange| {
            self.points.iter().map(of).flat_map(|range| [range.low, range.high])
        };
        let across = Range::over(ends(|one| one.delay_ms), MILLIS, 6.0);
        let up = Range::over(ends(|one| one.rate_bps), RATE, 5.0);
        let chart = Chart::new(self.caption.to_owned(), self.values(), |m, width| {
            let right = width.pixels() - width.of(24.0, 12.0);
            let left = width.of(72.0, 56.0);
            let area = Area { left, right, top: TOP, bottom: TOP + width.of(380.0, 300.0) };
            area.levels(m, up.shares());
            for (share, label) in across.some_shares(width.of(12, 6)) {
                area.tick(m, area.x(1.0 - share), &label);
            }
            let delay = in_unit(self.delay, across.unit);
            let how = width.of(" (less is further right)", "");
            let rate = in_unit(self.rate, up.unit);
            axis_titles(m, &area, &format!("← {delay}{how}"), &rate);
            text(m, "better", (area.right - 6.0, area.top + 16.0), "better ↗");
            let place =
                |delay: f64, rate: f64| (area.x(1.0 - across.share(delay)), area.y(up.share(rate)));
            self.points(m, &area, place);
            self.legend(m, width, &area)
        });
        Some(chart)
    }

    fn points(&self, m: &mut Markup, area: &Area, place: impl Fn(f64, f64) -> (f64, f64)) {
        let mut named = Vec::new();
        for point in &self.points {
            let (delay, rate) = (point.delay_ms, point.rate_bps);
            let style = ControlStyle::of(&point.control);
            let class = style.class();
            let whisker = format!("whisker {class}");
            line(m, &whisker, place(delay.low, rate.median), place(delay.high, rate.median));
            line(m, &whisker, place(delay.median, rate.low), place(delay.median, rate.high));
            let at = place(delay.median, rate.median);
            style.marker.draw(m, &class, at);
            named.push(Named { at, name: point.name.clone(), class });
        }
        names(m, &named, area);
    }

    /// A sample of each control that is drawn; returns the drawing's height.
    fn legend(&self, m: &mut Markup, width: Width, area: &Area) -> f64 {
        let entries = Entry::markers(self.points.iter().map(|point| point.control.as_str()));
        let below = area.bottom + 56.0;
        let edges = (width.of(area.left, 8.0), width.pixels() - 8.0);
        below + legend(m, &entries, edges, below)
    }

    fn values(&self) -> Values {
        let heads =
            ["", self.delay, "lowest run", "highest run", self.rate, "lowest run", "highest run"];
        let row = |point: &Tradeoff| {
            let shown = |range: RunRange, units| {
                [range.median, range.low, range.high].map(|value| readable(value, units))
            };
            let figures =
                shown(point.delay_ms, MILLIS).into_iter().chain(shown(point.rate_bps, RATE));
            std::iter::once(point.name.clone()).chain(figures).collect()
        };
        Values {
            heads: heads.map(str::to_owned).into(),
            rows: self.points.iter().map(row).collect(),
        }
    }
}
