//! The phase plot of two flows (Chiu and Jain 1989, figure 3): the rate of one against that of the
//! other, which fair and efficient controls bring to where both lines cross.

use super::capacity;
use super::drawn_flow::DrawnFlow;
use crate::axis::{Axis, RATE};
use crate::html::drawing::{Area, circle, line, polyline, text};
use crate::html::markup::Markup;
use crate::html::plot::{Chart, Entry, Values, Width, axis_titles, in_unit, legend, shown};
use crate::series;
use record::{Measurement, SimFlow, Stream};

/// Points with a time are at least so far apart, in pixels.
const NEAR: f64 = 40.0;

/// Flows, with their streams.
type Group<'a> = Vec<(&'a SimFlow, &'a [Stream])>;

/// Two flows, or the flows of two groups.
struct Pair<'a> {
    names: [String; 2],
    groups: [Group<'a>; 2],
}

impl<'a> Pair<'a> {
    /// Both flows, or the first two groups of more; `None` if there are not two.
    fn of(drawn: &[DrawnFlow<'a>]) -> Option<Self> {
        let all: Group<'a> = drawn
            .iter()
            .flat_map(|one| one.flows.iter().copied().zip(one.streams.iter().copied()))
            .collect();
        if let [one, other] = all.as_slice() {
            let names = [one, other].map(|(flow, _)| format!("{} {}", flow.id, flow.control));
            return Some(Pair { names, groups: [vec![*one], vec![*other]] });
        }
        let specs = || all.iter().map(|(flow, _)| flow.spec.as_str());
        let first = specs().next()?;
        let second = specs().find(|spec| *spec != first)?;
        let group = |spec: &str| -> Group<'a> {
            all.iter().filter(|(flow, _)| flow.spec == spec).copied().collect()
        };
        Some(Pair {
            names: [first.to_owned(), second.to_owned()],
            groups: [group(first), group(second)],
        })
    }

    /// From when to when all flows are active, s.
    fn together(&self) -> (f64, f64) {
        let flows = || self.groups.iter().flatten().map(|(flow, _)| flow);
        let end = |flow: &&SimFlow| flow.finished_s.unwrap_or(f64::INFINITY);
        (
            flows().map(|flow| flow.start_s).fold(0.0, f64::max),
            flows().map(end).fold(f64::INFINITY, f64::min),
        )
    }

    fn counts(&self) -> [usize; 2] {
        self.groups.each_ref().map(Vec::len)
    }
}

/// `None` unless there are two flows, or two groups, that are active together.
pub(super) fn draw(measurement: &Measurement, drawn: &[DrawnFlow<'_>]) -> Option<Chart> {
    let pair = Pair::of(drawn)?;
    let streams: [Vec<&Stream>; 2] =
        pair.groups.each_ref().map(|group| group.iter().flat_map(|one| one.1).collect());
    let (edges, rates) = series::side_by_side(&streams);
    let [first, second] = rates.as_slice() else { return None };
    let (from_s, to_s) = pair.together();
    let times = edges.windows(2).map(|ends| f64::midpoint(ends[0], ends[1]));
    let points: Vec<(f64, f64, f64)> = times
        .zip(first.iter().zip(second))
        .map(|(t_s, (one, other))| (t_s, *one, *other))
        .filter(|point| (from_s..=to_s).contains(&point.0))
        .collect();
    if points.len() < 2 {
        return None;
    }
    let capacity = capacity(measurement);
    let most = points.iter().flat_map(|point| [point.1, point.2]);
    let most = most.fold(capacity.unwrap_or(0.0), f64::max);
    let axis = Axis::over(most * 1.02, RATE, 5.0);
    let plot = Plot { pair: &pair, points: &points, capacity, axis };
    let caption = format!("Phase plot: {} against {}", pair.names[1], pair.names[0]);
    let values = Values {
        heads: ["s", &pair.names[0], &pair.names[1]].map(str::to_owned).into(),
        rows: points
            .iter()
            .map(|point| {
                let rates = [point.1, point.2].map(|rate| shown(Some(rate), RATE));
                std::iter::once(format!("{:.2}", point.0)).chain(rates).collect()
            })
            .collect(),
    };
    let chart = Chart::new(caption, values, |m, width| plot.draw(m, width));
    let of_flows = match pair.counts() {
        [1, 1] => "both have the same".to_owned(),
        [one, other] => format!("all flows have the same ({one} and {other} of them)"),
    };
    Some(chart.with_note(format!(
        "One point for each interval in which all are active, with the times of the first, \
         the last (filled) and up to two between. On \
         the efficiency line they fill the link; on the fairness line {of_flows}. Where both cross is \
         the optimum (Chiu and Jain 1989)."
    )))
}

struct Plot<'a> {
    pair: &'a Pair<'a>,
    /// (s, rate of the one, rate of the other).
    points: &'a [(f64, f64, f64)],
    capacity: Option<f64>,
    axis: Axis,
}

impl Plot<'_> {
    fn draw(&self, m: &mut Markup, width: Width) -> f64 {
        let side = width.of(440.0, 316.0);
        let left = width.of(92.0, 70.0);
        let area = Area { left, right: left + side, top: 30.0, bottom: 30.0 + side };
        area.levels(m, self.axis.shares());
        for (share, label) in self.axis.shares() {
            area.tick(m, area.x(share), &label);
        }
        let [one, other] = &self.pair.names;
        let title = |name: &str| in_unit(&format!("goodput of {name}"), self.axis.unit);
        axis_titles(m, &area, &title(one), &title(other));
        let place =
            |one: f64, other: f64| (area.x(self.axis.share(one)), area.y(self.axis.share(other)));
        let mut entries = Vec::new();
        if let Some(capacity) = self.capacity {
            line(m, "capacity", place(0.0, capacity), place(capacity, 0.0));
            entries.push(Entry::line("efficiency line", "capacity"));
        }
        let [ones, others] = self.pair.counts().map(|count| count as f64);
        let reach = self.axis.max / ones.max(others);
        line(m, "fair", place(0.0, 0.0), place(reach * ones, reach * others));
        entries.push(Entry::line("fairness line", "fair"));
        polyline(m, "visits", self.points.iter().map(|point| place(point.1, point.2)));
        for point in self.points {
            circle(m, "visit", place(point.1, point.2), 2.2);
        }
        self.ends(m, place);
        let (x, top) = width.of((area.right + 40.0, area.top), (8.0, area.bottom + 56.0));
        let high = legend(m, &entries, (x, width.pixels() - 8.0), top);
        width.of(area.bottom + 56.0, top + high)
    }

    /// The first and the last point, and some between, with their times.
    fn ends(&self, m: &mut Markup, place: impl Fn(f64, f64) -> (f64, f64)) {
        let last = self.points.len().saturating_sub(1);
        let mut named: Vec<(f64, f64)> = Vec::new();
        // The last one first: of those at one place it has the name.
        for at in [last, 0, last / 3, 2 * last / 3] {
            let Some((t_s, one, other)) = self.points.get(at).copied() else { continue };
            let (x, y) = place(one, other);
            if named.iter().any(|(left, top)| (x - left).hypot(y - top) < NEAR) {
                continue;
            }
            let class = if at == last { "point all" } else { "point hollow all" };
            circle(m, class, (x, y), 4.0);
            text(m, "key", (x + 7.0, y - 6.0), &format!("{t_s:.1} s"));
            named.push((x, y));
        }
    }
}
