//! pcapng files (draft-ietf-opsawg-pcapng): blocks, each with its type and twice its
//! length. A section header sets the byte order and forgets the interfaces before.

use super::blocks;
use super::buffer::Buffer;
use super::options::{Options, Order};
use super::summary::{FileSummary, Interface, MAX_INTERFACES};
use super::{MAX_PACKET, Problem, Record};
use std::io::Read;

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const NAME_RESOLUTION: u32 = 4;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Value of the byte-order magic in the order of the section.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Longest block that is accepted.
const MAX_BLOCK: u32 = 16 << 20;
/// Longest block that is read as a whole: a packet with some options. Of other blocks
/// that are longer nothing is used.
const MAX_BUFFERED: usize = MAX_PACKET + (64 << 10);

/// The interfaces of the section, and the byte order.
#[derive(Debug)]
pub(super) struct State {
    order: Order,
    clocks: Vec<blocks::Clock>,
    /// Place of the section's first interface in the summary.
    first_interface: usize,
}

impl State {
    pub(super) fn begin<R: Read>(
        buffer: &mut Buffer<R>,
        summary: &mut FileSummary,
    ) -> Result<Self, Problem> {
        let order = Order { big_endian: false };
        let mut state = State { order, clocks: Vec::new(), first_interface: 0 };
        state.section(buffer, summary).map_err(|problem| match problem {
            Problem::TruncatedRecordHeader | Problem::TruncatedRecord { .. } => {
                Problem::TruncatedHeader
            }
            other => other,
        })?;
        Ok(state)
    }

    #[inline]
    pub(super) fn next<R: Read>(
        &mut self,
        buffer: &mut Buffer<R>,
        summary: &mut FileSummary,
        last_time_ns: u64,
    ) -> Result<Option<Record>, Problem> {
        loop {
            let have = buffer.fill(12)?;
            let Some(header) = buffer.bytes().first_chunk::<8>() else {
                return if have == 0 { Ok(None) } else { Err(Problem::TruncatedRecordHeader) };
            };
            let [a, b, c, d, e, f, g, h] = *header;
            let (kind, length) = (self.order.u32([a, b, c, d]), self.order.u32([e, f, g, h]));
            if kind == SECTION_HEADER {
                self.section(buffer, summary)?;
                continue;
            }
            let is_packet = matches!(kind, ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET);
            let Some(length) = self.whole(buffer, length, is_packet)? else {
                summary.other_blocks += 1;
                continue;
            };
            let body = &buffer.bytes()[8..length - 4];
            if is_packet {
                let read = match kind {
                    ENHANCED_PACKET => blocks::enhanced_packet(body, self.order, &self.clocks),
                    SIMPLE_PACKET => blocks::simple_packet(
                        body,
                        self.order,
                        &self.clocks,
                        self.snaplen(summary),
                        last_time_ns,
                    ),
                    _ => blocks::obsolete_packet(body, self.order, &self.clocks),
                };
                let mut record = read?;
                record.length = length as u32;
                record.big_endian = self.order.big_endian;
                self.count(&mut record, body, summary);
                return Ok(Some(record));
            }
            self.other(kind, body, summary)?;
            buffer.take(length);
        }
    }

    /// Has the block in the buffer; `None` if it was skipped because nothing of it is
    /// used.
    #[inline]
    fn whole<R: Read>(
        &self,
        buffer: &mut Buffer<R>,
        length: u32,
        is_packet: bool,
    ) -> Result<Option<usize>, Problem> {
        // Some writers leave out the padding of the last option; the length is what
        // counts, and the next block begins at a multiple of 4.
        let size = super::options::padded(length as usize);
        if !(12..=MAX_BLOCK).contains(&length) || (is_packet && size > MAX_BUFFERED) {
            return Err(Problem::AbsurdBlock(length));
        }
        if size > MAX_BUFFERED {
            let have = buffer.skip(size)?;
            return if have < size {
                Err(Problem::TruncatedRecord { have, need: size })
            } else {
                Ok(None)
            };
        }
        let have = buffer.fill(size)?;
        let Some(tail) = buffer.bytes().get(size - 4..size).and_then(<[u8]>::first_chunk) else {
            return Err(Problem::TruncatedRecord { have, need: size });
        };
        let again = self.order.u32(*tail);
        if again != length {
            return Err(Problem::TwoLengths(length, again));
        }
        Ok(Some(size))
    }

    fn section<R: Read>(
        &mut self,
        buffer: &mut Buffer<R>,
        summary: &mut FileSummary,
    ) -> Result<(), Problem> {
        let have = buffer.fill(28)?;
        let Some(header) = buffer.bytes().first_chunk::<28>().copied() else {
            return Err(Problem::TruncatedRecord { have, need: 28 });
        };
        let magic = [header[8], header[9], header[10], header[11]];
        self.order = Order { big_endian: u32::from_be_bytes(magic) == BYTE_ORDER_MAGIC };
        if self.order.u32(magic) != BYTE_ORDER_MAGIC {
            return Err(Problem::UnknownFormat);
        }
        let major = self.order.u16([header[12], header[13]]);
        let minor = self.order.u16([header[14], header[15]]);
        // Version 1.2 is that of some files, and the same as 1.0.
        if major != 1 {
            return Err(Problem::Version(major, minor));
        }
        let length = self.order.u32([header[4], header[5], header[6], header[7]]);
        if length < 28 {
            return Err(Problem::AbsurdBlock(length));
        }
        if let Some(length) = self.whole(buffer, length, false)? {
            let options = &buffer.bytes()[24..length - 4];
            for (code, value) in (Options { rest: options, order: self.order }) {
                match code {
                    super::options::COMMENT => summary.add_comment(value),
                    // shb_hardware, shb_os, shb_userappl
                    2..=4 => summary.add_captured_by(value),
                    _ => {}
                }
            }
            buffer.take(length);
        }
        summary.sections += 1;
        summary.big_endian = self.order.big_endian;
        self.clocks.clear();
        self.first_interface = summary.interfaces.len();
        Ok(())
    }

    fn snaplen(&self, summary: &FileSummary) -> u32 {
        summary.interfaces.get(self.first_interface).map_or(0, |it| it.snaplen)
    }

    /// Counts a packet, and numbers its interface among those of all sections.
    #[inline]
    fn count(&self, record: &mut Record, body: &[u8], summary: &mut FileSummary) {
        record.interface += self.first_interface as u32;
        let interface = summary.interfaces.get_mut(record.interface as usize);
        let (from, to) = record.options;
        if to > from {
            // The body begins after the block's type and length.
            let rest = body.get(from as usize - 8..to as usize - 8).unwrap_or_default();
            let mut options = Options { rest, order: self.order };
            if options.any(|(code, _)| code == super::options::COMMENT) {
                summary.packet_comments += 1;
            }
        }
        if let Some(interface) = interface {
            interface.packets += 1;
        }
    }

    fn other(&mut self, kind: u32, body: &[u8], summary: &mut FileSummary) -> Result<(), Problem> {
        match kind {
            INTERFACE => {
                if summary.interfaces.len() >= MAX_INTERFACES {
                    return Err(Problem::TooManyInterfaces);
                }
                let (interface, clock) = blocks::interface(body, self.order, summary)?;
                summary.interfaces.push(interface);
                self.clocks.push(clock);
            }
            NAME_RESOLUTION => blocks::names(body, self.order, summary),
            STATISTICS => {
                if let Some((number, statistics)) = blocks::statistics(body, self.order) {
                    let place = self.first_interface + number as usize;
                    if let Some(interface) = summary.interfaces.get_mut(place) {
                        update(interface, statistics);
                    }
                }
            }
            _ => summary.other_blocks += 1,
        }
        Ok(())
    }
}

/// Takes over the counters of a statistics block, which are totals.
fn update(interface: &mut Interface, statistics: blocks::Statistics) {
    interface.received = statistics.received.or(interface.received);
    interface.dropped = statistics.dropped.or(interface.dropped);
    interface.os_dropped = statistics.os_dropped.or(interface.os_dropped);
}
