//! `longhaul calc`: the figures that users brought, its form, and what it refuses.

use crate::program::{command, printed, run};
use serde_json::Value;

/// Every calculator with an everyday question.
const ALL: [&[&str]; 10] = [
    &["window", "--rate", "100mbit", "--rtt", "173ms"],
    &["scale", "--rate", "100mbit", "--rtt", "173ms"],
    &["mathis", "--rtt", "100ms", "--loss", "1%", "--rate", "10gbit"],
    &["pftk", "--rtt", "100ms", "--loss", "5%", "--window", "64KiB", "--rto", "1s"],
    &["cubic", "--rtt", "100ms", "--loss", "1%", "--rate", "10gbit"],
    &["bbr", "--rtt", "100ms", "--loss", "1%", "--rate", "10gbit"],
    &["wan", "--rate", "100mbit", "--rtt", "173ms", "--loss", "0.1%", "--ratio", "3:1"],
    &["overhead", "--rate", "2.5gbit"],
    &["transfer", "10GB", "--rate", "1gbit", "--rtt", "100ms", "--loss", "0.01%"],
    &["udt", "--rate", "1gbit", "--loss", "0.1%"],
];

fn calc<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    ["calc"].iter().chain(arguments).copied().collect()
}

fn result(arguments: &[&str]) -> Value {
    let mut all = calc(arguments);
    all.push("--json");
    serde_json::from_str(&printed(&all)).unwrap()
}

fn answer(result: &Value, key: &str) -> f64 {
    let answers = result["answers"].as_array().unwrap();
    let found = answers.iter().find(|answer| answer["key"] == key);
    found.and_then(|answer| answer["value"].as_f64()).unwrap_or_else(|| panic!("{key}: {result:#}"))
}

fn about(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 1e-3, "{value} is not {expected}");
}

#[test]
fn the_seeds_figures() {
    let path = result(&["window", "--rate", "100mbit", "--rtt", "173ms"]);
    about(answer(&path, "window_bytes"), 2_162_500.0);
    about(answer(&path, "window_binary_bytes"), 18_140_365.0 / 8.0);
    let unscaled = result(&["window", "--window", "64KiB", "--rtt", "173ms"]);
    about(answer(&unscaled, "rate_bps"), 3.0306e6);
    about(answer(&unscaled, "rate_binary_mbit_s"), 2.8902);
    let ten = result(&["window", "--window", "128KiB", "--rtt", "173ms", "-P", "10"]);
    about(answer(&ten, "rate_bps"), 60.611e6);
    let fibre = result(&["window", "--rate", "2.5gbit", "--rtt", "228.1ms", "-P", "4"]);
    about(answer(&fibre, "window_bytes"), 71_281_250.0);
    about(answer(&fibre, "window_per_stream_bytes"), 17_820_312.5);
    about(answer(&result(&["mathis", "--rtt", "100ms", "--loss", "1%"]), "rate_bps"), 1.4187e6);
    let ten_gigabit = result(&["cubic", "--rtt", "100ms", "--rate", "10gbit", "--mss", "1500"]);
    assert!(answer(&ten_gigabit, "loss_budget") < 3e-8);
    about(answer(&result(&["udt", "--rate", "1gbit"]), "recovery_s"), 7.5);
    let scale = result(&["scale", "--rate", "100mbit", "--rtt", "173ms"]);
    about(answer(&scale, "window_scale"), 6.0);
}

#[test]
fn payload_of_home_fibre_by_the_case_it_is_counted_in() {
    let result = result(&["overhead", "--rate", "2.5gbit"]);
    about(answer(&result, "payload_bps"), 2.3537e9);
    let rows = result["tables"][1]["rows"].as_array().unwrap();
    for (case, gbit) in [
        ("TCP/IPv4 options counted 12 + 24", 2.3147),
        ("TCP/IPv6 options counted 12 + 24", 2.2822),
        ("TCP/IPv4 timestamps, 3 SACK blocks", 2.3082),
        ("TCP/IPv4 one-way data, timestamps", 2.3537),
    ] {
        let row = rows.iter().find(|row| row["case"] == case && row["mtu_bytes"] == 1500).unwrap();
        about(row["payload_bps"].as_f64().unwrap(), gbit * 1e9);
    }
}

#[test]
fn each_has_equation_source_range_and_a_table() {
    for arguments in ALL {
        let result = result(arguments);
        assert_eq!(result["schema"], "longhaul.calc/1");
        assert_eq!(result["calculator"], arguments[0]);
        for answer in result["answers"].as_array().unwrap() {
            for part in ["equation", "source", "label"] {
                assert!(!answer[part].as_str().unwrap().is_empty(), "{answer:#}");
            }
        }
        assert!(!result["holds"].as_array().unwrap().is_empty());
        assert!(!result["tables"][0]["rows"].as_array().unwrap().is_empty());
        let text = printed(&calc(arguments));
        assert!(text.contains("valid for"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('\x1b'), "no colours into a pipe");
        let help = printed(&calc(&[arguments[0], "--help"]));
        assert!(help.contains("Examples:") && help.contains("longhaul calc"), "{help}");
    }
}

#[test]
fn ascii_where_the_locale_has_nothing_else() {
    for arguments in ALL {
        let output = command(&calc(arguments)).env("LC_ALL", "C").output().unwrap();
        assert!(output.status.success() && output.stdout.is_ascii(), "{arguments:?}");
    }
}

#[test]
fn optimisers_gain_what_they_mend() {
    let with = result(&["wan", "--rate", "100mbit", "--rtt", "173ms", "--ratio", "3"]);
    about(answer(&with, "without_bps"), 3.0306e6);
    about(answer(&with, "with_bps"), 300e6);
    about(answer(&with, "tuned_bps"), 100e6);
}

#[test]
fn transfers_of_each_sender_or_of_one() {
    let all = result(&["transfer", "1GB", "--rate", "100mbit", "--rtt", "173ms"]);
    about(answer(&all, "cubic_s"), 81.4346);
    about(answer(&all, "link_s"), 80.0);
    let one = result(&["transfer", "1GB", "--rate", "100mbit", "--rtt", "173ms", "-C", "bbr"]);
    assert_eq!(one["tables"][0]["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_wrong_is_one_line() {
    for (arguments, says) in [
        (&["window", "--rate", "100mbit"][..], "two of"),
        (&["window", "--rate", "1mbit", "--rtt", "1ms", "--window", "64KiB"], "two of"),
        (&["window", "--rate", "100", "--rtt", "1ms"], "give the unit"),
        (&["window", "--rtt", "1ms", "--window", "2GiB"], "RFC 7323"),
        (&["window", "--rate", "1mbit", "--rtt", "0ms"], "round trip"),
        (&["window", "--rate", "1mbit", "--rtt", "1ms", "-P", "0"], "streams"),
        (&["scale", "--rate", "1mbit"], "--rtt"),
        (&["mathis", "--rtt", "1ms"], "--loss"),
        (&["mathis", "--rtt", "1ms", "--loss", "0%"], "above zero"),
        (&["mathis", "--rtt", "1ms", "--loss", "100%"], "less than 100"),
        (&["cubic", "--rtt", "1ms", "--loss", "1%", "--mss", "0"], "--mss"),
        (&["cubic", "--rtt", "1ms", "--rate", "1mbit", "--target", "2mbit"], "exceeds the link"),
        (&["bbr", "--rtt", "1ms", "--loss", "1%"], "--rate"),
        (&["pftk", "--rtt", "1ms", "--loss", "1%", "--rto", "0s"], "--rto"),
        (&["wan", "--rate", "1mbit", "--rtt", "1ms", "--ratio", "1:3"], "3:1"),
        (&["wan", "--rate", "1mbit", "--rtt", "1ms", "--ratio", "nan"], "3:1"),
        (&["overhead", "--rate", "1gbit", "--mtu", "100"], "MTU"),
        (&["overhead", "--rate", "1gbit", "--sack", "4"], "--sack"),
        (&["overhead", "--rate", "1gbit", "--vlan", "3"], "--vlan"),
        (&["overhead", "--rate", "1gbit", "--udp", "--sack", "1"], "cannot be used with"),
        (&["transfer", "0", "--rate", "1gbit", "--rtt", "1ms"], "zero bytes"),
        (&["transfer", "1GB", "--rate", "1gbit", "--rtt", "1ms", "--iw", "0"], "--iw"),
        (
            &["transfer", "1GB", "--rate", "1gbit", "--rtt", "1ms", "-l", "30%", "-C", "bbr"],
            "no model is known",
        ),
        (&["udt", "--rate", "1gbit", "--packet", "10"], "--packet"),
        (&["udt", "--rate", "1gbit", "--sending", "2gbit"], "exceeds the link"),
        (&["nothing"], "nothing"),
    ] {
        let output = run(&calc(arguments));
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.starts_with("longhaul: ") && text.contains(says), "{arguments:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
