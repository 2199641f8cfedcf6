//! Made-up tests and reports for the tests of this crate.

use crate::{TestRun, conditions, differences, links, summary};
use diagnose::latency::{self, Load, ProbeFlow};
use record::{
    AddressFamily, BASELINE_SCHEMA, BaselineReport, Direction, Finding, HostFacts, LatencyProbe,
    Limit, RunFigures, Steady, TestCondition,
};
use units::BitRate;

fn mbit(mbit: f64) -> BitRate {
    BitRate::from_bps_f64(mbit * 1e6)
}

/// `IPv4 upload 4`.
pub(crate) fn condition(text: &str) -> TestCondition {
    let mut words = text.split(' ');
    let family = match words.next() {
        Some("IPv4") => AddressFamily::Ipv4,
        _ => AddressFamily::Ipv6,
    };
    let direction = match words.next() {
        Some("upload") => Direction::Forward,
        _ => Direction::Reverse,
    };
    let streams = words.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    TestCondition { family, direction, streams }
}

/// A test of so many Mbit/s, and the rise of its RTT under load in ms.
pub(crate) fn run(rate: f64, limit: Limit, rise: Option<f64>) -> TestRun {
    let finding = Finding {
        throughput_bps: mbit(rate),
        average_bps: mbit(rate),
        steady: Steady { from_s: 0.0, to_s: 8.0 },
        predicted_bps: None,
        equation: None,
        limit: Some(limit),
        confidence: None,
        shares: None,
        min_rtt: None,
        loaded_rtt: None,
        sentence: format!("The limit is {}.", limit.name()),
        remedies: Vec::new(),
        posterior: Vec::new(),
        segments: Vec::new(),
        bottleneck: None,
        caveats: Vec::new(),
        next: None,
    };
    let latency = rise.map(|rise| {
        let probe = |at_s, rtt_ms| LatencyProbe { at_s, rtt_ms: Some(rtt_ms) };
        let probes = vec![probe(-1.0, 20.0), probe(2.0, 20.0 + rise)];
        let flow = ProbeFlow { method: "icmp".to_owned(), port: None, interval_ms: 20.0, probes };
        latency::under_load(flow, None, Load { from_s: 0.0, to_s: 8.0, quiet_s: 9.0 })
    });
    let figures = RunFigures {
        started_unix_s: 1_795_000_000,
        throughput_bps: mbit(rate),
        average_bps: mbit(rate),
        block_s: 0.0,
        blocks_bps: Vec::new(),
        received_bytes: 1,
        retransmits: Some(0),
        limit: Some(limit),
        min_rtt_ms: Some(20.0),
        other_bytes: Some(0),
        latency,
        sentence: finding.sentence.clone(),
        notes: Vec::new(),
    };
    TestRun { figures, finding }
}

/// A report with three tests of each condition, whose rates are those that `rate` gives, in
/// Mbit/s, and 0.2 % less and more.
pub(crate) fn report(
    families: &[AddressFamily],
    rate: impl Fn(&TestCondition) -> f64,
    rise: f64,
) -> BaselineReport {
    let limit = Limit::PathRate;
    let of = |condition: &TestCondition| {
        let rises = [-1.0, 0.0, 1.0].map(|by| (condition.streams > 1).then_some(rise + by));
        let rates = [0.998, 1.0, 1.002].map(|by| rate(condition) * by);
        let runs: Vec<TestRun> =
            rates.iter().zip(rises).map(|(rate, rise)| run(*rate, limit, rise)).collect();
        summary(*condition, &runs, 0)
    };
    let conditions: Vec<_> = conditions(families, 4).iter().filter_map(of).collect();
    BaselineReport {
        schema: BASELINE_SCHEMA.to_owned(),
        version: "0".to_owned(),
        started_unix_s: 1_795_000_000,
        took_s: 250.0,
        host: HostFacts::default(),
        link_bps: None,
        target: "server.example.net".to_owned(),
        port: 5201,
        peer: "iperf3".to_owned(),
        seed: 1,
        within_s: 300.0,
        duration_s: 8.0,
        rounds: 3,
        interrupted: false,
        architecture: Vec::new(),
        checks: Vec::new(),
        paths: Vec::new(),
        differences: differences(&conditions),
        links: links(&conditions, &[]),
        conditions,
        steps: Vec::new(),
        comparison: None,
        choice: None,
        notes: Vec::new(),
    }
}
