//! A test over the loopback, in every form it is given.

use crate::program::{Server, command, printed, run};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const KEYS: [&str; 4] = ["throughput_bps", "limit", "shares", "sentence"];

#[test]
fn rows_then_the_finding() {
    let server = Server::start(&[]);
    let text = printed(&["test", "127.0.0.1", "-p", &server.port, "-t", "2", "-P", "2"]);
    for part in ["Interval", "Bitrate", "Cwnd", "[SUM]", "sender", "receiver", "Limit  "] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// What precedes the finding: interval reports and totals.
fn tables(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with('[')).collect()
}

#[test]
fn eight_streams_are_a_sum_unless_each_is_asked_for() {
    let server = Server::start(&[]);
    let arguments = ["test", "127.0.0.1", "-p", &server.port, "-t", "1", "-P", "8"];
    let text = printed(&arguments);
    let brief = tables(&text);
    assert!(brief.iter().all(|row| row.starts_with("[SUM]") || row.starts_with("[ ID]")), "{text}");
    let text = printed(&[&arguments[..], &["--each"]].concat());
    let each = tables(&text);
    for number in 1..=8 {
        let id = format!("[{number:>3}]");
        assert!(each.iter().filter(|row| row.starts_with(&id)).count() >= 3, "{id}: {text}");
    }
    assert!(!text.contains("[  9]"), "{text}");
    let reports: Vec<&&str> = each.iter().filter(|row| row.ends_with(" ms")).collect();
    let rate_units = ["kbit/s", "Mbit/s", "Gbit/s"];
    let used = rate_units.iter().filter(|unit| reports.iter().any(|row| row.contains(*unit)));
    assert_eq!(used.count(), 1, "{text}");
}

#[test]
fn a_bare_bitrate_is_in_bits_per_second() {
    let server = Server::start(&[]);
    let result: Value = serde_json::from_str(&printed(&[
        "test",
        "127.0.0.1",
        "-p",
        &server.port,
        "-t",
        "1",
        "-b",
        "31885278",
        "--json",
    ]))
    .unwrap();
    assert_eq!(result["spec"]["rate_bps"], 31_885_278, "{result}");
}

#[test]
fn json_has_the_keys_and_only_json() {
    let server = Server::start(&[]);
    for extra in [&[][..], &["-R"], &["-P", "8"], &["-b", "50m"], &["-n", "3M"]] {
        let mut arguments = vec!["test", "127.0.0.1", "-p", &server.port, "--json"];
        if !extra.contains(&"-n") {
            arguments.extend(["-t", "1"]);
        }
        arguments.extend(extra);
        let result: Value = serde_json::from_str(&printed(&arguments)).unwrap();
        for key in KEYS {
            assert!(!result[key].is_null(), "{extra:?}: {key} in {result}");
        }
        let shares = result["shares"].as_object().unwrap();
        let sum: f64 = shares.values().map(|share| share.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{extra:?}: {result}");
        if extra.contains(&"-b") {
            assert_eq!(result["limit"], "application", "{extra:?}: {result}");
        }
    }
}

#[test]
fn what_is_saved_is_explained_alike() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (kept, page, second) = (path("m.json"), path("m.html"), path("n.html"));
    let first: Value = serde_json::from_str(&printed(&[
        "test",
        "127.0.0.1",
        "-p",
        &server.port,
        "-t",
        "1",
        "--json",
        "--save",
        &kept,
        "--html",
        &page,
    ]))
    .unwrap();
    let again: Value =
        serde_json::from_str(&printed(&["explain", &kept, "--json", "--html", &second])).unwrap();
    assert_eq!(first, again);
    assert!(printed(&["explain", &kept]).contains("Limit  "));
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(html, std::fs::read_to_string(&second).unwrap());
    assert!(html.contains("<svg") && html.trim_end().ends_with("</html>"), "{}", html.len());
    for fetched in ["src=", "href=", "http:", "https:"] {
        assert!(!html.contains(fetched), "{fetched}");
    }
    let mut parts = html.split("url(").skip(1);
    assert!(parts.all(|part| part.starts_with('#')), "only what the page itself holds");
}

#[test]
fn repeated_and_compared_tests_have_pages_and_a_brief_one_fits_a_screen() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (kept, repeats, compared) = (path("r.json"), path("r.html"), path("c.html"));
    let test = ["test", "127.0.0.1", "-p", &server.port, "-t", "1", "-b", "10m"];
    let with = |more: &[&str]| printed(&[&test[..], more].concat());
    let text = with(&["--repeat", "2", "--save", &kept, "--html", &repeats]);
    let limit = text.lines().find(|line| line.starts_with("  limit ")).unwrap();
    let page = std::fs::read_to_string(&repeats).unwrap();
    let limit = limit.trim_start_matches("  limit").trim();
    assert!(limit.ends_with(" of 2 runs"), "{text}");
    assert!(
        page.contains(&format!("Limit: {limit}")) && !page.contains("earlier result"),
        "{page}"
    );
    with(&["--compare", &kept, "--html", &compared]);
    let page = std::fs::read_to_string(&compared).unwrap();
    assert!(page.contains(">Compared with the earlier result<"), "{page}");
    let brief = with(&["--brief"]);
    assert!(brief.lines().count() <= 22 && brief.contains("\nGrade "), "{brief}");
    assert!(brief.lines().all(|line| line.chars().count() <= 80), "{brief}");
}

#[test]
fn one_off_serves_one_and_ends() {
    let mut server = Server::start(&["--one-off"]);
    printed(&["test", "127.0.0.1", "-p", &server.port, "-t", "0.3"]);
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_clamped_window_is_told_with_the_setting() {
    let server = Server::start(&[]);
    let output = run(&["test", "127.0.0.1", "-p", &server.port, "-t", "0.3", "-w", "900M"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("net.core.wmem_max"), "{text}");
}

#[test]
fn both_ip_versions() {
    let mut child = command(&["server", "-B", "::1", "-p", "0", "--one-off"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let port = line.split("]:").nth(1).unwrap().split(';').next().unwrap().to_owned();
    let result: Value = serde_json::from_str(&printed(&[
        "test", "::1", "-6", "-B", "::1", "-p", &port, "-t", "0.5", "--json",
    ]))
    .unwrap();
    assert!(result["received_bytes"].as_u64().unwrap() > 0);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_server_that_vanishes_is_reported_at_once() {
    let server = Server::start(&[]);
    let arguments = ["test", "127.0.0.1", "-p", &server.port, "-t", "600"];
    let mut child =
        command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The first interval report shows that the test runs.
    let mut rows = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(rows.any(|row| row.unwrap().contains("bit/s")), "it ended before its first interval");
    drop(server);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    // Before it there may be a note that the machine was busy.
    let complaints = text.lines().filter(|line| line.starts_with("longhaul: ")).count();
    assert_eq!((output.status.code(), complaints), (Some(1), 1), "{text}");
}

/// A requested rate that arrived leaves nothing to decide: no second test runs.
#[test]
fn a_sure_finding_needs_no_second_test() {
    let server = Server::start(&[]);
    let arguments = ["test", "127.0.0.1", "-p", &server.port, "-t", "2", "-b", "8m", "--decide"];
    let text = printed(&arguments);
    assert!(text.contains("No second test is needed: application is sure."), "{text}");
    let json = printed(&[&arguments[..], &["--json"]].concat());
    let result: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(result["decision"]["options"], Value::Null, "{result}");
    assert_eq!(result["decision"]["limit"], Value::Null, "{result}");
}
