//! Built-in studies: their plans are valid, and each trend fails on another path.

mod cdn;
mod forms;
mod netherlight;
mod udt;
mod zoo;

use super::*;
use crate::test::Test;
use crate::traffic::Traffic;
use record::{FlowFigures, Limit, RunStatus};

#[test]
fn every_plan_is_valid_in_both_forms() {
    for built_in in BUILT_IN {
        for quick in [false, true] {
            let study = built_in.study(quick, None).unwrap();
            assert_eq!(study.parts.len(), built_in.parts.len());
            assert!(study.question.ends_with('?'), "{}", study.question);
            let minutes = study.estimate().as_secs_f64() / 60.0;
            let most = match (built_in.name, built_in.testbed) {
                ("edge-cloud", _) => 3.0,
                ("netherlight", _) => 6.0,
                // Virtual time.
                (_, StudyTestbed::Simulator) => f64::INFINITY,
                _ => 10.0,
            };
            assert!(!quick || minutes < most, "{}: {minutes} min", built_in.name);
        }
        for trend in built_in.trends {
            let only = built_in.study(true, Some(trend.name)).unwrap();
            assert_eq!(only.parts.len(), trend.parts.len(), "{}", trend.name);
        }
        for (name, _) in built_in.parts.iter().filter(|(name, _)| built_in.trend(name).is_err()) {
            let only = built_in.study(true, Some(name)).unwrap();
            assert_eq!(only.parts.len(), 1, "{name}");
        }
        let error = built_in.study(true, Some("no-such")).unwrap_err();
        assert!(error.to_string().contains("it has"));
    }
}

/// Runs of a study as an ideal path of `rtt_s` and 100 Mbit/s would have them.
fn ideal(study: &Study, rtt_s: f64) -> Vec<Vec<StudyRun>> {
    let of_part =
        |part: &Part| (0..part.plan.cells()).map(|cell| ideal_run(part, cell, rtt_s)).collect();
    study.parts.iter().map(of_part).collect()
}

fn ideal_run(part: &Part, cell: usize, rtt_s: f64) -> StudyRun {
    let test = part.plan.test(&part.plan.cell(cell)).unwrap();
    let beside_udp = test.flows.len() > 1;
    let flows = test.flows.iter().map(|flow| {
        let seconds = flow.duration.as_secs() as usize;
        let (rate, loss, limit) = match flow.bitrate {
            Some(offered) => {
                let offered = offered.as_f64() * f64::from(flow.streams);
                let carried = offered.min(98.13e6 - if beside_udp { 2e6 } else { 0.0 });
                (carried, Some(1.0 - carried / offered), Limit::Application)
            }
            None => {
                let window = test.window.unwrap().as_f64() * 8.0 / rtt_s;
                let windows = window * f64::from(flow.streams);
                let limit = if windows < 96.5e6 { Limit::ReceiveWindow } else { Limit::PathRate };
                (windows.min(96.5e6), None, limit)
            }
        };
        let mut series_bps = vec![rate; seconds];
        if beside_udp && flow.bitrate.is_none() {
            series_bps.iter_mut().skip(4).for_each(|second| *second = 2e6);
        }
        FlowFigures {
            name: flow.name.clone(),
            began_s: flow.start.as_secs_f64(),
            seconds: seconds as f64,
            throughput_bps: rate,
            steady_bps: Some(rate),
            loss,
            limit: Some(limit),
            series_bps,
            ..FlowFigures::default()
        }
    });
    valid_run(cell, flows.collect())
}

fn valid_run(cell: usize, flows: Vec<FlowFigures>) -> StudyRun {
    StudyRun {
        cell,
        repeat: 1,
        status: RunStatus::Valid,
        attempts: 1,
        started_unix_s: 0,
        took_s: 5.0,
        test_s: 5.0,
        reason: String::new(),
        start_skew: None,
        flows,
    }
}

fn holding(trends: &[StudyTrend]) -> Vec<(&str, Option<bool>)> {
    trends.iter().map(|trend| (trend.name.as_str(), trend.holds)).collect()
}

#[test]
fn edge_cloud_holds_on_its_path_and_fails_on_others() {
    let study = BuiltIn::named("edge-cloud").unwrap().study(true, None).unwrap();
    let runs = ideal(&study, 0.173);
    let all = trends(&study, &runs);
    assert!(all.iter().all(|trend| trend.holds == Some(true)), "{all:?}");
    // Another RTT: what depends on it does not hold.
    let other = trends(&study, &ideal(&study, 0.1));
    let failing = ["window-64k", "window-128k", "streams-10", "iperf2"];
    for (name, holds) in holding(&other) {
        assert!(holds == Some(false) || !failing.contains(&name), "{name}");
    }
    // A path without a limit on UDP, or with a queue that is fair to TCP.
    let mut fair = runs.clone();
    for flow in fair.iter_mut().skip(3).flatten().flat_map(|run| &mut run.flows) {
        flow.throughput_bps *= 1.05;
        flow.series_bps.iter_mut().for_each(|second| *second = 6e6);
    }
    // A window that never limits.
    for flow in fair.iter_mut().take(3).flatten().flat_map(|run| &mut run.flows) {
        flow.throughput_bps = 96.5e6;
        flow.steady_bps = Some(96.5e6);
        flow.limit = Some(Limit::PathRate);
    }
    let none = trends(&study, &fair);
    assert!(none.iter().all(|trend| trend.holds == Some(false)), "{none:?}");
}

#[test]
fn trends_without_valid_runs_are_not_measured() {
    let study = BuiltIn::named("edge-cloud").unwrap().study(true, Some("udp-overload")).unwrap();
    let mut runs = ideal(&study, 0.173);
    runs[0][0].status = RunStatus::Invalid;
    let only = trends(&study, &runs);
    assert_eq!(holding(&only), [("udp-overload", None)]);
    // A plan of the user's under the same name has no trends.
    let mut other = study.clone();
    other.parts[0].text.push('#');
    assert!(trends(&other, &runs).is_empty());
}

/// Valid runs of a study, one of each cell, with the figures that `flow` gives its flows.
fn made(study: &Study, flow: impl Fn(&str, &Test, &Traffic) -> FlowFigures) -> Vec<Vec<StudyRun>> {
    let run = |part: &Part, cell: usize| {
        let test = part.plan.test(&part.plan.cell(cell)).unwrap();
        let flows = test.flows.iter().map(|traffic| {
            let mut figures = flow(&part.name, &test, traffic);
            figures.name.clone_from(&traffic.name);
            figures.began_s = traffic.start.as_secs_f64();
            figures.seconds = traffic.duration.as_secs_f64();
            if figures.series_bps.is_empty() {
                figures.series_bps = vec![figures.throughput_bps; figures.seconds as usize];
            }
            figures
        });
        valid_run(cell, flows.collect())
    };
    let of_part = |part: &Part| (0..part.plan.cells()).map(|cell| run(part, cell)).collect();
    study.parts.iter().map(of_part).collect()
}

fn rate(bps: f64) -> FlowFigures {
    FlowFigures { throughput_bps: bps, ..FlowFigures::default() }
}

/// The trends of a study whose flows are as given.
fn verdicts(
    name: &str,
    flow: impl Fn(&str, &Test, &Traffic) -> FlowFigures,
) -> Vec<(String, bool)> {
    let study = BuiltIn::named(name).unwrap().study(true, None).unwrap();
    let found = trends(&study, &made(&study, flow));
    found.into_iter().map(|trend| (trend.name, trend.holds.unwrap())).collect()
}

#[test]
fn http_buffers_follow_the_window_and_fail_where_something_else_limits() {
    let limit = |test: &Test| {
        let own = test.sysctls.iter().find(|one| one.name.ends_with("tcp_rmem"));
        let clients = test.sysctls.iter().rfind(|one| one.name.ends_with("tcp_rmem"));
        assert_ne!(own, clients, "the server has one as well");
        clients.unwrap().value.split(' ').next_back().unwrap().parse::<f64>().unwrap()
    };
    let download = |test: &Test, most: f64, at: Limit| {
        let window = limit(test) * model::STEADY_WINDOW_SHARE;
        let windows = window * 8.0 / 0.2;
        let named = if windows < most { Limit::ReceiveWindow } else { at };
        FlowFigures {
            steady_bps: Some(windows.min(most)),
            window_bytes: Some(window as u64),
            mean_rtt_ms: Some(200.0),
            limit: Some(named),
            ..rate(windows.min(most))
        }
    };
    for (name, holds) in
        verdicts("http-buffers", |_, test, _| download(test, 960e6, Limit::PathRate))
    {
        assert!(holds, "{name}");
    }
    // A server or a network that ends it early, as the published one did, and limits that do not
    // apply.
    for (name, holds) in verdicts("http-buffers", |_, test, _| FlowFigures {
        window_bytes: Some(1 << 20),
        ..download(test, 168e6, Limit::Application)
    }) {
        assert!(!holds, "{name}");
    }
}

/// Rates of a flow in each second: 90 Mbit/s shared by those that run.
fn shared(test: &Test, flow: &Traffic) -> Vec<f64> {
    let runs = |other: &Traffic, at: f64| {
        (other.start.as_secs_f64()..other.end().as_secs_f64()).contains(&at)
    };
    let start = flow.start.as_secs_f64();
    let seconds = flow.duration.as_secs() as u32;
    let at = |second: u32| {
        let at = start + f64::from(second) + 0.5;
        90e6 / test.flows.iter().filter(|other| runs(other, at)).count() as f64
    };
    (0..seconds).map(at).collect()
}

#[test]
fn emulab_holds_for_small_buffers_and_fails_for_large_ones() {
    // A window of 110 kB, random loss by Mathis, and the link.
    let small = |part: &str, test: &Test, flow: &Traffic| {
        if part == "grid-udt" {
            let lost = test.loss.is_some_and(|loss| loss.fraction() > 0.0);
            return FlowFigures {
                increases: Some(50),
                increases_by_alpha: Some(49),
                growth_over_alpha: Some(0.8),
                ..rate(if lost && flow.congestion() == "udt" { 3e6 } else { 90e6 })
            };
        }
        if part == "series-udt" {
            return udt::rising(test);
        }
        if part == "fairness-udt" {
            return FlowFigures { series_bps: shared(test, flow), ..rate(30e6) };
        }
        if part == "acks" {
            let is_slow = test.path.contains("100kbit");
            return FlowFigures {
                acks_per_packet: Some(if is_slow { 0.98 } else { 1.0 / 850.0 }),
                light_acks_per_packet: Some(if is_slow { 0.0 } else { 1.0 / 64.0 }),
                ..rate(90e6)
            };
        }
        if part == "file" && flow.protocol == record::Protocol::Udt {
            if flow.disk_limit().is_none() {
                return rate(95e6);
            }
            return FlowFigures {
                limit: Some(Limit::Application),
                disk_bps: Some(20e6),
                series_bps: [0.0, 0.0, 70e6, 0.0].repeat(4),
                ..rate(19.5e6)
            };
        }
        let rtt = test.spec.rtt().secs_f64();
        let link = test.spec.rate().unwrap().as_f64() * 0.965;
        let default = if part == "grid-defaults" { 3e6 } else { 110e3 };
        let window = if part.ends_with("tuned") { f64::INFINITY } else { default * 8.0 / rtt };
        let loss = test.loss.map_or(0.0, units::LossRatio::fraction);
        let mathis = if loss > 0.0 { 14_188.0 / (rtt * loss.sqrt()) } else { f64::INFINITY };
        rate(link.min(window).min(mathis))
    };
    for (name, holds) in verdicts("emulab", small) {
        assert!(holds, "{name}");
    }
    // Delay costs nothing without loss; one flow has everything, or the second one, and tuning
    // changes nothing. Each packet is acknowledged, the rate rises as it likes, and the disk is fast.
    let other = |part: &str, test: &Test, flow: &Traffic| match (part, flow.name.as_str()) {
        ("grid", _) => {
            rate(if test.loss.is_some_and(|loss| loss.fraction() > 0.0) { 1e6 } else { 95e6 })
        }
        ("grid-udt", _) => FlowFigures {
            increases: Some(50),
            increases_by_alpha: Some(4),
            growth_over_alpha: Some(7.0),
            ..rate(90e6)
        },
        ("acks", _) => FlowFigures {
            acks_per_packet: Some(0.5),
            light_acks_per_packet: Some(0.0),
            ..rate(90e6)
        },
        ("file", _) => {
            FlowFigures { limit: Some(Limit::PathRate), disk_bps: Some(95e6), ..rate(95e6) }
        }
        ("series-udt", _) => rate(50e6),
        ("grid-tuned", _) => rate(9e6 / test.spec.rtt().secs_f64()),
        ("fairness-udt", "first") => rate(100e6),
        ("fairness-udt", "second") => rate(400e6),
        (_, "first") => rate(900e6),
        _ => rate(1e6),
    };
    for (name, holds) in verdicts("emulab", other) {
        assert!(!holds, "{name}");
    }
}

/// 200 s of a rate that rises by so many Mbit/s a second.
fn ramp(slope: f64) -> Vec<f64> {
    (0..200).map(|second| 1e6 * (70.0 + f64::from(second) * slope)).collect()
}

/// What a trend says is from its runs: without them it says nothing, and of others it says
/// something else.
#[test]
fn every_trend_is_measured_from_its_runs() {
    let figures = |times: f64| {
        move |part: &str, _: &Test, flow: &Traffic| FlowFigures {
            steady_bps: Some(times * 1e6),
            retransmits: Some((times * 10.0) as u64),
            min_rtt_ms: Some(20.0),
            mean_rtt_ms: Some(20.0 + times),
            window_bytes: Some((times * 65_536.0) as u64),
            sent_bps: times * 1e6,
            loss: Some(times / 100.0),
            limit: Some(Limit::PathRate),
            decrease_factor: Some(times / 20.0),
            acks_per_packet: Some(times / 50.0),
            light_acks_per_packet: Some(times / 70.0),
            naks: Some(times as u64),
            increases: Some((times * 10.0) as u64),
            increases_by_alpha: Some((times * 9.0) as u64),
            growth_over_alpha: Some(times / 10.0),
            disk_bps: Some(times * 1e6),
            series_bps: if part == "recovery" { ramp(times) } else { Vec::new() },
            // Flows differ, by no factor.
            ..rate(times * 1e6 + 2e6 * (flow.name.len() + flow.congestion().len()) as f64)
        }
    };
    for built_in in BUILT_IN {
        for quick in [false, true] {
            let study = built_in.study(quick, None).unwrap();
            let none: Vec<Vec<StudyRun>> = study.parts.iter().map(|_| Vec::new()).collect();
            for trend in trends(&study, &none) {
                assert_eq!((trend.measured, trend.holds), (None, None), "{}", trend.name);
            }
            let one = trends(&study, &made(&study, figures(7.0)));
            let other = trends(&study, &made(&study, figures(60.0)));
            assert_eq!(one.len(), built_in.trends.len());
            for (one, other) in one.iter().zip(&other) {
                assert!(one.measured.is_some(), "{}", one.name);
                assert_ne!(one.measured, other.measured, "{}", one.name);
            }
        }
    }
}

#[test]
fn understanding_holds_as_published_and_fails_without_its_causes() {
    let published = |part: &str, test: &Test, flow: &Traffic| {
        let bbr = flow.congestion() == "bbr";
        let deep = test.path.contains("queue=8bdp") || test.path.contains("queue=1000ms");
        match part {
            "overhead" if flow.ip == model::IpVersion::Ipv4 => rate(2.3537e9),
            "overhead" => rate(2.3212e9),
            "delay" => rate((test.window.unwrap().as_f64() * 8.0 / 0.215).min(2.3e9)),
            "places" => rate(2.35e9),
            "defaults" => rate(0.03e9 / test.spec.rtt().secs_f64()),
            "loss" => rate(if bbr { 90e6 } else { 1.4e6 }),
            "loss-sweep" => {
                let loss = test.loss.unwrap().fraction();
                rate(if bbr || loss < 1e-3 { 90e6 * (1.0 - loss) } else { 5e6 })
            }
            "handover" => {
                let series_bps = [vec![90e6; 20], vec![70e6]].concat();
                FlowFigures { series_bps, ..rate(88e6) }
            }
            "loss-budget" => {
                let loss = test.path.split("up.loss=").nth(1).unwrap();
                let loss = loss.split(',').next().unwrap();
                rate(match loss {
                    "0.00013%" => 95e6,
                    "0.0013%" => 80e6,
                    _ => 18e6,
                })
            }
            "shallow" if bbr => rate(92e6),
            "shallow" => rate(if test.path.contains("0.05bdp") { 44e6 } else { 77e6 }),
            "ecn" => FlowFigures {
                min_rtt_ms: Some(40.0),
                mean_rtt_ms: Some(48.0),
                retransmits: Some(if test.path.contains("ecn=yes") { 0 } else { 20 }),
                ..rate(19e6)
            },
            "bloat" => FlowFigures {
                min_rtt_ms: Some(40.0),
                mean_rtt_ms: Some(if deep && !bbr { 800.0 } else { 60.0 }),
                ..rate(19e6)
            },
            "sharing" => rate(if bbr == deep { 10e6 } else { 38e6 }),
            "crowd" => rate(if bbr { 20e6 } else { 28e6 }),
            "pairs" | "pairs-long" => rate(24e6),
            "paced" => {
                let paced = flow.pacing.is_some_and(|rate| rate.as_f64() < 50e6);
                let retransmits = Some(if paced { 10 } else { 900 });
                FlowFigures { retransmits, ..rate(if paced { 91e6 } else { 80e6 }) }
            }
            "sawtooth" => {
                let factor = if flow.congestion() == "reno" { 0.51 } else { 0.71 };
                FlowFigures { decrease_factor: Some(factor), ..rate(45e6) }
            }
            _ => {
                let far = test.spec.rtt().secs_f64() > 0.5;
                rate(if bbr {
                    if far { 40e6 } else { 45e6 }
                } else if far {
                    1e6
                } else {
                    10e6
                })
            }
        }
    };
    for (name, holds) in verdicts("understanding", published) {
        assert!(holds, "{name}");
    }
    // Every congestion control and every queue alike, at another rate.
    let alike = |_: &str, _: &Test, flow: &Traffic| FlowFigures {
        min_rtt_ms: Some(40.0),
        mean_rtt_ms: Some(41.0),
        retransmits: Some(9),
        decrease_factor: Some(0.6),
        ..rate(if flow.streams == 4 { 80e6 } else { 20e6 })
    };
    for (name, holds) in verdicts("understanding", alike) {
        assert!(!holds, "{name}");
    }
}
