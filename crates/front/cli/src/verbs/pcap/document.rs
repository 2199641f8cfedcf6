//! The JSON documents of captures; `docs/reference/json.md` has their keys.

use super::reading::Capture;
use capture::dissect::{Direction, Protocol};
use capture::endpoints::{Address, Endpoint};
use capture::{Counts, LeftOut};
use packet_fields::{PacketView, detail};
use report::terminal::{ConversationRow, PacketRow};
use report::untrusted::clean;
use serde_json::{Value, json};
use tcp_analysis::iperf3::{Cut, Document, Test};
use tcp_analysis::{CongestionEvidence, CongestionFamily, EcnCounts, EcnMode, TimeShare};

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The object of a file, with what its view adds.
pub(super) fn file(capture: &Capture, view: Value) -> Value {
    let mut object = json!({
        "file": clean(&capture.name),
        "packets": capture.overview.packets,
        "bytes": capture.overview.bytes,
        "notes": capture.notes(),
        "broken": capture.broken.as_ref().map(|broken| json!({
            "at_byte": broken.at_byte,
            "after_packet": broken.after_packet,
            "why": clean(&broken.problem.to_string()),
        })),
    });
    if let (Some(object), Value::Object(view)) = (object.as_object_mut(), view) {
        object.extend(view);
    }
    object
}

pub(super) fn summary(capture: &Capture, layer: &str, top: &[ConversationRow]) -> Value {
    let (it, overview) = (&capture.file, &capture.overview);
    let interfaces: Vec<Value> = it
        .interfaces
        .iter()
        .map(|interface| {
            json!({
                "link_type": interface.link.0,
                "link": interface.link.to_string(),
                "name": clean(&interface.name),
                "description": clean(&interface.description),
                "snaplen_bytes": interface.snaplen,
                "packets": interface.packets,
                "received": interface.received,
                "dropped": interface.dropped,
                "os_dropped": interface.os_dropped,
            })
        })
        .collect();
    let texts = |texts: &[String]| texts.iter().map(|text| clean(text)).collect::<Vec<_>>();
    file(
        capture,
        json!({
            "format": it.format.name(),
            "big_endian": it.big_endian,
            "compression": it.compression.name(),
            "interfaces": interfaces,
            "captured_by": texts(&it.captured_by),
            "comments": texts(&it.comments),
            "packet_comments": it.packet_comments,
            "captured_bytes": overview.captured_bytes,
            "first_unix_s": seconds(overview.first_ns),
            "last_unix_s": seconds(overview.last_ns),
            "duration_s": overview.seconds(),
            "rate_bps": overview.rate_bps(),
            "dropped": it.dropped(),
            "cut_off": overview.cut_off,
            "fragments": overview.fragments,
            "super_segments": overview.super_segments,
            "without_length": overview.without_length,
            "not_dissected": overview.not_dissected,
            "not_understood": capture.not_understood.kinds().iter().map(|(what, count)| json!({
                "what": what.to_string(),
                "packets": count,
            })).collect::<Vec<_>>(),
            "layer": layer,
            "conversations": rows(capture, top.iter().copied()).collect::<Vec<_>>(),
        }),
    )
}

pub(super) fn hierarchy(capture: &Capture) -> Value {
    let mut path: Vec<&str> = Vec::new();
    let rows: Vec<Value> = capture
        .hierarchy
        .rows()
        .into_iter()
        .map(|row| {
            let protocol =
                if row.protocol == Protocol::None { "frame" } else { row.protocol.name() };
            path.truncate(row.depth);
            path.push(protocol);
            json!({
                "path": path.join(":"),
                "protocol": protocol,
                "frames": row.frames,
                "bytes": row.bytes,
                "own_bytes": row.own_bytes,
                "end_frames": row.end_frames,
                "end_bytes": row.end_bytes,
            })
        })
        .collect();
    file(capture, json!({ "protocols": rows }))
}

/// The object of a file whose rows, under the key `list`, are written one by one.
pub(super) fn listed(capture: &Capture, layer: &str, list: &str, left_out: LeftOut) -> Value {
    let counts = left_out.counts;
    let not_listed = (counts.frames > 0)
        .then(|| json!({ list: left_out.flows, "packets": counts.frames, "bytes": counts.bytes }));
    file(capture, json!({ "layer": layer, list: null, "not_listed": not_listed }))
}

/// Conversations one by one.
pub(super) fn rows(
    capture: &Capture,
    rows: impl Iterator<Item = ConversationRow>,
) -> impl Iterator<Item = Value> {
    let first_ns = capture.conversations.first_ns().unwrap_or(0);
    let each = move |row: ConversationRow| {
        let [a, b] = row.ends.each_ref().map(end);
        let way = |counts: Counts, direction| {
            json!({
                "frames": counts.frames,
                "bytes": counts.bytes,
                "rate_bps": row.traffic.rate_bps(direction),
            })
        };
        let [forward, backward] = row.traffic.each;
        json!({
            "stream": row.stream,
            "a": a,
            "b": b,
            "start_s": seconds(row.traffic.first_ns.saturating_sub(first_ns)),
            "duration_s": seconds(row.traffic.duration_ns()),
            "a_to_b": way(forward, Direction::AToB),
            "b_to_a": way(backward, Direction::BToA),
        })
    };
    rows.map(each)
}

fn end(address: &Address) -> Value {
    let (text, port) = match address {
        Address::Ethernet([a, b, c, d, e, f]) => {
            (format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"), None)
        }
        Address::Ip(ip) => (ip.to_string(), None),
        Address::Port(ip, port) => (ip.to_string(), Some(port)),
    };
    json!({ "address": text, "port": port })
}

/// An endpoint.
pub(super) fn endpoint(row: &Endpoint) -> Value {
    let counts = |counts: Counts| json!({ "frames": counts.frames, "bytes": counts.bytes });
    json!({
        "end": end(&row.address),
        "sent": counts(row.sent),
        "received": counts(row.received),
    })
}

/// An iperf3 test.
pub(super) fn iperf3_test(test: &Test, first_ns: u64) -> Value {
    let states = test.states.iter().map(|change| {
        json!({
            "state": change.state.name(),
            "packet": change.packet,
            "at_s": seconds(change.time_ns.saturating_sub(first_ns)),
            "error": change.error.map(|(code, errno)| json!({ "code": code, "errno": errno })),
        })
    });
    let documents = |document: &Option<Document>| {
        document.as_ref().map(|document| {
            let cut = document.cut.map(|cut| match cut {
                Cut::Snaplen => "snaplen",
                Cut::NotCaptured => "not captured",
                Cut::TooLong => "too long",
            });
            json!({ "packet": document.packet, "cut": cut, "json": document.json })
        })
    };
    json!({
        "control_stream": test.stream,
        "parameters": documents(&test.parameters),
        "states": states.collect::<Vec<_>>(),
        "client_results": documents(&test.results[0]),
        "server_results": documents(&test.results[1]),
        "is_incomplete": test.is_incomplete,
    })
}

/// The time of a stream by cause; `null` for one that was not explained.
pub(super) fn times(times: &[TimeShare]) -> Value {
    let each = times.iter().map(|time| {
        let (from, to) = time.longest.packets;
        json!({
            "cause": time.cause.name(),
            "seconds": seconds(time.ns),
            "share": time.share,
            "longest": { "seconds": seconds(time.longest.ns), "from_packet": from, "to_packet": to },
        })
    });
    if times.is_empty() { Value::Null } else { json!(each.collect::<Vec<_>>()) }
}

/// The ECN marks of a stream's sender and receiver.
pub(super) fn ecn((mode, [sender, receiver]): &(EcnMode, [EcnCounts; 2])) -> Value {
    let each = |counts: &EcnCounts| {
        json!({
            "capable": counts.capable,
            "ce": counts.ce,
            "ece": counts.ece,
            "cwr": counts.cwr,
            "ace": counts.ace,
        })
    };
    json!({ "mode": mode.name(), "sender": each(sender), "receiver": each(receiver) })
}

/// What a stream shows of its congestion control.
pub(super) fn congestion(found: &CongestionEvidence) -> Value {
    json!({
        "family": found.family.map(CongestionFamily::name),
        "reductions": found.reductions,
        "factor": found.factor,
        "halved": found.halved,
        "cubic_reductions": found.cubic_reductions,
        "kept": found.kept,
        "linear_growth": found.linear_growth,
        "cubic_growth": found.cubic_growth,
        "clean_rounds": found.clean_rounds,
        "falls": found.falls,
        "cycles": found.cycles,
        "dips": found.dips,
        "reduction_packets": found.reduction_packets,
        "fall_packets": found.fall_packets,
    })
}

/// A packet, with its fields and bytes `with_layers`.
pub(super) fn packet(row: &PacketRow<'_>, view: &PacketView<'_>, with_layers: bool) -> Value {
    let summary = row.summary;
    let stream = view.stream.as_ref();
    let flags: Vec<&str> =
        stream.map(|stream| stream.analysis.flags.names().collect()).unwrap_or_default();
    let mut object = json!({
        "schema": "longhaul.pcap-packet/1",
        "number": row.number,
        "time_s": row.time_ns as f64 / 1e9,
        "time_unix_s": seconds(view.packet.time_ns),
        "source": summary.source,
        "destination": summary.destination,
        "protocol": summary.protocol,
        "length_bytes": row.length,
        "stream": stream.map(|stream| stream.number),
        "flags": flags,
        "marks": summary.marks.trim_end(),
        "info": summary.info,
    });
    if with_layers && let Some(object) = object.as_object_mut() {
        let layers: Vec<Value> = detail::layers(view).iter().map(layer).collect();
        object.insert("layers".to_owned(), json!(layers));
        object.insert("bytes".to_owned(), json!(hexadecimal(view.packet.frame)));
        let reassembled = view.is_reassembled().then(|| hexadecimal(view.packet.data));
        object.insert("reassembled".to_owned(), json!(reassembled));
    }
    object
}

fn layer(layer: &detail::LayerDetail) -> Value {
    let each = layer.fields.iter().map(|it| {
        let value = it.number.map_or_else(|| json!(clean(&it.text)), |number| json!(number));
        json!({ "field": it.field.description().name, "value": value })
    });
    let protocol = match layer.protocol {
        Protocol::None => "frame",
        protocol => protocol.name(),
    };
    json!({
        "protocol": protocol,
        "start": layer.start,
        "length": layer.length,
        "is_reassembled": layer.is_reassembled,
        "fields": each.collect::<Vec<_>>(),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
