//! How flows, connections and sessions end, and signs of life before that.

use super::super::link::PING_INTERVAL;
use super::super::mux_flow::answer_refusal;
use super::{Engine, Side};
use crate::local_flow::FlowEnd;
use lane::{Refusal, Role};
use mux::chunk::KEEPALIVE;
use std::time::Instant;

impl Engine {
    /// Removes a flow whose local socket is gone.
    pub(in crate::mux) fn end_flow<S: Side>(&mut self, id: usize, side: &mut S) {
        let Some(mut flow) = self.flows.remove(id) else { return };
        flow.local.share = None;
        let mut link = None;
        if let Some(live) = flow.session.and_then(|session| self.sessions.get(session)) {
            link = live.links.first().copied();
            live.streams.remove(&flow.stream);
            live.woken.retain(|woken| *woken != id);
            live.queue.retain(|queued| *queued != id);
        }
        let mut summary = flow.local.summary(self.role == Role::Near, self.now);
        if self.role == Role::Near && summary.end == FlowEnd::Orderly {
            summary.rtt = link.and_then(|link| self.links.get(link)?.min_rtt());
        }
        side.flow_ended(id, summary);
    }

    /// Ends a session: its flows are reset, except those that only deliver what they have.
    pub(in crate::mux) fn end_session<S: Side>(&mut self, id: usize, why: &str, side: &mut S) {
        let Some(live) = self.sessions.remove(id) else { return };
        for id in live.links {
            if let Some(link) = self.links.get(id) {
                link.session = None;
            }
            self.close_link(id, why, side);
        }
        for flow_id in live.streams.into_values() {
            let Some(flow) = self.flows.get(flow_id) else { continue };
            flow.session = None;
            if flow.has_ended_stream() && !flow.local.discards() {
                self.deliver_held(flow_id, side);
                continue;
            }
            if !flow.local.is_opened {
                answer_refusal(&mut flow.local, Refusal::Unreachable);
            }
            flow.drop_local(FlowEnd::LaneFailed(why.to_owned()));
            self.end_flow(flow_id, side);
        }
    }

    /// Resets flows, gives up connections.
    pub(in crate::mux) fn close_overdue<S: Side>(&mut self, side: &mut S) {
        let now = self.now;
        let idle = side.timeouts().idle;
        let flows = self.flows.iter();
        let idle: Vec<usize> = flows
            .filter(|(_, flow)| now.saturating_duration_since(flow.local.last_active) >= idle)
            .map(|(id, _)| id)
            .collect();
        for id in idle {
            self.abort_flow(id, FlowEnd::IdleTimeout, side);
        }
        let links = self.links.iter();
        let overdue: Vec<(usize, &'static str)> =
            links.filter_map(|(id, link)| Some((id, link.overdue(now)?))).collect();
        for (id, why) in overdue {
            self.close_link(id, why, side);
        }
        self.show_life();
    }

    /// Asks peers to acknowledge everything, and shows them that each connection works.
    fn show_life(&mut self) {
        let now = self.now;
        let is_due = |last: Instant| now.saturating_duration_since(last) >= PING_INTERVAL;
        for (id, live) in self.sessions.iter_mut().filter(|(_, live)| !live.links.is_empty()) {
            if is_due(live.last_ping) {
                live.last_ping = now;
                live.session.ping();
                self.ready.push(id);
            }
        }
        for (_, link) in self.links.iter_mut() {
            if let Some(session) = link.session.filter(|_| is_due(link.last_keepalive)) {
                link.last_keepalive = now;
                link.socket.queue().extend_from_slice(&KEEPALIVE);
                self.ready.push(session);
            }
        }
    }

    pub(in crate::mux) fn abort_flow<S: Side>(&mut self, id: usize, end: FlowEnd, side: &mut S) {
        let Some(flow) = self.flows.get(id) else { return };
        match flow.session.and_then(|session| self.sessions.get(session)) {
            Some(live) => flow.abort(&mut live.session, end),
            None => flow.drop_local(end),
        }
        if let Some(session) = flow.session {
            self.ready.push(session);
        }
        self.end_flow(id, side);
    }

    /// Asks a peer to acknowledge everything.
    pub(in crate::mux) fn ping(&mut self, id: usize) {
        if let Some(live) = self.sessions.get(id) {
            live.session.ping();
            self.ready.push(id);
        }
    }

    pub(super) fn stop<S: Side>(&mut self, side: &mut S) {
        for id in self.flows.ids() {
            let Some(flow) = self.flows.get(id) else { continue };
            flow.drop_local(FlowEnd::Stopped);
            self.end_flow(id, side);
        }
        for (_, live) in self.sessions.iter_mut().filter(|(_, it)| it.session.is_acknowledged()) {
            for id in &live.links {
                if let Some(link) = self.links.get(*id) {
                    let _ = host::socket::set_reset_on_close(&link.socket.stream, false);
                }
            }
        }
        for id in self.links.ids() {
            self.links.remove(id);
            self.counters.active_lanes.decrement();
        }
    }
}
