//! Where and why a file broke off.

use std::io;

/// A file that could not be read to its end. What was read before is valid.
#[derive(Debug, thiserror::Error)]
#[error("{problem} (byte {at_byte}, after packet {after_packet})")]
pub struct Broken {
    /// Bytes from the start of the file, decompressed, to the record that is invalid.
    pub at_byte: u64,
    /// Number of the last packet that was read; 0 if there was none.
    pub after_packet: u64,
    /// What is wrong.
    pub problem: Problem,
}

impl Broken {
    pub(crate) fn at(at_byte: u64, after_packet: u64, problem: Problem) -> Self {
        Broken { at_byte, after_packet, problem }
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// No byte.
    #[error("the file is empty")]
    Empty,
    /// Neither format.
    #[error("not a capture file (pcap or pcapng)")]
    UnknownFormat,
    /// A capture in another program's format.
    #[error("a file of {0}; convert it with `editcap -F pcapng IN OUT`")]
    OtherFormat(&'static str),
    /// Packed files, or a compression that is not read.
    #[error("{0}: unpack it")]
    Packed(&'static str),
    /// The header of the file or of a section is cut off.
    #[error("the file header is cut off")]
    TruncatedHeader,
    /// The header of a packet or block is cut off.
    #[error("the header of the next packet is cut off")]
    TruncatedRecordHeader,
    /// The file ends inside of a packet or block.
    #[error("the file ends inside of a packet: {have} of {need} bytes are there")]
    TruncatedRecord {
        /// Bytes that are there.
        have: usize,
        /// Bytes of the record.
        need: usize,
    },
    /// A packet longer than [`super::MAX_PACKET`].
    #[error("a packet of {0} bytes: its length is corrupt")]
    AbsurdPacket(u32),
    /// A block that is shorter than its own header, or longer than 16 MiB.
    #[error("a block of {0} bytes: its length is corrupt")]
    AbsurdBlock(u32),
    /// The length at a block's end is not that at its start.
    #[error("a block has two lengths, {0} and {1} bytes")]
    TwoLengths(u32, u32),
    /// A packet of an interface that no block described.
    #[error("a packet of interface {0}, which is not described")]
    UnknownInterface(u32),
    /// More interfaces than [`super::MAX_INTERFACES`].
    #[error("more than {} interfaces", super::MAX_INTERFACES)]
    TooManyInterfaces,
    /// A version of the format that is unknown.
    #[error("version {0}.{1} of the format is unknown")]
    Version(u16, u16),
    /// The source reported an error, or compressed data is corrupt.
    #[error("cannot read: {0}")]
    Read(#[from] io::Error),
}
