//! What tshark and longhaul say of one file, and how they differ.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// Protocols that tshark dissects beyond ours are disabled, so that their bytes are
/// `data` there, too.
const NOT_OURS: [&str; 12] = [
    "pkt_comment",
    "iperf2",
    "iperf3",
    "tls",
    "http",
    "ssh",
    "eth_maybefcs",
    "ipx",
    "tpncp",
    "udt",
    "rtp",
    "esp_null",
];

fn tshark(path: &Path, statistics: &[String]) -> String {
    let mut command = Command::new("tshark");
    command.args(["-n", "-q", "-r"]).arg(path);
    for name in NOT_OURS {
        command.args(["--disable-protocol", name]);
    }
    for name in guessed() {
        command.args(["--disable-protocol", name]);
    }
    for name in statistics {
        command.args(["-z", name]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Protocols that tshark recognises by what a payload looks like, other than QUIC: random
/// payloads look like any of them now and then.
fn guessed() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(heuristics)
}

/// Asked once: tshark takes as long to list them as to read a small file.
fn heuristics() -> Vec<String> {
    let output = Command::new("tshark").args(["-G", "heuristic-decodes"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let below = fields.next()?;
        let name = fields.next().filter(|_| ["tcp", "udp"].contains(&below))?;
        (!name.contains("quic") && name != "teredo").then(|| name.to_owned())
    });
    let names: Vec<String> = names.collect();
    assert!(!names.is_empty(), "tshark lists no heuristic dissectors");
    names
}

fn ours(path: &Path, view: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    let output = command.arg("pcap").args(view).arg("--json").arg(path).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|wrong| panic!("{view:?}: {wrong}: {error}"));
    document["files"][0].clone()
}

/// Every difference between the two programs, as a line.
pub(crate) fn differences(path: &Path) -> Vec<String> {
    let mut statistics = vec!["io,phs".to_owned()];
    for layer in ["eth", "ip", "ipv6", "tcp", "udp"] {
        statistics.extend([format!("conv,{layer}"), format!("endpoints,{layer}")]);
    }
    let text = tshark(path, &statistics);
    let mut wrong = differing("hierarchy", &its_hierarchy(&text), &our_hierarchy(path));
    for (layer, titles) in [
        ("ethernet", &["Ethernet"][..]),
        ("ip", &["IPv4", "IPv6"]),
        ("tcp", &["TCP"]),
        ("udp", &["UDP"]),
    ] {
        let rows = |what: &str| -> Vec<String> {
            titles.iter().flat_map(|title| its_rows(&text, &format!("{title} {what}"))).collect()
        };
        let (its, ours) = (counted(rows("Conversations")), counted(our_conversations(path, layer)));
        wrong.extend(differing(layer, &its, &ours));
        let (its, ours) = (counted(rows("Endpoints")), counted(our_endpoints(path, layer)));
        wrong.extend(differing(&format!("{layer} endpoints"), &its, &ours));
    }
    wrong
}

/// How often each line is there.
fn counted(lines: Vec<String>) -> BTreeMap<String, String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        *counts.entry(line).or_default() += 1;
    }
    counts.into_iter().map(|(line, count)| (line, count.to_string())).collect()
}

fn differing(
    what: &str,
    its: &BTreeMap<String, String>,
    ours: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, value) in its {
        if ours.get(key) != Some(value) {
            wrong.push(format!("{what}: tshark has {key} {value}, we {:?}", ours.get(key)));
        }
    }
    for (key, value) in ours {
        if !its.contains_key(key) {
            wrong.push(format!("{what}: we have {key} {value}, tshark does not"));
        }
    }
    wrong
}

/// Paths with frames and bytes. Rows of packet comments are left out, and so is
/// `data` below TCP in captures with retransmissions: tshark shows a
/// retransmitted segment's payload as part of the TCP row.
fn its_hierarchy(text: &str) -> BTreeMap<String, String> {
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains("frames:")) {
        let depth = line.len() - line.trim_start().len();
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        if name == "pkt_comment" {
            continue;
        }
        path.retain(|(other, _)| *other < depth);
        path.push((depth, name));
        let key: Vec<&str> = path.iter().map(|(_, name)| *name).collect();
        rows.insert(key.join(":"), words.collect::<Vec<_>>().join(" "));
    }
    rows.retain(|key, _| !key.ends_with("tcp:data"));
    rows
}

fn our_hierarchy(path: &Path) -> BTreeMap<String, String> {
    let file = ours(path, &["hierarchy"]);
    let rows = file["protocols"].as_array().unwrap().iter();
    let mut rows: BTreeMap<String, String> = rows
        .filter_map(|row| {
            let key = row["path"].as_str()?.strip_prefix("frame:")?.to_owned();
            Some((key, format!("frames:{} bytes:{}", row["frames"], row["bytes"])))
        })
        .collect();
    // tshark has no name for the control connection of iperf3.
    rows.retain(|key, _| !key.ends_with("tcp:data") && !key.ends_with("tcp:iperf3"));
    rows
}

/// The rows of a table: of conversations ends, frames and bytes each way, start and
/// duration; of endpoints frames and bytes in all, sent and received.
fn its_rows(text: &str, title: &str) -> Vec<String> {
    let table = text.split_once(&format!("{title}\n")).unwrap().1;
    let is_row = |line: &&str| !line.starts_with(['|', ' ']) && !line.starts_with("Filter:");
    let rows = table.lines().filter(is_row).take_while(|line| !line.starts_with('='));
    rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn our_endpoints(path: &Path, layer: &str) -> Vec<String> {
    let file = ours(path, &["endpoints", "--type", layer]);
    let rows = file["endpoints"].as_array().unwrap().iter();
    rows.map(|row| {
        let counts =
            |key: &str| (row[key]["frames"].as_u64().unwrap(), row[key]["bytes"].as_u64().unwrap());
        let (sent, received) = (counts("sent"), counts("received"));
        let both = (sent.0 + received.0, sent.1 + received.1);
        let port = row["end"]["port"].as_u64().map_or(String::new(), |port| format!(" {port}"));
        let address = row["end"]["address"].as_str().unwrap();
        format!(
            "{address}{port} {} {} {} {} {} {}",
            both.0, both.1, sent.0, sent.1, received.0, received.1
        )
    })
    .collect()
}

fn our_conversations(path: &Path, layer: &str) -> Vec<String> {
    let file = ours(path, &["conversations", "--type", layer]);
    let end = |end: &Value| {
        let address = end["address"].as_str().unwrap();
        end["port"].as_u64().map_or(address.to_owned(), |port| format!("{address}:{port}"))
    };
    let rows = file["conversations"].as_array().unwrap().iter();
    rows.map(|row| {
        let way = |key: &str| {
            let bytes = row[key]["bytes"].as_u64().unwrap();
            (row[key]["frames"].as_u64().unwrap(), bytes)
        };
        let (forward, backward) = (way("a_to_b"), way("b_to_a"));
        let both = (forward.0 + backward.0, forward.1 + backward.1);
        format!(
            "{} <-> {} {} {} {} {} {} {} {:.9} {:.4}",
            end(&row["a"]),
            end(&row["b"]),
            backward.0,
            size(backward.1),
            forward.0,
            size(forward.1),
            both.0,
            size(both.1),
            row["start_s"].as_f64().unwrap(),
            row["duration_s"].as_f64().unwrap(),
        )
    })
    .collect()
}

/// Bytes as tshark writes them: the largest unit of which there are ten.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
