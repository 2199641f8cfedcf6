//! RTT unfairness: the goodput of flows over one bottleneck by their base RTT. A Reno flow's rate goes
//! with 1/RTT at the same loss rate (Mathis et al. 1997, equation 3), and with up to 1/RTT^2 where
//! losses are synchronized (Lakshman and Madhow 1997, section 5); CUBIC's window does not depend on the
//! RTT (RFC 9438, section 5.2).

use super::drawn_flow::DrawnFlow;
use crate::axis::{MILLIS, RATE, readable};
use crate::html::drawing::{Area, line, polyline};
use crate::html::markup::Markup;
use crate::html::plot::{
    Chart, ControlStyle, Entry, Named, Range, Values, Width, axis_titles, in_unit, legend, names,
};
use model::statistics;

/// RTTs that differ by less are the same.
const DIFFERENT: f64 = 1.1;
/// Points of a curve.
const STEPS: u32 = 60;
const TOP: f64 = 30.0;

/// Flows with one base RTT.
struct Point {
    name: String,
    control: String,
    rtt_ms: f64,
    /// The median of its flows, bit/s.
    rate: f64,
}

/// `None` unless base RTTs differ.
pub(super) fn draw(drawn: &[DrawnFlow<'_>]) -> Option<Chart> {
    let points: Vec<Point> = drawn.iter().filter_map(point).collect();
    let rtts = || points.iter().map(|point| point.rtt_ms);
    let (least, most) = (rtts().fold(f64::INFINITY, f64::min), rtts().fold(0.0, f64::max));
    if points.len() < 2 || most <= DIFFERENT * least {
        return None;
    }
    let nearest = points.iter().min_by(|one, other| one.rtt_ms.total_cmp(&other.rtt_ms))?;
    let across = Range::over(rtts(), MILLIS, 6.0);
    let up = Range::over(points.iter().map(|point| point.rate).chain([0.0]), RATE, 5.0);
    let plot = Plot { points: &points, nearest, least, most, across, up };
    let caption = "RTT unfairness: goodput by base RTT".to_owned();
    let chart = Chart::new(caption, values(&points, nearest), |m, width| plot.draw(m, width));
    Some(chart.with_note(
        "Base RTT: without a queue. The dotted line is what the flow with the shortest RTT has, where \
         fair flows lie; the dashed one falls with 1/RTT from there, as Reno's rate does at equal loss \
         (Mathis et al. 1997). Flows below it are treated worse than in proportion to their RTT.",
    ))
}

fn point(one: &DrawnFlow<'_>) -> Option<Point> {
    let rtts: Vec<f64> = one.flows.iter().filter_map(|flow| flow.base_rtt_ms).collect();
    let rates: Vec<f64> = one.flows.iter().map(|flow| flow.goodput_bps.as_f64()).collect();
    Some(Point {
        name: one.name.clone(),
        control: one.control.to_owned(),
        rtt_ms: statistics::median(&rtts).filter(|rtt| *rtt > 0.0)?,
        rate: statistics::median(&rates)?,
    })
}

fn values(points: &[Point], nearest: &Point) -> Values {
    let row = |point: &Point| {
        let share = if nearest.rate > 0.0 { point.rate / nearest.rate } else { f64::NAN };
        let ratio = point.rtt_ms / nearest.rtt_ms;
        vec![
            point.name.clone(),
            readable(point.rtt_ms, MILLIS),
            readable(point.rate, RATE),
            format!("{ratio:.2}"),
            if share.is_finite() { format!("{share:.2}") } else { "–".to_owned() },
        ]
    };
    let heads = ["", "base RTT", "goodput", "RTT ratio", "goodput ratio"];
    Values { heads: heads.map(str::to_owned).into(), rows: points.iter().map(row).collect() }
}

struct Plot<'a> {
    points: &'a [Point],
    nearest: &'a Point,
    least: f64,
    most: f64,
    across: Range,
    up: Range,
}

impl Plot<'_> {
    fn draw(&self, m: &mut Markup, width: Width) -> f64 {
        let (left, right) = (width.of(72.0, 56.0), width.pixels() - width.of(24.0, 12.0));
        let area = Area { left, right, top: TOP, bottom: TOP + width.of(320.0, 260.0) };
        area.levels(m, self.up.shares());
        for (share, label) in self.across.some_shares(width.of(12, 6)) {
            area.tick(m, area.x(share), &label);
        }
        let titles = [in_unit("base RTT", self.across.unit), in_unit("goodput", self.up.unit)];
        axis_titles(m, &area, &titles[0], &titles[1]);
        let place =
            |rtt: f64, rate: f64| (area.x(self.across.share(rtt)), area.y(self.up.share(rate)));
        let of_nearest = self.nearest.rate;
        line(m, "fair", place(self.least, of_nearest), place(self.most, of_nearest));
        let inverse = (0..=STEPS).map(|step| {
            let rtt = self.least + (self.most - self.least) * f64::from(step) / f64::from(STEPS);
            place(rtt, of_nearest * self.nearest.rtt_ms / rtt)
        });
        polyline(m, "reference", inverse);
        let mut named = Vec::new();
        for point in self.points {
            let (style, at) = (ControlStyle::of(&point.control), place(point.rtt_ms, point.rate));
            let class = style.class();
            style.marker.draw(m, &class, at);
            named.push(Named { at, name: point.name.clone(), class });
        }
        names(m, &named, &area);
        let mut entries =
            vec![Entry::line("as the nearest flow", "fair"), Entry::line("1/RTT", "reference")];
        entries.extend(Entry::markers(self.points.iter().map(|point| point.control.as_str())));
        let below = area.bottom + 56.0;
        below + legend(m, &entries, (width.of(area.left, 8.0), width.pixels() - 8.0), below)
    }
}
