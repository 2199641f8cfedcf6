//! Messages: a header of 8 bytes, and the target after that of `Open`.
//!
//! ```text
//!    0        1        2        3        4        5        6        7
//! ┌────────┬────────┬─────────────────┬───────────────────────────────────┐
//! │ kind   │ code   │ 0               │ length                            │
//! └────────┴────────┴─────────────────┴───────────────────────────────────┘
//! ```
//!
//! `code` is the reason of `Refused`, otherwise 0; `length` counts the bytes after the header:
//! of `Data`, 1 to 16 MiB; of `Open`, the target's; otherwise 0. Bytes 2 and 3 are reserved for
//! the number of a flow.

use crate::refusal::Refusal;
use crate::state::LaneError;
use crate::target::Target;

/// Length of a header in bytes.
pub const HEADER_BYTES: usize = 8;
/// Longest run of payload after one header, in bytes.
pub const MAX_RUN: u32 = 16 << 20;

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
