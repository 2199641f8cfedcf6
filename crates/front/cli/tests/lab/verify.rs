//! `longhaul tune verify` on a lab's host: a step that helps is kept, and
//! whatever ends it otherwise leaves the host as it was.

use crate::program::{LONGHAUL, lab_with, worked};
use serde_json::Value;

const LINK: &str = "rate=20mbit,rtt=100ms";
const SMALL: &str = "net.ipv4.tcp_wmem=4096 16384 32768";

/// A script on the client of a lab whose send buffer is a tenth of what the path needs.
fn on_the_client(script: &str) -> crate::program::Ended {
    let folder = crate::private::directory();
    let server = format!("{LONGHAUL} server");
    // One step: there is nothing else to change.
    let others = "net.ipv4.tcp_mtu_probing=1";
    let ecn = "net.ipv4.tcp_ecn=1";
    let options = ["--sysctl", SMALL, "--sysctl", others, "--sysctl", ecn, "--server", &server];
    let script = format!(
        "export LONGHAUL_STATE_DIR={}; PATH=$(dirname {LONGHAUL}):$PATH; {script}",
        folder.path().display()
    );
    lab_with(LINK, &options, &["sh", "-c", &script])
}

pub(crate) fn what_helps_is_kept() {
    let ended = on_the_client(
        "longhaul tune verify --to server --rate 20mbit --yes --json -t 3 && \
         echo && cat /proc/sys/net/ipv4/tcp_wmem && longhaul tune rollback --yes >&2 && \
         cat /proc/sys/net/ipv4/tcp_wmem",
    );
    assert!(worked(&ended, 0), "{ended:?}");
    let (json, values) = ended.stdout.rsplit_once("}\n").unwrap();
    let report: Value = serde_json::from_str(&format!("{json}}}")).unwrap();
    assert_eq!(report["schema"], "longhaul.verify/2");
    let step = &report["steps"][0];
    assert_eq!((&step["name"], &step["verdict"]), (&"buffers".into(), &"kept".into()), "{report}");
    assert_eq!(report["steps"].as_array().unwrap().len(), 1, "{report}");
    let rtt = report["goal"]["rtt_ms"].as_f64().unwrap();
    assert!((99.9..300.0).contains(&rtt), "{report}");
    let way = &step["ways"][0];
    assert_eq!(way["comparison"]["real"], true, "{way}");
    // From about 5 Mbit/s to 19: a machine that stands still now and then
    // takes a part of both.
    assert!(way["comparison"]["difference_share"].as_f64().unwrap() > 0.5, "{way}");
    let values: Vec<&str> = values.lines().filter(|line| line.contains("16384")).collect();
    let most = |line: &str| line.split_whitespace().next_back().unwrap().to_owned();
    assert!(most(values[0]).parse::<u64>().unwrap() >= 1 << 20, "{values:?}");
    assert_eq!(most(values[1]), "32768", "{values:?}");
}

/// Ctrl-C puts the step under way back; after a kill its journal does.
pub(crate) fn what_is_broken_off_is_put_back() {
    let verify = "longhaul tune verify --to server --rate 20mbit --rtt 100ms --yes -t 2";
    let ended = on_the_client(&format!(
        "timeout -s INT 4 {verify} >&2; echo ended $?; cat /proc/sys/net/ipv4/tcp_wmem; \
         longhaul tune status --json | tr -d '\\n '; echo; \
         timeout -s KILL 4 {verify} >&2; longhaul tune rollback --all --yes >&2; \
         echo undone $?; cat /proc/sys/net/ipv4/tcp_wmem"
    ));
    assert!(worked(&ended, 0), "{ended:?}");
    // timeout(1) says 124 whatever the program said.
    for part in ["ended 124\n", "\"applied\":[]", "undone 0\n"] {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
    let wmem = |line: &&str| line.starts_with("4096\t");
    let values: Vec<&str> = ended.stdout.lines().filter(wmem).collect();
    assert_eq!(values, ["4096\t16384\t32768"; 2], "{}", ended.stderr);
    assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
}

/// The route of a lab's host names one; what is asked with `-C` counts more.
pub(crate) fn a_test_has_the_congestion_control_it_asked_for() {
    let server = format!("{LONGHAUL} server --one-off");
    let test = [LONGHAUL, "test", "server", "-C", "reno", "-t", "1", "--json"];
    let ended = lab_with(LINK, &["--server", &server], &test);
    assert!(worked(&ended, 0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["streams"][0]["congestion"], "reno", "{report}");
}
