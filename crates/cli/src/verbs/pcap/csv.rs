//! Captures as comma-separated values: a line for each row, units in the names of the
//! columns.

use super::reading::Capture;
use capture::Counts;
use capture::dissect::{Direction, Protocol};
use capture::endpoints::{Address, Endpoint};
use capture_merge::PacketRow as MergedRow;
use packet_fields::{Field, PacketView, Value};
use report::terminal::{ConversationRow, HandshakeStream, PacketRow, StreamRow};

/// A header and rows.
pub(super) struct Table {
    header: &'static str,
    pub(super) rows: Vec<String>,
}

impl Table {
    /// The lines (RFC 4180).
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.header);
        for row in &self.rows {
            text += row;
            text.push('\n');
        }
        text
    }
}

/// A field of text. What a spreadsheet would take for a formula begins with an
/// apostrophe.
fn field(text: &str) -> String {
    let text = report::untrusted::clean(text);
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    let text = if is_formula { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

fn address(address: &Address) -> (String, String) {
    match address {
        Address::Ethernet([a, b, c, d, e, f]) => {
            (format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"), String::new())
        }
        Address::Ip(ip) => (ip.to_string(), String::new()),
        Address::Port(ip, port) => (ip.to_string(), port.to_string()),
    }
}

/// Seconds with nanoseconds.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

pub(super) fn summary(capture: &Capture) -> Table {
    let (file, overview) = (&capture.file, &capture.overview);
    let rate = overview.rate_bps().map_or(String::new(), |bps| format!("{bps:.0}"));
    let dropped = file.dropped().map_or(String::new(), |count| count.to_string());
    let row = format!(
        "{},{},{},{},{},{},{},{},{rate},{dropped},{}",
        field(&capture.name),
        field(file.format.name()),
        overview.packets,
        overview.bytes,
        overview.captured_bytes,
        seconds(overview.first_ns),
        seconds(overview.last_ns),
        seconds(overview.last_ns - overview.first_ns),
        capture.broken.is_some(),
    );
    Table {
        header: "file,format,packets,bytes,captured_bytes,first_unix_s,last_unix_s,duration_s,\
                 rate_bps,dropped,broken",
        rows: vec![row],
    }
}

pub(super) fn hierarchy(capture: &Capture) -> Table {
    let name = field(&capture.name);
    let mut path: Vec<&str> = Vec::new();
    let rows = capture.hierarchy.rows().into_iter().map(|row| {
        let protocol = if row.protocol == Protocol::None { "frame" } else { row.protocol.name() };
        path.truncate(row.depth);
        path.push(protocol);
        format!(
            "{name},{},{protocol},{},{},{},{},{}",
            path.join(":"),
            row.frames,
            row.bytes,
            row.own_bytes,
            row.end_frames,
            row.end_bytes
        )
    });
    Table {
        header: "file,path,protocol,frames,bytes,own_bytes,end_frames,end_bytes",
        rows: rows.collect(),
    }
}

pub(super) fn conversations(capture: &Capture, rows: &[ConversationRow]) -> Table {
    let name = field(&capture.name);
    let first_ns = capture.conversations.first_ns().unwrap_or(0);
    let rows = rows.iter().map(|row| {
        let [(a, a_port), (b, b_port)] = row.ends.each_ref().map(address);
        let [forward, backward] = row.traffic.each;
        let stream = row.stream.map_or(String::new(), |number| number.to_string());
        let rate = |direction| {
            row.traffic.rate_bps(direction).map_or(String::new(), |bps| format!("{bps:.0}"))
        };
        format!(
            "{name},{stream},{a},{a_port},{b},{b_port},{},{},{},{},{},{},{},{}",
            seconds(row.traffic.first_ns.saturating_sub(first_ns)),
            seconds(row.traffic.duration_ns()),
            forward.frames,
            forward.bytes,
            rate(Direction::AToB),
            backward.frames,
            backward.bytes,
            rate(Direction::BToA),
        )
    });
    Table {
        header: "file,stream,a,a_port,b,b_port,start_s,duration_s,a_to_b_frames,a_to_b_bytes,\
                 a_to_b_bps,b_to_a_frames,b_to_a_bytes,b_to_a_bps",
        rows: rows.collect(),
    }
}

pub(super) fn endpoints(capture: &Capture, rows: &[Endpoint]) -> Table {
    let name = field(&capture.name);
    let rows = rows.iter().map(|row| {
        let (address, port) = address(&row.address);
        let both = |counts: Counts| format!("{},{}", counts.frames, counts.bytes);
        format!("{name},{address},{port},{},{}", both(row.sent), both(row.received))
    });
    Table {
        header: "file,address,port,sent_frames,sent_bytes,received_frames,received_bytes",
        rows: rows.collect(),
    }
}

pub(super) fn streams<'a>(capture: &Capture, rows: impl Iterator<Item = &'a StreamRow>) -> Table {
    let name = field(&capture.name);
    let rows = rows.map(|row| {
        let count = |kind: &str| {
            let found = row.retransmits.iter().find(|(name, _)| *name == kind);
            found.map_or(0, |(_, count)| *count)
        };
        let kinds: Vec<String> =
            tcp_analysis::Kind::ALL.iter().map(|kind| count(kind.name()).to_string()).collect();
        let ms = |rtt: units::Rtt| rtt.millis_f64().to_string();
        let (least, smoothed) = row.rtt.map(|(a, b)| (ms(a), ms(b))).unwrap_or_default();
        format!(
            "{name},{},{},{},{},{},{},{},{},{least},{smoothed},{}",
            row.stream,
            field(&row.ends[0]),
            field(&row.ends[1]),
            row.seconds,
            row.payload.bytes(),
            row.goodput.map_or(String::new(), |rate| rate.bps().to_string()),
            row.retransmit_share,
            kinds.join(","),
            field(row.limit.as_deref().unwrap_or_default()),
        )
    });
    Table {
        header: "file,stream,sender,receiver,duration_s,payload_bytes,goodput_bps,\
                 retransmitted_share,timeout,after_timeout,fast,recovery,tail_loss_probe,\
                 min_rtt_ms,rtt_ms,limit",
        rows: rows.collect(),
    }
}

pub(super) fn handshakes(capture: &Capture, streams: &[HandshakeStream]) -> Table {
    let name = field(&capture.name);
    let rows = streams.iter().flat_map(|stream| {
        let name = &name;
        stream.packets.iter().map(move |row| {
            format!(
                "{name},{},{},{},{},{},{},{},{},{},{},{}",
                stream.stream,
                field(&stream.ends[0]),
                field(&stream.ends[1]),
                row.name,
                row.packet,
                row.after_s,
                row.seq,
                row.ack.map_or(String::new(), |ack| ack.to_string()),
                row.window,
                row.computed_window.map_or(String::new(), |bytes| bytes.to_string()),
                field(&row.options.join("; ")),
            )
        })
    });
    Table {
        header: "file,stream,client,server,name,packet,after_s,seq,ack,window,window_bytes,options",
        rows: rows.collect(),
    }
}

/// The columns of packets.
pub(super) const PACKETS: &str =
    "number,time_s,source,destination,protocol,length_bytes,tcp_stream,marks,info";

/// Appends the row of a packet.
pub(super) fn packet(row: &PacketRow<'_>, view: &PacketView<'_>, out: &mut String) {
    let summary = row.summary;
    let sign = if row.time_ns < 0 { "-" } else { "" };
    let stream = view.stream.map_or(String::new(), |stream| stream.number.to_string());
    *out += &format!(
        "{},{sign}{},{},{},{},{},{stream},{},{}\n",
        row.number,
        seconds(row.time_ns.unsigned_abs()),
        summary.source,
        summary.destination,
        summary.protocol,
        row.length,
        field(summary.marks.trim_end()),
        field(&summary.info),
    );
}

/// Appends a row of these fields; several values of one are separated by semicolons, and one
/// that is there without a value is 1.
pub(super) fn fields(columns: &[Field], view: &PacketView<'_>, out: &mut String) {
    for (place, column) in columns.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        let kind = column.description().kind;
        let mut count = 0;
        view.each_value(*column, |value| {
            if count > 0 {
                out.push(';');
            }
            count += 1;
            match value {
                Value::Present => out.push('1'),
                Value::Text(text) => *out += &field(text),
                // Formatting into a string cannot fail.
                value => drop(value.write(kind, out)),
            }
        });
    }
    out.push('\n');
}

/// The packets of two captures, one row for each pair.
pub(super) fn merged(rows: &[MergedRow]) -> Table {
    let rows = rows.iter().map(|row| {
        let number = |number: Option<u32>| number.map_or(String::new(), |it| it.to_string());
        let sign = |ns: i64| if ns < 0 { "-" } else { "" };
        let signed = |ns: i64| format!("{}{}", sign(ns), seconds(ns.unsigned_abs()));
        format!(
            "{},{},{},{},{},{},{},{},{}",
            row.transit.name(),
            row.fate.name(),
            number(row.a),
            number(row.b),
            signed(row.time_ns),
            row.delay_ns.map_or(String::new(), signed),
            row.bytes,
            row.segments,
            row.is_reordered,
        )
    });
    Table {
        header: "direction,fate,packet_a,packet_b,time_unix_s,delay_s,payload_bytes,segments,\
                 reordered",
        rows: rows.collect(),
    }
}
