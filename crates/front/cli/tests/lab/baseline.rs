//! `longhaul baseline` over paths of which everything is known.

use crate::program::{LONGHAUL, end, lab_with, processes, signal, start, worked};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A baseline of 100 Mbit/s, kept from an earlier version.
const EARLIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/seeds/baseline/lab");

fn document(folder: &Path, name: &str) -> Value {
    let text = std::fs::read(folder.join(name).with_extension("json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn conditions(report: &Value) -> Vec<(String, &Value)> {
    let label = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap().to_owned();
        format!("{} {} {}", text("family"), text("direction"), one["streams"])
    };
    report["conditions"].as_array().unwrap().iter().map(|one| (label(one), one)).collect()
}

/// Three tests of each condition, in the order of the seed; the limit is the window that a
/// middlebox leaves, of which four streams have four; and so the path is slower than it was.
pub(crate) fn a_window_is_found_and_an_earlier_baseline_compared() {
    let folder = tempfile::tempdir().unwrap();
    let stem = folder.path().join("monday");
    let server = format!("{LONGHAUL} server");
    let command = [LONGHAUL, "baseline", "server", "--duration", "0.5", "--within", "1", "-4"];
    let options = ["--seed", "7", "--compare", EARLIER, "-o", stem.to_str().unwrap()];
    let link = "rate=100mbit,rtt=30ms,window-scale=strip";
    let ended = lab_with(link, &["--server", &server], &[&command[..], &options].concat());
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let report = document(folder.path(), "monday");
    assert_eq!(report["schema"], "longhaul.baseline/1");
    assert_eq!((&report["seed"], &report["rounds"]), (&7.into(), &3.into()), "{report}");
    assert_eq!(report["interrupted"], false);
    let all = conditions(&report);
    let labels: Vec<&str> = all.iter().map(|(label, _)| label.as_str()).collect();
    let expected = ["ipv4 forward 1", "ipv4 forward 4", "ipv4 reverse 1", "ipv4 reverse 4"];
    assert_eq!(labels, expected);
    for (label, one) in &all {
        assert_eq!(one["runs"].as_array().unwrap().len(), 3, "{label}");
        // 65 535 B over 30 ms are 17.5 Mbit/s a stream.
        let median = one["summary"]["median_bps"].as_f64().unwrap();
        let streams = one["streams"].as_f64().unwrap();
        assert!((10e6 * streams..18e6 * streams).contains(&median), "{label}: {median}");
        assert_eq!(one["limit"], "window-scaling", "{label}: {one}");
        assert_eq!(one["latency"].is_null(), streams < 2.0, "{label}");
    }
    let path = &report["paths"][0];
    let rtt = path["rtt_ms"].as_f64().unwrap();
    assert!((29.9..60.0).contains(&rtt), "{path}");
    let matters = report["differences"].as_array().unwrap().iter().filter(|d| d["matters"] == true);
    assert!(matters.clone().any(|one| one["factor"] == "streams"), "{report}");
    let step = report["steps"].to_string();
    assert!(step.contains("A single connection is limited by window-scaling"), "{step}");
    for part in ["Goodput", "window-scaling", "Next steps", "seed 7"] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let page = std::fs::read_to_string(folder.path().join("monday.html")).unwrap();
    assert!(page.contains("Baseline of server") && page.contains("window-scaling"));

    // Of the earlier one, four streams over IPv4 are in both.
    let compared = report["comparison"]["conditions"].as_array().unwrap();
    assert_eq!((compared.len(), &report["comparison"]["unmatched"]), (2, &4.into()));
    for one in compared {
        assert!(one["comparison"]["difference_bps"].as_f64() < Some(-20e6), "{one}");
        assert_eq!(one["significant"], true, "{one}");
    }
}

/// Of a list the server that answers is used, here a real iperf3; the dead one has its line.
/// Ctrl-C keeps and reports what was measured.
pub(crate) fn an_interrupted_baseline_keeps_its_tests() {
    let folder = tempfile::tempdir().unwrap();
    let (stem, list) = (folder.path().join("half"), folder.path().join("list"));
    // The block for documentation (RFC 5737), a server that is too slow, and the lab's.
    let servers = "192.0.2.9 5201 10gbit Nowhere\nserver 5202 1gbit Slow\n\
                   server 5201-5203 10gbit Lab\n";
    std::fs::write(&list, servers).unwrap();
    let link = ["lab", "run", "--link", "rate=50mbit,rtt=10ms", "--server", "iperf3 -s", "--"];
    let command = [LONGHAUL, "baseline", "--servers", list.to_str().unwrap(), "--rate", "2gbit"];
    let options = ["--duration", "0.2", "-4", "-o", stem.to_str().unwrap()];
    let mut lab = start(&[&link[..], &command, &options].concat());
    // The baseline is the only process with this option.
    let id = || {
        let of_folder = processes(stem.to_str().unwrap());
        of_folder.into_iter().find(|id| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).split('\0').nth(1) == Some("baseline")
        })
    };
    let mut lines = BufReader::new(lab.stderr.take().unwrap()).lines();
    let first = lines.find(|line| line.as_ref().unwrap().contains("load, "));
    assert!(first.is_some(), "no test ended");
    signal("INT", id().unwrap());
    // Nobody else reads what it still says.
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    let ended = end(lab);
    let valid = !said.iter().any(|line| line.contains("not valid"));
    assert_eq!(ended.code, Some(if valid { 1 } else { 3 }), "{said:?}");
    assert!(ended.stdout.contains("interrupted in round"), "{}{said:?}", ended.stdout);
    let report = document(folder.path(), "half");
    assert_eq!((&report["interrupted"], &report["peer"]), (&true.into(), &"iperf3".into()));
    let rejected: Vec<&str> = report["choice"]["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["rejected"].as_str().unwrap_or("chosen"))
        .collect();
    assert_eq!((rejected.len(), rejected[0]), (3, "chosen"), "{rejected:?}");
    assert!(rejected.iter().any(|why| why.starts_with("unreachable: ")), "{rejected:?}");
    assert!(rejected.contains(&"too slow: 1 Gbit/s, 2 Gbit/s needed"), "{rejected:?}");
    assert!(!report["conditions"].as_array().unwrap().is_empty(), "{report}");
    assert!(stem.with_extension("html").exists());
}
