//! `longhaul tune`, as far as nothing is set: plans, their form, refusals.
//! What sets something is in `tests/lab`, in namespaces of its own.

use crate::private;
use crate::program::{command, printed, run};
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Output, Stdio};

const KINDS: [&str; 5] = [
    "workstation",
    "server",
    "data-transfer-node-10g",
    "data-transfer-node-40g",
    "data-transfer-node-100g",
];

/// With a folder of journals of its own, and no user's.
fn tune(state: &Path, arguments: &[&str]) -> Output {
    let child = command(&[&["tune"], arguments].concat())
        .env("LONGHAUL_STATE_DIR", state)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.unwrap().wait_with_output().unwrap()
}

#[test]
fn a_plan_is_a_diff_with_reasons_that_fits_80_columns() {
    for color in ["never", "always"] {
        for kind in KINDS {
            let text = printed(&["tune", "plan", "--profile", kind, "--color", color]);
            assert!(text.contains("Memory") && text.contains(kind), "{text}");
            assert_eq!(text.contains('\u{1b}'), color == "always", "{text}");
            if color == "never" {
                assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            }
        }
    }
    let text = printed(&["tune", "plan", "--rate", "100gbit", "--rtt", "100ms", "-P", "8"]);
    assert!(text.contains("100 Gbit/s x 100 ms = 1.25 GB in flight"), "{text}");
    assert!(text.contains("for each of 8 streams") && text.contains("Risk: "), "{text}");
}

#[test]
fn json_says_what_the_text_says() {
    let json = printed(&["tune", "plan", "--rate", "10gbit", "--rtt", "200ms", "--json"]);
    let plan: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(plan["schema"], "longhaul.tune-plan/1");
    for setting in plan["settings"].as_array().unwrap() {
        for field in ["key", "now", "planned", "why", "risk"] {
            assert!(!setting[field].as_str().unwrap().is_empty(), "{setting}");
        }
        assert_ne!(setting["now"], setting["planned"]);
    }
    assert!(plan["memory"]["per_connection_bytes"].as_u64().unwrap() > 1_000_000_000);
}

#[test]
fn nothing_applied_is_nothing_to_undo() {
    let state = private::directory();
    let status = tune(state.path(), &["status", "--json"]);
    let json: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(json["schema"], "longhaul.tune-status/1");
    assert_eq!(json["applied"].as_array().unwrap().len(), 0);
    // Where it looked, as sudo looks elsewhere.
    let said = String::from_utf8(status.stderr).unwrap();
    assert!(said.contains(state.path().to_str().unwrap()), "{said}");
    let undone = tune(state.path(), &["rollback", "--yes", "--json"]);
    assert_eq!(undone.status.code(), Some(0));
    let json: Value = serde_json::from_slice(&undone.stdout).unwrap();
    assert_eq!(json["schema"], "longhaul.tune-rollback/1");
}

#[test]
fn a_damaged_journal_is_refused() {
    let state = private::directory();
    let journals = state.path().join("tune");
    std::fs::DirBuilder::new().mode(0o700).create(&journals).unwrap();
    for text in
        ["", "{\"sum\":\"0\",", "{\"sum\":\"0011223344556677\",\"record\":{}}\n", "\u{fffd}\n"]
    {
        std::fs::write(journals.join("000001.journal"), text).unwrap();
        for verb in [&["status"][..], &["rollback", "--yes", "--force"]] {
            let output = tune(state.path(), verb);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{text:?}: {said}");
            assert!(said.lines().count() == 1 && said.contains("is damaged"), "{said}");
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_one_line() {
    let state = private::directory();
    // Port 1 (tcpmux) is nobody's any more.
    let words = ["verify", "--to", "127.0.0.1", "-p", "1", "--rate", "1gbit", "--yes"];
    let output = tune(state.path(), &words);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("127.0.0.1") && last.contains("settings were reverted"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn wrong_usage_is_one_line() {
    for (arguments, says) in [
        (&["tune", "plan"][..], "--rate"),
        (&["tune", "plan", "--rate", "1gbit"], "--rtt"),
        (&["tune", "plan", "--rate", "1gbit", "--rtt", "0ms"], "RTT of zero"),
        (&["tune", "plan", "--rate", "0", "--rtt", "1ms"], "rate of zero"),
        (&["tune", "plan", "--rate", "1gbit", "--rtt", "1ms", "-P", "0"], "65535"),
        (&["tune", "plan", "--rate", "100gbit", "--rtt", "200ms"], "at least 5 streams"),
        (&["tune", "plan", "--profile", "toaster"], "data-transfer-node-100g"),
        (&["tune", "plan", "--profile", "server", "--rate", "1gbit"], "cannot be used with"),
        (&["tune", "rollback", "--force"], "--yes"),
        (&["tune", "apply", "--profile", "server", "--persist", "--in-lab", "x"], "--persist"),
        (&["tune", "verify", "--rate", "1gbit"], "--to"),
        // The loopback has no speed.
        (&["tune", "verify", "--to", "127.0.0.1"], "give --rate"),
        (&["tune", "verify", "--to", "127.0.0.1", "--rate", "0"], "rate of zero"),
        (&["tune", "verify", "--to", "127.0.0.1", "--repeat", "1"], "2..=20"),
        (&["tune", "verify", "--to", "127.0.0.1", "-R", "--both"], "cannot be used with"),
        (&["tune", "status", "--in-lab", "no-such-lab:host"], "no"),
    ] {
        let output = run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.lines().count() == 1 && said.contains(says), "{arguments:?}: {said}");
    }
}
