//! Labs whose packets the kernel holds (NFQUEUE).

use crate::program::{
    LONGHAUL, carried, end, lab_with, processes, reported, run, signal, start, until, worked,
};
use serde_json::Value;
use std::os::fd::AsFd;

/// Whether such a lab can be made here.
pub(crate) fn is_possible() -> bool {
    worked(&lab_with("rate=1gbit,rtt=1ms", &["--driver", "nfqueue"], &["true"]), 0)
}

fn driver(report: &Value) -> (&str, &str) {
    let text = |key: &str| report["asked"][key].as_str().unwrap();
    (text("driver"), text("driver_reason"))
}

/// The hop limit is the sender's, the delay is that of the path.
pub(crate) fn held_packets_arrive_as_sent() {
    let pings = ["ping", "-q", "-c", "20", "-i", "0.01", "-t", "7", "server"];
    let once = ["sh", "-c", "ping -c 1 -t 1 server && ping -6 -c 1 -t 1 server"];
    let (_, report) = reported("rate=1gbit,rtt=20ms", &[], &pings);
    let idle = report["achieved"]["idle_rtt_ms"].as_f64().unwrap();
    assert!((idle - 20.0).abs() < 2.0, "{report}");
    assert_eq!(driver(&report).0, "nfqueue");
    let (ended, _) = carried("rate=10gbit,rtt=1ms", &["--driver", "nfqueue"], &once);
    assert_eq!(ended.stdout.matches("1 received").count(), 2, "{}", ended.stdout);
}

/// A counter of /proc/net/snmp: a line of names, and one of values.
fn counter(text: &str, protocol: &str, name: &str) -> u64 {
    let is_of_it = |line: &&str| line.split(' ').any(|word| word == protocol);
    let mut lines = text.lines().filter(is_of_it);
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').rev().position(|word| word == name).unwrap();
    values.split(' ').rev().nth(at).unwrap().parse().unwrap()
}

/// A burst that overflows the queue: the receiver counts as many losses as the model, packet by
/// packet, whatever trains they came in.
pub(crate) fn trains_are_dropped_packet_by_packet() {
    let client = format!("{LONGHAUL} iperf3 -c server -u -b 2G -l 1400 -t 1 -J");
    let server = format!("{LONGHAUL} iperf3 -s -1; grep -h ^Udp: /proc/net/snmp >&2");
    let options = ["--driver", "nfqueue", "--server", &server];
    let link = "rate=1gbit,rtt=20ms,queue=300p";
    let (ended, path) = carried(link, &options, &["sh", "-c", &client]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let lost = report.pointer("/end/sum/lost_packets").and_then(Value::as_u64).unwrap();
    let drops = &path["achieved"]["drops"];
    // Beyond the path, the receiver's buffer may have been full.
    let late = counter(&ended.stderr, "Udp:", "RcvbufErrors");
    assert!(lost > 1000, "{report}");
    // A receiver detects a loss by a later sequence number, so it cannot detect one at the end.
    let unseen = drops["queue"].as_u64().unwrap().checked_sub(lost - late);
    assert!(unseen.is_some_and(|unseen| unseen < 100), "{lost}, {late} late, {path}");
    assert_eq!(drops["unasked"], 0);
}

/// Trains of which all packets together are shorter than the MTU are counted packet by packet, too.
pub(crate) fn short_packets_are_counted() {
    // Bursts are sent as trains of eight.
    let client = format!("{LONGHAUL} iperf3 -c server -u -b 100M/8 -l 160 -t 1 -J");
    let server = format!("{LONGHAUL} iperf3 -s -1");
    let options = ["--driver", "nfqueue", "--server", &server];
    let (ended, path) = carried("rate=1gbit,rtt=1ms", &options, &["sh", "-c", &client]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let sent = report.pointer("/end/sum/packets").and_then(Value::as_u64).unwrap();
    let counted = path["achieved"]["packets"].as_u64().unwrap();
    assert!(sent > 1000 && (sent..sent + sent / 4 + 100).contains(&counted), "{sent} {path}");
}

/// What TCP retransmits is what the queue dropped, and no checksum is wrong.
pub(crate) fn what_is_left_of_a_train_is_whole() {
    let client = format!("{LONGHAUL} test server -t 1 -J; grep -h ^Tcp: /proc/net/snmp");
    let server = format!("{LONGHAUL} server --one-off; grep -h ^Tcp: /proc/net/snmp >&2");
    let options = ["--driver", "nfqueue", "--tuned", "--server", &server];
    let link = "rate=2gbit,rtt=10ms,queue=0.3bdp";
    let (ended, path) = carried(link, &options, &["sh", "-c", &client]);
    let queue = path["achieved"]["drops"]["queue"].as_u64().unwrap();
    assert!(queue > 100 && path["achieved"]["drops"]["unasked"] == 0, "{path}");
    assert_eq!(counter(&ended.stdout, "Tcp:", "InCsumErrors"), 0);
    let retransmitted = counter(&ended.stdout, "Tcp:", "RetransSegs");
    // Drops at the end may not be retransmitted before the test ends, and some retransmissions
    // are spurious.
    let slack = queue / 10 + 100;
    assert!(retransmitted.abs_diff(queue) <= slack, "{retransmitted} {queue}");
}

pub(crate) fn the_driver_is_chosen() {
    let cases: [(&str, &[&str], &str); 3] = [
        ("rate=1gbit,rtt=1ms,loss=1%", &[], "loss acts on single packets"),
        ("rate=100mbit,rtt=1ms", &[], "packets are spaced one by one"),
        ("rate=1gbit,rtt=1ms", &["--driver", "tun"], "as requested"),
    ];
    for (link, options, reason) in cases {
        let (_, report) = carried(link, options, &["true"]);
        assert_eq!(driver(&report).0, "tun", "{link}");
        assert!(driver(&report).1.contains(reason), "{link}: {report}");
    }
    let refused = lab_with("rate=1gbit,rtt=1ms,loss=1%", &["--driver", "nfqueue"], &["true"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("loss") && refused.stderr.contains("--driver tun"));
    let name = "held-7fd2";
    let options = ["--link", "rate=2gbit,rtt=1ms", "--driver", "nfqueue", "--name", name];
    let lab = start(&[&["lab", "run"][..], &options, &["--", "sleep", "60"]].concat());
    until("the lab", || run(&["lab", "list"]).stdout.contains(name));
    let set = |settings: &str| run(&["lab", "set", "--lab", name, settings]);
    let refused = set("loss=1%");
    assert!(refused.code == Some(2) && refused.stderr.contains("--driver tun"), "{refused:?}");
    assert_eq!(set("rate=3gbit,rtt=4ms").code, Some(0));
    let refused = set("rate=1gbit");
    assert!(refused.code == Some(2) && refused.stderr.contains("gso_max_size"), "{refused:?}");
    // Nothing is left of a lab that is killed.
    signal("KILL", lab.id());
    end(lab);
    until("its end", || processes(name).is_empty());
    let unknown = run(&["lab", "check", "--link", "geo", "--driver", "warp"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("nfqueue"), "{unknown:?}");
}

/// Two labs at once, each with packets of its own.
pub(crate) fn two_labs_hold_packets_at_once() {
    let run = |megabytes: u64| {
        let client = format!("{LONGHAUL} iperf3 -c server -n {megabytes}M");
        let server = format!("{LONGHAUL} iperf3 -s -1");
        let options = ["--driver", "nfqueue", "--server", &server];
        let command = ["sh", "-c", &client];
        let (_, path) = carried("rate=1gbit,rtt=4ms", &options, &command);
        assert_eq!(path["achieved"]["drops"]["unasked"], 0, "{path}");
        let carried = path["achieved"]["bytes"].as_u64().unwrap();
        let sent = megabytes << 20;
        assert!((sent..sent + sent / 4).contains(&carried), "{megabytes} MiB: {carried}");
    };
    std::thread::scope(|scope| {
        let labs = [60, 90].map(|megabytes| scope.spawn(move || run(megabytes)));
        for lab in labs {
            lab.join().unwrap();
        }
    });
}

/// The packets, or trains, that the kernel holds for a lab.
fn held(lab: u32) -> u64 {
    let files = std::fs::read_dir(format!("/proc/{lab}/fd")).into_iter().flatten().flatten();
    let counts = files.filter_map(|file| {
        let target = std::fs::read_link(file.path()).ok()?;
        let namespace = target.to_str()?.starts_with("net:[");
        let namespace = namespace.then(|| std::fs::File::open(file.path()).ok())??;
        let queues = std::thread::spawn(move || {
            host::netns::enter(namespace.as_fd()).ok()?;
            std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue").ok()
        });
        let queues = queues.join().unwrap()?;
        let waiting = queues.lines().filter_map(|queue| queue.split_whitespace().nth(2));
        Some(waiting.filter_map(|count| count.parse::<u64>().ok()).sum())
    });
    counts.max().unwrap_or_default()
}

/// What the link dropped does not wait in the kernel until what was before it has left.
pub(crate) fn dropped_packets_take_bounded_memory() {
    let name = "bounded-5c1e";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json").to_str().unwrap().to_owned();
    let client = format!("{LONGHAUL} iperf3 -c server -u -b 8G -l 8900 -t 2");
    let server = format!("{LONGHAUL} iperf3 -s -1");
    let link = ["lab", "run", "--link", "rate=1gbit,rtt=400ms,mtu=9000", "--driver", "nfqueue"];
    let options = ["--name", name, "--report", &file, "--server", &server, "--", "sh", "-c"];
    let mut lab = start(&[&link[..], &options, &[&client]].concat());
    let mut most = 0;
    until("the end of the lab", || {
        most = most.max(processes(name).into_iter().map(held).max().unwrap_or_default());
        lab.try_wait().unwrap().is_some()
    });
    let ended = end(lab);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let dropped = report["achieved"]["drops"]["queue"].as_u64().unwrap();
    // 300 MB of them, most of which would wait for 0.6 s behind 75 MB.
    if dropped <= 34_000 {
        stall_retry::undecided(format!(
            "the sender was too slow: only {dropped} packets were dropped"
        ));
    }
    // These 75 MB, and 64 MiB of dropped packets, in packets of 8928 bytes.
    assert!((4_000..18_000).contains(&most), "{most} packets, {report}");
}

/// Packets that arrive while nobody reads them are lost between the kernel and the emulator, and the
/// report says so.
pub(crate) fn packets_that_the_emulator_does_not_read_are_lost() {
    // More than the kernel keeps for the emulator: 128 MiB of messages of 1 KiB.
    const PACKETS: u64 = 250_000;
    let name = "stopped-3e90";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json").to_str().unwrap().to_owned();
    let client = format!("{LONGHAUL} iperf3 -c server -u -b 0 -l 64 --no-gsro -P 2 -t 5 -J");
    let server = format!("{LONGHAUL} iperf3 -s -1");
    let link = ["lab", "run", "--link", "rate=1gbit,rtt=1ms", "--driver", "nfqueue"];
    let options = ["--name", name, "--report", &file, "--server", &server, "--", "sh", "-c"];
    let lab = start(&[&link[..], &options, &[&client]].concat());
    // More than the lab's own echo requests.
    until("packets", || processes(name).into_iter().any(|process| held(process) > 20));
    let emulator = processes(name);
    emulator.iter().for_each(|process| signal("STOP", *process));
    std::thread::sleep(std::time::Duration::from_millis(3500));
    emulator.iter().for_each(|process| signal("CONT", *process));
    let ended = end(lab);
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let sent: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    let sent = sent.pointer("/end/sum/packets").and_then(Value::as_u64).unwrap_or_default();
    let lost = report["achieved"]["drops"]["unasked"].as_u64().unwrap();
    if lost == 0 && sent < PACKETS {
        stall_retry::undecided(format!("the sender was too slow: {sent} datagrams"));
    }
    assert!(lost > 0 && report["valid"] == false, "{sent} sent, {report}");
}

/// The report covers the part of a run that was declared beforehand.
pub(crate) fn a_report_covers_what_was_declared() {
    let omit = ["--omit", "500ms"];
    let (_, report) = carried("rate=1gbit,rtt=1ms", &omit, &["sleep", "1"]);
    let from = report["achieved"]["from_s"].as_f64().unwrap();
    assert!((0.5..0.8).contains(&from) && report["asked"]["omit_s"] == 0.5, "{report}");
    let (ended, report) = carried("rate=1gbit,rtt=1ms", &["--omit", "60s"], &["true"]);
    assert!(ended.code == Some(3) && report["reasons"][0].as_str().unwrap().contains("60 s"));
}
