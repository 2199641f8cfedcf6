//! `longhaul doctor`: this machine, hosts made of files, the loopback, and what
//! is wrong.

use crate::program::{Server, run};
use serde_json::Value;
use std::path::Path;

/// What it printed, whatever it found: 0 or 1.
fn told(arguments: &[&str]) -> (String, i32) {
    let output = run(&[&["doctor"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code().unwrap();
    assert!(code <= 1 && said.is_empty(), "{arguments:?}: {code} {said}");
    (String::from_utf8(output.stdout).unwrap(), code)
}

fn json(arguments: &[&str]) -> (Value, i32) {
    let (text, code) = told(&[arguments, &["--json"]].concat());
    (serde_json::from_str(&text).unwrap(), code)
}

fn check<'a>(report: &'a Value, id: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}: {report}"))
}

/// A host with 6 MiB of receive buffer behind 10 Gbit/s.
fn host(folder: &Path) -> &str {
    for (name, text) in [
        ("proc/sys/kernel/osrelease", "6.12.9-amd64"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456"),
        ("proc/sys/net/ipv4/tcp_wmem", "4096 16384 536870912"),
        ("proc/sys/net/ipv4/tcp_sack", "1"),
        ("proc/net/route", "x\neth0 00000000 01 0003 0 0 0 00000000\n"),
        ("sys/class/net/eth0/speed", "10000"),
        ("sys/class/net/eth0/operstate", "up"),
        ("sys/class/net/eth0/device/vendor", "0x8086"),
    ] {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    folder.to_str().unwrap()
}

#[test]
fn a_host_is_held_against_a_target() {
    let folder = tempfile::tempdir().unwrap();
    let root = host(folder.path());
    let (report, code) = json(&["--rtt", "100ms", "--root", root]);
    assert_eq!((&report["schema"], code), (&Value::from("longhaul.doctor/1"), 1));
    assert_eq!(report["target"]["rate_bps"], 10_000_000_000u64);
    assert_eq!(report["target"]["rate_from"], "the link's");
    let buffer = check(&report, "net.ipv4.tcp_rmem");
    assert_eq!(
        (&buffer["verdict"], &buffer["seen"]),
        (&"fail".into(), &"4096 131072 6291456".into())
    );
    let command = "sudo longhaul tune apply --rate 10gbit --rtt 100ms --yes";
    assert_eq!(buffer["command"], command);
    assert_eq!(check(&report, "net.ipv4.tcp_sack")["verdict"], "pass");
    assert_eq!(report["facts"]["settings"]["net.ipv4.tcp_sack"], "1");
    let count = |verdict: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().filter(|check| check["verdict"] == verdict).count()
    };
    assert_eq!((report["fail"].as_u64(), count("fail")), (Some(1), 1), "{report}");

    let (text, code) = told(&["--rtt", "100ms", "--root", root]);
    let verdict = text.lines().position(|line| line.starts_with("Fail")).unwrap();
    assert!(verdict < 8 && text.contains("fail    tcp_rmem"), "{text}");
    assert_eq!(text.matches(command).count(), 1, "{text}");
    assert_eq!(
        (code, text.lines().filter(|line| line.chars().count() > 80).count()),
        (1, 0),
        "{text}"
    );
    // What this host carries.
    let (report, code) = json(&["--rate", "100mbit", "--rtt", "100ms", "--root", root]);
    assert_eq!((&report["fail"], code), (&0.into(), 0), "{report}");
}

#[test]
fn this_machine_is_looked_at_without_privileges_or_changes() {
    let (text, _) = told(&["--rate", "1gbit", "--rtt", "50ms", "--color", "always"]);
    assert!(text.contains("Settings") && text.contains('\u{1b}'), "{text}");
    let (report, code) = json(&["--rate", "1mbit", "--rtt", "1ms", "--device", "lo"]);
    assert_eq!(code == 1, report["fail"] != 0, "{report}");
    assert_eq!(check(&report, "nic.device")["verdict"], "pass");
    assert!(report["facts"]["memory"]["total"].as_u64().unwrap() > 1 << 20);
}

#[test]
fn the_loopback_is_a_path() {
    let server = Server::start(&[]);
    let port = server.port.clone();
    let to = ["--to", "127.0.0.1", "--port", &port, "--rate", "1mbit"];
    let (report, _) = json(&to);
    assert_eq!(check(&report, "path.window-scale")["verdict"], "pass", "{report}");
    assert_eq!(check(&report, "path.sack")["verdict"], "pass", "{report}");
    // The loopback's MTU is one byte more than IP's largest packet.
    assert_ne!(check(&report, "path.mtu")["verdict"], "fail", "{report}");
    assert!(report["target"]["rtt_ms"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(report["target"]["rtt_from"], "measured");
    // Nobody listens there any more.
    drop(server);
    let (report, _) = json(&to);
    let scale = check(&report, "path.window-scale");
    assert_eq!(scale["verdict"], "unknown");
    assert!(scale["seen"].as_str().unwrap().contains("connection refused"), "{scale}");
}

#[test]
fn a_disk_is_written_and_nothing_stays() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().to_str().unwrap();
    let (report, _) = json(&["--rate", "1kbit", "--rtt", "1ms", "--disk", disk]);
    assert_eq!(report["facts"]["disk"]["folder"], disk);
    assert!(check(&report, "disk.write")["verdict"] != "fail", "{report}");
    assert_eq!(std::fs::read_dir(disk).unwrap().count(), 0);
}

#[test]
fn other_systems_are_told_in_commands() {
    for (system, command) in [
        ("macos", "sudo sysctl -w net.inet.tcp.autorcvbufmax="),
        ("windows", "netsh int tcp"),
        ("linux", "sudo sysctl -w net.ipv4.tcp_rmem="),
    ] {
        let goal = ["--for", system, "--rate", "1gbit", "--rtt", "100ms"];
        let (text, code) = told(&goal);
        assert!(text.contains(command) && code == 0, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let (document, _) = json(&goal);
        assert_eq!(document["schema"], "longhaul.doctor-commands/2");
        assert_eq!(document["target"]["bdp_bytes"], 12_500_000);
    }
}

#[test]
fn the_text_of_other_tools_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counters.txt");
    let text = "Tcp:\n    1000 segments sent out\n    5 segments retransmitted\nTcpExt:\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let (shown, code) = told(&["--read", file]);
    assert!(shown.contains("Tcp.RetransSegs: 5, 0.5 % of Tcp.OutSegs") && code == 0, "{shown}");
    let (document, _) = json(&["--read", file]);
    assert_eq!(document["schema"], "longhaul.pasted/1");
    assert_eq!(document["counters"][1]["share"], 0.005);
    // Standard input is empty here.
    for (given, says) in [("-", "the text is empty"), ("/no/such/file", "/no/such/file")] {
        let output = run(&["doctor", "--read", given]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.lines().count() == 1 && said.contains(says), "{said}");
    }
}

#[test]
fn wrong_usage_is_one_line() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    for (arguments, says) in [
        (&[][..], "--rtt"),
        (&["--rate", "1gbit"], "--rtt"),
        (&["--rtt", "0ms", "--rate", "1gbit"], "RTT of zero"),
        (&["--rtt", "1ms", "--rate", "0"], "rate of zero"),
        (&["--rtt", "1ms", "--root", empty], "give --rate"),
        (&["--rtt", "1ms", "--device", "no-such-device"], "no-such-device"),
        (&["--to", "no.such.host.invalid"], "cannot resolve"),
        (&["--to", "127.0.0.1", "-6"], "no IPv6 address"),
        (&["--rtt", "1ms", "--port", "7"], "--to"),
        (&["--rtt", "1ms", "-P", "0"], "65535"),
        (&["--for", "macos", "--rtt", "1ms"], "--rate"),
        (&["--read", "x", "--rate", "1gbit"], "--rate"),
        (&["--for", "beos", "--rate", "1gbit", "--rtt", "1ms"], "windows"),
        (&["--rate", "1gbit", "--rtt", "1ms", "--disk", "/no/such/folder"], "/no/such/folder"),
        (&["--rate", "1gbit", "--rtt", "1ms", "--disk", "/proc"], "/proc"),
    ] {
        let output = run(&[&["doctor"], arguments].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.lines().count() == 1 && said.contains(says), "{arguments:?}: {said}");
    }
}
