//! pcap files (draft-ietf-opsawg-pcap): a header of 24 bytes, then a header of 16 bytes
//! and the bytes of each packet.
//!
//! Some routers write another magic number, and headers of packets that are longer by an
//! interface's index, a protocol and a packet type (Kuznetsov's patch of tcpdump, of which there
//! were several versions).

use super::buffer::Buffer;
use super::options::Order;
use super::summary::{FileSummary, Format, Interface};
use super::{MAX_PACKET, Problem, Record};
use crate::link_type::LinkType;
use std::io::Read;

const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;
/// The patched tcpdump's, and its relative.
const MODIFIED: [u32; 2] = [0xa1b2_cd34, 0xa1b2_cd3d];
/// Captures by Ixia's hardware (times in ns) and software, whose header has the file's length too.
const IXIA: [u32; 2] = [0x1c00_01ac, 0x1c00_01ab];

/// Lengths of the modified header of a packet, the most common first.
const MODIFIED_HEADERS: [u32; 4] = [24, 28, 16, 20];
/// Packets by which the length of their headers is found.
const PROBED: usize = 3;
/// Bytes of a file in which these packets are looked for.
const PROBED_BYTES: usize = 4096;

/// Whether a file with this magic number is a pcap file.
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    order(magic).is_some()
}

/// The byte order, and the magic number in it.
fn order(magic: [u8; 4]) -> Option<(Order, u32)> {
    let known = |number: &u32| {
        [MICROS, NANOS].contains(number) || MODIFIED.contains(number) || IXIA.contains(number)
    };
    let little = Some(u32::from_le_bytes(magic)).filter(known);
    let big = || Some(u32::from_be_bytes(magic)).filter(known);
    let little = little.map(|number| (Order { big_endian: false }, number));
    little.or_else(|| big().map(|number| (Order { big_endian: true }, number)))
}

#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    order: Order,
    /// Nanoseconds of the unit of times.
    unit_ns: u32,
    /// Bytes of the header of a packet.
    header: u32,
    link: LinkType,
}

impl State {
    pub(super) fn begin<R: Read>(
        buffer: &mut Buffer<R>,
        magic: [u8; 4],
        summary: &mut FileSummary,
    ) -> Result<Self, Problem> {
        let Some((order, magic)) = order(magic) else { return Err(Problem::UnknownFormat) };
        let length = if IXIA.contains(&magic) { 28 } else { 24 };
        buffer.fill(length)?;
        let Some(header) = buffer.bytes().first_chunk::<24>().copied() else {
            return Err(Problem::TruncatedHeader);
        };
        let long =
            |at: usize| order.u32([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let major = order.u16([header[4], header[5]]);
        let minor = order.u16([header[6], header[7]]);
        // Every program has written 2.4 since 1998; older minor versions swap the two
        // lengths of a packet, sometimes.
        if (major, minor) != (2, 4) {
            return Err(Problem::Version(major, minor));
        }
        buffer.take(length);
        // The upper bits are the length of the FCS.
        let link = LinkType((long(20) & 0xffff) as u16);
        let is_modified = MODIFIED.contains(&magic);
        let is_nanos = magic == NANOS || magic == IXIA[0];
        let (header, is_nanos) = if is_modified {
            buffer.fill(PROBED_BYTES)?;
            modified_header(buffer.bytes(), order)
        } else {
            (16, is_nanos)
        };
        summary.format = match (is_modified, is_nanos) {
            (true, _) => Format::PcapModified,
            (false, true) => Format::PcapNanos,
            (false, false) => Format::PcapMicros,
        };
        summary.big_endian = order.big_endian;
        summary.interfaces.push(Interface::new(link, long(16)));
        Ok(State { order, unit_ns: if is_nanos { 1 } else { 1000 }, header, link })
    }

    #[inline]
    pub(super) fn next<R: Read>(
        &mut self,
        buffer: &mut Buffer<R>,
    ) -> Result<Option<Record>, Problem> {
        let have = buffer.fill(self.header as usize)?;
        let header = buffer.bytes().first_chunk::<16>();
        let Some(header) = header.filter(|_| have >= self.header as usize) else {
            return if have == 0 { Ok(None) } else { Err(Problem::TruncatedRecordHeader) };
        };
        let long = |at: usize| {
            self.order.u32([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (seconds, fraction, captured, original_len) = (long(0), long(4), long(8), long(12));
        let captured_len = captured as usize;
        if captured_len > MAX_PACKET {
            return Err(Problem::AbsurdPacket(captured));
        }
        let length = self.header as usize + captured_len;
        let have = buffer.fill(length)?;
        if have < length {
            return Err(Problem::TruncatedRecord { have, need: length });
        }
        let fraction_ns = u64::from(fraction) * u64::from(self.unit_ns);
        Ok(Some(Record {
            time_ns: u64::from(seconds) * 1_000_000_000 + fraction_ns,
            original_len,
            interface: 0,
            link: self.link,
            big_endian: self.order.big_endian,
            data: (self.header, length as u32),
            options: (0, 0),
            length: length as u32,
            start: 0,
        }))
    }
}

/// The length of the headers of packets by the first of them in `bytes`, and whether times are in
/// nanoseconds.
fn modified_header(bytes: &[u8], order: Order) -> (u32, bool) {
    let [usual, ..] = MODIFIED_HEADERS;
    let fits = |header: &u32| plausible_fraction(bytes, order, *header as usize);
    let found = MODIFIED_HEADERS.iter().find_map(|header| Some((*header, fits(header)?)));
    found.map_or((usual, false), |(header, fraction)| (header, fraction >= 1_000_000))
}

/// The largest fraction of a second among the first packets, if headers of that length make sense.
fn plausible_fraction(bytes: &[u8], order: Order, header: usize) -> Option<u32> {
    const LONGEST: u32 = 1 << 18;
    let (mut at, mut largest, mut before) = (0, 0, None);
    for _ in 0..PROBED {
        let Some(fixed) = bytes.get(at..).and_then(|rest| rest.first_chunk::<16>()) else { break };
        let long = |at: usize| order.u32([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let (seconds, fraction, captured, original) = (long(0), long(4), long(8), long(12));
        let is_near = before.is_none_or(|it: u32| it.abs_diff(seconds) < 1 << 25);
        if fraction >= 1_000_000_000 || captured > original || original > LONGEST || !is_near {
            return None;
        }
        before = Some(seconds);
        largest = largest.max(fraction);
        at += header + captured as usize;
    }
    Some(largest)
}
