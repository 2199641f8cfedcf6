//! Built-in studies: their plans are valid, and each trend fails on another path.

use super::*;
use record::{FlowFigures, Limit, RunStatus};

#[test]
fn every_plan_is_valid_in_both_forms() {
    for built_in in BUILT_IN {
        for quick in [false, true] {
            let study = built_in.study(quick, None).unwrap();
            assert_eq!(study.parts.len(), built_in.parts.len());
            assert!(study.question.ends_with('?'), "{}", study.question);
            let minutes = study.estimate().as_secs_f64() / 60.0;
            let most = if built_in.name == "edge-cloud" { 3.0 } else { 10.0 };
            assert!(!quick || minutes < most, "{}: {minutes} min", built_in.name);
        }
        for trend in built_in.trends {
            let only = built_in.study(true, Some(trend.name)).unwrap();
            assert_eq!(only.parts.len(), trend.parts.len(), "{}", trend.name);
        }
        assert!(built_in.study(true, Some("no-such")).unwrap_err().contains("it has"));
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
            loss,
            limit: Some(limit),
            series_bps,
            ..FlowFigures::default()
        }
    });
    StudyRun {
        cell,
        repeat: 1,
        status: RunStatus::Valid,
        attempts: 1,
        started_unix_s: 0,
        took_s: 5.0,
        test_s: 5.0,
        reason: String::new(),
        flows: flows.collect(),
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
    let failing = ["window-64k", "window-128k", "streams-10"];
    for (name, holds) in holding(&other) {
        assert!(holds == Some(false) || !failing.contains(&name), "{name}");
    }
    // A path without a limit on UDP, or with a queue that is fair to TCP.
    let mut fair = runs.clone();
    for flow in fair.iter_mut().skip(2).flatten().flat_map(|run| &mut run.flows) {
        flow.throughput_bps *= 1.05;
        flow.series_bps.iter_mut().for_each(|second| *second = 6e6);
    }
    // A window that never limits.
    for flow in fair.iter_mut().take(2).flatten().flat_map(|run| &mut run.flows) {
        flow.throughput_bps = 96.5e6;
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
