//! `longhaul bdp` against the figures the users brought.

use crate::program::{printed, run};
use serde_json::Value;

fn result(arguments: &[&str]) -> Value {
    let mut all = vec!["bdp", "--json"];
    all.extend(arguments);
    serde_json::from_str(&printed(&all)).unwrap()
}

/// Within half a unit of the last digit given.
fn about(value: &Value, expected: f64, off: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() <= off, "{value} is not {expected}");
}

#[test]
fn the_seeds_figures() {
    // 100 Mbit/s x 173 ms: 2.16 MB; 64 KiB give 3.03 Mbit/s.
    let australia = result(&["100mbit", "173ms"]);
    assert_eq!(australia["bdp"]["bytes"], 2_162_500);
    about(&australia["unscaled"]["rate_bps"], 3.03e6, 5e3);
    // 10 Gbit/s x 100 ms: 125 MB.
    assert_eq!(result(&["10gbit", "100ms"])["bdp"]["bytes"], 125_000_000);
    // 1 Gbit/s x 200 ms: 25 MB.
    assert_eq!(result(&["1gbit", "200ms"])["bdp"]["bytes"], 25_000_000);
    // A full segment's payload over Ethernet at 1 Gbit/s: 941 Mbit/s.
    let payload = result(&["1gbit", "1ms"])["payload"].clone();
    let ethernet = payload.as_array().unwrap().iter().find(|p| p["wire_bytes"] == 1538).unwrap();
    about(&ethernet["rate_bps"], 941.5e6, 0.1e6);
}

#[test]
fn the_page_draws_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("window.html");
    let args = ["bdp", "100mbit", "346ms", "--html", page.to_str().unwrap()];
    // With and without a page, the same is printed.
    assert_eq!(printed(&args), printed(&args[..3]));
    let html = std::fs::read_to_string(&page).unwrap();
    for part in ["64 KiB in flight: the sender is idle 98 % of the time", "1.5153 Mbit/s", "<svg"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let missing = folder.path().join("none/window.html");
    let refused = run(&["bdp", "100mbit", "346ms", "--html", missing.to_str().unwrap()]);
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
}

#[test]
fn every_line_has_its_equation() {
    let text = printed(&["bdp", "100mbit", "173ms", "--window", "256K", "--streams", "4"]);
    for part in [
        "BDP = rate x RTT = 100 Mbit/s x 173 ms",
        "2.1625 MB",
        "/ 4",
        "64 KiB / 173 ms",
        "256 KiB",
        "1448 / 1500",
        "MSS",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\x1b'), "no colours into a pipe");
    let coloured = printed(&["bdp", "100mbit", "173ms", "--color", "always"]);
    assert!(coloured.contains('\x1b'));
}
