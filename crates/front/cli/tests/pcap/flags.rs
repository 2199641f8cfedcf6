//! How often tshark and longhaul set each analysis flag, stream by stream.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Fields below `tcp.analysis` that both have.
const FLAGS: [&str; 15] = [
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "duplicate_ack",
    "ack_lost_segment",
    "lost_segment",
    "zero_window",
    "zero_window_probe",
    "zero_window_probe_ack",
    "window_full",
    "window_update",
    "keep_alive",
    "keep_alive_ack",
    "reused_ports",
];

/// Counts by stream and flag, without zeros.
type Counts = BTreeMap<(u64, String), u64>;

/// Every difference between the two programs, as a line.
pub(crate) fn differences(path: &Path) -> Vec<String> {
    let (its, ours) = (its(path), ours(path));
    let all = its.keys().chain(ours.keys());
    let mut wrong: Vec<String> = all
        .filter(|key| its.get(*key) != ours.get(*key))
        .map(|key| format!("{key:?}: tshark {:?}, we {:?}", its.get(key), ours.get(key)))
        .collect();
    wrong.dedup();
    wrong
}

fn its(path: &Path) -> Counts {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(path);
    command.args(["-Y", "tcp", "-T", "fields", "-E", "separator=;", "-E", "occurrence=f"]);
    command.args(["-e", "tcp.stream"]);
    for flag in FLAGS {
        command.arg("-e").arg(format!("tcp.analysis.{flag}"));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut counts = Counts::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let mut fields = line.split(';');
        let stream = fields.next().unwrap().parse().unwrap();
        for (flag, _) in FLAGS.iter().zip(fields).filter(|(_, field)| !field.is_empty()) {
            *counts.entry((stream, (*flag).to_owned())).or_default() += 1;
        }
    }
    counts
}

fn ours(path: &Path) -> Counts {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(["pcap", "streams", "--rules", "wireshark-4.0", "--json"]).arg(path);
    let output = command.output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut counts = Counts::new();
    for stream in document["files"][0]["streams"].as_array().unwrap() {
        let number = stream["stream"].as_u64().unwrap();
        for side in ["from_sender", "from_receiver"] {
            for flag in FLAGS {
                let count = stream["flags"][side][flag].as_u64().unwrap();
                if count > 0 {
                    *counts.entry((number, flag.to_owned())).or_default() += count;
                }
            }
        }
    }
    counts
}
