//! The loop itself: seed 0's experiment and its figures.

use crate::program::{end, processes, run, signal, start, until, valid};
use serde_json::Value;

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

pub(crate) fn the_loop_closes() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("demo.html").to_str().unwrap().to_owned();
    let ended = valid(|| run(&["demo", "--json", "--html", &page]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();

    let path = &report["path"];
    assert_eq!((&path["rate_bps"], &path["rtt_ms"]), (&100_000_000.into(), &173.0.into()));
    assert_eq!(path["valid"], true, "{path}");
    let (before, after) = (&report["before"], &report["after"]);
    let [slow, fast] = [before, after].map(|run| number(run, "throughput_bps"));
    assert!((2.6e6..=3.1e6).contains(&slow), "{before}");
    assert!(fast >= 90e6, "{after}");
    for run in [before, after] {
        let error = number(run, "throughput_bps") / number(run, "predicted_bps") - 1.0;
        assert!(error.abs() <= 0.08, "off by {error}: {run}");
        let shares = &run["shares"];
        let keys = ["application", "receive_window", "send_buffer", "network"];
        let sum: f64 = keys.iter().map(|key| number(shares, key)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{shares}");
    }
    assert_eq!(
        (&before["limit"], &after["limit"]),
        (&"receive-window".into(), &"path-rate".into())
    );
    assert!(before["sentence"].as_str().unwrap().contains("window"), "{before}");
    assert!((number(&report, "gain") - fast / slow).abs() < 1e-3);

    let plan = report["plan"].as_array().unwrap();
    let keys: Vec<&str> = plan.iter().map(|item| item["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"net.ipv4.tcp_rmem"), "{keys:?}");
    for item in plan {
        assert_ne!(item["from"], item["to"], "{item}");
        assert!(item["why"].as_str().unwrap().contains("2.16 MB"), "{item}");
    }

    let html = std::fs::read_to_string(&page).unwrap();
    for part in ["<svg", "receive-window", "path-rate", "net.ipv4.tcp_rmem", "predicted"] {
        assert!(html.contains(part), "{part}");
    }
    for fetched in ["src=", "href=", "http:", "https:"] {
        assert!(!html.contains(fetched), "{fetched}");
    }
    let mut parts = html.split("url(").skip(1);
    assert!(parts.all(|part| part.starts_with('#')), "only what the page itself holds");
}

/// In the middle of the first transfer: it ends at once, in one line, and
/// leaves no process.
pub(crate) fn it_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    // Tells this demo from those of other tests.
    let page = folder.path().join("interrupted.html").to_str().unwrap().to_owned();
    let child = start(&["demo", "--html", &page]);
    let id = child.id();
    until("the demo has a process inside", || processes(&page).len() >= 2);
    std::thread::sleep(std::time::Duration::from_secs(6));
    signal("INT", id);
    let ended = end(child);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.lines().last().unwrap().contains("interrupted"), "{}", ended.stderr);
    until("nothing is left", || processes(&page).is_empty());
}
