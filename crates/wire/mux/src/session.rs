//! A session at one of its ends: its streams, what is to be sent, and what the peer may do.

mod payload;

use crate::event::{Event, Received};
use crate::frame::{Frame, HEADER_BYTES, Header, MAX_DATA};
use crate::replay::ReplayLog;
use crate::stream::{Phase, Stream};
use crate::{MAX_STREAMS, REPLAY_LIMIT, StreamId, WINDOW_POOL};
use lane::{InvalidTarget, Refusal, Role, Target};
use payload::Payload;
use std::collections::HashMap;

/// Bytes after which their arrival is acknowledged.
const ACK_INTERVAL: u64 = 64 << 10;
/// Frames without payload that are kept beyond [`REPLAY_LIMIT`].
pub(crate) const CONTROL_LIMIT: usize = 1 << 20;

/// The reason that a session ends: the peer is not one of the protocol, or this end made a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MuxError {
    /// Not a frame.
    #[error("the peer sent a malformed frame")]
    Malformed,
    /// Not a target.
    #[error("the peer sent an invalid target: {0}")]
    Target(InvalidTarget),
    /// A frame that may not come now, such as payload after the end.
    #[error("the peer sent a frame out of order")]
    OutOfOrder,
    /// A stream that was never opened, or whose direction has ended.
    #[error("the peer sent a frame of an unknown stream")]
    UnknownStream,
    /// More streams than a session has.
    #[error("the peer opened too many streams")]
    TooManyStreams,
    /// A compressed block in a session whose boxes have not both offered them.
    #[error("the peer sent compressed data that was not agreed on")]
    Compressed,
    /// Payload beyond the credit.
    #[error("the peer sent more than its credit")]
    CreditExceeded,
    /// Credit that shrinks, or that is larger than any window.
    #[error("the peer granted an invalid credit")]
    Credit,
    /// An offset before one that was acknowledged.
    #[error("the peer's offset goes backwards")]
    Backwards,
    /// An offset beyond what was sent.
    #[error("the peer acknowledged more than was sent")]
    Forwards,
    /// Not a chunk of the session's bytes.
    #[error("the peer sent a malformed chunk")]
    Chunk,
    /// Bytes so far ahead that the peer cannot have kept them.
    #[error("the peer sent bytes too far ahead")]
    Ahead,
    /// Too much is kept for a peer that acknowledges nothing.
    #[error("the peer does not acknowledge what it gets")]
    Unacknowledged,
}

/// A session at one end.
#[derive(Debug)]
pub struct Session {
    role: Role,
    streams: HashMap<StreamId, Stream>,
    /// Number of the last stream that was opened.
    last: StreamId,
    /// Streams of which a direction has not ended.
    active: usize,
    /// Credit beyond the initial windows.
    borrowed: u64,
    log: ReplayLog,
    /// Offset of the peer's bytes.
    received: u64,
    acknowledged: u64,
    /// The peer has asked what has arrived.
    ack_due: bool,
    /// Offset behind the last frame that is about a stream.
    last_of_streams: u64,
    /// The last offset that an `Ack` of the peer had.
    last_ack: u64,
    partial: Vec<u8>,
    /// Payload that was announced and has not arrived.
    payload: Option<Payload>,
    /// Both boxes have offered compressed blocks.
    compresses: bool,
}

impl Session {
    /// A session without streams.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Session {
            role,
            streams: HashMap::new(),
            last: 0,
            active: 0,
            borrowed: 0,
            log: ReplayLog::default(),
            received: 0,
            acknowledged: 0,
            ack_due: false,
            last_of_streams: 0,
            last_ack: 0,
            partial: Vec::new(),
            payload: None,
            compresses: false,
        }
    }

    /// True if no stream can be opened now.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.streams.len() >= MAX_STREAMS || self.last == StreamId::MAX
    }

    /// True if the peer has acknowledged everything about streams; see [`Session::ping`].
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.log.start() >= self.last_of_streams
    }

    fn put(&mut self, frame: &Frame) {
        self.log.append(&frame.encode());
        if !matches!(frame, Frame::Ack(_) | Frame::Ping | Frame::Pong | Frame::Credit(..)) {
            self.last_of_streams = self.log.end();
        }
    }

    /// Near: opens a stream.
    ///
    /// # Errors
    /// [`MuxError::TooManyStreams`]: nothing has changed.
    pub fn open(&mut self, target: &Target) -> Result<StreamId, MuxError> {
        if self.is_full() {
            return Err(MuxError::TooManyStreams);
        }
        self.last += 1;
        self.active += 1;
        self.streams.insert(self.last, Stream::new(Phase::Flowing, Phase::Opening));
        self.put(&Frame::Open(self.last, target.clone()));
        Ok(self.last)
    }

    /// Far: the target is connected.
    ///
    /// # Errors
    /// The stream is not waiting for that.
    pub fn opened(&mut self, id: StreamId) -> Result<(), MuxError> {
        let stream = self.streams.get_mut(&id).ok_or(MuxError::UnknownStream)?;
        if stream.sending != Phase::Opening {
            return Err(MuxError::OutOfOrder);
        }
        stream.sending = Phase::Flowing;
        self.put(&Frame::Opened(id));
        Ok(())
    }

    /// Far: the target is not connected; what still arrives is discarded.
    pub fn refuse(&mut self, id: StreamId, refusal: Refusal) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.sending != Phase::Opening {
            return;
        }
        stream.discard();
        self.put(&Frame::Refused(id, refusal));
        self.end_sending(id);
    }

    /// True if payload may be sent: the peer has acknowledged enough.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.log.len() < REPLAY_LIMIT
    }

    /// Bytes that a stream may send now.
    #[must_use]
    pub fn may_send(&self, id: StreamId) -> usize {
        let credit = self.streams.get(&id).map_or(0, Stream::credit);
        let room = REPLAY_LIMIT.saturating_sub(self.log.len());
        usize::try_from(credit).unwrap_or(usize::MAX).min(room)
    }

    /// Sends payload, within [`Session::may_send`]. Only the stream's credit is checked, not
    /// [`Session::has_room`].
    ///
    /// # Errors
    /// It is more than the credit, or the direction has ended.
    pub fn send(&mut self, id: StreamId, payload: &[u8]) -> Result<(), MuxError> {
        for piece in payload.chunks(MAX_DATA) {
            let stream = self.streams.get_mut(&id).ok_or(MuxError::UnknownStream)?;
            stream.sent(piece.len() as u64)?;
            self.put(&Frame::Data(id, piece.len()));
            self.log.append(piece);
            self.last_of_streams = self.log.end();
        }
        Ok(())
    }

    /// Ends the direction of this end (FIN).
    pub fn end(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(|stream| stream.sending == Phase::Flowing) {
            self.put(&Frame::End(id));
            self.end_sending(id);
        }
    }

    /// Aborts the stream (RST), after [`Session::end`] too: what still arrives is discarded.
    pub fn reset(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let is_known = stream.discards() || stream.receiving == Phase::Ended;
        stream.discard();
        if stream.sending != Phase::Ended {
            self.put(&Frame::Reset(id));
            self.end_sending(id);
            return;
        }
        // The peer would go on to send.
        if !is_known {
            self.put(&Frame::Reset(id));
        }
        self.forget(id);
    }

    /// Near, after [`Session::end`]: what still arrives is discarded, and far is to send no more. It
    /// delivers what it has.
    pub fn stop_sending(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.sending != Phase::Ended {
            return;
        }
        stream.discard();
        if stream.receiving == Phase::Flowing {
            self.put(&Frame::StopSending(id));
        }
        self.forget(id);
    }

    fn end_sending(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.sending = Phase::Ended;
            if stream.has_ended() {
                self.active = self.active.saturating_sub(1);
            }
        }
        self.forget(id);
    }

    fn end_receiving(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.receiving = Phase::Ended;
            if stream.has_ended() {
                self.active = self.active.saturating_sub(1);
            }
        }
        self.forget(id);
    }

    /// Removes a stream of which nothing is left.
    fn forget(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(Stream::is_over)
            && let Some(stream) = self.streams.remove(&id)
        {
            self.borrowed = self.borrowed.saturating_sub(stream.borrowed());
        }
    }

    /// Payload was delivered: the peer gets credit for more.
    pub fn consumed(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let before = stream.borrowed();
        let free = WINDOW_POOL.saturating_sub(self.borrowed);
        let awaited = self.payload.as_ref().map_or(0, |payload| payload.awaited(id));
        let credit = stream.consumed(bytes as u64, awaited, free);
        self.borrowed += stream.borrowed().saturating_sub(before);
        if let Some(limit) = credit {
            self.put(&Frame::Credit(id, limit));
        }
        self.forget(id);
    }

    /// Asks the peer for a sign of life, and to acknowledge everything.
    pub fn ping(&mut self) {
        self.put(&Frame::Ping);
    }

    /// Reads up to one frame, or a piece of payload.
    ///
    /// # Errors
    /// [`MuxError`]: the session is of no further use.
    pub fn receive(&mut self, input: &[u8]) -> Result<Received, MuxError> {
        let received = match self.payload.take() {
            Some(payload) => {
                let (received, rest) = payload.take(input.len());
                self.payload = rest;
                received
            }
            None => self.receive_frame(input)?,
        };
        self.received += received.used as u64;
        let is_due = std::mem::take(&mut self.ack_due);
        if is_due || self.received - self.acknowledged >= ACK_INTERVAL {
            self.acknowledged = self.received;
            self.put(&Frame::Ack(self.received));
        }
        if self.log.len() > REPLAY_LIMIT + CONTROL_LIMIT {
            return Err(MuxError::Unacknowledged);
        }
        Ok(received)
    }

    fn receive_frame(&mut self, input: &[u8]) -> Result<Received, MuxError> {
        let mut used = 0;
        loop {
            let header = match self.partial.first_chunk() {
                Some(bytes) => Some(Header::decode(bytes)?),
                None => None,
            };
            let whole = HEADER_BYTES + header.as_ref().map_or(0, Header::body);
            let missing = whole.saturating_sub(self.partial.len());
            if let Some(header) = header.filter(|_| missing == 0) {
                let frame = header.frame(self.partial.get(HEADER_BYTES..).unwrap_or_default())?;
                self.partial.clear();
                return Ok(Received { used, event: self.act(frame)? });
            }
            let rest = input.get(used..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(Received { used, event: None });
            }
            let piece = rest.get(..missing).unwrap_or(rest);
            self.partial.extend_from_slice(piece);
            used += piece.len();
        }
    }

    /// The stream of a frame, which may belong to one that is over.
    fn stream(&mut self, id: StreamId) -> Result<&mut Stream, MuxError> {
        self.streams.get_mut(&id).ok_or(MuxError::UnknownStream)
    }

    fn act(&mut self, frame: Frame) -> Result<Option<Event>, MuxError> {
        let is_far = self.role == Role::Far;
        Ok(Some(match frame {
            Frame::Open(id, target) => {
                if !is_far || self.last.checked_add(1) != Some(id) {
                    return Err(MuxError::OutOfOrder);
                }
                if self.active >= MAX_STREAMS {
                    return Err(MuxError::TooManyStreams);
                }
                self.last = id;
                self.active += 1;
                self.streams.insert(id, Stream::new(Phase::Opening, Phase::Flowing));
                Event::Open(id, target)
            }
            Frame::Opened(id) => {
                let stream = self.stream(id)?;
                if is_far || stream.receiving != Phase::Opening {
                    return Err(MuxError::OutOfOrder);
                }
                self.stream(id)?.receiving = Phase::Flowing;
                Event::Opened(id)
            }
            Frame::Refused(id, refusal) => {
                if is_far || self.stream(id)?.receiving != Phase::Opening {
                    return Err(MuxError::OutOfOrder);
                }
                self.end_receiving(id);
                Event::Refused(id, refusal)
            }
            Frame::Data(id, length) => {
                self.stream(id)?.announced(length as u64)?;
                self.payload = Some(Payload::Raw { stream: id, left: length });
                return Ok(None);
            }
            Frame::Compressed(id, block) => {
                self.announce_block(id, block)?;
                return Ok(None);
            }
            Frame::End(id) => {
                if self.stream(id)?.receiving != Phase::Flowing {
                    return Err(MuxError::OutOfOrder);
                }
                self.end_receiving(id);
                Event::End(id)
            }
            Frame::Reset(id) => match self.streams.get_mut(&id) {
                Some(stream) => {
                    stream.discard();
                    if stream.receiving == Phase::Ended {
                        self.forget(id);
                    } else {
                        self.end_receiving(id);
                    }
                    Event::Reset(id)
                }
                // It has crossed the end of the stream.
                None if id <= self.last => return Ok(None),
                None => return Err(MuxError::UnknownStream),
            },
            Frame::StopSending(id) => match self.streams.get(&id) {
                Some(stream) if !is_far || stream.receiving != Phase::Ended => {
                    return Err(MuxError::OutOfOrder);
                }
                Some(stream) if stream.sending == Phase::Opening => {
                    return Err(MuxError::OutOfOrder);
                }
                Some(stream) if stream.sending == Phase::Flowing => Event::StopSending(id),
                // It has crossed the end of far's direction.
                _ if id <= self.last => return Ok(None),
                _ => return Err(MuxError::UnknownStream),
            },
            Frame::Credit(id, limit) => match self.streams.get_mut(&id) {
                Some(stream) => {
                    stream.grant(limit)?;
                    Event::Writable(id)
                }
                // It has crossed the end of the stream.
                None if id <= self.last => return Ok(None),
                None => return Err(MuxError::UnknownStream),
            },
            Frame::Ack(offset) => {
                if offset < self.last_ack {
                    return Err(MuxError::Backwards);
                }
                self.last_ack = offset;
                // A retransmitted one is behind the offset in the greeting of its connection.
                if offset > self.log.start() {
                    self.log.acknowledge(offset)?;
                }
                return Ok(None);
            }
            Frame::Ping => {
                self.put(&Frame::Pong);
                self.ack_due = true;
                return Ok(None);
            }
            Frame::Pong => Event::Pong,
        }))
    }
}

mod transmission;

#[cfg(test)]
mod several_connections;
#[cfg(test)]
mod tests;
