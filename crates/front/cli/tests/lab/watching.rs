//! `longhaul watch` beside a transfer: what it sees is what the path does.

use crate::program::{LONGHAUL, end, lab_with, run, start, until, worked};
use serde_json::Value;

/// A program of the lab's: a transfer in the background of `watch`, which begins
/// before it and outlasts it.
fn script(watch: &str) -> String {
    format!(
        "{LONGHAUL} test server -t 120 --json >/dev/null & flow=$!; sleep 2; \
         {LONGHAUL} watch {watch}; kill -TERM $flow; wait"
    )
}

/// A window of some 60 kB over 100 ms carries 5 of 100 Mbit/s.
pub(crate) fn a_small_window_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("window.rec");
    let file = file.to_str().unwrap();
    let server = format!("{LONGHAUL} server");
    let link = "rate=100mbit,rtt=100ms";
    let watch = script(&format!("--json --busy --record {file} -c 5 -i 1s"));
    let small = ["--server", &server, "--sysctl", "net.ipv4.tcp_rmem=4096 65536 65536"];
    let ended = lab_with(link, &small, &["sh", "-c", &watch]);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let last: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    let first = &last["connections"][0];
    assert_eq!(first["limit"], "receive-window", "{first}");
    assert!(first["why"].as_str().unwrap().contains("rwnd-limited"), "{first}");
    assert!(first["shares"]["receive_window"].as_f64().unwrap() > 0.5, "{first}");
    assert_eq!(first["program"], "longhaul", "{first}");
    assert!((99.0..200.0).contains(&first["min_rtt_ms"].as_f64().unwrap()), "{first}");
    let sends = first["sends_bps"].as_f64().unwrap();
    assert!((1e6..20e6).contains(&sends), "{first}");

    let explained = run(&["explain", file, "--json"]);
    let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
    let all = explained["connections"].as_array().unwrap();
    let most = all.iter().max_by_key(|one| one["bytes"].as_u64()).unwrap();
    assert_eq!(most["limit"], "receive-window", "{most}");
    assert_eq!(most["remote"], first["remote"]);
    let one = run(&["explain", file, "--connection", first["id"].as_str().unwrap()]);
    assert!(one.stdout.contains("receive window"), "{}{}", one.stdout, one.stderr);
}

/// From outside, in a host of a lab that runs.
pub(crate) fn a_labs_host_is_watched() {
    let lab = format!("watching-{}", std::process::id());
    let up = start(&[
        "lab",
        "run",
        "--name",
        &lab,
        "--link",
        "rate=100mbit,rtt=20ms",
        "--server",
        &format!("{LONGHAUL} server"),
        "--",
        LONGHAUL,
        "test",
        "server",
        "-t",
        "20",
    ]);
    let place = format!("{lab}:client");
    let watch = ["watch", "--json", "--once", "--busy", "--in-lab", &place];
    let mut seen = Value::Null;
    until("a busy connection", || {
        let looked = run(&watch);
        if looked.code == Some(0) {
            seen = serde_json::from_str(looked.stdout.trim()).unwrap();
        }
        seen["busy"].as_u64() > Some(0)
    });
    crate::program::signal("INT", up.id());
    end(up);
    let first = &seen["connections"][0];
    assert!(first["sends_bps"].as_f64().unwrap() > 1e6, "{first}");
    let wrong = run(&["watch", "--once", "--in-lab", &place]);
    assert_eq!((wrong.code, wrong.stderr.lines().count()), (Some(2), 1), "{}", wrong.stderr);
}
