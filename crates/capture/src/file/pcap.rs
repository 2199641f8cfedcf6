//! pcap files (draft-ietf-opsawg-pcap): a header of 24 bytes, then a header of 16 bytes
//! and the bytes of each packet.

use super::buffer::Buffer;
use super::options::Order;
use super::summary::{FileSummary, Format, Interface};
use super::{MAX_PACKET, Problem, Record};
use crate::link_type::LinkType;
use std::io::Read;

const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;

#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    order: Order,
    /// Nanoseconds of the unit of times.
    unit_ns: u32,
    link: LinkType,
}

impl State {
    pub(super) fn begin<R: Read>(
        buffer: &mut Buffer<R>,
        magic: [u8; 4],
        summary: &mut FileSummary,
    ) -> Result<Self, Problem> {
        let known = |value| match value {
            MICROS => Some(1000),
            NANOS => Some(1),
            _ => None,
        };
        let (little, big) = (u32::from_le_bytes(magic), u32::from_be_bytes(magic));
        let (big_endian, unit_ns) = match (known(little), known(big)) {
            (Some(unit), _) => (false, unit),
            (_, Some(unit)) => (true, unit),
            _ => return Err(Problem::UnknownFormat),
        };
        buffer.fill(24)?;
        let Some(header) = buffer.bytes().first_chunk::<24>().copied() else {
            return Err(Problem::TruncatedHeader);
        };
        let order = Order { big_endian };
        let long =
            |at: usize| order.u32([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let major = order.u16([header[4], header[5]]);
        let minor = order.u16([header[6], header[7]]);
        // Every program has written 2.4 since 1998; older minor versions swap the two
        // lengths of a packet, sometimes.
        if (major, minor) != (2, 4) {
            return Err(Problem::Version(major, minor));
        }
        buffer.take(24);
        // The upper bits are the length of the FCS.
        let link = LinkType((long(20) & 0xffff) as u16);
        summary.format = if unit_ns == 1 { Format::PcapNanos } else { Format::PcapMicros };
        summary.big_endian = big_endian;
        summary.interfaces.push(Interface::new(link, long(16)));
        Ok(State { order, unit_ns, link })
    }

    #[inline]
    pub(super) fn next<R: Read>(
        &mut self,
        buffer: &mut Buffer<R>,
    ) -> Result<Option<Record>, Problem> {
        let have = buffer.fill(16)?;
        let Some(header) = buffer.bytes().first_chunk::<16>() else {
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
        let length = 16 + captured_len;
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
            data: (16, length as u32),
            options: (0, 0),
            length: length as u32,
            start: 0,
        }))
    }
}
