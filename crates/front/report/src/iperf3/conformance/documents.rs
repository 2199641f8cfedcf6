//! JSON documents of iperf3, parsed and written again.

use super::super::facts::{Protocol, Row, Side};
use super::super::json::{Document, interval_line};
use super::super::totals::Totals;
use super::head;
use iperf3_proto::{Results, StreamResult};
use serde_json::Value;

/// Parses a document and writes it again.
fn rewritten(document: &Value) -> Value {
    let whole = |value: &Value| value.as_u64().unwrap_or(0);
    let real = |value: &Value| value.as_f64().unwrap_or(0.0);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (start, test) = (&document["start"], &document["start"]["test_start"]);
    let side = if start["connecting_to"].is_object() { Side::Client } else { Side::Server };
    let protocol = if test["protocol"] == "UDP" { Protocol::Udp } else { Protocol::Tcp };
    let streams = u32::try_from(whole(&test["num_streams"])).unwrap();
    let mut head = head(side, protocol, streams, test["reverse"] == 1, test["bidir"] == 1);
    let peer = if side == Side::Client { "connecting_to" } else { "accepted_connection" };
    let port = |value: &Value| u16::try_from(whole(value)).unwrap();
    head.peer_port = port(&start[peer]["port"]);
    head.unix_s = real(&start["timestamp"]["timemillisecs"]) / 1e3;
    head.cookie = text(&start["cookie"]);
    head.control_mss = whole(&start["tcp_mss_default"]);
    (head.send_buffer, head.receive_buffer) =
        (whole(&start["sndbuf_actual"]), whole(&start["rcvbuf_actual"]));
    head.asked.block = whole(&test["blksize"]);
    head.asked.duration = whole(&test["duration"]);
    head.asked.rate = whole(&test["target_bitrate"]);
    for (stream, theirs) in head.streams.iter_mut().zip(start["connected"].as_array().unwrap()) {
        assert_eq!(whole(&theirs["socket"]), u64::from(stream.socket));
        (stream.local_port, stream.remote_port) =
            (port(&theirs["local_port"]), port(&theirs["remote_port"]));
    }
    let mut written = Document::new("Linux", None, None);
    written.begin(&head);
    let mut totals = Totals::default();
    for interval in document["intervals"].as_array().unwrap() {
        let rows = interval["streams"].as_array().unwrap().iter().map(|theirs| Row {
            id: head.streams.iter().find(|it| u64::from(it.socket) == theirs["socket"]).unwrap().id,
            sending: theirs["sender"] == true,
            from_s: real(&theirs["start"]),
            to_s: real(&theirs["end"]),
            bytes: whole(&theirs["bytes"]),
            retransmits: whole(&theirs["retransmits"]),
            cwnd: whole(&theirs["snd_cwnd"]),
            peer_window: whole(&theirs["snd_wnd"]),
            rtt_us: whole(&theirs["rtt"]),
            rttvar_us: whole(&theirs["rttvar"]),
            pmtu: whole(&theirs["pmtu"]),
            reorder: whole(&theirs["reorder"]),
            packets: whole(&theirs["packets"]),
            lost: theirs["lost_packets"].as_i64().unwrap_or(0),
            out_of_order: 0,
            jitter_ms: real(&theirs["jitter_ms"]),
            omitted: theirs["omitted"] == true,
        });
        let rows: Vec<Row> = rows.collect();
        rows.iter().for_each(|row| totals.add(row));
        written.interval(&head, &rows);
        assert!(
            interval_line(&head, &rows).starts_with(r#"{"event":"interval","data":{"streams":["#)
        );
    }
    let end = &document["end"];
    let cpu = |which: &str, congestion: Option<String>, streams| Results {
        cpu_util_total: real(&end["cpu_utilization_percent"][format!("{which}_total")]),
        cpu_util_user: real(&end["cpu_utilization_percent"][format!("{which}_user")]),
        cpu_util_system: real(&end["cpu_utilization_percent"][format!("{which}_system")]),
        congestion_used: congestion,
        sender_has_retransmits: 1,
        streams,
        ..Results::default()
    };
    let mut streams = (Vec::new(), Vec::new());
    for (stream, theirs) in head.streams.iter().zip(end["streams"].as_array().unwrap()) {
        let one = |half: &str, sum: &str| {
            let sum = match head.is_bidir_reverse(stream.sending) {
                true => format!("{sum}_bidir_reverse"),
                false => sum.to_owned(),
            };
            let of = if protocol == Protocol::Udp { &theirs["udp"] } else { &theirs[half] };
            let sum = &end[sum];
            StreamResult {
                id: i64::from(stream.id),
                // Of datagrams the sums alone tell the ends apart; in these
                // documents the streams have equal parts.
                bytes: match protocol {
                    Protocol::Tcp => of["bytes"].as_i64().unwrap(),
                    Protocol::Udp => sum["bytes"].as_i64().unwrap() / i64::from(head.asked.streams),
                },
                retransmits: of["retransmits"].as_i64().unwrap_or(0),
                jitter: real(&of["jitter_ms"]) / 1e3,
                errors: of["lost_packets"].as_i64().unwrap_or(0),
                packets: sum["packets"].as_i64().unwrap_or(0) / i64::from(head.asked.streams),
                end_time: Some(real(&sum["end"])),
                ..StreamResult::default()
            }
        };
        let (sender, receiver) = (one("sender", "sum_sent"), one("receiver", "sum_received"));
        let (here, there) = if stream.sending { (sender, receiver) } else { (receiver, sender) };
        streams.0.push(here);
        streams.1.push(there);
    }
    let congestion = |key: &str| end[key].as_str().map(str::to_owned);
    let (sender, receiver) =
        (congestion("sender_tcp_congestion"), congestion("receiver_tcp_congestion"));
    let last = head.directions().last().copied().unwrap();
    let (here, there) = if last { (sender, receiver) } else { (receiver, sender) };
    let ours = cpu("host", here, streams.0);
    let theirs = (side == Side::Client).then(|| cpu("remote", there, streams.1));
    let end = totals.end(&head, Some(&ours), theirs.as_ref());
    written.end(&head, &end);
    serde_json::from_str(&written.text()).unwrap()
}

/// The same keys, and the same values within a millionth: the program keeps
/// some of its seconds in four bytes.
fn compare(theirs: &Value, written: &Value, path: &str, wrong: &mut Vec<String>) {
    match (theirs, written) {
        (Value::Object(theirs), Value::Object(written)) => {
            for key in theirs.keys().chain(written.keys()) {
                let path = format!("{path}.{key}");
                match (theirs.get(key), written.get(key)) {
                    (Some(theirs), Some(written)) => compare(theirs, written, &path, wrong),
                    (theirs, _) => wrong.push(format!("{path}: theirs: {}", theirs.is_some())),
                }
            }
        }
        (Value::Array(theirs), Value::Array(written)) if theirs.len() == written.len() => {
            for (theirs, written) in theirs.iter().zip(written) {
                compare(theirs, written, &format!("{path}[]"), wrong);
            }
        }
        (Value::Number(theirs), Value::Number(written)) => {
            let (theirs, written) = (theirs.as_f64().unwrap(), written.as_f64().unwrap());
            if (theirs - written).abs() > 1e-6 * theirs.abs() {
                wrong.push(format!("{path}: {theirs} became {written}"));
            }
        }
        (theirs, written) if theirs == written => {}
        (theirs, written) => wrong.push(format!("{path}: {theirs} became {written}")),
    }
}

/// What is told otherwise than by the program, with the reason.
const OTHERWISE: [&str; 4] = [
    // The seconds of the end that prints, beside the far end's rate.
    ".end.streams[].receiver.seconds",
    // What a receiver is told of its sender's kernel.
    ".end.streams[].sender.max_",
    ".end.streams[].sender.min_rtt",
    ".end.streams[].sender.mean_rtt",
];

#[test]
fn documents_come_back_as_they_were() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/iperf3");
    for (name, text) in [
        ("tcp-client", include_str!("../../../tests/iperf3/tcp-client.json")),
        ("tcp-server", include_str!("../../../tests/iperf3/tcp-server.json")),
        ("tcp-r-client", include_str!("../../../tests/iperf3/tcp-r-client.json")),
        ("tcp-bidir-client", include_str!("../../../tests/iperf3/tcp-bidir-client.json")),
        ("tcp-bidir-server", include_str!("../../../tests/iperf3/tcp-bidir-server.json")),
        ("udp-client", include_str!("../../../tests/iperf3/udp-client.json")),
        ("udp-server", include_str!("../../../tests/iperf3/udp-server.json")),
        ("udp-r-client", include_str!("../../../tests/iperf3/udp-r-client.json")),
        ("udp-p2-client", include_str!("../../../tests/iperf3/udp-p2-client.json")),
        ("udp-bidir-client", include_str!("../../../tests/iperf3/udp-bidir-client.json")),
    ] {
        let theirs: Value = serde_json::from_str(text).unwrap();
        let mut wrong = Vec::new();
        compare(&theirs, &rewritten(&theirs), "", &mut wrong);
        wrong.retain(|line| !OTHERWISE.iter().any(|path| line.starts_with(path)));
        assert!(wrong.is_empty(), "{folder}/{name}.json:\n{}", wrong.join("\n"));
    }
}
