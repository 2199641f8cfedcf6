//! Which message may come next, in each direction of a lane.
//!
//! ```text
//!            Open            Opened             End, Reset            Closed
//!   near     Free ──────────────────> Flowing ────────────> Ended ─┐
//!   far      Free ──> Opening ──────> Flowing ────────────> Ended ─┴──────> both: Free
//!                        └── Refused, Reset ──────────────────^
//! ```
//!
//! `Closed` is far's alone: until its target has taken everything, the next flow would wait behind
//! this one.

use crate::frame::{HEADER_BYTES, Header, MAX_RUN, Message};
use crate::target::{InvalidTarget, Target};

/// An end of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The box at the applications, which opens flows.
    Near,
    /// The box at the targets.
    Far,
}

/// Where one direction of a lane stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No flow.
    Free,
    /// Far's direction, until it says whether the target accepted.
    Opening,
    /// Payload may be sent.
    Flowing,
    /// No more payload, until the lane is free.
    Ended,
}

/// Bytes of a peer that are not the protocol, or a message at the wrong time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// Not a message.
    #[error("the peer sent a malformed message")]
    Malformed,
    /// Not a target.
    #[error("the peer sent an invalid target: {0}")]
    Target(InvalidTarget),
    /// A compressed block on a lane whose boxes have not both offered them.
    #[error("the peer sent compressed data that was not agreed on")]
    Compressed,
    /// A message that may not come now, such as payload after the end.
    #[error("the peer sent a message out of order")]
    OutOfOrder,
}

/// The state of a lane at one of its ends.
#[derive(Debug)]
pub struct Lane {
    role: Role,
    sending: Phase,
    receiving: Phase,
    /// Payload bytes of the current run that were announced but not sent.
    to_send: u32,
    /// Payload bytes of the current run that were announced but not taken.
    to_take: u32,
    /// Both boxes have offered compressed blocks.
    compresses: bool,
    /// A message that has not arrived as a whole.
    partial: Vec<u8>,
}

/// What a piece of input led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the input that were used.
    pub used: usize,
    /// The message that they completed.
    pub message: Option<Message>,
}

impl Lane {
    /// A free lane.
    #[must_use]
    pub const fn new(role: Role) -> Self {
        let (sending, receiving) = (Phase::Free, Phase::Free);
        Lane {
            role,
            sending,
            receiving,
            to_send: 0,
            to_take: 0,
            compresses: false,
            partial: Vec::new(),
        }
    }

    /// Admits compressed blocks in both directions: both boxes have offered them.
    pub const fn admit_compressed(&mut self) {
        self.compresses = true;
    }

    /// True if compressed blocks may be sent and may arrive.
    #[must_use]
    pub const fn admits_compressed(&self) -> bool {
        self.compresses
    }

    /// True if the next flow may be opened.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.sending == Phase::Free && self.receiving == Phase::Free
    }

    /// True while this end may still send payload, or its answer to `Open`.
    #[must_use]
    pub const fn may_send(&self) -> bool {
        matches!(self.sending, Phase::Opening | Phase::Flowing)
    }

    /// True while the peer may still send payload, or its answer to `Open`.
    #[must_use]
    pub const fn may_receive(&self) -> bool {
        matches!(self.receiving, Phase::Opening | Phase::Flowing)
    }

    /// True once neither end may send payload, before far has said `Closed`.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.sending == Phase::Ended && self.receiving == Phase::Ended
    }

    /// True between messages: nothing of the last one is left to send.
    #[must_use]
    pub const fn is_between_messages(&self) -> bool {
        self.to_send == 0
    }

    /// Appends a message to `out`. The payload of `Data` or `Compressed` is the caller's to send, which it
    /// reports by [`Lane::sent`].
    ///
    /// # Errors
    /// [`LaneError::OutOfOrder`] if it may not be sent now; nothing has changed.
    pub fn send(&mut self, message: &Message, out: &mut Vec<u8>) -> Result<(), LaneError> {
        if self.to_send > 0 {
            return Err(LaneError::OutOfOrder);
        }
        let of_near = self.role == Role::Near;
        self.apply(message, of_near)?;
        self.to_send = payload_of(message);
        message.encode(out);
        Ok(())
    }

    /// Counts payload that was sent; returns what is left of the run.
    pub const fn sent(&mut self, bytes: u32) -> u32 {
        self.to_send = self.to_send.saturating_sub(bytes);
        self.to_send
    }

    /// Bytes of the run that the peer has announced and that were not taken yet. While there are
    /// any, they are the next bytes of the connection.
    #[must_use]
    pub const fn payload(&self) -> u32 {
        self.to_take
    }

    /// Counts payload that was taken.
    pub const fn taken(&mut self, bytes: u32) {
        self.to_take = self.to_take.saturating_sub(bytes);
    }

    /// Bytes that the next message lacks, as far as known: reading no more of them leaves the
    /// payload behind it in the socket.
    #[must_use]
    pub fn lacking(&self) -> usize {
        let whole = match self.header() {
            Some(Ok(Header::Open(length))) => HEADER_BYTES + length,
            _ => HEADER_BYTES,
        };
        whole.saturating_sub(self.partial.len())
    }

    fn header(&self) -> Option<Result<Header, LaneError>> {
        self.partial.first_chunk().map(|bytes| Header::decode(*bytes))
    }

    /// Reads up to one message from received bytes. Uses nothing while there is payload.
    ///
    /// # Errors
    /// [`LaneError`]: the connection is of no further use.
    pub fn receive(&mut self, input: &[u8]) -> Result<Received, LaneError> {
        let mut used = 0;
        while self.to_take == 0 {
            let missing = self.lacking();
            let rest = input.get(used..).unwrap_or_default();
            let (piece, _) = rest.split_at(missing.min(rest.len()));
            self.partial.extend_from_slice(piece);
            used += piece.len();
            if piece.len() < missing {
                break;
            }
            // The length of a target is known once the header is complete.
            if self.lacking() > 0 {
                self.header().transpose()?;
                continue;
            }
            let Some(header) = self.header() else { break };
            let message = self.whole(header?)?;
            self.partial.clear();
            self.apply(&message, self.role == Role::Far)?;
            self.to_take = payload_of(&message);
            return Ok(Received { used, message: Some(message) });
        }
        Ok(Received { used, message: None })
    }

    fn whole(&self, header: Header) -> Result<Message, LaneError> {
        Ok(match header {
            Header::Open(_) => {
                let body = self.partial.get(HEADER_BYTES..).unwrap_or_default();
                Message::Open(Target::decode(body).map_err(LaneError::Target)?)
            }
            Header::Opened => Message::Opened,
            Header::Refused(refusal) => Message::Refused(refusal),
            Header::Data(length) => Message::Data(length),
            Header::Compressed(block) => Message::Compressed(block),
            Header::End => Message::End,
            Header::Reset => Message::Reset,
            Header::Closed => Message::Closed,
            Header::Ping => Message::Ping,
            Header::Pong => Message::Pong,
        })
    }

    /// Moves a direction on by a message of near, or of far.
    fn apply(&mut self, message: &Message, of_near: bool) -> Result<(), LaneError> {
        let own = of_near == (self.role == Role::Near);
        let (this, other) = if own {
            (&mut self.sending, &mut self.receiving)
        } else {
            (&mut self.receiving, &mut self.sending)
        };
        let next = match (message, *this) {
            (Message::Ping | Message::Pong, _) => return Ok(()),
            (Message::Open(_), Phase::Free) if of_near && *other == Phase::Free => {
                *other = Phase::Opening;
                Phase::Flowing
            }
            (Message::Opened, Phase::Opening) => Phase::Flowing,
            (Message::Refused(_) | Message::Reset, Phase::Opening) => Phase::Ended,
            (Message::Data(1..=MAX_RUN), Phase::Flowing) => Phase::Flowing,
            (Message::Compressed(_), Phase::Flowing) if self.compresses => Phase::Flowing,
            (Message::Compressed(_), _) if !self.compresses => return Err(LaneError::Compressed),
            (Message::End | Message::Reset, Phase::Flowing) => Phase::Ended,
            (Message::Closed, Phase::Ended) if !of_near && *other == Phase::Ended => {
                *other = Phase::Free;
                Phase::Free
            }
            _ => return Err(LaneError::OutOfOrder),
        };
        *this = next;
        Ok(())
    }
}

/// Bytes of payload that follow a message.
fn payload_of(message: &Message) -> u32 {
    match message {
        Message::Data(length) => *length,
        // At most 65,535.
        Message::Compressed(block) => block.length() as u32,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Block, MAX_BLOCK};
    use crate::refusal::Refusal;

    /// Both ends of a lane, connected by memory.
    struct Pair {
        near: Lane,
        far: Lane,
    }

    impl Pair {
        fn new() -> Self {
            Pair { near: Lane::new(Role::Near), far: Lane::new(Role::Far) }
        }

        /// Sends a message from one end to the other, a byte at a time.
        fn pass(&mut self, from: Role, message: &Message) -> Result<(), LaneError> {
            let (sender, receiver) = match from {
                Role::Near => (&mut self.near, &mut self.far),
                Role::Far => (&mut self.far, &mut self.near),
            };
            let mut bytes = Vec::new();
            sender.send(message, &mut bytes)?;
            for (at, byte) in bytes.iter().enumerate() {
                let received = receiver.receive(&[*byte]).unwrap();
                let whole = (at + 1 == bytes.len()).then(|| message.clone());
                assert_eq!(received, Received { used: 1, message: whole });
            }
            let length = payload_of(message);
            if length > 0 {
                assert_eq!(receiver.payload(), length);
                assert!(sender.send(&Message::Ping, &mut bytes).is_err(), "within a run");
                assert_eq!(receiver.receive(b"x").unwrap().used, 0, "payload is not its own");
                receiver.taken(length);
                assert_eq!(sender.sent(length), 0);
            }
            Ok(())
        }
    }

    fn open() -> Message {
        Message::Open("example.com:443".parse().unwrap())
    }

    #[test]
    fn a_lane_carries_one_flow_after_another() {
        let mut pair = Pair::new();
        for _ in 0..2 {
            assert!(pair.near.is_free() && pair.far.is_free());
            for (from, message) in [
                (Role::Near, open()),
                (Role::Near, Message::Data(MAX_RUN)),
                (Role::Far, Message::Opened),
                (Role::Far, Message::Data(1)),
                (Role::Near, Message::Ping),
                (Role::Far, Message::Pong),
                (Role::Far, Message::End),
                (Role::Near, Message::Data(2)),
                (Role::Near, Message::Reset),
            ] {
                pair.pass(from, &message).unwrap();
            }
            assert!(pair.near.has_ended() && pair.far.has_ended() && !pair.near.is_free());
            pair.pass(Role::Far, &Message::Closed).unwrap();
        }
    }

    #[test]
    fn a_refusal_ends_the_direction_of_far() {
        let mut pair = Pair::new();
        pair.pass(Role::Near, &open()).unwrap();
        pair.pass(Role::Near, &Message::Data(5)).unwrap();
        pair.pass(Role::Far, &Message::Refused(Refusal::NotAllowed)).unwrap();
        assert!(!pair.near.may_receive() && pair.near.may_send());
        assert!(pair.pass(Role::Far, &Message::Closed).is_err(), "near has not ended");
        pair.pass(Role::Near, &Message::Reset).unwrap();
        pair.pass(Role::Far, &Message::Closed).unwrap();
        assert!(pair.near.is_free() && pair.far.is_free());
    }

    #[test]
    fn compressed_blocks_need_the_offer_of_both_boxes() {
        let mut pair = Pair::new();
        pair.pass(Role::Near, &open()).unwrap();
        let block = Message::Compressed(Block::new(0xfffe, MAX_BLOCK).unwrap());
        assert_eq!(pair.pass(Role::Near, &block), Err(LaneError::Compressed));
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        assert_eq!(pair.far.receive(&bytes), Err(LaneError::Compressed));
        let mut pair = Pair::new();
        pair.near.admit_compressed();
        pair.far.admit_compressed();
        assert_eq!(pair.pass(Role::Near, &block), Err(LaneError::OutOfOrder), "without a flow");
        pair.pass(Role::Near, &open()).unwrap();
        pair.pass(Role::Near, &block).unwrap();
        pair.pass(Role::Near, &Message::Compressed(Block::new(1, 2).unwrap())).unwrap();
        pair.pass(Role::Near, &Message::Data(3)).unwrap();
    }

    #[test]
    fn a_block_that_gains_nothing_or_is_too_large_is_none() {
        for (length, size) in [(0, 1), (1, 1), (2, 1), (0, 0), (100, MAX_BLOCK + 1)] {
            assert_eq!(Block::new(length, size), None, "{length} of {size}");
        }
        let largest = Block::new(MAX_BLOCK - 1, MAX_BLOCK).unwrap();
        assert_eq!((largest.length(), largest.size()), (MAX_BLOCK - 1, MAX_BLOCK));
    }

    #[test]
    fn what_may_not_come_now_is_an_error() {
        let to_far: [&[Message]; 9] = [
            &[Message::Opened],
            &[Message::Data(1)],
            &[Message::End],
            &[Message::Reset],
            &[Message::Closed],
            &[open(), open()],
            &[open(), Message::Refused(Refusal::Busy)],
            &[open(), Message::End, Message::Data(1)],
            &[open(), Message::End, Message::Reset],
        ];
        for messages in to_far {
            let (last, before) = messages.split_last().unwrap();
            let mut pair = Pair::new();
            for message in before {
                pair.pass(Role::Near, message).unwrap();
            }
            let mut bytes = Vec::new();
            assert_eq!(pair.near.send(last, &mut bytes), Err(LaneError::OutOfOrder));
            last.encode(&mut bytes);
            assert_eq!(pair.far.receive(&bytes), Err(LaneError::OutOfOrder), "{messages:?}");
        }
        let mut pair = Pair::new();
        pair.pass(Role::Near, &open()).unwrap();
        for early in [Message::Data(1), Message::End, open()] {
            let mut bytes = Vec::new();
            early.encode(&mut bytes);
            assert_eq!(Lane::new(Role::Near).receive(&bytes), Err(LaneError::OutOfOrder));
            assert_eq!(pair.far.send(&early, &mut bytes), Err(LaneError::OutOfOrder));
        }
    }

    #[test]
    fn malformed_messages_are_errors() {
        for bytes in [
            [0, 0, 0, 0, 0, 0, 0, 0],
            [10, 0, 0, 0, 0, 0, 0, 0],
            [10, 0, 0, 0, 0, 0, 0, 1],
            [10, 0, 0, 9, 0, 0, 0, 10],
            [10, 0, 0xff, 0xff, 0, 1, 0, 0],
            [10, 1, 0, 9, 0, 0, 0, 1],
            [11, 0, 0, 0, 0, 0, 0, 0],
            [1, 0, 0, 0, 0, 0, 2, 0],
            [1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
            [4, 0, 0, 0, 0, 0, 0, 0],
            [4, 0, 0, 0, 1, 0, 0, 1],
            [4, 1, 0, 0, 0, 0, 0, 1],
            [7, 0, 0, 1, 0, 0, 0, 0],
            [7, 0, 0, 0, 0, 0, 0, 1],
            [3, 7, 0, 0, 0, 0, 0, 0],
        ] {
            for role in [Role::Near, Role::Far] {
                assert_eq!(Lane::new(role).receive(&bytes), Err(LaneError::Malformed), "{bytes:?}");
            }
        }
        let target = [1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 4];
        let error = Lane::new(Role::Far).receive(&target).unwrap_err();
        assert_eq!(error, LaneError::Target(InvalidTarget::Malformed));
    }
}
