//! Messages: a header of 8 bytes, and the target after that of `Open`.
//!
//! ```text
//!    0        1        2        3        4        5        6        7
//! ┌────────┬────────┬─────────────────┬───────────────────────────────────┐
//! │ kind   │ code   │ size - 1 or 0   │ length                            │
//! └────────┴────────┴─────────────────┴───────────────────────────────────┘
//! ```
//!
//! `code` is the reason of `Refused`, otherwise 0; `length` counts the bytes after the header:
//! of `Data`, 1 to 16 MiB; of `Open`, the target's; of `Compressed`, the block's, which is shorter
//! than the 1 to 65,536 bytes (`size`) that it decompresses to; otherwise 0.

use crate::refusal::Refusal;
use crate::state::LaneError;
use crate::target::Target;

/// Length of a header in bytes.
pub const HEADER_BYTES: usize = 8;
/// Longest run of payload after one header, in bytes.
pub const MAX_RUN: u32 = 16 << 20;
/// Largest size of a decompressed block, in bytes.
pub const MAX_BLOCK: usize = 64 << 10;

/// A block of compressed payload: its lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    length: u16,
    /// The size without 1, so that 65,536 has a place.
    size_less_one: u16,
}

impl Block {
    /// A block of `length` bytes that decompresses to `size`; `None` if it gains nothing or is too
    /// large.
    #[must_use]
    pub fn new(length: usize, size: usize) -> Option<Self> {
        let size_less_one = u16::try_from(size.checked_sub(1)?).ok()?;
        let length =
            u16::try_from(length).ok().filter(|length| (1..=size_less_one).contains(length));
        length.map(|length| Block { length, size_less_one })
    }

    /// Bytes on the lane.
    #[must_use]
    pub fn length(self) -> usize {
        usize::from(self.length)
    }

    /// Bytes that it decompresses to.
    #[must_use]
    pub fn size(self) -> usize {
        usize::from(self.size_less_one) + 1
    }
}

/// A message of either end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Near: connect to this target; bytes for it may follow at once.
    Open(Target),
    /// Far: the target accepted the connection.
    Opened,
    /// Far: it did not, which ends this direction.
    Refused(Refusal),
    /// So many bytes of payload follow, at least one.
    Data(u32),
    /// A block of compressed payload follows, on lanes whose boxes have both offered it.
    Compressed(Block),
    /// No more bytes in this direction (FIN).
    End,
    /// The flow is aborted (RST), which ends this direction.
    Reset,
    /// Far: both directions have ended and the target has taken everything, so the lane is free.
    Closed,
    /// Asks for a `Pong`, which may answer several.
    Ping,
    /// Answers a `Ping`.
    Pong,
}

/// The fixed part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// The length of the target.
    Open(usize),
    Opened,
    Refused(Refusal),
    Data(u32),
    Compressed(Block),
    End,
    Reset,
    Closed,
    Ping,
    Pong,
}

const OPEN: u8 = 1;
const OPENED: u8 = 2;
const REFUSED: u8 = 3;
const DATA: u8 = 4;
const END: u8 = 5;
const RESET: u8 = 6;
const CLOSED: u8 = 7;
const PING: u8 = 8;
const PONG: u8 = 9;
const COMPRESSED: u8 = 10;

impl Message {
    /// Appends the message without payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, code, length) = match self {
            Message::Open(target) => {
                let start = out.len();
                out.extend_from_slice(&header(OPEN, 0, 0));
                target.encode(out);
                // A target has at most 257 bytes.
                let length = (out.len() - start - HEADER_BYTES) as u32;
                let header = header(OPEN, 0, length);
                if let Some(place) = out.get_mut(start..start + HEADER_BYTES) {
                    place.copy_from_slice(&header);
                }
                return;
            }
            Message::Compressed(block) => {
                let [high, low] = block.size_less_one.to_be_bytes();
                let [a, b] = block.length.to_be_bytes();
                out.extend_from_slice(&[COMPRESSED, 0, high, low, 0, 0, a, b]);
                return;
            }
            Message::Opened => (OPENED, 0, 0),
            Message::Refused(refusal) => (REFUSED, refusal.code(), 0),
            Message::Data(length) => (DATA, 0, *length),
            Message::End => (END, 0, 0),
            Message::Reset => (RESET, 0, 0),
            Message::Closed => (CLOSED, 0, 0),
            Message::Ping => (PING, 0, 0),
            Message::Pong => (PONG, 0, 0),
        };
        out.extend_from_slice(&header(kind, code, length));
    }
}

fn header(kind: u8, code: u8, length: u32) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = length.to_be_bytes();
    [kind, code, 0, 0, a, b, c, d]
}

impl Header {
    pub(crate) fn decode(bytes: [u8; HEADER_BYTES]) -> Result<Self, LaneError> {
        if let [COMPRESSED, 0, high, low, 0, 0, a, b] = bytes {
            let size = usize::from(u16::from_be_bytes([high, low])) + 1;
            let block = Block::new(usize::from(u16::from_be_bytes([a, b])), size);
            return block.map(Header::Compressed).ok_or(LaneError::Malformed);
        }
        let [kind, code, 0, 0, a, b, c, d] = bytes else { return Err(LaneError::Malformed) };
        let length = u32::from_be_bytes([a, b, c, d]);
        let found = match (kind, code, length) {
            (OPEN, 0, length) => {
                let length = usize::try_from(length).map_err(|_| LaneError::Malformed)?;
                if length > Target::MAX_BYTES {
                    return Err(LaneError::Malformed);
                }
                Header::Open(length)
            }
            (DATA, 0, 1..=MAX_RUN) => Header::Data(length),
            (REFUSED, code, 0) => {
                Header::Refused(Refusal::from_code(code).ok_or(LaneError::Malformed)?)
            }
            (OPENED, 0, 0) => Header::Opened,
            (END, 0, 0) => Header::End,
            (RESET, 0, 0) => Header::Reset,
            (CLOSED, 0, 0) => Header::Closed,
            (PING, 0, 0) => Header::Ping,
            (PONG, 0, 0) => Header::Pong,
            _ => return Err(LaneError::Malformed),
        };
        Ok(found)
    }
}
