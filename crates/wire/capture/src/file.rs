//! Packets out of capture files: pcap and pcapng, detected by content, plain or
//! compressed. Captures in other formats are named ([`Problem::OtherFormat`]).
//!
//! [`Reader`] has one buffer, which it grows to the longest record that it accepts;
//! a [`Packet`] borrows from it. What was read before an error stays valid, and
//! [`Broken`] says where and why the file broke off.

mod blocks;
mod broken;
mod buffer;
mod bzip2;
mod decompress;
mod options;
mod other_formats;
mod pcap;
mod pcapng;
mod summary;

pub use broken::{Broken, Problem};
pub use decompress::{Compression, Decompressed, HEAD};
pub use options::PacketOptions;
pub use summary::{Backwards, FileSummary, Format, Interface, MAX_INTERFACES, MAX_NAMES, Name};

use crate::link_type::LinkType;
use buffer::Buffer;
use decompress::Source;
use std::io::Read;

/// Longest packet that is read, in bytes as captured: twice the longest that Linux
/// makes (BIG TCP, 512 KiB). A longer one is taken for a corrupt length.
pub const MAX_PACKET: usize = 1 << 20;

/// A packet of a file.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// Its number in the file, from 1.
    pub number: u64,
    /// Time since 1970-01-01 UTC in nanoseconds. A packet without a time has that of
    /// the packet before it.
    pub time_ns: u64,
    /// Length on the wire in bytes.
    pub original_len: u32,
    /// Place of its interface in [`FileSummary::interfaces`].
    pub interface: u32,
    /// Link type of that interface.
    pub link: LinkType,
    /// The bytes that layers refer to: the frame's, or of the last fragment of an IP packet,
    /// that packet reassembled ([`crate::batch`]).
    pub data: &'a [u8],
    /// The bytes that were captured.
    pub frame: &'a [u8],
    /// Options of a pcapng packet: comments, drops, direction.
    pub options: PacketOptions<'a>,
}

/// Where a record is in the buffer.
#[derive(Debug, Clone, Copy)]
struct Record {
    time_ns: u64,
    original_len: u32,
    interface: u32,
    link: LinkType,
    big_endian: bool,
    /// From the start of the record.
    data: (u32, u32),
    options: (u32, u32),
    /// Of the whole record.
    length: u32,
    /// Where the record begins in the buffer.
    start: u32,
}

/// Packets that are handed out at a time: enough that the memory accesses of their flows
/// overlap, and few enough that their headers stay in the first-level cache.
pub const BATCH: usize = 32;

/// Packets that follow each other.
#[derive(Debug, Clone, Copy)]
pub struct Packets<'a> {
    bytes: &'a [u8],
    records: &'a [Record],
    first_number: u64,
    summary: &'a FileSummary,
}

impl<'a> Packets<'a> {
    /// What the file says of itself up to here.
    #[must_use]
    pub fn summary(&self) -> &'a FileSummary {
        self.summary
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// The packets in order, at most [`BATCH`] and at least one.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Packet<'a>> + use<'a> {
        let Packets { bytes, records, first_number, .. } = *self;
        let numbers = first_number..;
        records.iter().zip(numbers).map(move |(record, number)| packet(bytes, record, number))
    }
}

#[inline]
fn packet<'a>(bytes: &'a [u8], record: &Record, number: u64) -> Packet<'a> {
    let start = record.start as usize;
    let slice = |(from, to): (u32, u32)| {
        bytes.get(start + from as usize..start + to as usize).unwrap_or_default()
    };
    Packet {
        number,
        time_ns: record.time_ns,
        original_len: record.original_len,
        interface: record.interface,
        link: record.link,
        data: slice(record.data),
        frame: slice(record.data),
        options: PacketOptions::new(slice(record.options), record.big_endian),
    }
}

/// Reads the packets of a capture file.
#[derive(Debug)]
pub struct Reader<R: Read> {
    buffer: Buffer<Source<R>>,
    summary: FileSummary,
    kind: Kind,
    last_time_ns: u64,
    records: Vec<Record>,
    /// Whether the end of the file, or of its valid part, was reached.
    ended: bool,
}

/// Whether a file that begins with these bytes, of which [`HEAD`] are enough, is a capture in any
/// program's format. A compressed file may be one: see [`Compression::of`].
#[must_use]
pub fn is_capture(head: &[u8]) -> bool {
    let Some(magic) = head.first_chunk() else { return false };
    u32::from_le_bytes(*magic) == pcapng::SECTION_HEADER
        || pcap::is_magic(*magic)
        || matches!(other_formats::problem(head), Problem::OtherFormat(_))
}

#[derive(Debug)]
enum Kind {
    Pcap(pcap::State),
    Pcapng(pcapng::State),
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of a capture from `source`.
    ///
    /// # Errors
    /// No byte, an unknown format, a header that is cut off or contradicts itself; what
    /// `source` reports.
    pub fn new(source: R) -> Result<Self, Broken> {
        let source = Source::detect(source).map_err(|error| Broken::at(0, 0, error.into()))?;
        let compression = source.compression();
        let mut buffer = Buffer::new(source);
        let (kind, summary) = Self::begin(&mut buffer, compression)
            .map_err(|problem| Broken::at(buffer.position(), 0, problem))?;
        Ok(Reader {
            buffer,
            summary,
            kind,
            last_time_ns: 0,
            records: Vec::with_capacity(BATCH),
            ended: false,
        })
    }

    fn begin(
        buffer: &mut Buffer<Source<R>>,
        compression: Compression,
    ) -> Result<(Kind, FileSummary), Problem> {
        let have = buffer.fill(4)?;
        if have == 0 {
            return Err(Problem::Empty);
        }
        let Some(magic) = buffer.bytes().first_chunk().copied() else {
            return Err(Problem::UnknownFormat);
        };
        let mut summary = FileSummary::new(compression);
        if u32::from_le_bytes(magic) == pcapng::SECTION_HEADER {
            summary.format = Format::Pcapng;
            let state = pcapng::State::begin(buffer, &mut summary)?;
            return Ok((Kind::Pcapng(state), summary));
        }
        if !pcap::is_magic(magic) {
            buffer.fill(HEAD)?;
            return Err(other_formats::problem(buffer.bytes()));
        }
        let state = pcap::State::begin(buffer, magic, &mut summary)?;
        Ok((Kind::Pcap(state), summary))
    }

    /// The next packet; `None` at the end of the file, and after an error.
    ///
    /// # Errors
    /// Why and where the file breaks off.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Broken> {
        let record = self.next_record()?;
        let number = self.summary.packets;
        Ok(record.map(|record| packet(self.buffer.all(), &record, number)))
    }

    /// The next packets; `None` at the end of the file, and after an error.
    ///
    /// # Errors
    /// As [`Reader::next_packet`].
    pub fn next_packets(&mut self) -> Result<Option<Packets<'_>>, Broken> {
        self.records.clear();
        let Some(record) = self.next_record()? else { return Ok(None) };
        let first_number = self.summary.packets;
        self.records.push(record);
        // More of them as long as the first ones stay where they are.
        self.buffer.hold();
        while self.records.len() < BATCH {
            // What is not whole in the buffer, or broken, is for the next call.
            let Ok(Some(record)) = self.read_record() else { break };
            let record = self.take(record);
            self.records.push(record);
        }
        self.buffer.release();
        let (bytes, records, summary) = (self.buffer.all(), &self.records, &self.summary);
        Ok(Some(Packets { bytes, records, first_number, summary }))
    }

    #[inline]
    fn read_record(&mut self) -> Result<Option<Record>, Problem> {
        match &mut self.kind {
            Kind::Pcap(state) => state.next(&mut self.buffer),
            Kind::Pcapng(state) => {
                state.next(&mut self.buffer, &mut self.summary, self.last_time_ns)
            }
        }
    }

    #[inline]
    fn next_record(&mut self) -> Result<Option<Record>, Broken> {
        if self.ended {
            return Ok(None);
        }
        match self.read_record() {
            Ok(Some(record)) => Ok(Some(self.take(record))),
            Ok(None) => {
                self.ended = true;
                Ok(None)
            }
            Err(problem) => {
                self.ended = true;
                let packets = self.summary.packets;
                Err(Broken::at(self.buffer.position(), packets, problem))
            }
        }
    }

    /// Counts a record that was read, and takes it from the buffer.
    #[inline]
    fn take(&mut self, mut record: Record) -> Record {
        self.summary.packets += 1;
        if record.time_ns < self.last_time_ns {
            self.summary.went_backwards(self.last_time_ns - record.time_ns);
        }
        self.last_time_ns = record.time_ns;
        // The buffer has at most 16 MiB.
        record.start = self.buffer.take(record.length as usize) as u32;
        record
    }

    /// What the file says of itself, as far as it was read.
    #[must_use]
    pub fn summary(&self) -> &FileSummary {
        &self.summary
    }

    /// Bytes of the file that were read, decompressed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.buffer.position()
    }
}
