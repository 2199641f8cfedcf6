//! The page of a simulation: that of a test, with what only a simulation knows.

mod cwnd;
mod drawn_flow;
mod fairness;
mod phase;
mod queue;
mod rtt_unfairness;
mod states;

use super::markup::Markup;
use super::plot::{self, AgainstDelay, Chart, Tradeoff};
use super::{CSS, Page, SCRIPT, bands, conditions, curves, document, findings, footer, header};
use crate::wording;
use drawn_flow::DrawnFlow;
use model::{Payload, statistics};
use record::{Measurement, RunRange, SimFlow, SimMoment, SimReport};

/// Flows up to which each has a row of the table.
const MAX_ROWS: usize = 64;

/// The contents of the page of a simulation.
#[derive(Debug, Clone)]
pub struct SimPage<'a> {
    /// Title, lead and path; its only run is the simulation.
    pub page: Page<'a>,
    /// The flows and the bottleneck.
    pub report: &'a SimReport,
    /// Senders' states and the queue, every 100 ms.
    pub trace: &'a [SimMoment],
}

/// The page as one HTML document.
#[must_use]
pub fn sim_page(sim: &SimPage<'_>) -> String {
    let page = &sim.page;
    let mut m = Markup::new();
    let styles = [CSS, plot::STYLE, &plot::control_styles()];
    document(&mut m, &page.title, &styles, SCRIPT, |m| {
        m.element("main", &[], |m| {
            header::title(m, page);
            header::write(m, page);
            flows(m, sim.report);
            curves::throughput(m, page);
            if let Some(run) = page.runs.first() {
                plots(m, sim, run.measurement);
            }
            findings::write(m, page);
            bands::tables(m, page);
            curves::in_flight(m, page);
            curves::rtt(m, page);
            conditions::write(m, page);
        });
        footer(m, &sim.report.version);
    });
    m.finish()
}

fn plots(m: &mut Markup, sim: &SimPage<'_>, measurement: &Measurement) {
    let drawn = DrawnFlow::all(sim.report, measurement);
    let windows = cwnd::draw(sim.report, measurement, sim.trace);
    section(m, "Congestion windows and states", [windows]);
    let stacked = fairness::draw(sim.report, measurement, &drawn);
    let fairness = [stacked, phase::draw(measurement, &drawn), rtt_unfairness::draw(&drawn)];
    section(m, "Convergence to fairness", fairness);
    let queue = queue::draw(sim.trace);
    section(m, "Queue and delay", [queue, against_delay(&drawn)]);
}

fn section<const N: usize>(m: &mut Markup, title: &str, charts: [Option<Chart>; N]) {
    let charts: Vec<Chart> = charts.into_iter().flatten().collect();
    if charts.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &title);
        charts.iter().for_each(|chart| chart.figure(m));
    });
}

/// Goodput against delay, a point for each flow or group: its median, and the range of its flows.
fn against_delay(drawn: &[DrawnFlow<'_>]) -> Option<Chart> {
    let range = |one: &DrawnFlow<'_>, of: fn(&SimFlow) -> Option<f64>| {
        let values: Vec<f64> = one.flows.iter().filter_map(|flow| of(flow)).collect();
        Some(RunRange {
            median: statistics::median(&values)?,
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(0.0, f64::max),
        })
    };
    let point = |one: &DrawnFlow<'_>| {
        Some(Tradeoff {
            name: one.name.clone(),
            control: one.control.to_owned(),
            delay_ms: range(one, |flow| flow.rtt_p95_ms)?,
            rate_bps: range(one, |flow| Some(flow.goodput_bps.as_f64()))?,
        })
    };
    let plot = AgainstDelay {
        caption: "Goodput against delay",
        delay: "95th percentile of the RTT",
        rate: "goodput",
        points: drawn.iter().filter_map(point).collect(),
    };
    let note = "As in Pantheon's plots the delay falls to the right: flows at the top right have the \
                most goodput at the least delay. The RTT is the smoothed one, propagation included.";
    Some(plot.draw()?.with_note(note))
}

/// What each flow got.
fn flows(m: &mut Markup, report: &SimReport) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Flows");
        m.table("figures", |m| {
            m.thead([
                "flow",
                "control",
                "goodput",
                "share",
                "retransmits",
                "RTT p50",
                "RTT p95",
                "limited by",
            ]);
            m.element("tbody", &[], |m| {
                for flow in report.flows.iter().take(MAX_ROWS) {
                    m.row(&flow.id, row(flow));
                }
            });
        });
        if report.flows.len() > MAX_ROWS {
            let note = format!("{} more flows", report.flows.len() - MAX_ROWS);
            m.leaf("p", &[("class", &"note")], &note);
        }
    });
}

fn row(flow: &SimFlow) -> [String; 7] {
    let none = || "–".to_owned();
    let ms = |value: Option<f64>| value.map_or_else(none, |ms| format!("{ms:.1} ms"));
    let limit = flow.limited_by.map_or_else(none, |limit| {
        format!("{} {}", limit.name(), wording::whole_percent(flow.limited_share))
    });
    [
        flow.control.clone(),
        flow.goodput_bps.to_string(),
        wording::whole_percent(flow.share),
        flow.retransmits.to_string(),
        ms(flow.rtt_median_ms),
        ms(flow.rtt_p95_ms),
        limit,
    ]
}

/// The payload rate of the link, bit/s; `None` without a rate.
fn capacity(measurement: &Measurement) -> Option<f64> {
    let path = measurement.path.as_ref()?;
    let payload = Payload { framing: path.overhead_bytes, ..Payload::of_ip(path.mtu_bytes) };
    Some(payload.goodput(path.rate_bps?)?.as_f64())
}
