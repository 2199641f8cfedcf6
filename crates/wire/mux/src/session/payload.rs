//! Payload of frames: as it is, or a compressed block.

use super::{MuxError, Session};
use crate::StreamId;
use crate::event::{BlockPiece, Event, Received};
use crate::frame::Frame;
use lane::Block;

/// Payload that was announced: `left` bytes have not arrived.
#[derive(Debug)]
pub(super) enum Payload {
    Raw { stream: StreamId, left: usize },
    Compressed { stream: StreamId, block: Block, left: usize },
}

impl Payload {
    /// Bytes of a stream that it is still to deliver: a block delivers nothing before it is whole.
    pub(super) fn awaited(&self, id: StreamId) -> u64 {
        match self {
            Payload::Raw { stream, left } if *stream == id => *left as u64,
            Payload::Compressed { stream, block, .. } if *stream == id => block.size() as u64,
            Payload::Raw { .. } | Payload::Compressed { .. } => 0,
        }
    }

    /// What of it is among so many bytes of input, and what is left after that.
    pub(super) fn take(self, input: usize) -> (Received, Option<Self>) {
        let (Payload::Raw { left, .. } | Payload::Compressed { left, .. }) = self;
        let count = left.min(input);
        let left = left - count;
        let (event, rest) = match self {
            Payload::Raw { stream, .. } => {
                (Event::Data(stream, count), Payload::Raw { stream, left })
            }
            Payload::Compressed { stream, block, .. } => (
                Event::Compressed(BlockPiece { stream, block, count, left }),
                Payload::Compressed { stream, block, left },
            ),
        };
        let received = Received { used: count, event: (count > 0).then_some(event) };
        (received, (left > 0).then_some(rest))
    }
}

impl Session {
    /// Admits compressed blocks in both directions: both boxes have offered them on the first
    /// connection of the session.
    pub const fn admit_compressed(&mut self) {
        self.compresses = true;
    }

    /// True if compressed blocks may be sent and may arrive.
    #[must_use]
    pub const fn admits_compressed(&self) -> bool {
        self.compresses
    }

    /// Sends a compressed block, whose size is within [`Session::may_send`]: credit bounds what the
    /// receiver holds, which is what the block decompresses to.
    ///
    /// # Errors
    /// The session does not admit it, its size is more than the credit, or the direction has ended.
    pub fn send_compressed(
        &mut self,
        id: StreamId,
        block: Block,
        payload: &[u8],
    ) -> Result<(), MuxError> {
        if !self.compresses {
            return Err(MuxError::Compressed);
        }
        if payload.len() != block.length() {
            return Err(MuxError::OutOfOrder);
        }
        let stream = self.streams.get_mut(&id).ok_or(MuxError::UnknownStream)?;
        stream.sent(block.size() as u64)?;
        self.put(&Frame::Compressed(id, block));
        self.log.append(payload);
        self.last_of_streams = self.log.end();
        Ok(())
    }

    /// The peer has announced a block.
    pub(super) fn announce_block(&mut self, id: StreamId, block: Block) -> Result<(), MuxError> {
        if !self.compresses {
            return Err(MuxError::Compressed);
        }
        self.stream(id)?.announced(block.size() as u64)?;
        let left = block.length();
        self.payload = Some(Payload::Compressed { stream: id, block, left });
        Ok(())
    }
}
