//! `longhaul test --udt` where UDP is blocked.

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
