//! Frames: a header of 12 bytes, and a body.
//!
//! ```text
//!    0        1        2   3         4 … 7            8 … 11
//! ┌────────┬────────┬─────────┬─────────────────┬─────────────────┐
//! │ kind   │ code   │ 0, size │ stream          │ length of body  │
//! └────────┴────────┴─────────┴─────────────────┴─────────────────┘
//! ```
//!
//! `code` is the reason of `Refused`, otherwise 0. The body of `Open` is the target, of `Credit` and
//! `Ack` a number of 8 bytes, of `Data` 1 byte to 64 KiB of payload, of `Compressed` a block that is
//! shorter than the 1 to 65,536 bytes that it decompresses to: `size` is that without 1, and 0 in
//! other frames. `Ack`, `Ping` and `Pong` have stream 0, the others another one.

use crate::StreamId;
use crate::session::MuxError;
use lane::{Block, MAX_BLOCK, Refusal, Target};

/// Length of a header in bytes.
pub const HEADER_BYTES: usize = 12;
/// Most payload of a `Data`, in bytes.
pub const MAX_DATA: usize = 64 << 10;

/// A frame of either end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Near: connect to this target; data may follow at once.
    Open(StreamId, Target),
    /// Far: the target accepted the connection.
    Opened(StreamId),
    /// Far: it did not, which ends this direction.
    Refused(StreamId, Refusal),
    /// So many bytes of payload follow.
    Data(StreamId, usize),
    /// A block of compressed payload follows, in sessions whose boxes have both offered it.
    Compressed(StreamId, Block),
    /// No more bytes in this direction (FIN).
    End(StreamId),
    /// The flow is aborted (RST), which ends this direction; after `End`, that nothing is taken any
    /// more.
    Reset(StreamId),
    /// Near, after its `End`: nobody takes what far still sends, so far is to end its direction
    /// (STOP_SENDING of QUIC, RFC 9000, section 3.5).
    StopSending(StreamId),
    /// The receiver of a stream takes its bytes up to this offset.
    Credit(StreamId, u64),
    /// Everything up to this offset of the session has arrived.
    Ack(u64),
    /// Asks for a `Pong`.
    Ping,
    /// Answers a `Ping`.
    Pong,
}

const OPEN: u8 = 1;
const OPENED: u8 = 2;
const REFUSED: u8 = 3;
const DATA: u8 = 4;
const END: u8 = 5;
const RESET: u8 = 6;
const CREDIT: u8 = 7;
const ACK: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const STOP_SENDING: u8 = 11;
const COMPRESSED: u8 = 12;

/// Bytes of a number.
const NUMBER: usize = 8;

impl Frame {
    /// The frame without payload.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, code, stream) = match self {
            Frame::Open(stream, _) => (OPEN, 0, *stream),
            Frame::Opened(stream) => (OPENED, 0, *stream),
            Frame::Refused(stream, refusal) => (REFUSED, refusal.code(), *stream),
            Frame::Data(stream, _) => (DATA, 0, *stream),
            Frame::Compressed(stream, _) => (COMPRESSED, 0, *stream),
            Frame::End(stream) => (END, 0, *stream),
            Frame::Reset(stream) => (RESET, 0, *stream),
            Frame::StopSending(stream) => (STOP_SENDING, 0, *stream),
            Frame::Credit(stream, _) => (CREDIT, 0, *stream),
            Frame::Ack(_) => (ACK, 0, 0),
            Frame::Ping => (PING, 0, 0),
            Frame::Pong => (PONG, 0, 0),
        };
        let mut body = Vec::new();
        match self {
            Frame::Open(_, target) => target.encode(&mut body),
            Frame::Credit(_, number) | Frame::Ack(number) => {
                body.extend_from_slice(&number.to_be_bytes());
            }
            _ => {}
        }
        // Each at most 64 KiB.
        let (length, size_less_one) = match self {
            Frame::Data(_, length) => (*length as u32, 0),
            Frame::Compressed(_, block) => (block.length() as u32, (block.size() - 1) as u16),
            _ => (body.len() as u32, 0),
        };
        let mut bytes = vec![kind, code];
        bytes.extend_from_slice(&size_less_one.to_be_bytes());
        bytes.extend_from_slice(&stream.to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.append(&mut body);
        bytes
    }
}

/// A header that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    kind: u8,
    code: u8,
    stream: StreamId,
    length: usize,
    /// That of `Compressed`.
    block: Option<Block>,
}

impl Header {
    /// Bytes that belong to the frame, without payload.
    pub(crate) const fn body(&self) -> usize {
        if matches!(self.kind, DATA | COMPRESSED) { 0 } else { self.length }
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, MuxError> {
        let [kind, code, z0, z1, s0, s1, s2, s3, l0, l1, l2, l3] = *bytes;
        let stream = u32::from_be_bytes([s0, s1, s2, s3]);
        let length = u32::from_be_bytes([l0, l1, l2, l3]);
        let length = usize::try_from(length).map_err(|_| MuxError::Malformed)?;
        let size_less_one = usize::from(u16::from_be_bytes([z0, z1]));
        let block = (kind == COMPRESSED).then(|| Block::new(length, size_less_one + 1)).flatten();
        let lengths = match kind {
            OPEN => 1..=Target::MAX_BYTES,
            DATA => 1..=MAX_DATA,
            COMPRESSED if block.is_some() => 1..=MAX_BLOCK,
            CREDIT | ACK => NUMBER..=NUMBER,
            OPENED | REFUSED | END | RESET | PING | PONG | STOP_SENDING => 0..=0,
            _ => return Err(MuxError::Malformed),
        };
        let is_of_session = matches!(kind, ACK | PING | PONG);
        let is_valid = lengths.contains(&length)
            && is_of_session == (stream == 0)
            && (kind == REFUSED || code == 0)
            && (block.is_some() || size_less_one == 0);
        let header = Header { kind, code, stream, length, block };
        if is_valid { Ok(header) } else { Err(MuxError::Malformed) }
    }

    /// The frame with this body.
    pub(crate) fn frame(&self, body: &[u8]) -> Result<Frame, MuxError> {
        let number = || body.try_into().map(u64::from_be_bytes).map_err(|_| MuxError::Malformed);
        Ok(match self.kind {
            OPEN => Frame::Open(self.stream, Target::decode(body).map_err(MuxError::Target)?),
            OPENED => Frame::Opened(self.stream),
            REFUSED => {
                let refusal = Refusal::from_code(self.code).ok_or(MuxError::Malformed)?;
                Frame::Refused(self.stream, refusal)
            }
            DATA => Frame::Data(self.stream, self.length),
            COMPRESSED => Frame::Compressed(self.stream, self.block.ok_or(MuxError::Malformed)?),
            END => Frame::End(self.stream),
            RESET => Frame::Reset(self.stream),
            STOP_SENDING => Frame::StopSending(self.stream),
            CREDIT => Frame::Credit(self.stream, number()?),
            ACK => Frame::Ack(number()?),
            PING => Frame::Ping,
            PONG => Frame::Pong,
            _ => return Err(MuxError::Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_lengths_and_other_frames_have_no_size() {
        for (length, size) in [(1, 2), (100, 1000), (65_535, MAX_BLOCK)] {
            let frame = Frame::Compressed(7, Block::new(length, size).unwrap());
            let bytes: [u8; HEADER_BYTES] = frame.encode().try_into().unwrap();
            let header = Header::decode(&bytes).unwrap();
            assert_eq!((header.frame(&[]), header.body()), (Ok(frame), 0));
        }
        let header = |kind: u8, code: u8, size: u16, length: u32| {
            let [a, b] = size.to_be_bytes();
            let head = [&[kind, code, a, b, 0, 0, 0, 7][..], &length.to_be_bytes()].concat();
            Header::decode(&head.try_into().unwrap())
        };
        assert!(header(COMPRESSED, 0, 9, 9).is_ok());
        for (kind, code, size, length) in [
            (COMPRESSED, 0, 9, 0),
            (COMPRESSED, 0, 9, 10),
            (COMPRESSED, 0, 0, 1),
            (COMPRESSED, 0, u16::MAX, 1 << 16),
            (COMPRESSED, 1, 9, 9),
            (DATA, 0, 1, 9),
            (END, 0, 1, 0),
        ] {
            assert_eq!(header(kind, code, size, length), Err(MuxError::Malformed));
        }
    }
}
