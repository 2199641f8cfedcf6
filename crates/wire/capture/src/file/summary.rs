//! What a file says of itself.

use super::Compression;
use crate::link_type::LinkType;
use core::net::IpAddr;

/// Interfaces of a file that are read; a file with more is broken.
pub const MAX_INTERFACES: usize = 4096;

/// Names of addresses that are kept.
pub const MAX_NAMES: usize = 4096;

/// Texts that are kept of a file, and the length of each in bytes.
const MAX_COMMENTS: usize = 16;
pub(super) const MAX_TEXT: usize = 1024;

/// Format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// pcap with times in microseconds.
    PcapMicros,
    /// pcap with times in nanoseconds.
    PcapNanos,
    /// pcap with longer headers of packets, as some routers write it.
    PcapModified,
    /// pcapng.
    Pcapng,
}

impl Format {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::PcapMicros => "pcap",
            Format::PcapNanos => "pcap, nanoseconds",
            Format::PcapModified => "modified pcap",
            Format::Pcapng => "pcapng",
        }
    }
}

/// An interface of a file. A pcap file has one.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Link type of its packets.
    pub link: LinkType,
    /// Longest part of a packet that is captured, in bytes; 0 for no limit.
    pub snaplen: u32,
    /// Name and description; empty where there is none. Text of the file: unfiltered.
    pub name: String,
    /// Description.
    pub description: String,
    /// Packets in the file, as far as it was read.
    pub packets: u64,
    /// Packets that the interface received, by the statistics block.
    pub received: Option<u64>,
    /// Packets dropped for want of buffers, by the statistics block.
    pub dropped: Option<u64>,
    /// Packets dropped by the operating system, by the statistics block.
    pub os_dropped: Option<u64>,
}

impl Interface {
    pub(super) fn new(link: LinkType, snaplen: u32) -> Self {
        Interface {
            link,
            snaplen,
            name: String::new(),
            description: String::new(),
            packets: 0,
            received: None,
            dropped: None,
            os_dropped: None,
        }
    }
}

/// A name of an address (name resolution block).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The address.
    pub address: IpAddr,
    /// Its name. Text of the file: unfiltered.
    pub name: String,
}

/// Times that run backwards: each is earlier than that of the packet before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backwards {
    /// How many.
    pub count: u64,
    /// Number of the first one.
    pub first_packet: u64,
    /// The largest step, in nanoseconds.
    pub largest_ns: u64,
}

/// What a file says of itself, as far as it was read.
#[derive(Debug, Clone)]
pub struct FileSummary {
    /// Format.
    pub format: Format,
    /// Byte order: of pcapng, that of the section read last.
    pub big_endian: bool,
    /// Compression.
    pub compression: Compression,
    /// Interfaces of all sections, in order.
    pub interfaces: Vec<Interface>,
    /// Sections of a pcapng file.
    pub sections: u64,
    /// Packets that were read.
    pub packets: u64,
    /// Packets with a comment.
    pub packet_comments: u64,
    /// Comments of sections and interfaces. Text of the file: unfiltered.
    pub comments: Vec<String>,
    /// What captured the packets: hardware, operating system, program. Unfiltered.
    pub captured_by: Vec<String>,
    /// Names of addresses.
    pub names: Vec<Name>,
    /// Blocks that are not read: secrets, custom blocks, unknown ones.
    pub other_blocks: u64,
    /// Times that run backwards.
    pub backwards: Option<Backwards>,
}

impl FileSummary {
    pub(super) fn new(compression: Compression) -> Self {
        FileSummary {
            format: Format::PcapMicros,
            big_endian: false,
            compression,
            interfaces: Vec::new(),
            sections: 0,
            packets: 0,
            packet_comments: 0,
            comments: Vec::new(),
            captured_by: Vec::new(),
            names: Vec::new(),
            other_blocks: 0,
            backwards: None,
        }
    }

    /// Packets that were dropped, by the statistics of all interfaces; `None` if the
    /// file has none.
    #[must_use]
    pub fn dropped(&self) -> Option<u64> {
        let counts = self.interfaces.iter().flat_map(|it| [it.dropped, it.os_dropped]).flatten();
        counts.fold(None, |sum, count| Some(sum.unwrap_or(0_u64).saturating_add(count)))
    }

    #[cold]
    pub(super) fn went_backwards(&mut self, step_ns: u64) {
        let first_packet = self.packets;
        let it = self.backwards.get_or_insert(Backwards { count: 0, first_packet, largest_ns: 0 });
        it.count += 1;
        it.largest_ns = it.largest_ns.max(step_ns);
    }

    pub(super) fn add_comment(&mut self, bytes: &[u8]) {
        if self.comments.len() < MAX_COMMENTS {
            self.comments.push(text(bytes));
        }
    }

    pub(super) fn add_captured_by(&mut self, bytes: &[u8]) {
        let text = text(bytes);
        if self.captured_by.len() < MAX_COMMENTS && !self.captured_by.contains(&text) {
            self.captured_by.push(text);
        }
    }

    pub(super) fn add_name(&mut self, address: IpAddr, name: &[u8]) {
        if self.names.len() < MAX_NAMES {
            self.names.push(Name { address, name: text(name) });
        }
    }
}

/// The text of an option: UTF-8, up to its first NUL, of bounded length.
pub(super) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let bytes = bytes.get(..MAX_TEXT).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}
