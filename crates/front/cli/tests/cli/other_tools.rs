//! `explain` of other tools' results: what is printed, as text and as JSON.

use crate::program::{printed, run};
use serde_json::Value;

fn kept(name: &str) -> String {
    format!("{}/../../explain/tool-results/tests/files/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_notes_name_what_is_missing_and_the_test_that_would_tell() {
    let text = printed(&["explain", &kept("iperf3-3.12-window.json"), "--color", "never"]);
    assert!(text.contains("Limit  receive-window, likely"), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("from iperf3 3.12, which does not report: the sender's timers"),
        "{text}"
    );
    assert!(text.contains("longhaul test server -w 64K --decide"), "{text}");
}

#[test]
fn json_has_the_source() {
    let text = printed(&["explain", &kept("flent-rate-stats.flent.gz"), "--json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["tool"]["tool"], "flent 2.3.0");
    assert_eq!(document["tool"]["next_test"], "longhaul test server --decide");
    let unavailable = document["tool"]["unavailable"].as_array().unwrap();
    assert!(unavailable.contains(&"sender-timers".into()), "{unavailable:?}");
    assert_eq!(document["latency"]["method"], "icmp");
}

#[test]
fn a_transfer_of_several_is_selected() {
    let file = kept("ndt7-client-rate.json");
    let both = printed(&["explain", &file, "--color", "never"]);
    assert!(both.contains("download\n") && both.contains("upload\n"), "{both}");
    let one = printed(&["explain", &file, "--connection", "2", "--json"]);
    let document: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(document["tool"]["transfer"], "upload");
    let output = run(&["explain", &file, "--connection", "3"]);
    assert_eq!(output.status.code(), Some(2));
}

/// A name that a file gives is no command.
#[test]
fn names_are_quoted_in_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.json");
    let file = std::fs::read_to_string(kept("iperf3-3.12-loss.json")).unwrap();
    let hostile = file.replace("\"server\"", "\"x;\\u001b[31m touch /tmp/x; $(id)'\"");
    assert_ne!(hostile, file);
    std::fs::write(&path, hostile).unwrap();
    let text = printed(&["explain", path.to_str().unwrap(), "--color", "never"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(r"longhaul test 'x;[31m touch /tmp/x; $(id)'\''' --decide"), "{text}");
}
