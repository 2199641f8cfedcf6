//! `longhaul test --udt` where UDP is blocked or policed.

use crate::program::{LONGHAUL, lab_with, worked};
use serde_json::Value;

const BLOCKED: &str = "rate=50mbit,rtt=10ms,udp.blackhole=yes";

fn tested(options: &[&str]) -> crate::program::Ended {
    let test = [&[LONGHAUL, "test", "server", "--udt", "-t", "1", "--json"], options].concat();
    lab_with(BLOCKED, &["--server", &format!("{LONGHAUL} server")], &test)
}

pub(crate) fn blocked_udt_switches_to_tcp_unless_it_is_encrypted() {
    let ended = tested(&[]);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    assert!(ended.stderr.contains("switched from UDT to TCP"), "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["spec"]["protocol"], "tcp", "{document}");
    let notes = document["notes"].to_string();
    assert!(notes.contains("switched from UDT to TCP"), "{notes}");

    let ended = tested(&["--native"]);
    assert!(ended.code == Some(1), "{:?} {}", ended.code, ended.stderr);
    assert!(ended.stderr.contains("did not reply by UDP"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("switched"), "{}", ended.stderr);
}

const POLICED: &str = "rate=50mbit,rtt=10ms,udp.police=5mbit:32KiB";

/// The notes of a test of so many seconds, and the protocol that it ended with.
fn policed(link: &str, options: &[&str]) -> (String, Value) {
    let test = [&[LONGHAUL, "test", "server", "--udt", "-t", "5", "--json"], options].concat();
    let ended = lab_with(link, &["--server", &format!("{LONGHAUL} server")], &test);
    assert!(worked(&ended, 0) || ended.code == Some(3), "{}", ended.stderr);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    (document["notes"].to_string(), document["spec"]["protocol"].clone())
}

pub(crate) fn policed_udt_switches_to_tcp_where_that_carries_more() {
    let (notes, protocol) = policed(POLICED, &[]);
    assert!(notes.contains("switched from UDT to TCP"), "{notes}");
    assert_eq!(protocol, "tcp");

    let (notes, protocol) = policed(POLICED, &["--no-fallback"]);
    assert!(!notes.contains("UDT carried"), "{notes}");
    assert_eq!(protocol, "udt");

    // Random loss looks the same, and TCP carries less.
    let (notes, protocol) = policed("rate=50mbit,rtt=100ms,loss=2%,seed=1", &[]);
    assert!(notes.contains("continuing over UDT"), "{notes}");
    assert_eq!(protocol, "udt");
}
