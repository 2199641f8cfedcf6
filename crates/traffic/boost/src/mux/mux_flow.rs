//! One flow: bytes between its local socket and its stream.

use super::link::Link;
use crate::block_codec::BlockCodec;
use crate::counters::Counters;
use crate::local_flow::{FlowEnd, Local, LocalFlow};
use crate::relay::answer;
use lane::{MAX_BLOCK, Refusal};
use mux::{MuxError, Session, StreamId};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::time::Instant;

/// Bytes of a flow before others have their turn, unless they are to be compressed.
const TURN_BYTES: usize = 32 << 10;

/// What a flow needs to send.
pub(super) struct Sending<'a> {
    pub(super) at_far: bool,
    /// This box offers compressed blocks, or both do.
    pub(super) compresses: bool,
    pub(super) link: Option<&'a Link>,
    pub(super) scratch: &'a mut [u8],
    pub(super) codec: &'a mut BlockCodec,
    pub(super) counters: &'a Counters,
    pub(super) now: Instant,
}

/// A flow, and the stream that carries it.
pub(crate) struct MuxFlow {
    /// Its session; `None` once the session has ended after both directions of the stream had.
    pub(super) session: Option<usize>,
    pub(super) stream: StreamId,
    pub(super) local: LocalFlow,
    /// It has not delivered what it holds since its socket or its peer had news.
    pub(super) is_woken: bool,
    /// It waits for its turn to send.
    pub(super) is_queued: bool,
}

/// How far a flow has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waits for a socket, for credit, or for the peer.
    Waiting,
    /// There may be more.
    Again,
    /// It has ended.
    Over,
}

impl MuxFlow {
    pub(super) const fn new(session: usize, stream: StreamId, local: LocalFlow) -> Self {
        MuxFlow { session: Some(session), stream, local, is_woken: false, is_queued: false }
    }

    /// Takes up to one buffer from the local socket.
    pub(super) fn take(&mut self, session: &mut Session, sending: &mut Sending<'_>) -> Progress {
        let has_more = self.read(session, sending);
        match self.is_over() {
            true => Progress::Over,
            false if has_more => Progress::Again,
            false => Progress::Waiting,
        }
    }

    /// Takes from the local socket what the stream may send; true if there may be more.
    fn read(&mut self, session: &mut Session, sending: &mut Sending<'_>) -> bool {
        let flow = &mut self.local;
        if flow.to_lane.has_fin || !flow.readable || (sending.at_far && !flow.is_opened) {
            self.reset_if_failed(session);
            return false;
        }
        let offers_blocks = session.admits_compressed() && flow.to_lane.reduction.is_trying();
        let most = if offers_blocks { MAX_BLOCK } else { TURN_BYTES };
        let most = session.may_send(self.stream).min(most).min(sending.scratch.len());
        if most == 0 {
            self.reset_if_failed(session);
            return false;
        }
        let Some(mut stream) = flow.connected() else { return false };
        let buffer = sending.scratch.get_mut(..most).unwrap_or_default();
        match stream.read(buffer) {
            Ok(0) if !flow.has_failed => {
                flow.to_lane.has_fin = true;
                session.end(self.stream);
                false
            }
            Ok(count @ 1..) => {
                // Within its credit.
                if self.send(session, count, offers_blocks, sending).is_err() {
                    self.abort(session, FlowEnd::PeerReset);
                    return false;
                }
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                flow.readable = false;
                self.reset_if_failed(session);
                false
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Ok(_) | Err(_) => {
                self.abort(session, FlowEnd::LocalReset);
                false
            }
        }
    }

    /// Sends so many bytes at the start of the buffer, as a compressed block where that is worth it.
    fn send(
        &mut self,
        session: &mut Session,
        count: usize,
        offers_blocks: bool,
        sending: &mut Sending<'_>,
    ) -> Result<(), MuxError> {
        let Sending { scratch, codec, counters, link, .. } = sending;
        let payload = scratch.get(..count).unwrap_or_default();
        let to_lane = &mut self.local.to_lane;
        let reduction = &mut to_lane.reduction;
        let mut block = None;
        if sending.compresses {
            reduction.begin(payload);
            if offers_blocks {
                // Compressing costs nothing while there is no connection.
                if link.is_none_or(|link| link.socket.is_sending()) {
                    reduction.lane_is_busy();
                }
                block = codec.compress(reduction, payload);
            }
            if block.is_none() {
                reduction.sent_raw(count);
            }
        }
        let on_wan = if let Some((block, compressed)) = block {
            session.send_compressed(self.stream, block, compressed)?;
            counters.to_compress.add(count);
            counters.compressed.add(compressed.len());
            compressed.len()
        } else {
            session.send(self.stream, payload)?;
            count
        };
        counters.to_lane.add(count);
        self.local.taken(count, on_wan, sending.now);
        Ok(())
    }

    /// Passes on an RST of the local socket: a stream that waits for credit would hold it up.
    pub(super) fn reset_if_failed(&mut self, session: &mut Session) {
        if self.local.has_failed && !self.local.is_gone() {
            self.abort(session, FlowEnd::LocalReset);
        }
    }

    /// Resets both sides.
    pub(super) fn abort(&mut self, session: &mut Session, end: FlowEnd) {
        session.reset(self.stream);
        self.drop_local(end);
    }

    /// Near: true if everything of the application is on its way to its target, and FIN.
    pub(super) const fn may_leave(&self) -> bool {
        self.local.is_opened && self.local.to_lane.has_fin && !self.local.discards()
    }

    /// Near: nobody receives what the target still sends.
    pub(super) fn leave(&mut self, session: Option<&mut Session>) {
        if let Some(session) = session {
            session.stop_sending(self.stream);
        }
        self.drop_local(FlowEnd::Orderly);
    }

    /// Dropping the socket resets its connection.
    pub(super) fn drop_local(&mut self, end: FlowEnd) {
        self.local.local = Local::Gone;
        self.local.end.get_or_insert(end);
        self.local.to_local.queue = VecDeque::new();
    }

    /// Delivers payload that has arrived; the peer gets credit for what the socket takes.
    pub(super) fn arrived(
        &mut self,
        session: &mut Session,
        payload: &[u8],
        counters: &Counters,
        now: Instant,
    ) {
        self.local.to_local.wan_bytes += payload.len() as u64;
        self.deliver(session, payload, counters, now);
    }

    /// The same for payload that is not counted as it arrived.
    pub(super) fn deliver(
        &mut self,
        session: &mut Session,
        payload: &[u8],
        counters: &Counters,
        now: Instant,
    ) {
        let count = self.local.deliver(payload, counters, now);
        session.consumed(self.stream, count);
        self.reset_if_failed(session);
    }

    /// Delivers what is held, then FIN.
    pub(super) fn deliver_held(
        &mut self,
        session: Option<&mut Session>,
        counters: &Counters,
        now: Instant,
    ) -> Progress {
        let flow = &mut self.local;
        let mut moved = 0;
        while flow.writable && !flow.discards() && !flow.to_local.queue.is_empty() {
            match flow.write_held() {
                Ok(0) => break,
                Ok(count) => {
                    flow.delivered(count, counters, now);
                    moved += count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => flow.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => flow.fail(),
            }
        }
        match session {
            Some(session) => session.consumed(self.stream, moved),
            // There is nothing to send before the RST.
            None if flow.has_failed => self.drop_local(FlowEnd::LocalReset),
            None => {}
        }
        let flow = &mut self.local;
        let is_due = flow.to_local.ended.is_some()
            && flow.to_local.queue.is_empty()
            && !flow.to_local.is_shut;
        if let Some(stream) = flow.connected().filter(|_| is_due) {
            // Fails if an RST has arrived, which is reported by itself.
            let _ = stream.shutdown(Shutdown::Write);
            flow.to_local.is_shut = true;
        }
        if self.is_over() { Progress::Over } else { Progress::Waiting }
    }

    /// Both directions have ended and were delivered here, or the local socket is gone.
    fn is_over(&mut self) -> bool {
        let flow = &mut self.local;
        if let (Local::Connected(stream), true, true) =
            (&flow.local, flow.to_local.is_shut, flow.to_lane.has_fin)
        {
            let _ = host::socket::set_reset_on_close(stream, false);
            flow.local = Local::Gone;
            flow.end.get_or_insert(FlowEnd::Orderly);
        }
        flow.is_gone()
    }

    /// True if the stream has nothing more to carry, in either direction.
    pub(super) const fn has_ended_stream(&self) -> bool {
        self.local.to_lane.has_fin && self.local.to_local.ended.is_some()
    }
}

/// Near: tells the application, where its protocol has a word for it.
pub(super) fn answer_refusal(flow: &mut LocalFlow, refusal: Refusal) {
    let reply = flow.negotiation.take().and_then(|mut negotiation| negotiation.refused(refusal));
    if let (Some(reply), Local::Connected(stream)) = (reply, &flow.local) {
        answer(stream, &reply);
    }
}
