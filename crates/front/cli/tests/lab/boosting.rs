//! A pair of boxes on a long path, for hosts that are as they were decades ago.

use crate::program::{LONGHAUL, run, worked};
use serde_json::Value;
use std::path::Path;

/// The boxes are on routers, so that the same application reaches the same server without them.
fn plan(folder: &Path) -> String {
    let test = |to: &str, file: &str| {
        let file = folder.join(file);
        format!("{LONGHAUL} test {to} -t 8 --omit 4 --json > {}", file.display())
    };
    let (direct, boosted) = (test("server", "direct"), test("near -p 5301", "boosted"));
    // Without window scaling a window is 64 KiB (RFC 9293 section 3.1).
    let text = format!(
        r#"
name = "boosting"
[host.app]
sysctl = {{ "net.ipv4.tcp_window_scaling" = 0 }}
[host.server]
sysctl = {{ "net.ipv4.tcp_window_scaling" = 0 }}
[router.near]
congestion = "bbr"
[router.far]
congestion = "bbr"
[[link]]
between = ["app", "near"]
path = "rate=1gbit,rtt=0.2ms"
[[link]]
name = "wan"
between = ["near", "far"]
path = "rate=100mbit,rtt=173ms"
[[link]]
between = ["far", "server"]
path = "rate=1gbit,rtt=0.2ms"
[[run]]
on = "server"
command = "{LONGHAUL} server"
background = true
[[run]]
on = "far"
command = "{LONGHAUL} boost far -l 0.0.0.0:7425 --insecure --allow server:5201"
background = true
[[run]]
on = "near"
command = "{LONGHAUL} boost near --far far --insecure -L 0.0.0.0:5301:server:5201"
background = true
[[run]]
on = "app"
command = "{direct} && {boosted}"
"#
    );
    let file = folder.join("plan.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Goodput at the receiver in bit/s.
fn goodput(file: &Path) -> f64 {
    let text = std::fs::read_to_string(file).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["received_bytes"].as_f64().unwrap() * 8.0 / document["seconds"].as_f64().unwrap()
}

/// 64 KiB over 173 ms is 3 Mbit/s.
pub(crate) fn a_small_window_fills_a_long_path() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(&["lab", "up", &plan(folder.path())]);
    assert!(worked(&ended, 0), "{ended:?}");
    let of = |name: &str| goodput(&folder.path().join(name));
    let (direct, boosted) = (of("direct"), of("boosted"));
    let said = format!("{:.2} and {:.1} Mbit/s", direct / 1e6, boosted / 1e6);
    eprintln!("direct and boosted: {said}");
    assert!(direct < 3.5e6, "the window is not 64 KiB: {said}");
    assert!(boosted >= 25.0 * direct, "{said}");
}

/// What `boost verify --json` prints after these arguments.
fn verified(arguments: &[&str]) -> Value {
    let ended = run(arguments);
    assert!(worked(&ended, 0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// A B B A of a test, with far in the same process and the command in a network of its own.
pub(crate) fn a_command_is_compared_with_itself_boosted() {
    let found = verified(&[
        "lab",
        "run",
        "--link",
        "rate=50mbit,rtt=10ms",
        "--server",
        &format!("{LONGHAUL} server"),
        "--",
        LONGHAUL,
        "boost",
        "verify",
        "--solo",
        "--repeat",
        "2",
        "-t",
        "1",
        "--json",
        "server",
    ]);
    assert_eq!(
        (&found["schema"], &found["measure"]),
        (&"longhaul.boost-verify/1".into(), &"goodput".into())
    );
    let runs = found["runs"].as_array().unwrap();
    let ways: Vec<_> = runs.iter().map(|run| run["way"].as_str().unwrap()).collect();
    assert_eq!(ways, ["direct", "boosted", "boosted", "direct"], "{found:#}");
    for run in runs {
        assert_eq!(run["failed"], Value::Null, "{found:#}");
        assert!(run["goodput_bps"].as_f64().unwrap() > 0.0 && run["cpu_s"].as_f64().unwrap() > 0.0);
        assert_eq!(run["setup_s"].is_number(), run["way"] == "boosted");
    }
    assert_eq!(found["gain"]["pairs"], 2, "{found:#}");
}

/// The boxes on hosts of a lab of their own, where a window of 64 KiB is the limit.
pub(crate) fn a_pair_is_verified_in_its_own_lab() {
    let found = verified(&[
        "boost",
        "verify",
        "--link",
        "rate=50mbit,rtt=100ms",
        "--sysctl",
        "net.ipv4.tcp_window_scaling=0",
        "--repeat",
        "1",
        "-t",
        "3",
        "--cubic-rounds",
        "0",
        "--json",
    ]);
    let failed = found["runs"].as_array().unwrap().iter().any(|run| !run["failed"].is_null());
    assert!(!failed && found["gain"]["ratio"].as_f64().unwrap() > 2.0, "{found:#}");
    assert_eq!(found["verdict"], "cannot-tell", "one pair has no interval");
    let has_price = |way: &str| found[way]["cpu_s_per_gb"].as_f64().is_some_and(|cpu| cpu > 0.0);
    assert!(has_price("direct") && has_price("boosted"), "{found:#}");
}
