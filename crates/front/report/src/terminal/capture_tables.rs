//! Tables of a capture: protocol hierarchy, conversations, endpoints.

use super::{
    Style,
    line::{Line, block, columns},
    style,
};
use capture::conversations::EthernetKey;
use capture::dissect::{FlowKey, PacketDirection, Protocol};
use capture::endpoints::{Address, Endpoint};
use capture::hierarchy::Row;
use capture::{Conversation, Counts, Traffic};
use core::net::IpAddr;
use units::{BitRate, ByteCount};

/// Columns at which a conversation and its figures share a line.
const WIDE: usize = 150;

/// A conversation to show.
#[derive(Debug, Clone, Copy)]
pub struct ConversationRow {
    /// The number of a TCP stream.
    pub stream: Option<usize>,
    /// Its ends, the sender of the first packet first.
    pub ends: [Address; 2],
    /// Its traffic.
    pub traffic: Traffic,
}

impl ConversationRow {
    /// A conversation with these ends, side A of the key first.
    fn of<K>(flow: &Conversation<K>, [a, b]: [Address; 2], stream: Option<usize>) -> Self {
        let ends = if flow.first == PacketDirection::AToB { [a, b] } else { [b, a] };
        ConversationRow { stream, ends, traffic: flow.traffic_from_first() }
    }

    /// A conversation between Ethernet addresses.
    #[must_use]
    pub fn ethernet(flow: &Conversation<EthernetKey>) -> Self {
        let ends = [Address::Ethernet(flow.key.a), Address::Ethernet(flow.key.b)];
        Self::of(flow, ends, None)
    }

    /// A conversation between IP addresses.
    #[must_use]
    pub fn ip(flow: &Conversation<FlowKey>) -> Self {
        let ends = [Address::Ip(flow.key.a_address()), Address::Ip(flow.key.b_address())];
        Self::of(flow, ends, None)
    }

    /// A conversation between ports, with its number in TCP.
    #[must_use]
    pub fn ports(flow: &Conversation<FlowKey>, stream: Option<usize>) -> Self {
        let key = &flow.key;
        let ends = [
            Address::Port(key.a_address(), key.a_port),
            Address::Port(key.b_address(), key.b_port),
        ];
        Self::of(flow, ends, stream)
    }
}

/// An address as it is written: with the port after a colon, IPv6 in brackets.
pub(crate) fn address(address: &Address) -> String {
    match address {
        Address::Ethernet([a, b, c, d, e, f]) => {
            format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
        }
        Address::Ip(ip) => ip.to_string(),
        Address::Port(IpAddr::V4(ip), port) => format!("{ip}:{port}"),
        Address::Port(IpAddr::V6(ip), port) => format!("[{ip}]:{port}"),
    }
}

/// Bytes as kB, MB and so on.
fn size(bytes: u64) -> String {
    ByteCount::from_bytes(bytes).decimal()
}

fn rate(bps: Option<f64>) -> String {
    bps.map_or_else(|| "-".to_owned(), |bps| BitRate::from_bps_f64(bps).to_string())
}

/// Seconds with as many digits as a capture's times deserve.
pub(super) fn seconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}

/// The hierarchy: frames and bytes as tshark counts them, and each protocol's own.
#[must_use]
pub fn capture_hierarchy(rows: &[Row], style: &Style) -> String {
    const PROTOCOL: usize = 26;
    const FIGURES: [(&str, usize); 5] =
        [("frames", 11), ("share", 8), ("bytes", 11), ("own bytes", 11), ("last layer", 12)];
    let mut head = Line::new(style).put(style::DIM, "protocol");
    let mut end = PROTOCOL;
    for (name, width) in FIGURES {
        end += width;
        head = head.right(style::DIM, name, end);
    }
    let frames = rows.first().map_or(0, |row| row.frames).max(1);
    let mut lines = vec![head];
    for row in rows {
        let name = if row.protocol == Protocol::None { "frame" } else { row.protocol.name() };
        let mut line = Line::new(style).to(row.depth.min(12)).put(style::STRONG, name);
        let texts = [
            row.frames.to_string(),
            units::percent_with(row.frames as f64 / frames as f64, 3),
            size(row.bytes),
            size(row.own_bytes),
            row.end_frames.to_string(),
        ];
        let mut end = PROTOCOL;
        for (text, (_, width)) in texts.iter().zip(FIGURES) {
            end += width;
            line = line.right(style::PLAIN, text, end);
        }
        lines.push(line);
    }
    block(lines)
}

/// Columns of figures: name and width.
const FIGURES: [(&str, usize); 8] = [
    ("start s", 9),
    ("lasts s", 9),
    ("A>B frames", 11),
    ("bytes", 9),
    ("rate", 12),
    ("B>A", 9),
    ("bytes", 9),
    ("rate", 12),
];

/// Conversations; `first_ns` is the time from which their starts count, `all` how many
/// there are.
#[must_use]
pub fn capture_conversations(
    title: &str,
    rows: &[ConversationRow],
    all: usize,
    first_ns: u64,
    style: &Style,
) -> String {
    let mut lines = vec![heading(title, rows.len(), all, style)];
    if rows.is_empty() {
        return block(lines);
    }
    let named: Vec<[String; 2]> = rows.iter().map(|row| row.ends.each_ref().map(address)).collect();
    let widest = |side: usize| named.iter().map(|ends| columns(&ends[side])).max().unwrap_or(0);
    let (a, b) = (widest(0), widest(1));
    let number = if rows.iter().any(|row| row.stream.is_some()) { 9 } else { 0 };
    let figures: usize = FIGURES.iter().map(|(_, width)| width).sum();
    let is_wide = style.width >= WIDE && number + a + b + 2 + figures <= style.width;
    let start = if is_wide { number + a + b + 2 } else { 0 };
    let mut head = Line::new(style);
    if number > 0 {
        head = head.right(style::DIM, "stream", number - 2);
    }
    head = head.to(number).put(style::DIM, "A").to(number + a + 2).put(style::DIM, "B");
    let mut below = if is_wide { None } else { Some(Line::new(style)) };
    let mut end = start;
    for (name, width) in FIGURES {
        end += width;
        match &mut below {
            Some(line) => *line = line.clone().right(style::DIM, name, end),
            None => head = head.right(style::DIM, name, end),
        }
    }
    lines.push(head);
    lines.extend(below);
    for (row, [from, to]) in rows.iter().zip(&named) {
        let mut line = Line::new(style);
        if let Some(stream) = row.stream {
            line = line.right(style::DIM, &stream.to_string(), number - 2);
        }
        line = line.to(number).put(style::STRONG, from).to(number + a + 2).put(style::STRONG, to);
        if is_wide {
            lines.push(traffic(line, start, &row.traffic, first_ns));
        } else {
            lines.push(line);
            lines.push(traffic(Line::new(style), 0, &row.traffic, first_ns));
        }
    }
    block(lines)
}

fn heading(title: &str, shown: usize, all: usize, style: &Style) -> Line {
    let text = if shown < all {
        format!("{title}: {all}, the {shown} with the most bytes")
    } else {
        format!("{title}: {all}")
    };
    Line::new(style).put(style::STRONG, &text)
}

/// The figures of a conversation, from column `start` on.
fn traffic(mut line: Line, start: usize, traffic: &Traffic, first_ns: u64) -> Line {
    let [forward, backward] = traffic.each;
    let texts = [
        seconds(traffic.first_ns.saturating_sub(first_ns)),
        seconds(traffic.duration_ns()),
        forward.frames.to_string(),
        size(forward.bytes),
        rate(traffic.rate_bps(PacketDirection::AToB)),
        backward.frames.to_string(),
        size(backward.bytes),
        rate(traffic.rate_bps(PacketDirection::BToA)),
    ];
    let mut end = start;
    for (text, (_, width)) in texts.iter().zip(FIGURES) {
        end += width;
        line = line.right(style::PLAIN, text, end);
    }
    line
}

/// Endpoints, of which there are `all`.
#[must_use]
pub fn capture_endpoints(title: &str, rows: &[Endpoint], all: usize, style: &Style) -> String {
    const FIGURES: [(&str, usize); 4] =
        [("frames sent", 13), ("bytes sent", 11), ("received", 11), ("bytes", 11)];
    let mut lines = vec![heading(title, rows.len(), all, style)];
    if rows.is_empty() {
        return block(lines);
    }
    let named: Vec<String> = rows.iter().map(|row| address(&row.address)).collect();
    let widest = named.iter().map(|name| columns(name)).max().unwrap_or(0);
    let figures: usize = FIGURES.iter().map(|(_, width)| width).sum();
    let room = widest.min(style.text_width().saturating_sub(figures)).max(8);
    let mut head = Line::new(style).put(style::DIM, "address");
    let mut end = room;
    for (name, width) in FIGURES {
        end += width;
        head = head.right(style::DIM, name, end);
    }
    lines.push(head);
    for (row, name) in rows.iter().zip(&named) {
        let mut line = Line::new(style).put(style::STRONG, name);
        if columns(name) > room {
            lines.push(line);
            line = Line::new(style);
        }
        let both = |counts: Counts| [counts.frames.to_string(), size(counts.bytes)];
        let mut end = room;
        let texts = both(row.sent).into_iter().chain(both(row.received));
        for (text, (_, width)) in texts.zip(FIGURES) {
            end += width;
            line = line.right(style::PLAIN, &text, end);
        }
        lines.push(line);
    }
    block(lines)
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;
    use core::net::Ipv6Addr;

    fn conversation(last: u16, bytes: u64) -> ConversationRow {
        let address = IpAddr::from(Ipv6Addr::new(0xfd00, 0x1234, 0x5678, 0x9abc, 1, 2, 3, last));
        let counts = Counts { frames: bytes / 1000, bytes };
        ConversationRow {
            stream: Some(12_345),
            ends: [Address::Port(address, 50_000), Address::Port(address, 443)],
            traffic: Traffic { each: [counts; 2], first_ns: 5_000_000_000, last_ns: 7_500_000_000 },
        }
    }

    #[test]
    fn tables_fit_any_terminal() {
        let rows = [conversation(1, 123_456_789_012), conversation(2, 0)];
        let endpoint = Endpoint {
            address: rows[0].ends[0],
            sent: rows[0].traffic.each[0],
            received: Counts::default(),
        };
        for style in styles() {
            let table = capture_conversations("TCP conversations", &rows, 9, 1_000, &style);
            assert_fits(&table, &style);
            assert_fits(&capture_conversations("none", &[], 0, 0, &style), &style);
            assert_fits(&capture_endpoints("TCP endpoints", &[endpoint], 1, &style), &style);
        }
    }

    /// Figures are below the addresses at 80 columns, and beside them at 200.
    #[test]
    fn one_line_for_a_conversation_where_there_is_room() {
        let rows = [conversation(1, 5_000_000)];
        let lines = |width| {
            let style = Style { colour: false, width, unicode: true };
            let table = capture_conversations("TCP conversations", &rows, 1, 0, &style);
            table.lines().count()
        };
        assert_eq!((lines(80), lines(200)), (5, 3));
    }
}
