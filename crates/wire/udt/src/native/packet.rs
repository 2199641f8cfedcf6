//! Packets of the native mode: a header of 16 bytes, then, under protection, one frame.
//! Numbers are big-endian.
//!
//! ```text
//!  0               2               4                               12              16
//! +---------------+---------------+-------------------------------+---------------+
//! |    0xFFFF     |     kind      |    receiver's connection ID   | packet number |
//! +---------------+---------------+-------------------------------+---------------+
//! ```
//!
//! `0xFFFF` is UDT's user-defined control packet: a peer that only has UDT ignores it.

use runs::PacketRun;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 16;
/// Bytes that protection adds (AEAD tag).
pub(crate) const TAG_BYTES: usize = 16;
/// Bytes of an acknowledgement before its ranges.
pub(crate) const ACK_BYTES: usize = 21;
/// Bytes of a data frame before its payload.
pub(crate) const DATA_BYTES: usize = 10;
/// Ranges that an acknowledgement reports at most: those of the newest packets, as far as
/// they fit into a packet. Where a queue overflows, every other packet may be missing.
pub(crate) const MAX_RANGES: usize = 512;

const USER_DEFINED: u16 = 0xFFFF;

/// Under which keys a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketKind {
    /// TLS's first messages, which are not encrypted.
    Initial,
    /// TLS's other messages.
    Handshake,
    /// Everything else, under the keys of that phase (RFC 9001 section 6).
    Protected { phase: bool },
}

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: PacketKind,
    pub(crate) destination: u64,
    /// The lower 32 bits of the packet's number.
    pub(crate) number: u32,
}

impl Header {
    pub(crate) fn parse(datagram: &[u8]) -> Option<(Header, &[u8])> {
        let (header, body) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        let [a, b, c, d, id @ .., n0, n1, n2, n3] = *header;
        if u16::from_be_bytes([a, b]) != USER_DEFINED {
            return None;
        }
        let kind = match u16::from_be_bytes([c, d]) {
            1 => PacketKind::Initial,
            2 => PacketKind::Handshake,
            3 => PacketKind::Protected { phase: false },
            4 => PacketKind::Protected { phase: true },
            _ => return None,
        };
        let number = u32::from_be_bytes([n0, n1, n2, n3]);
        Some((Header { kind, destination: u64::from_be_bytes(id), number }, body))
    }

    pub(crate) fn bytes(self) -> [u8; HEADER_BYTES] {
        let kind: u16 = match self.kind {
            PacketKind::Initial => 1,
            PacketKind::Handshake => 2,
            PacketKind::Protected { phase: false } => 3,
            PacketKind::Protected { phase: true } => 4,
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..2].copy_from_slice(&USER_DEFINED.to_be_bytes());
        bytes[2..4].copy_from_slice(&kind.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.destination.to_be_bytes());
        bytes[12..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }
}

/// The 64-bit number nearest to `near` with these lower 32 bits (RFC 9000 appendix A.3).
pub(crate) const fn expand(lower: u32, near: u64) -> u64 {
    let distance = lower.wrapping_sub(near as u32);
    if distance < 1 << 31 {
        near.saturating_add(distance as u64)
    } else {
        // Before `near`, or where there is nothing before it, after.
        match near.checked_sub((u32::MAX - distance) as u64 + 1) {
            Some(number) => number,
            None => near.saturating_add(distance as u64),
        }
    }
}

/// What a protected packet carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Frame<'a> {
    /// Part of the stream.
    Data(DataHeader, &'a [u8]),
    /// An acknowledgement.
    Ack(Ack<'a>),
    /// Nothing; it is acknowledged.
    Ping,
    /// The connection is closed.
    Close,
    /// The receiver returns the number from the address at which it received it.
    PathChallenge(u64),
    /// The number of a challenge.
    PathResponse(u64),
}

/// A data frame without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataHeader {
    /// Lower 32 bits of the packet's place in the stream, in packets.
    pub(crate) sequence: u32,
    /// Time of sending, us, modulo 2^32.
    pub(crate) timestamp_us: u32,
    /// It is the last packet of the stream.
    pub(crate) is_last: bool,
    /// The receiver's window keeps the sender from sending more.
    pub(crate) is_blocked: bool,
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ack<'a> {
    /// Time from the arrival of the newest packet to the acknowledgement, us.
    pub(crate) delay_us: u32,
    /// The sender's timestamp in the newest packet of data, and when that arrived by the
    /// receiver's clock, us.
    pub(crate) timestamp_us: u32,
    pub(crate) arrived_us: u32,
    /// Lower 32 bits of the first packet of the stream beyond the receiver's buffer.
    pub(crate) edge: u32,
    /// The largest packet number received, lower 32 bits.
    pub(crate) largest: u32,
    /// Gaps and lengths of ranges of packets received, from the largest number down, in
    /// base 128 with the lower digits first (LEB128).
    pub(crate) ranges: &'a [u8],
}

const DATA: u8 = 0;
const ACK: u8 = 1;
const PING: u8 = 2;
const CLOSE: u8 = 3;
const PATH_CHALLENGE: u8 = 4;
const PATH_RESPONSE: u8 = 5;
const LAST: u8 = 1;
const BLOCKED: u8 = 2;

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk::<4>()?))
}

impl<'a> Frame<'a> {
    /// Parses what protection protected; `None` for what is no frame.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let (kind, rest) = bytes.split_first()?;
        let number = || Some(u64::from_be_bytes(*rest.first_chunk::<8>()?));
        Some(match *kind {
            DATA => {
                let flags = *rest.first()?;
                let header = DataHeader {
                    sequence: word(rest, 1)?,
                    timestamp_us: word(rest, 5)?,
                    is_last: flags & LAST != 0,
                    is_blocked: flags & BLOCKED != 0,
                };
                Frame::Data(header, &rest[DATA_BYTES - 1..])
            }
            ACK => {
                let ranges = rest.get(ACK_BYTES - 1..)?;
                if ranges.is_empty() {
                    return None;
                }
                Frame::Ack(Ack {
                    delay_us: word(rest, 0)?,
                    timestamp_us: word(rest, 4)?,
                    arrived_us: word(rest, 8)?,
                    edge: word(rest, 12)?,
                    largest: word(rest, 16)?,
                    ranges,
                })
            }
            PING => Frame::Ping,
            CLOSE => Frame::Close,
            PATH_CHALLENGE => Frame::PathChallenge(number()?),
            PATH_RESPONSE => Frame::PathResponse(number()?),
            _ => return None,
        })
    }

    /// Appends a frame without ranges or payload of its own.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Data(header, payload) => {
                out.extend(header.bytes());
                out.extend(*payload);
            }
            Frame::Ack(ack) => {
                out.push(ACK);
                let words = [ack.delay_us, ack.timestamp_us, ack.arrived_us, ack.edge, ack.largest];
                out.extend(words.into_iter().flat_map(u32::to_be_bytes));
                out.extend(ack.ranges);
            }
            Frame::Ping => out.push(PING),
            Frame::Close => out.push(CLOSE),
            Frame::PathChallenge(number) => {
                out.push(PATH_CHALLENGE);
                out.extend(number.to_be_bytes());
            }
            Frame::PathResponse(number) => {
                out.push(PATH_RESPONSE);
                out.extend(number.to_be_bytes());
            }
        }
    }
}

impl DataHeader {
    pub(crate) fn bytes(self) -> [u8; DATA_BYTES] {
        let mut bytes = [DATA; DATA_BYTES];
        bytes[1] = if self.is_last { LAST } else { 0 } | if self.is_blocked { BLOCKED } else { 0 };
        bytes[2..6].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[6..].copy_from_slice(&self.timestamp_us.to_be_bytes());
        bytes
    }
}

impl<'a> Ack<'a> {
    /// An acknowledgement of the newest runs of what was received; `ranges` is room for
    /// them, of which it uses `max_bytes` at most. `None` if nothing was.
    pub(crate) fn new(
        received: impl DoubleEndedIterator<Item = PacketRun>,
        ranges: &'a mut Vec<u8>,
        max_bytes: usize,
    ) -> Option<Ack<'a>> {
        ranges.clear();
        let mut newest = None;
        let mut below = 0;
        for run in received.rev().take(MAX_RANGES) {
            let fitting = ranges.len();
            let gap = if newest.is_none() { 0 } else { below - run.end };
            push_number(gap, ranges);
            push_number(run.len(), ranges);
            if ranges.len() > max_bytes {
                ranges.truncate(fitting);
                break;
            }
            newest.get_or_insert(run.end - 1);
            below = run.start;
        }
        let (delay_us, timestamp_us, arrived_us, edge) = (0, 0, 0, 0);
        let largest = newest? as u32;
        Some(Ack { delay_us, timestamp_us, arrived_us, edge, largest, ranges })
    }

    /// The ranges, from the newest down, where `largest` is the largest number. It stops
    /// before what would be below zero.
    pub(crate) fn runs(&self, largest: u64) -> impl Iterator<Item = PacketRun> + use<'a> {
        let mut below = largest.saturating_add(1);
        let mut rest = self.ranges;
        std::iter::from_fn(move || {
            let (gap, length) = (take_number(&mut rest)?, take_number(&mut rest)?);
            let end = below.checked_sub(gap)?;
            let start = end.checked_sub(length)?;
            below = start;
            Some(PacketRun::new(start, end))
        })
        .take(MAX_RANGES)
    }
}

fn push_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A number below 2^63; `None` for a larger one or at the end.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for digit in 0..9 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 127) << (7 * digit);
        if first & 128 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use runs::RunSet;

    proptest! {
        #[test]
        fn headers_are_parsed_as_written(phase: bool, kind in 0..3, destination: u64, number: u32) {
            let kind =
                [PacketKind::Initial, PacketKind::Handshake, PacketKind::Protected { phase }][kind as usize];
            let header = Header { kind, destination, number };
            let bytes = [&header.bytes()[..], b"body"].concat();
            prop_assert_eq!(Header::parse(&bytes), Some((header, &b"body"[..])));
            // UDT sees a user-defined control packet.
            prop_assert!(matches!(
                crate::Packet::parse(&bytes),
                Ok(crate::Packet::Control(_, crate::Control::UserDefined(..)))
            ));
        }

        #[test]
        fn numbers_near_another_are_found(near: u64, distance in -(1_i64 << 31)..1 << 31) {
            if let Some(number) = near.checked_add_signed(distance) {
                prop_assert_eq!(expand(number as u32, near), number);
            }
        }

        #[test]
        fn frames_are_parsed_as_written(
            sequence: u32, timestamp_us: u32, is_last: bool, is_blocked: bool, payload: Vec<u8>,
            number: u64,
            max_bytes in 8_usize..500,
            received in prop::collection::btree_set(0_u64..10_000, 1..100),
        ) {
            let mut set = RunSet::default();
            for number in &received {
                set.insert(PacketRun::new(*number, number + 1));
            }
            let mut room = Vec::new();
            let ack = Ack::new(set.iter(), &mut room, max_bytes).unwrap();
            let ack = Ack { edge: sequence, ..ack };
            prop_assert!(ack.ranges.len() <= max_bytes);
            let all: Vec<PacketRun> = set.iter().rev().collect();
            let largest = *received.last().unwrap();
            let runs: Vec<PacketRun> = ack.runs(largest).collect();
            prop_assert!(all.starts_with(&runs) && !runs.is_empty());
            prop_assert!(runs.len() == all.len() || 4 * (runs.len() + 1) > max_bytes);
            let data = DataHeader { sequence, timestamp_us, is_last, is_blocked };
            for frame in [
                Frame::Data(data, &payload),
                Frame::Ack(ack),
                Frame::Ping,
                Frame::Close,
                Frame::PathChallenge(number),
                Frame::PathResponse(number),
            ] {
                let mut bytes = Vec::new();
                frame.write(&mut bytes);
                prop_assert_eq!(Frame::parse(&bytes), Some(frame));
            }
        }

        #[test]
        fn any_bytes_are_refused_or_parsed(bytes: Vec<u8>, largest: u64) {
            let _ = Header::parse(&bytes);
            if let Some(Frame::Ack(ack)) = Frame::parse(&bytes) {
                let runs: Vec<PacketRun> = ack.runs(largest >> 1).collect();
                prop_assert!(runs.len() <= MAX_RANGES);
                prop_assert!(runs.windows(2).all(|pair| pair[1].end <= pair[0].start));
            }
        }
    }
}
