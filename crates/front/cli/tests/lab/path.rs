//! What the path does to what runs over it.

use crate::program::{
    LONGHAUL, end, lab, lab_with, processes, reported, signal, start, until, valid, worked,
};
use serde_json::Value;
use std::time::Duration;

pub(crate) fn the_command_has_the_terminal() {
    let ended = lab("rate=1gbit,rtt=1ms", &["sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(ended.stdout, "out\n");
    let (own, said): (Vec<_>, Vec<_>) = ended.stderr.lines().partition(|l| !l.starts_with("lab: "));
    assert_eq!(own, ["err"]);
    assert!(said[0].contains("1 Gbit/s") && said[0].contains("1 ms"), "{said:?}");
    let ended = lab("rate=1gbit,rtt=1ms", &["getent", "hosts", "server"]);
    assert!(ended.stdout.contains("server"), "{}", ended.stdout);
}

/// A wide bound here; `make bench` holds 0.3 ms.
pub(crate) fn the_idle_round_trip_is_as_asked() {
    for rtt in [1.0, 20.0, 173.0] {
        let link = format!("rate=100mbit,rtt={rtt}ms");
        let (_, report) = reported(&link, &[], &["true"]);
        let idle = report["achieved"]["idle_rtt_ms"].as_f64().unwrap();
        assert!((idle - rtt).abs() < 2.0, "{rtt}: {report}");
    }
}

/// An emulator that is held while packets arrive, but none is due, delivers them in time.
pub(crate) fn packets_that_are_read_late_are_not_late() {
    const HELD: Duration = Duration::from_millis(150);
    const MARK: &str = "6c6f6e67";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json").to_str().unwrap().to_owned();
    // The first packet is due 600 ms after it was sent.
    let lab = ["lab", "run", "--link", "rate=100mbit,rtt=1200ms", "--report", &file, "--"];
    let pings = ["ping", "-q", "-i", "0.01", "-c", "30", "-p", MARK, "server"];
    let longest_delay = || {
        let started = start(&[&lab[..], &pings].concat());
        // The program starts once the idle RTT is known.
        until("ping", || processes(MARK).len() == 3);
        // Process 1 of the sandbox.
        let emulator = processes(MARK).into_iter().find(|id| parent(*id) == Some(started.id()));
        let emulator = emulator.unwrap();
        signal("STOP", emulator);
        std::thread::sleep(HELD);
        signal("CONT", emulator);
        let ended = end(started);
        assert!(worked(&ended, 0), "{}", ended.stderr);
        let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        Duration::from_micros(report["achieved"]["lateness_us"]["max"].as_u64().unwrap())
    };
    // Another program may hold it as well.
    let delays: Vec<_> =
        (0..3).map(|_| longest_delay()).take_while(|late| *late > HELD / 3).collect();
    assert!(delays.len() < 3, "held for {HELD:?}, packets were {delays:?} late");
}

/// The process that started another.
fn parent(id: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

pub(crate) fn hosts_are_set_as_asked() {
    let read = "sysctl -n net.ipv4.tcp_sack net.ipv4.tcp_rmem net.ipv4.tcp_wmem; \
                ip route get 10.0.0.2 | grep -o 'congctl [a-z]*'";
    let options = ["--sysctl", "net.ipv4.tcp_sack=0", "--tuned", "--cc", "reno"];
    let ended = lab_with("rate=1gbit,rtt=100ms", &options, &["sh", "-c", read]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(worked(&ended, 0) && lines.len() == 4, "{ended:?}");
    assert_eq!((lines[0], lines[3]), ("0", "congctl reno"));
    for buffers in &lines[1..3] {
        let most: u64 = buffers.split_whitespace().last().unwrap().parse().unwrap();
        assert!(most >= 4 * 12_500_000, "{buffers}");
    }
    // Also where the server sends, and BBR is the default of this host.
    let server = format!("{LONGHAUL} server");
    let options = ["--cc", "reno", "--server", &server];
    let test = [LONGHAUL, "test", "server", "-R", "-t", "1", "--json"];
    let ended = lab_with("rate=100mbit,rtt=1ms", &options, &test);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["streams"][0]["congestion"].as_str(), Some("reno"), "{ended:?}");
    let ended = lab_with("rate=1gbit,rtt=1ms", &["--cc", "warp"], &["true"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("warp"), "{ended:?}");
    let options = ["--sysctl", "net.ipv4.no_such_thing=1"];
    let ended = lab_with("rate=1gbit,rtt=1ms", &options, &["true"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no_such_thing"), "{ended:?}");
}

/// The emulator is held still for longer than any path may be late, in the
/// middle of pings: the run says so, whatever the pings think of it.
pub(crate) fn what_was_not_carried() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("pings");
    // Tells this lab from those of other tests.
    let link = "rate=1gbit,rtt=1ms,seed=61371";
    let line = format!("exec ping -i 0.0137 server > {}", out.display());
    let child = start(&["lab", "run", "--link", link, "--", "sh", "-c", &line]);
    let replies = || std::fs::read_to_string(&out).unwrap_or_default().matches("icmp_seq=").count();
    until("pings are answered", || replies() > 10);
    let inside = processes(link).into_iter().find(|id| *id != child.id()).unwrap();
    signal("STOP", inside);
    // At least so long is the emulator held; a stall only makes it longer.
    std::thread::sleep(Duration::from_millis(300));
    let before = replies();
    signal("CONT", inside);
    until("pings are answered again", || replies() > before + 10);
    let pings = processes("ping\0-i\x000.0137\0server");
    pings.into_iter().for_each(|id| signal("INT", id));
    let ended = end(child);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let said = ended.stderr.lines().last().unwrap();
    assert!(said.contains("not valid") && said.contains("late"), "{said}");
}

/// Our own client and server, as programs of a lab.
pub(crate) fn a_transfer_is_explained() {
    let server = format!("{LONGHAUL} server --one-off");
    let client = [LONGHAUL, "test", "server", "-t", "6", "--json"];
    // A window of 64 KiB x 2 at most: the receiver is what holds it.
    let capped = ["--server", &server, "--sysctl", "net.ipv4.tcp_rmem=4096 65536 65536"];
    let ended = valid(|| lab_with("rate=100mbit,rtt=60ms", &capped, &client));
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["limit"], "receive-window", "{result}");
    let small = ["--server", &server, "--sysctl", "net.ipv4.tcp_wmem=4096 65536 65536"];
    let ended = valid(|| lab_with("rate=100mbit,rtt=60ms", &small, &client));
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["limit"], "send-buffer", "{result}");
    let lossy = ["--server", &server, "--tuned"];
    let ended = valid(|| lab_with("rate=100mbit,rtt=60ms,loss=1%", &lossy, &client));
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["limit"], "loss", "{result}");
}

/// Off by 1 % at most, as the certificate asks; `make bench` holds 0.5 %.
pub(crate) fn the_rate_is_as_asked() {
    for rate in ["100mbit", "1gbit"] {
        let link = format!("rate={rate},rtt=10ms");
        let options = ["--tuned", "--server", "iperf3 -s -1"];
        let (_, report) = reported(&link, &options, &["iperf3", "-c", "server", "-t", "4"]);
        let [asked, did] =
            [&report["rate_bps"], &report["achieved"]["rate_bps"]].map(|v| v.as_f64().unwrap());
        assert!((did / asked - 1.0).abs() < 0.01, "{report}");
    }
}

/// A million datagrams: the losses lie within the 99 % interval of the binomial
/// distribution. The seed makes them the same in every run, but for the few
/// packets of iperf3's control connection.
pub(crate) fn loss_is_binomial() {
    let options = ["--server", "iperf3 -s -1"];
    // 125 000 a second: what one core carries singly, twice over.
    let blast = ["iperf3", "-u", "-b", "100M", "-l", "100", "-k", "1000000", "-c", "server"];
    let (_, report) = reported("rate=1gbit,rtt=1ms,loss=1%,queue=1MiB,seed=1", &options, &blast);
    let achieved = &report["achieved"];
    let lost = achieved["lost"].as_f64().unwrap();
    let all = lost + achieved["packets"].as_f64().unwrap();
    assert!(all >= 1e6, "{report}");
    let (mean, deviation) = (all * 0.01, (all * 0.01 * 0.99).sqrt());
    assert!((lost - mean).abs() <= 2.576 * deviation, "{lost} of {all}: {report}");
}
