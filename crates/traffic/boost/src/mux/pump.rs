//! A turn of a session: what has arrived, flows, what is to be sent.

use super::UNSENT_LIMIT;
use super::engine::{Engine, Side};
use super::live::Live;
use super::mux_flow::{Progress, Sending, answer_refusal};
use crate::local_flow::{FlowEnd, Local, LocalFlow};
use lane::{Refusal, Role};
use mux::{Event, Received, StreamId};
use std::io::Write;

/// Rounds of a session before others have their turn.
const MAX_ROUNDS: usize = 16;

impl Engine {
    /// Near: leaves the flows to far that wait for nothing but what their targets send.
    pub(super) fn leave<S: Side>(&mut self, side: &mut S) {
        for id in self.flows.ids() {
            let Some(flow) = self.flows.get(id).filter(|flow| flow.may_leave()) else {
                continue;
            };
            let live = flow.session.and_then(|session| self.sessions.get(session));
            flow.leave(live.map(|live| &mut live.session));
            self.ready.extend(flow.session);
            self.end_flow(id, side);
        }
    }

    /// Serves a session: what has arrived, flows, what is to be sent.
    pub(super) fn pump<S: Side>(&mut self, id: usize, side: &mut S) {
        for _ in 0..MAX_ROUNDS {
            let mut progress = self.receive(id, side);
            progress |= self.run_flows(id, side);
            progress |= self.transmit(id, side);
            if !progress {
                return;
            }
        }
        self.ready.push(id);
    }

    pub(super) fn process<S: Side>(&mut self, id: usize, mut input: &[u8], side: &mut S) {
        while !input.is_empty() {
            let Some(live) = self.sessions.get(id) else { return };
            let Received { used, event } = match live.session.receive(input) {
                Ok(received) => received,
                Err(error) => return self.end_session(id, &error.to_string(), side),
            };
            let (piece, rest) = input.split_at(used.min(input.len()));
            input = rest;
            match event {
                Some(Event::Data(stream, count)) => {
                    let payload = piece.get(piece.len().saturating_sub(count)..);
                    let Some(flow_id) = live.streams.get(&stream).copied() else { continue };
                    let Some(flow) = self.flows.get(flow_id) else { continue };
                    let payload = payload.unwrap_or_default();
                    flow.arrived(&mut live.session, payload, &self.counters, self.now);
                    if flow.local.is_gone() {
                        self.end_flow(flow_id, side);
                    }
                }
                Some(Event::Compressed(of_block)) => {
                    let bytes = piece.get(piece.len().saturating_sub(of_block.count)..);
                    let taken = self.take_block(id, of_block, bytes.unwrap_or_default(), side);
                    if let Err(error) = taken {
                        return self.end_session(id, &error.to_string(), side);
                    }
                }
                Some(event) => self.act(id, event, side),
                None => {}
            }
        }
    }

    fn act<S: Side>(&mut self, id: usize, event: Event, side: &mut S) {
        let Some(live) = self.sessions.get(id) else { return };
        let of = |stream: StreamId, live: &Live| live.streams.get(&stream).copied();
        match event {
            Event::Open(stream, target) => {
                let local = LocalFlow::new(Local::Awaited, live.peer, target.clone(), self.now);
                let is_full = live.session.is_full();
                let flow = self.add_flow(id, stream, local);
                self.counters.flows.increment();
                self.counters.active_flows.increment();
                if is_full {
                    self.refuse(flow, Refusal::Busy, side);
                } else {
                    side.open(flow, &target, self);
                }
            }
            Event::Opened(stream) => {
                let Some(flow_id) = of(stream, live) else { return };
                let Some(flow) = self.flows.get(flow_id) else { return };
                flow.local.is_opened = true;
                let reply = flow.local.negotiation.take().map(|mut it| it.opened());
                let reply = reply.unwrap_or_default();
                // It is short, and the first that the application gets. A write of nothing would take an
                // RST off the socket, which then looks like FIN (send(2) clears SO_ERROR).
                let takes = reply.is_empty()
                    || flow.local.connected().is_none_or(|mut stream| {
                        stream.write(&reply).is_ok_and(|count| count == reply.len())
                    });
                if !takes {
                    flow.local.fail();
                }
                self.wake(flow_id);
            }
            Event::Refused(stream, refusal) => {
                let Some(flow_id) = of(stream, live) else { return };
                let Some(flow) = self.flows.get(flow_id) else { return };
                answer_refusal(&mut flow.local, refusal);
                flow.abort(&mut live.session, FlowEnd::Refused(refusal));
                self.end_flow(flow_id, side);
            }
            Event::Reset(stream) => {
                let Some(flow_id) = of(stream, live) else { return live.session.reset(stream) };
                let Some(flow) = self.flows.get(flow_id) else { return };
                flow.abort(&mut live.session, FlowEnd::PeerReset);
                self.end_flow(flow_id, side);
            }
            Event::End(stream) => {
                let Some(flow_id) = of(stream, live) else { return live.session.end(stream) };
                if let Some(flow) = self.flows.get(flow_id) {
                    flow.local.to_local.ended = Some(self.now);
                }
                self.wake(flow_id);
            }
            Event::StopSending(stream) => {
                live.session.end(stream);
                let Some(flow_id) = of(stream, live) else { return };
                if let Some(flow) = self.flows.get(flow_id) {
                    flow.local.to_lane.has_fin = true;
                }
                self.wake(flow_id);
            }
            Event::Writable(stream) => {
                if let Some(flow) = of(stream, live) {
                    self.wake(flow);
                }
            }
            Event::Data(..) | Event::Compressed(_) | Event::Pong => {}
        }
    }

    /// Delivers what flows hold; then flows send while the session takes bytes. True if any has sent.
    fn run_flows<S: Side>(&mut self, id: usize, side: &mut S) -> bool {
        // A session that takes nothing from local sockets delivers to them all the same.
        let woken = self.sessions.get(id).map(|live| std::mem::take(&mut live.woken));
        for flow in woken.unwrap_or_default() {
            self.deliver_held(flow, side);
        }
        let mut progress = false;
        while let Some(live) = self.sessions.get(id)
            && live.session.unsent() < UNSENT_LIMIT
            && live.session.has_room()
            && let Some(flow) = live.queue.pop_front()
        {
            progress = true;
            self.take(flow, side);
        }
        progress
    }

    /// Delivers what a flow holds, and queues it for a turn to send.
    pub(super) fn deliver_held<S: Side>(&mut self, id: usize, side: &mut S) {
        let Some(flow) = self.flows.get(id) else { return };
        flow.is_woken = false;
        let mut live = flow.session.and_then(|session| self.sessions.get(session));
        let session = live.as_mut().map(|live| &mut live.session);
        if flow.deliver_held(session, &self.counters, self.now) == Progress::Over {
            return self.end_flow(id, side);
        }
        if let Some(live) = live.filter(|_| !flow.is_queued) {
            flow.is_queued = true;
            live.queue.push_back(id);
        }
    }

    /// A flow's turn to send.
    fn take<S: Side>(&mut self, id: usize, side: &mut S) {
        let Some(flow) = self.flows.get(id) else { return };
        flow.is_queued = false;
        let Some(live) = flow.session.and_then(|session| self.sessions.get(session)) else {
            return;
        };
        let link = live.links.first().and_then(|link| self.links.get(*link));
        let mut sending = Sending {
            at_far: self.role == Role::Far,
            compresses: live.compresses,
            link: link.as_deref(),
            scratch: &mut self.scratch,
            codec: &mut self.codec,
            counters: &self.counters,
            now: self.now,
        };
        match flow.take(&mut live.session, &mut sending) {
            Progress::Waiting => {}
            Progress::Again => {
                flow.is_queued = true;
                live.queue.push_back(id);
            }
            Progress::Over => self.end_flow(id, side),
        }
    }
}
