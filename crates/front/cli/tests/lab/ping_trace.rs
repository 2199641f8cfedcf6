//! `ping` and `trace` over paths of which everything is known.

use crate::program::{Ended, LONGHAUL, end, lab, run, signal, start, until, worked};
use serde_json::Value;
use std::net::TcpListener;
use std::process::Command;

/// `longhaul ping server` over `link`, and its report.
fn pinged(link: &str, options: &[&str]) -> Value {
    let ended = lab(link, &[&[LONGHAUL, "ping", "server", "--json"], options].concat());
    assert!(worked(&ended, 0), "{link} {options:?}: {}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn number(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or_else(|| panic!("no {key}: {report}"))
}

/// A busy machine answers late, never early.
pub(crate) fn round_trips_are_as_asked() {
    let several = ["-c", "20", "-i", "0.05"];
    for options in [&[][..], &["-6"], &["--tcp=9"], &["-6", "--tcp=9"], &["-s", "1000"]] {
        let report = pinged("rate=100mbit,rtt=50ms", &[&several, options].concat());
        assert_eq!((number(&report, "received"), number(&report, "loss")), (20.0, 0.0), "{report}");
        let p50 = number(&report["round_trips"], "p50_ms");
        assert!((49.5..80.0).contains(&p50), "{options:?}: {report}");
        let (min, p99) =
            (number(&report["round_trips"], "min_ms"), number(&report["round_trips"], "p99_ms"));
        assert!(min <= p50 && p50 <= p99, "{report}");
        assert_eq!(report["probes"].as_array().unwrap().len(), 20, "{report}");
    }
}

pub(crate) fn pings_tell_loss_and_lateness() {
    let many = ["-c", "600", "-i", "2ms", "-W", "500ms"];
    let report = pinged("rate=100mbit,rtt=20ms,up.loss=20%", &many);
    // 4.5 standard deviations of a binomial share.
    let wide = 4.5 * (0.2f64 * 0.8 / 600.0).sqrt();
    assert!((number(&report, "loss") - 0.2).abs() < wide, "{report}");
    assert_eq!(number(&report, "received") + number(&report, "lost"), 600.0, "{report}");

    // Answers take three times as long as they may.
    let report = pinged("rate=100mbit,rtt=300ms", &["-c", "10", "-i", "100ms", "-W", "100ms"]);
    assert_eq!(number(&report, "received"), 0.0, "{report}");
    assert!(number(&report, "late") >= 1.0, "{report}");
    assert!(number(&report["round_trips"], "min_ms") >= 299.0, "{report}");

    let report = pinged("rate=100mbit,rtt=20ms,down.duplicate=50%", &["-c", "100", "-i", "5ms"]);
    let twice = number(&report, "duplicates");
    assert!((20.0..=80.0).contains(&twice), "{report}");
    assert_eq!(number(&report, "received"), 100.0, "{report}");
}

/// Runs a line on the client of a chain with three routers; `OUT` in it is a file.
fn chained(line: &str) -> (Ended, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (plan, out) = (file("plan.toml"), file("out"));
    let line = line.replace("longhaul", LONGHAUL).replace("OUT", &out);
    let text = format!(
        "[shape]\nkind = \"chain\"\nrouters = 3\npath = \"rate=100mbit,rtt=10ms\"\n\
         [[run]]\non = \"client\"\ncommand = \"{line}\"\n"
    );
    std::fs::write(&plan, text).unwrap();
    let ended = run(&["lab", "up", &plan]);
    (ended, std::fs::read_to_string(&out).unwrap_or_default())
}

/// Each router takes a hop off, and says so.
pub(crate) fn a_way_is_listed_in_order() {
    for (method, names) in
        [("--udp", true), ("--icmp", true), ("--tcp", true), ("-6", true), ("-6 --tcp -n", false)]
    {
        let line = format!("longhaul trace server -c 2 -i 0.3 --json {method} > OUT");
        let (ended, out) = chained(&line);
        assert!(worked(&ended, 0), "{method}: {}", ended.stderr);
        let report: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&report["reached"], number(&report, "rounds")), (&Value::Bool(true), 2.0));
        let hops = report["hops"].as_array().unwrap();
        let found: Vec<&str> = hops.iter().filter_map(|hop| hop["name"].as_str()).collect();
        let expected: &[&str] = if names { &["r1", "r2", "r3", "server"] } else { &[] };
        assert_eq!((found.as_slice(), hops.len()), (expected, 4), "{method}: {report}");
        for (n, hop) in (1..).zip(hops) {
            let best = number(hop, "best_ms");
            let rtt = 10.0 * f64::from(n);
            assert!((rtt - 0.5..rtt + 60.0).contains(&best), "{method}: {hop}");
            assert_eq!(number(hop, "loss"), 0.0, "{method}: {hop}");
        }
        assert_eq!(hops[3]["address"], report["address"], "{report}");
    }
}

pub(crate) fn what_does_not_arrive_says_why() {
    let (_, out) = chained("longhaul ping server --ttl 2 -c 2 -i 0.2 > OUT; echo code $? >> OUT");
    // A line for each, and one in the summary.
    assert_eq!(out.matches("time to live exceeded").count(), 3, "{out}");
    assert!(
        out.lines().any(|line| line.ends_with(": 2") && line.contains("exceeded from")),
        "{out}"
    );
    assert!(out.contains("100 % lost") && out.ends_with("code 1\n"), "{out}");
    let (_, out) = chained("longhaul trace server -m 2 -c 1 > OUT; echo code $? >> OUT");
    assert!(out.contains("r2 (") && !out.contains("r3 ("), "{out}");
    assert!(out.contains("no replies beyond hop 2") && out.ends_with("code 1\n"), "{out}");
    // No host of the lab has that address.
    let (_, out) = chained("longhaul ping 203.0.113.1 -c 1 > OUT; echo code $? >> OUT");
    assert!(out.contains("icmp_seq=1 network unreachable") && out.ends_with("code 1\n"), "{out}");
    let (_, out) = chained("longhaul trace 203.0.113.1 -c 1 > OUT; echo code $? >> OUT");
    assert!(out.contains("hop 1 reports: network unreachable"), "{out}");
    // A network without a way out says so at once.
    let ended = lab(
        "rate=100mbit,rtt=1ms",
        &["sh", "-c", &format!("ip route flush table all; {LONGHAUL} ping 203.0.113.1")],
    );
    assert!(
        ended.code == Some(1) && ended.stderr.contains("cannot send to 203.0.113.1"),
        "{ended:?}"
    );
}

/// A first Ctrl-C gives the figures of what was heard until then.
pub(crate) fn pings_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // A shell's background ignores Ctrl-C; SIGTERM means the same.
    let line = format!(
        "{LONGHAUL} ping server -c 0 -i 20ms > {0} & \
         until grep -q icmp_seq=5 {0}; do sleep 0.05; done; kill -TERM $!; wait $!",
        out.display()
    );
    let ended = lab("rate=100mbit,rtt=10ms", &["sh", "-c", &line]);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("percentiles p50") && text.contains(" 0 % lost"), "{text}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--tcp={}", listener.local_addr().unwrap().port());
    let child = start(&["ping", "127.0.0.1", &port, "-c", "0", "-i", "10ms", "--json"]);
    listener.set_nonblocking(true).unwrap();
    // The first replies were counted when the tenth probe comes.
    for _ in 0..10 {
        until("a probe comes", || listener.accept().is_ok());
    }
    signal("INT", child.id());
    let ended = end(child);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, number(&report, "lost")), (Some(0), 0.0), "{report}");
}

/// Runs a shell line as `nobody` in a network of its own, where only the
/// loopback is and no group may send echoes.
fn as_nobody(line: &str) -> Ended {
    let script = format!(
        "set -e; mount -t tmpfs tmpfs /mnt; cp {LONGHAUL} /mnt/longhaul; ip link set lo up; \
         exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '{line}'"
    );
    let output =
        Command::new("unshare").args(["--mount", "--net", "sh", "-c", &script]).output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn no_privilege_is_needed() {
    let ended = as_nobody("/mnt/longhaul ping 127.0.0.1 -c 2 -i 0.1");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("TCP connections") && ended.stdout.contains("(refused)"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("cap_net_raw") && ended.stderr.contains("run as root"),
        "{ended:?}"
    );
    for method in ["--udp", "--tcp"] {
        let ended = as_nobody(&format!("/mnt/longhaul trace 127.0.0.1 -n -c 1 {method}"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("  1  127.0.0.1"), "{ended:?}");
    }
    let ended = as_nobody("/mnt/longhaul trace 127.0.0.1 --icmp");
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{ended:?}");
    assert!(ended.stderr.contains("setcap cap_net_raw+ep"), "{ended:?}");
}
