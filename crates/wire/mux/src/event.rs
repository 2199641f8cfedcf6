//! What a session reports of its peer.

use crate::StreamId;
use lane::{Block, Refusal, Target};

/// What the peer did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Far: near wants a target. The stream is to be refused if the session is full.
    Open(StreamId, Target),
    /// Near: the target is connected.
    Opened(StreamId),
    /// Near: it is not; far's direction has ended.
    Refused(StreamId, Refusal),
    /// So many bytes at the end of the input that was used are payload; each is to be reported by
    /// [`Session::consumed`](crate::Session::consumed) once it is delivered.
    Data(StreamId, usize),
    /// So many bytes at the end of the input that was used are of a compressed block, of which no
    /// other frame comes before its end. What it decompresses to is to be reported by
    /// [`Session::consumed`](crate::Session::consumed) once it is delivered.
    Compressed(BlockPiece),
    /// The peer's direction has ended (FIN).
    End(StreamId),
    /// The peer has aborted the stream (RST), possibly after the end of its direction.
    Reset(StreamId),
    /// Far: near takes nothing any more; this direction is to be ended.
    StopSending(StreamId),
    /// There is credit to send.
    Writable(StreamId),
    /// The peer answered a `Ping`.
    Pong,
}

/// What a piece of input led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the input that were used.
    pub used: usize,
    /// What they completed.
    pub event: Option<Event>,
}

/// A piece of a compressed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPiece {
    /// Its stream.
    pub stream: StreamId,
    /// The lengths of the whole block.
    pub block: Block,
    /// Bytes of this piece.
    pub count: usize,
    /// Bytes of the block that follow.
    pub left: usize,
}
