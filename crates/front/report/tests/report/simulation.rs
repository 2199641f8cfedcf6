//! The pages of simulations, and of advice by them.

use crate::assertions::balanced;
use crate::synthetic;
use record::{
    AdvisedControl, Measurement, PathDriver, RunRange, SIM_ADVICE_SCHEMA, SIM_SCHEMA, SenderLimit,
    SenderState, SimAdvice, SimBottleneck, SimEnd, SimFlow, SimMoment, SimReport,
};
use report::html::{self, Page, PageRun, SimPage};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Text that is no markup.
const HOSTILE: &str = "</svg><script>alert(1)</script>\"'&";

const SECONDS: f64 = 20.0;

/// Flows of which the first has this control and the others CUBIC, over 20 s.
fn results(controls: &[&str]) -> (SimReport, Measurement, Vec<SimMoment>) {
    let count = controls.len() as u32;
    let mut measurement = synthetic::measurement(2.1e6, SECONDS, count);
    let mut path = synthetic::path();
    path.asked.driver = PathDriver::Simulator;
    measurement.path = Some(path);
    let flow = |(id, control): (u32, &&str)| SimFlow {
        id,
        connections: 1,
        spec: format!("{control},start=0s"),
        control: (*control).to_owned(),
        base_rtt_ms: Some(173.0),
        start_s: 0.0,
        finished_s: None,
        received_bytes: ByteCount::from_bytes(1_000_000),
        goodput_bps: BitRate::from_bps(1_000_000 * u64::from(id)),
        share: 1.0 / f64::from(count),
        retransmits: 7,
        rtt_median_ms: Some(180.0),
        rtt_p95_ms: Some(200.0 + f64::from(id)),
        limited_by: Some(SenderLimit::Cwnd),
        limited_share: 0.98,
    };
    let report = SimReport {
        schema: SIM_SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        link: "rate=100mbit,rtt=173ms".to_owned(),
        seed: 1,
        requested_s: SECONDS,
        seconds: SECONDS,
        ended: SimEnd::Complete,
        packets: 1000,
        flows: (1..).zip(controls).map(flow).collect(),
        goodput_bps: BitRate::from_bps(90_000_000),
        jain: (count > 1).then_some(0.9),
        bottleneck: SimBottleneck::default(),
        finding: synthetic::after().1,
        notes: Vec::new(),
        next: None,
    };
    let state = |at: u64| match at {
        0..5 => SenderState::SlowStart,
        50..52 => SenderState::Recovery,
        100 => SenderState::Loss,
        _ => SenderState::CongestionAvoidance,
    };
    let moment = |at: u64| SimMoment {
        to_ms: 100 * (at + 1),
        queue_bytes: at * 10_000,
        queue_time: Some(Duration::from_micros(at * 800)),
        states: vec![state(at); controls.len()],
    };
    (report, measurement, (0..200).map(moment).collect())
}

/// The page of a simulation of flows with these controls.
pub(crate) fn page(controls: &[&str]) -> String {
    let (report, measurement, trace) = results(controls);
    html_of(&report, &measurement, &trace)
}

fn html_of(report: &SimReport, measurement: &Measurement, trace: &[SimMoment]) -> String {
    let run = PageRun { label: "simulation", measurement, finding: &report.finding, window: None };
    let page = Page { title: "Simulated flows".to_owned(), runs: vec![run], ..Page::default() };
    html::sim_page(&SimPage { page, report, trace })
}

fn range(median: f64) -> RunRange {
    RunRange { median, low: median * 0.9, high: median * 1.1 }
}

/// The page of an advice.
pub(crate) fn advice() -> String {
    let control = |(name, mbit, ms): (&str, f64, f64)| AdvisedControl {
        control: name.to_owned(),
        goodput_bps: range(mbit * 1e6),
        queueing_ms: range(ms),
        retransmitted: range(0.01),
        beside_cubic_bps: range(mbit * 5e5),
        harm: range(0.5),
    };
    let controls = [("cubic", 40.0, 20.0), ("bbr", 46.0, 9.0), (HOSTILE, 41.0, 21.0)];
    html::sim_advice_page(&SimAdvice {
        schema: SIM_ADVICE_SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        link: HOSTILE.to_owned(),
        seconds: 20.0,
        seeds: vec![1, 2, 3],
        packets: 1_000_000,
        controls: controls.map(control).into(),
        best: Some("bbr".to_owned()),
        sentence: "bbr has the most goodput.".to_owned(),
        price: "It takes 50 % of a CUBIC flow.".to_owned(),
        setting: Some("sysctl -w net.ipv4.tcp_congestion_control=bbr".to_owned()),
        notes: vec![HOSTILE.to_owned()],
        next: None,
    })
}

#[test]
fn flows_with_unlike_round_trips_are_drawn_over_them() {
    let (mut report, measurement, trace) = results(&["cubic", "cubic", HOSTILE]);
    let title = "RTT unfairness: goodput by base RTT";
    assert!(!html_of(&report, &measurement, &trace).contains(title), "all have the same");
    report.flows[1].base_rtt_ms = Some(346.0);
    let html = html_of(&report, &measurement, &trace);
    assert_eq!(balanced(&html), Ok(()));
    // Twice the RTT, and twice the goodput.
    for part in [title, "<td>2.00</td><td>2.00</td>", "as the nearest flow", "1/RTT"] {
        assert!(html.contains(part), "{part}");
    }
    // Results of earlier versions have no base RTT.
    report.flows[0].base_rtt_ms = None;
    report.flows[2].base_rtt_ms = None;
    assert!(!html_of(&report, &measurement, &trace).contains(title));
}

#[test]
fn a_simulation_shows_its_states_and_its_queue() {
    let html = page(&["bbr"]);
    assert_eq!(balanced(&html), Ok(()));
    for part in [
        "Congestion window over time, with the sender&#39;s states",
        ">slow start</text>",
        ">recovery</text>",
        ">loss (timeout)</text>",
        "cwnd of flow 1, bbr, packets",
        "Cumulative distribution of the bottleneck&#39;s queueing delay",
        "95th percentile of the RTT",
        "class=\"curve thin cc-bbr\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    // Nothing is measured, nor emulated.
    for part in ["Emulation valid", "lateness", "not measured", "TCP_INFO", "by the emulator"] {
        assert!(!html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("bbr,start=0s"), "the control has its name: {html}");
    // One flow has nobody to share with.
    assert!(!html.contains("Phase plot") && !html.contains("fairness"), "{html}");
}

#[test]
fn two_flows_have_a_phase_plot_and_more_are_stacked() {
    let two = page(&["cubic", "bbr"]);
    assert!(two.contains("Phase plot: 2 bbr against 1 cubic"), "{two}");
    assert!(two.contains(">efficiency line</text>") && two.contains(">fairness line</text>"));
    assert!(two.contains("class=\"stack cc-cubic\"") && two.contains("stack cc-bbr alternate"));
    let alike = page(&["cubic"; 3]);
    assert!(alike.contains("class=\"stack cc-cubic\"") && !alike.contains("Phase plot"));
    let many = page(&[
        "cubic", "bbr", "reno", "htcp", "vegas", "bic", "yeah", "hybla", "fast", "psockets", "xcp",
        "own",
    ]);
    assert_eq!(balanced(&many), Ok(()));
    assert!(many.contains(">5 other flows</text>") && many.contains("6 of 12 flows are shown"));
    assert!(page(&[HOSTILE, "cubic"]).contains("cc-other"));
}

#[test]
fn a_flow_of_several_connections_is_drawn_as_one() {
    let (mut report, measurement, trace) = results(&["psockets", "psockets", "cubic"]);
    report.flows.remove(1);
    report.flows[0].connections = 2;
    assert_eq!(report.flows[1].streams(&measurement.streams), &measurement.streams[2..]);
    let html = html_of(&report, &measurement, &trace);
    assert_eq!(balanced(&html), Ok(()));
    assert!(html.contains("Phase plot: 3 cubic against 1 psockets"), "{html}");
    assert!(html.contains("flow 1, psockets, its first connection"), "{html}");
}

#[test]
fn an_advice_has_its_plots_and_escapes_its_texts() {
    let html = advice();
    assert_eq!(balanced(&html), Ok(()));
    assert!(!html.contains("<script>alert"), "{html}");
    for part in [
        "Goodput against queueing delay of a single flow",
        "Harm to a CUBIC flow",
        ">bbr (best)</th>",
        ">46.0 Mbit/s (41.4–50.6)</td>",
        "better ↗",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}
