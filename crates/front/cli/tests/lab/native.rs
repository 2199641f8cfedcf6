//! What `test` does beside one transfer: round trips under load, repeats,
//! comparisons, the search for a rate.

use crate::program::{Ended, LONGHAUL, lab_with, valid, worked};
use serde_json::Value;
use std::collections::VecDeque;

/// `longhaul test server` over `link`, the lab's options before it.
fn tested(link: &str, lab: &[&str], options: &[&str]) -> (Ended, Value) {
    once(link, lab, options, |attempt| attempt())
}

/// The same, in time: what is compared with another run must be valid.
fn tested_in_time(link: &str, options: &[&str]) -> Value {
    once(link, &[], options, |attempt| valid(attempt)).1
}

fn once(
    link: &str,
    lab: &[&str],
    options: &[&str],
    run: impl Fn(&dyn Fn() -> Ended) -> Ended,
) -> (Ended, Value) {
    let server = format!("{LONGHAUL} server");
    let command = [&[LONGHAUL, "test", "server", "--json"], options].concat();
    let lab = [&["--server", &server], lab].concat();
    let ended = run(&|| lab_with(link, &lab, &command));
    assert!(worked(&ended, 0), "{link} {options:?}: {}", ended.stderr);
    let report = serde_json::from_str(&ended.stdout).unwrap();
    (ended, report)
}

fn number(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or_else(|| panic!("no {key}: {report}"))
}

/// Round trips of the echoes by the lab's own account, in ms and in their
/// order: what they waited on both ways beside the 40 ms of the path.
fn truth(log: &str) -> Vec<f64> {
    let mut ways: [VecDeque<Option<f64>>; 2] = Default::default();
    for row in log.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        // Echoes are 20 + 8 + 56 bytes; nothing else of a test is.
        if fields[6] == "84" {
            let at = |field: usize| fields[field].parse::<f64>().ok();
            let took = at(5).zip(at(3)).map(|(due, arrived)| (due - arrived) * 1e3);
            ways[usize::from(fields[1] == "down")].push_back(took);
        }
    }
    let [up, mut down] = ways;
    // An answer to what was dropped on the way up never came.
    let both = up.into_iter().flatten().map(|up| Some(up + down.pop_front()??));
    both.map(|trip| trip.unwrap_or(f64::INFINITY)).collect()
}

/// 100 ms of queue at 50 Mbit/s are 625 kB.
pub(crate) fn latency_under_load_is_the_queues() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("packets.csv");
    let lab = ["--packet-log", log.to_str().unwrap()];
    let link = "rate=50mbit,rtt=40ms,queue=625kB";
    let (_, report) = tested(link, &lab, &["--latency", "-t", "6"]);
    let latency = &report["latency"];
    assert_eq!(latency["method"], "icmp", "{latency}");
    let probes: Vec<(f64, Option<f64>)> = latency["probes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|probe| (number(probe, "at_s"), probe["rtt_ms"].as_f64()))
        .collect();
    let lived = probes.iter().filter(|probe| probe.1.is_some()).count();
    let truth = truth(&std::fs::read_to_string(&log).unwrap());
    assert!(truth.len() >= lived && truth.len() <= lived + 60, "{} {lived}", truth.len());
    // Both in the order of sending, each probe that was answered with its truth.
    let end = probes.iter().filter(|p| p.0 < 6.5).count();
    let during = |at: &f64| (0.0..6.0).contains(at);
    let pairs: Vec<(f64, f64)> = probes
        .iter()
        .take(end)
        .filter(|probe| probe.1.is_some())
        .zip(&truth)
        .filter(|(probe, _)| during(&probe.0))
        .map(|(probe, truth)| (probe.1.unwrap(), *truth))
        .collect();
    let (seen, true_ones): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    // On a quiet machine they agree within half a millisecond. A stall delays a reply, not
    // what the log says of it, and shows in the highest percentiles.
    for (share, most) in [(0.5, 1.25), (0.99, 2.5)] {
        let at = |values: &[f64]| model::statistics::percentile(values, share).unwrap();
        let (seen, truth) = (at(&seen), at(&true_ones));
        eprintln!("p{:.0}: {seen:.3} ms, by the lab {truth:.3} ms", share * 100.0);
        assert!((0.8..most).contains(&(seen / truth)), "p{share}: {seen} {truth}");
    }
    let phase = |name: &str| number(&latency[name], "p50_ms");
    assert!((39.9..50.0).contains(&phase("before")), "{latency}");
    assert!((39.9..60.0).contains(&phase("after")), "{latency}");
    assert!(phase("during") > 60.0 && number(latency, "rise_ms") > 20.0, "{latency}");
    assert!(["A", "B", "C"].contains(&latency["grade"].as_str().unwrap()), "{latency}");
    // 60 000 over 60 to 150 ms.
    assert!((400.0..1000.0).contains(&number(latency, "rpm_tcp")), "{latency}");
    assert_eq!(latency["rpm_word"], "fair", "{latency}");
}

/// A slower path is really slower, and the same path is not.
pub(crate) fn repeats_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept.json");
    let kept = kept.to_str().unwrap();
    let three = ["--repeat", "3", "-t", "1"];
    let fast = "rate=50mbit,rtt=10ms";
    let first = tested_in_time(fast, &[&three[..], &["--save", kept]].concat());
    assert_eq!(first["schema"], "longhaul.repeat/2", "{first}");
    assert_eq!(first["runs"].as_array().unwrap().len(), 3, "{first}");
    let median = number(&first["summary"], "median_bps");
    assert!((44e6..49e6).contains(&median), "{first}");
    let (low, high) =
        (number(&first["summary"], "mean_low_bps"), number(&first["summary"], "mean_high_bps"));
    let mean = number(&first["summary"], "mean_bps");
    assert!(low <= mean && mean <= high, "{first}");
    for run in first["runs"].as_array().unwrap() {
        assert!(number(run, "other_bytes") < 0.05 * number(run, "received_bytes"), "{run}");
    }
    let against = [&three[..], &["--compare", kept]].concat();
    let slow = tested_in_time("rate=25mbit,rtt=10ms", &against);
    let comparison = &slow["comparison"];
    assert_eq!((&comparison["real"], &comparison["method"]), (&true.into(), &"runs".into()));
    assert!((-0.55..-0.45).contains(&number(comparison, "difference_share")), "{comparison}");
    let one = tested_in_time(fast, &["-t", "3", "--compare", kept]);
    let comparison = &one["comparison"];
    assert_eq!(comparison["method"], "blocks", "{comparison}");
    assert!(number(comparison, "difference_share").abs() < 0.05, "{comparison}");
}

/// 100 Mbit/s carry 98.1 of payload in datagrams of 1448 bytes, 1476 as packets.
pub(crate) fn the_highest_rate_is_found() {
    let (ended, report) = tested(
        "rate=100mbit,rtt=10ms",
        &[],
        &["--find-rate", "--loss-target", "0.1%", "--try-time", "0.5"],
    );
    assert_eq!(report["schema"], "longhaul.find-rate/1", "{report}");
    if ended.code == Some(3) {
        // The machine was too late for the path, and perhaps for the sender.
        return;
    }
    let rate = number(&report, "rate_bps");
    assert!((90e6..98.3e6).contains(&rate), "{report}");
    assert!(number(&report, "loss") <= 0.001, "{report}");
    assert_eq!(report["ending"], "found", "{report}");
}
