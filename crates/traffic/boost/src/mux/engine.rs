//! Sockets, sessions and flows of the thread that carries them.

mod ending;

use super::link::Link;
use super::live::Live;
use super::mux_flow::MuxFlow;
use super::slots::Slots;
use super::udt_carrier::Carriers;
use crate::block_codec::BlockCodec;
use crate::counters::Counters;
use crate::event_loop::{Ending, Inbox};
use crate::local_flow::{FlowEnd, FlowSummary, Local, LocalFlow};
use crate::relay::SCRATCH_BYTES;
use crate::{BoostError, Timeouts};
use host::clock;
use host::edge_poller::{Edge, EdgePoller};
use host::stop::StopFlag;
use host::wait::EventFd;
use lane::{Refusal, Role, Target};
use mux::StreamId;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Interval at which timeouts and stop flags are checked.
const SWEEP: Duration = Duration::from_millis(100);
const WAKE: u64 = u64::MAX;

/// What differs between the boxes.
pub(crate) trait Side {
    /// What other threads hand over.
    type Job: Send;

    fn job(&mut self, job: Self::Job, engine: &mut Engine);

    /// The peer's greeting has arrived as a whole.
    fn greeted(&mut self, link: usize, greeting: &[u8], engine: &mut Engine);

    /// Far: a stream wants a target.
    fn open(&mut self, flow: usize, target: &Target, engine: &mut Engine);

    /// Far: an address has failed.
    fn connect_failed(&mut self, flow: usize, error: &io::Error, engine: &mut Engine);

    fn flow_ended(&mut self, flow: usize, summary: FlowSummary);

    /// A connection was closed; that of a session, if it had one.
    fn link_lost(&mut self, link: &Link, why: &str, engine: &mut Engine);

    /// Called once in a while; true once a box that drains has nothing left to do.
    fn sweep(&mut self, drains: bool, engine: &mut Engine) -> bool;

    fn timeouts(&self) -> Timeouts;
}

/// The thread's sockets.
pub(crate) struct Engine {
    pub(super) role: Role,
    pub(super) poller: EdgePoller,
    pub(super) links: Slots<Link>,
    pub(super) sessions: Slots<Live>,
    pub(super) flows: Slots<MuxFlow>,
    pub(super) ready: Vec<usize>,
    pub(super) scratch: Vec<u8>,
    pub(super) codec: BlockCodec,
    pub(super) counters: Arc<Counters>,
    pub(super) now: Instant,
    /// Last: their threads send what the sessions have written before these were closed.
    pub(super) carriers: Carriers,
}

/// A thread that is to run.
pub(crate) struct Prepared<J> {
    engine: Engine,
    jobs: Receiver<J>,
    has_ended: StopFlag,
}

/// Prepares the thread.
pub(crate) fn prepare<J>(
    role: Role,
    counters: &Arc<Counters>,
) -> Result<(Prepared<J>, Inbox<J>), BoostError> {
    let make = || -> io::Result<_> {
        let (mut poller, wake) = (EdgePoller::new()?, Arc::new(EventFd::new()?));
        poller.add(&*wake, WAKE)?;
        let (inbox, jobs) = Inbox::new(wake);
        let engine = Engine {
            role,
            poller,
            links: Slots::new(),
            sessions: Slots::new(),
            flows: Slots::new(),
            ready: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES],
            codec: BlockCodec::new(),
            counters: Arc::clone(counters),
            now: clock::now(),
            carriers: Carriers::default(),
        };
        Ok((Prepared { engine, jobs, has_ended: inbox.has_ended.clone() }, inbox))
    };
    make().map_err(BoostError::Socket)
}

impl<J: Send> Prepared<J> {
    /// Runs until the box ends.
    pub(crate) fn run<S: Side<Job = J>>(self, side: &mut S, ending: Ending<'_>) {
        let Prepared { mut engine, jobs, has_ended } = self;
        let (mut next_sweep, mut drains_until) = (engine.now, None);
        let mut edges = Vec::new();
        loop {
            engine.round(next_sweep, &mut edges, &jobs, side);
            if engine.now < next_sweep {
                continue;
            }
            next_sweep = engine.now + SWEEP;
            engine.close_overdue(side);
            let drains = ending.drain.is_raised();
            let is_done = side.sweep(drains, &mut engine);
            if drains {
                drains_until.get_or_insert(engine.now + side.timeouts().drain);
            }
            let is_late = drains_until.is_some_and(|until| engine.now >= until);
            if ending.stop.is_raised() || is_late || (drains && is_done) {
                has_ended.raise();
                // What was handed over before.
                engine.take_jobs(&jobs, side);
                return engine.stop(side);
            }
        }
    }
}

const fn local_token(flow: usize) -> u64 {
    (flow as u64) << 1 | 1
}

impl Engine {
    fn round<S: Side>(
        &mut self,
        until: Instant,
        edges: &mut Vec<Edge>,
        jobs: &Receiver<S::Job>,
        side: &mut S,
    ) {
        self.links.reuse_freed();
        self.sessions.reuse_freed();
        self.flows.reuse_freed();
        let timeout = if self.ready.is_empty() {
            until.saturating_duration_since(clock::now())
        } else {
            Duration::ZERO
        };
        if self.poller.wait(timeout, edges).is_err() {
            std::thread::sleep(SWEEP);
        }
        self.now = clock::now();
        for edge in edges.drain(..).filter(|edge| edge.token != WAKE) {
            let id = usize::try_from(edge.token >> 1).unwrap_or(usize::MAX);
            if edge.token & 1 == 0 {
                let Some(link) = self.links.get(id) else { continue };
                link.note(edge);
                self.pump_link(id, side);
            } else {
                self.note_local(id, edge, side);
            }
        }
        self.take_jobs(jobs, side);
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_unstable();
        ready.dedup();
        for id in ready {
            self.pump(id, side);
        }
    }

    fn take_jobs<S: Side>(&mut self, jobs: &Receiver<S::Job>, side: &mut S) {
        while let Ok(job) = jobs.try_recv() {
            side.job(job, self);
        }
    }

    pub(super) fn session(&mut self, id: usize) -> Option<&mut Live> {
        self.sessions.get(id)
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = (usize, &Live)> {
        self.sessions.iter()
    }

    pub(super) fn link(&mut self, id: usize) -> Option<&mut Link> {
        self.links.get(id)
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().map(|(_, link)| link)
    }

    /// Connections that carry no session yet.
    pub(super) fn unattached(&self) -> Vec<usize> {
        self.links.iter().filter(|(_, link)| link.session.is_none()).map(|(id, _)| id).collect()
    }

    pub(super) fn flow(&mut self, id: usize) -> Option<&mut MuxFlow> {
        self.flows.get(id)
    }

    pub(super) fn has_flows(&self) -> bool {
        self.flows.iter().next().is_some()
    }

    /// Adds a connection; `None` if it cannot be watched.
    pub(super) fn add_link<S: Side>(&mut self, link: Link, side: &mut S) -> Option<usize> {
        let id = self.links.insert(link);
        let link = self.links.get(id)?;
        if self.poller.add(&link.socket.stream, (id as u64) << 1).is_err() {
            self.links.remove(id);
            return None;
        }
        self.counters.active_lanes.increment();
        self.pump_link(id, side);
        Some(id)
    }

    pub(super) fn add_session(&mut self, live: Live) -> usize {
        self.sessions.insert(live)
    }

    /// A session goes on over a connection, instead of those that it may have.
    pub(super) fn attach<S: Side>(&mut self, session: usize, link: usize, side: &mut S) {
        let Some(live) = self.sessions.get(session) else { return };
        for old in std::mem::take(&mut live.links) {
            if let Some(old) = self.links.get(old) {
                old.session = None;
            }
            self.close_link(old, "the session has another connection", side);
        }
        self.attach_beside(session, link);
    }

    /// A session goes on over one more connection.
    pub(super) fn attach_beside(&mut self, session: usize, link: usize) {
        let Some(live) = self.sessions.get(session) else { return };
        live.unlinked = None;
        live.links.push(link);
        if let Some(link) = self.links.get(link) {
            link.session = Some(session);
        }
        self.counters.lanes.increment();
        self.share_unsent(session);
        self.ready.push(session);
    }

    /// Closes a connection. Its session sends what was not acknowledged over the others, or waits for
    /// the next one.
    pub(super) fn close_link<S: Side>(&mut self, id: usize, why: &str, side: &mut S) {
        let Some(link) = self.links.remove(id) else { return };
        self.counters.active_lanes.decrement();
        if let Some(session) = link.session
            && let Some(live) = self.sessions.get(session)
        {
            live.links.retain(|other| *other != id);
            live.session.rewind();
            if live.links.is_empty() {
                live.unlinked = Some(self.now);
            }
            self.share_unsent(session);
            self.ready.push(session);
        }
        side.link_lost(&link, why, self);
    }

    /// Adds a flow, whose stream is open. Its turn comes at once.
    pub(super) fn add_flow(&mut self, session: usize, stream: StreamId, local: LocalFlow) -> usize {
        let id = self.flows.insert(MuxFlow::new(session, stream, local));
        if let Some(live) = self.sessions.get(session) {
            live.streams.insert(stream, id);
        }
        if let Some(flow) = self.flows.get(id)
            && let Some(stream) = flow.local.connected()
            && self.poller.add(stream, local_token(id)).is_err()
        {
            // Memory has run out, or the limit of watches is reached.
            flow.local.fail();
        }
        self.wake(id);
        id
    }

    /// Far: waits until a target is connected.
    ///
    /// # Errors
    /// The socket cannot be watched: the flow still awaits one.
    pub(super) fn set_local(&mut self, id: usize, stream: TcpStream) -> io::Result<()> {
        let Some(flow) = self.flows.get(id) else { return Ok(()) };
        self.poller.add(&stream, local_token(id))?;
        (flow.local.readable, flow.local.writable) = (false, false);
        flow.local.local = Local::Connecting(stream);
        Ok(())
    }

    /// Far: the target is not connected.
    pub(super) fn refuse<S: Side>(&mut self, id: usize, refusal: Refusal, side: &mut S) {
        let Some(flow) = self.flows.get(id) else { return };
        flow.drop_local(FlowEnd::Refused(refusal));
        if let Some(live) = flow.session.and_then(|session| self.sessions.get(session)) {
            live.session.refuse(flow.stream, refusal);
        }
        self.end_flow(id, side);
    }

    /// A flow delivers what it holds, then has a turn to send.
    pub(super) fn wake(&mut self, id: usize) {
        let Some(flow) = self.flows.get(id).filter(|flow| !flow.is_woken) else { return };
        let Some(session) = flow.session else { return };
        flow.is_woken = true;
        if let Some(live) = self.sessions.get(session) {
            live.woken.push(id);
        }
        self.ready.push(session);
    }

    fn note_local<S: Side>(&mut self, id: usize, edge: Edge, side: &mut S) {
        let Some(flow) = self.flows.get(id) else { return };
        flow.local.note(edge);
        match std::mem::replace(&mut flow.local.local, Local::Awaited) {
            Local::Connecting(stream) if edge.writable || edge.failed => {
                if let Some(error) = crate::sockets::connect_error(&stream) {
                    return side.connect_failed(id, &error, self);
                }
                flow.local.local = Local::Connected(stream);
                flow.local.is_opened = true;
                let session = flow.session.and_then(|session| self.sessions.get(session));
                if let Some(live) = session
                    && live.session.opened(flow.stream).is_err()
                {
                    flow.local.fail();
                }
            }
            Local::Connected(stream) if edge.failed => {
                flow.local.local = Local::Connected(stream);
                flow.local.fail();
            }
            other => flow.local.local = other,
        }
        if flow.session.is_some() {
            self.wake(id);
        } else {
            self.deliver_held(id, side);
        }
    }

    /// Serves a connection.
    pub(super) fn pump_link<S: Side>(&mut self, id: usize, side: &mut S) {
        let Some(link) = self.links.get(id) else { return };
        if let Some(session) = link.session {
            self.ready.push(session);
            return;
        }
        match link.greet(self.now) {
            Ok(Some(greeting)) => side.greeted(id, &greeting, self),
            Ok(None) if link.ends && link.socket.is_flushed() => {
                // What was sent, the peer is to read.
                let _ = host::socket::set_reset_on_close(&link.socket.stream, false);
                self.close_link(id, "refused", side);
            }
            Ok(None) => {}
            Err(why) => self.close_link(id, &why, side),
        }
    }
}

#[cfg(test)]
impl<J> Prepared<J> {
    pub(crate) const fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

#[cfg(test)]
pub(super) mod tests;
