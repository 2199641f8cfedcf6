//! One flow: bytes between its local socket and its stream.

use crate::counters::Counters;
use crate::local_flow::{FlowEnd, Local, LocalFlow};
use crate::relay::answer;
use lane::Refusal;
use mux::{Session, StreamId};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::time::Instant;

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
    pub(super) fn take(
        &mut self,
        session: &mut Session,
        at_far: bool,
        scratch: &mut [u8],
        counters: &Counters,
        now: Instant,
    ) -> Progress {
        let has_more = self.read(session, at_far, scratch, counters, now);
        match self.is_over() {
            true => Progress::Over,
            false if has_more => Progress::Again,
            false => Progress::Waiting,
        }
    }

    /// Takes from the local socket what the stream may send; true if there may be more.
    fn read(
        &mut self,
        session: &mut Session,
        at_far: bool,
        scratch: &mut [u8],
        counters: &Counters,
        now: Instant,
    ) -> bool {
        let flow = &mut self.local;
        if flow.to_lane.has_fin || !flow.readable || (at_far && !flow.is_opened) {
            self.reset_if_failed(session);
            return false;
        }
        let most = session.may_send(self.stream).min(scratch.len());
        if most == 0 {
            self.reset_if_failed(session);
            return false;
        }
        let Some(mut stream) = flow.connected() else { return false };
        let buffer = scratch.get_mut(..most).unwrap_or_default();
        match stream.read(buffer) {
            Ok(0) if !flow.has_failed => {
                flow.to_lane.has_fin = true;
                session.end(self.stream);
                false
            }
            Ok(count @ 1..) => {
                let payload = buffer.get(..count).unwrap_or_default();
                // Within its credit.
                if session.send(self.stream, payload).is_err() {
                    self.abort(session, FlowEnd::PeerReset);
                    return false;
                }
                flow.to_lane.bytes += count as u64;
                flow.to_lane.wan_bytes += count as u64;
                flow.last_active = now;
                counters.to_lane.add(count);
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

    /// Passes on an RST of the local socket: a stream that waits for credit would hold it up.
    fn reset_if_failed(&mut self, session: &mut Session) {
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
        let is_due =
            flow.to_local.has_end && flow.to_local.queue.is_empty() && !flow.to_local.is_shut;
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
        self.local.to_lane.has_fin && self.local.to_local.has_end
    }
}

/// Near: tells the application, where its protocol has a word for it.
pub(super) fn answer_refusal(flow: &mut LocalFlow, refusal: Refusal) {
    let reply = flow.negotiation.take().and_then(|mut negotiation| negotiation.refused(refusal));
    if let (Some(reply), Local::Connected(stream)) = (reply, &flow.local) {
        answer(stream, &reply);
    }
}
