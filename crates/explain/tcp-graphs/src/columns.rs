//! Bins and packets as columns of variable-length integers, for a page.
//!
//! A column is its length as a LEB128 number, and then the differences of its values, each
//! as a zigzag LEB128 number; a 0 is followed by how many further zeros it stands for. So
//! what changes evenly, or not at all, costs next to nothing. The reader is
//! `front/report/src/html/capture/decode.js`.

use crate::bins::{Bin, Bins, Span};
use crate::marks::MARK_COUNT;
use crate::packets::KeptPacket;
use crate::recorder::Graphs;

/// The graphs of a connection in bytes; index 0 is the data of side A, or its packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Width of a bin in ns.
    pub width_ns: [i64; 2],
    /// Columns of bins.
    pub bins: [Vec<u8>; 2],
    /// Columns of single packets.
    pub packets: [Vec<u8>; 2],
    /// Single packets in them.
    pub kept: usize,
    /// Packets of the connection.
    pub packet_count: u64,
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a column.
fn column(out: &mut Vec<u8>, values: impl Iterator<Item = i64> + Clone) {
    number(out, values.clone().count() as u64);
    let (mut last, mut zeros) = (0_i64, 0_u64);
    for value in values {
        let difference = value.wrapping_sub(last);
        last = value;
        if difference == 0 {
            zeros += 1;
            continue;
        }
        if zeros > 0 {
            out.push(0);
            number(out, zeros - 1);
            zeros = 0;
        }
        number(out, (difference << 1 ^ (difference >> 63)) as u64);
    }
    if zeros > 0 {
        out.push(0);
        number(out, zeros - 1);
    }
}

fn unsigned(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Two columns: the low ends, and how far above them the high ends are.
fn spans(out: &mut Vec<u8>, values: impl Iterator<Item = Span> + Clone) {
    column(out, values.clone().map(|span| span.low));
    column(out, values.map(|span| span.high.saturating_sub(span.low)));
}

/// Index and the ends of a series that some bins have.
fn series(out: &mut Vec<u8>, bins: &Bins, of: impl Fn(&Bin) -> Option<Span> + Copy) {
    let some = bins.iter().filter_map(move |(index, bin)| Some((index, of(bin)?)));
    column(out, some.clone().map(|(index, _)| index));
    spans(out, some.map(|(_, span)| span));
}

/// Data, marks, ACKs, SACK, RTT and bytes in flight, each with the indices of its bins.
pub(crate) fn of_bins(bins: &Bins) -> Vec<u8> {
    let mut out = Vec::new();
    let out = &mut out;
    let data = bins.iter().filter_map(|(index, bin)| Some((index, bin.data?)));
    column(out, data.clone().map(|(index, _)| index));
    spans(out, data.clone().map(|(_, data)| data.packets));
    column(out, data.clone().map(|(_, data)| unsigned(data.segments)));
    column(out, data.clone().map(|(_, data)| unsigned(data.bytes)));
    spans(out, data.map(|(_, data)| data.seq));

    let marked = bins.iter().filter(|(_, bin)| bin.is_marked());
    column(out, marked.clone().map(|(index, _)| index));
    spans(out, marked.clone().map(|(_, bin)| bin.marked.unwrap_or(Span::of(0))));
    for mark in 0..MARK_COUNT {
        column(out, marked.clone().map(|(_, bin)| i64::from(bin.marks[mark])));
    }

    let acks = bins.iter().filter_map(|(index, bin)| Some((index, bin.acks?)));
    column(out, acks.clone().map(|(index, _)| index));
    spans(out, acks.clone().map(|(_, acks)| acks.packets));
    column(out, acks.clone().map(|(_, acks)| unsigned(acks.segments)));
    spans(out, acks.clone().map(|(_, acks)| acks.ack));
    // Relative to the ACKs: a window that does not change has no differences.
    let edges = acks.clone().map(|(_, acks)| Span {
        low: acks.edge.low.saturating_sub(acks.ack.low),
        high: acks.edge.high.saturating_sub(acks.ack.low),
    });
    spans(out, edges);
    spans(out, acks.clone().map(|(_, acks)| acks.window));
    column(out, acks.map(|(_, acks)| unsigned(acks.delivered)));

    series(out, bins, |bin| bin.sacked);
    series(out, bins, |bin| bin.rtt);
    series(out, bins, |bin| bin.in_flight);
    std::mem::take(out)
}

/// The kept packets of a side.
pub(crate) fn of_packets(graphs: &Graphs, side: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let out = &mut out;
    let packets = graphs.packets().filter(move |packet| packet.side == side);
    let columns: [fn(&KeptPacket) -> i64; 11] = [
        |packet| unsigned(packet.number),
        |packet| unsigned(packet.ordinal),
        |packet| packet.time_ns,
        |packet| i64::from(packet.tcp_flags),
        |packet| i64::from(packet.flags.0),
        |packet| packet.marks[0].map_or(0, |mark| mark as i64 + 1),
        |packet| packet.seq,
        |packet| i64::from(packet.len),
        // -1: no ACK. Relative numbers of a SYN's ACK are 1.
        |packet| packet.ack.unwrap_or(-1),
        |packet| unsigned(packet.window),
        |packet| packet.in_flight.map_or(-1, i64::from),
    ];
    for of in columns {
        column(out, packets.clone().map(of));
    }
    column(out, packets.clone().map(|packet| packet.rtt_ns.map_or(-1, unsigned)));
    column(out, packets.clone().map(|packet| i64::from(packet.block_count)));
    let blocks = packets.flat_map(|packet| {
        // From the ACK on.
        let ack = packet.ack.unwrap_or(0);
        packet.blocks().iter().map(move |(left, right)| Span {
            low: left.saturating_sub(ack),
            high: right.saturating_sub(ack),
        })
    });
    spans(out, blocks);
    std::mem::take(out)
}
