//! The congestion window of every flow over time, with its sender's states.

use super::states::{self, Span};
use crate::axis::{Axis, COUNT, ELAPSED};
use crate::html::drawing::{Area, line, polyline, rect, text};
use crate::html::markup::Markup;
use crate::html::plot::{Chart, ControlStyle, Entry, Values, Width, in_unit, legend};
use record::{Measurement, Sample, SenderState, SimFlow, SimMoment, SimReport};

/// Flows that are drawn: the first of each group, then others.
const MAX: usize = 6;

/// Points of a curve: of more, the least and the greatest of every few.
const MAX_POINTS: usize = 800;

/// Height of a lane with the times of one state, above the first panel, and between panels.
const LANE: f64 = 13.0;
const TOP: f64 = 28.0;
const SPACE: f64 = 58.0;

/// `None` without a sample.
pub(super) fn draw(
    report: &SimReport,
    measurement: &Measurement,
    trace: &[SimMoment],
) -> Option<Chart> {
    let panels: Vec<Panel<'_>> = shown(report)
        .into_iter()
        .filter_map(|at| Panel::of(report.flows.get(at)?, measurement, trace))
        .collect();
    if panels.is_empty() {
        return None;
    }
    let values = values(&panels);
    let caption = "Congestion window over time, with the sender's states".to_owned();
    let chart = Chart::new(caption, values, |m, width| {
        let across = Axis::to(report.seconds, ELAPSED, width.of(8.0, 4.0));
        let mut bottom = TOP - SPACE;
        for panel in &panels {
            bottom = panel.draw(m, width, &across, bottom + SPACE);
        }
        text(m, "axis", (width.pixels() / 2.0, bottom + 42.0), "time, s");
        let below = bottom + 56.0;
        let edges = (width.of(84.0, 8.0), width.pixels() - 8.0);
        below + legend(m, &entries(&panels), edges, below)
    });
    let left_out = report.flows.len().saturating_sub(panels.len());
    let more = match left_out {
        0 => String::new(),
        _ => format!(" {} of {} flows are shown.", panels.len(), report.flows.len()),
    };
    Some(chart.with_note(format!(
        "Shaded, and in a lane of its own below: the states that are not the usual one, which is \
         congestion avoidance, or ProbeBW of BBR. States are those of every 100 ms; a recovery \
         within it counts.{more}"
    )))
}

/// Indices of the flows that are drawn, in their order.
fn shown(report: &SimReport) -> Vec<usize> {
    let flows = report.flows.iter().enumerate();
    let is_first = |(index, flow): &(usize, &SimFlow)| {
        report.flows.iter().position(|other| other.spec == flow.spec) == Some(*index)
    };
    let (first, others): (Vec<_>, Vec<_>) = flows.partition(is_first);
    let mut indices: Vec<usize> =
        first.into_iter().chain(others).map(|(index, _)| index).take(MAX).collect();
    indices.sort_unstable();
    indices
}

fn entries(panels: &[Panel<'_>]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for panel in panels {
        let control = panel.flow.control.as_str();
        let name = format!("cwnd of {control}");
        if entries.iter().all(|entry| entry.name != name) {
            let class = format!("curve thin {}", ControlStyle::of(control).class());
            entries.push(Entry::line(name, class));
        }
    }
    if panels.iter().any(|panel| !panel.thresholds.is_empty()) {
        entries.push(Entry::line("slow-start threshold (ssthresh)", "threshold"));
    }
    entries
}

/// One flow.
struct Panel<'a> {
    flow: &'a SimFlow,
    /// (s, packets).
    windows: Vec<(f64, f64)>,
    thresholds: Vec<(f64, f64)>,
    spans: Vec<Span>,
}

impl<'a> Panel<'a> {
    /// A flow by its first connection.
    fn of(flow: &'a SimFlow, measurement: &Measurement, trace: &[SimMoment]) -> Option<Self> {
        let stream = flow.streams(&measurement.streams).first()?;
        let at = (flow.id as usize).checked_sub(1)?;
        let packets =
            |bytes: u64, sample: &Sample| bytes as f64 / f64::from(sample.mss_bytes.max(1));
        let samples = stream.sender.iter();
        let windows: Vec<_> =
            samples.clone().map(|one| (one.t_s, packets(one.cwnd_bytes, one))).collect();
        let thresholds: Vec<_> =
            samples.filter_map(|one| Some((one.t_s, packets(one.ssthresh_bytes?, one)))).collect();
        let end_s = windows.last()?.0;
        let spans = states::spans(trace, at, (flow.start_s, end_s));
        Some(Panel { flow, windows: thinned(&windows), thresholds: thinned(&thresholds), spans })
    }

    fn name(&self) -> String {
        let first = if self.flow.connections > 1 { ", its first connection" } else { "" };
        format!("flow {}, {}{first}", self.flow.id, self.flow.control)
    }

    /// The states with a lane.
    fn lanes(&self) -> Vec<SenderState> {
        let is_in = |state: &SenderState| self.spans.iter().any(|span| span.state == *state);
        let unusual = SenderState::ALL.into_iter().filter(|state| !state.is_usual());
        unusual.filter(is_in).collect()
    }

    /// Draws it from a height on; returns the height of its axis of time.
    fn draw(&self, m: &mut Markup, width: Width, across: &Axis, top: f64) -> f64 {
        let (left, right) = (width.of(100.0, 84.0), width.pixels() - width.of(16.0, 10.0));
        let area = Area { left, right, top, bottom: top + width.of(150.0, 130.0) };
        let most = self.windows.iter().map(|point| point.1).fold(0.0, f64::max);
        let up = Axis::over(most * 1.04, COUNT, 3.0);
        self.shade(m, &area, across);
        let label = |(share, label): (f64, String)| match share > 0.0 {
            true => (share, format!("{label}{}", up.unit)),
            false => (share, label),
        };
        area.levels(m, up.shares().map(label));
        let bottom = self.draw_lanes(m, &area, across);
        let below = Area { bottom, ..area };
        for (share, label) in across.shares() {
            below.tick(m, area.x(share), &label);
        }
        let title = in_unit(&format!("cwnd of {}", self.name()), "packets");
        text(m, "axis-up", (width.of(area.left - 40.0, 6.0), area.top - 10.0), &title);
        let place = |point: &(f64, f64)| (area.x(across.share(point.0)), area.y(up.share(point.1)));
        let inside = |point: &&(f64, f64)| point.1 <= up.max;
        polyline(m, "threshold", self.thresholds.iter().filter(inside).map(place));
        let class = ControlStyle::of(&self.flow.control).class();
        polyline(m, &format!("curve thin {class}"), self.windows.iter().map(place));
        bottom
    }

    fn shade(&self, m: &mut Markup, area: &Area, across: &Axis) {
        for span in self.spans.iter().filter(|span| !span.state.is_usual()) {
            let [left, right] = [span.from_s, span.to_s].map(|t_s| area.x(across.share(t_s)));
            let class = format!("state {}", states::class(span.state));
            rect(m, &class, &Area { left, right: right.max(left + 0.7), ..*area });
        }
    }

    /// A lane for each state, with its name; returns the height below them.
    fn draw_lanes(&self, m: &mut Markup, area: &Area, across: &Axis) -> f64 {
        let mut top = area.bottom + 4.0;
        for state in self.lanes() {
            let middle = top + LANE / 2.0;
            text(m, "lane", (area.left - 8.0, middle + 4.0), state.name());
            line(m, "lane-line", (area.left, middle), (area.right, middle));
            for span in self.spans.iter().filter(|span| span.state == state) {
                let [left, right] = [span.from_s, span.to_s].map(|t_s| area.x(across.share(t_s)));
                let (right, bottom) = (right.max(left + 1.2), top + LANE - 2.0);
                let class = format!("strip {}", states::class(state));
                rect(m, &class, &Area { left, right, top: top + 2.0, bottom });
            }
            top += LANE;
        }
        top
    }
}

/// The shape of a curve with fewer points: a sawtooth keeps its peaks.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = (2 * points.len()).div_ceil(MAX_POINTS).max(1);
    if step <= 2 {
        return points.to_vec();
    }
    let pick = |several: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let least = several.iter().copied().min_by(|one, other| one.1.total_cmp(&other.1));
        let most = several.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1));
        let mut both: Vec<(f64, f64)> = least.into_iter().chain(most).collect();
        both.sort_by(|one, other| one.0.total_cmp(&other.0));
        both
    };
    points.chunks(step).flat_map(pick).collect()
}

/// The share of its time that each sender spent in each state.
fn values(panels: &[Panel<'_>]) -> Values {
    let states: Vec<SenderState> = SenderState::ALL
        .into_iter()
        .filter(|state| panels.iter().any(|one| one.spans.iter().any(|span| span.state == *state)))
        .collect();
    let heads = ["flow", "least cwnd, packets", "greatest cwnd, packets"].map(str::to_owned);
    let row = |panel: &Panel<'_>| {
        let windows = || panel.windows.iter().map(|point| point.1);
        let (least, most) =
            (windows().fold(f64::INFINITY, f64::min), windows().fold(0.0, f64::max));
        let time = |state: Option<SenderState>| -> f64 {
            let spans = panel.spans.iter().filter(|span| state.is_none_or(|one| one == span.state));
            spans.map(|span| span.to_s - span.from_s).sum()
        };
        let all = time(None).max(1e-9);
        let shares =
            states.iter().map(|state| format!("{:.1} %", time(Some(*state)) / all * 100.0));
        let name = format!("{} {}", panel.flow.id, panel.flow.control);
        [name, format!("{least:.0}"), format!("{most:.0}")].into_iter().chain(shares).collect()
    };
    Values {
        heads: heads
            .into_iter()
            .chain(states.iter().map(|state| state.name().to_owned()))
            .collect(),
        rows: panels.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_sawtooth_keeps_its_ends() {
        let saw: Vec<(f64, f64)> =
            (0..20_000).map(|at| (f64::from(at), 50.0 + f64::from(at % 50))).collect();
        let thin = thinned(&saw);
        assert!(thin.len() <= MAX_POINTS + 2 && thin.is_sorted_by(|a, b| a.0 <= b.0));
        let highs = thin.iter().filter(|point| point.1 == 99.0).count();
        assert!(highs > 300, "{highs}");
        assert_eq!(thinned(&saw[..100]), saw[..100]);
    }
}
