//! The lanes of one thread of near: which are ready, which flows wait for one.

use super::share::Shares;
use super::unplaced::Unplaced;
use super::{NearConfig, NewFlow};
use crate::counters::Counters;
use crate::event::Event;
use crate::event_loop::{EndedLane, Ending, EventLoop, Overdue, Report, Side, flow_ended};
use crate::lane_socket::LaneSocket;
use crate::local_flow::{FlowEnd, FlowSummary, Local, LocalFlow};
use crate::relay::{LaneEnd, Notice, Relay, answer};
use crate::saved::saved_time;
use crate::sockets;
use host::clock;
use host::stop::StopFlag;
use lane::{Refusal, Role};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Lanes of all threads that are being connected at once, about: each is a handshake at far, which
/// bounds those of an address.
const MAX_CONNECTING: usize = 256;
/// Those of one thread.
const MAX_CONNECTING_OF_THREAD: usize = 64;
/// Timeout of a lane until far has taken it, and of a flow that waits for one.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The same where far has several addresses: a flow has time for a second one. Eight round trips of
/// 600 ms, of which TCP, TLS and the preface take three.
pub(crate) const ADDRESS_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a flow until far's answer to `Open`: it waits for a lane, the lane is connected, far
/// resolves and connects, each within 10 s.
const OPEN_TIMEOUT: Duration = Duration::from_secs(40);
/// Time that a lane may take to become free once its flow was reset or refused. One that ended in
/// order has the idle timeout: its target may take the rest slowly.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(30);
/// A lane beyond those that are kept ready is closed after so long without a flow.
const UNUSED_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval of `Ping` on a lane, and the timeout of its answer on a free one.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Pauses between attempts to connect lanes that no flow waits for.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// One thread of near.
pub(super) struct NearSide<'a> {
    config: &'a NearConfig,
    shares: &'a Shares,
    /// Its index among the threads.
    thread: usize,
    /// Lanes to keep ready.
    ready: usize,
    counters: &'a Arc<Counters>,
    ending: Ending<'a>,
    report: Report<'a>,
    /// Raised once nobody is left who receives.
    pub(super) has_no_applications: StopFlag,
    /// Free lanes; the last used one is the last.
    free: Vec<usize>,
    connecting: usize,
    /// Most of them at once.
    most_connecting: usize,
    /// Flows that wait for a lane.
    waiting: VecDeque<Unplaced>,
    /// Index of the address of far that is tried next.
    address: usize,
    /// Addresses that have failed one after another.
    failed: usize,
    pause: Duration,
    /// When the address was changed; lanes that began before say nothing of it.
    failed_at: Option<Instant>,
    retry_at: Instant,
}

impl<'a> NearSide<'a> {
    pub(super) fn new(
        config: &'a NearConfig,
        (shares, thread): (&'a Shares, usize),
        counters: &'a Arc<Counters>,
        ending: Ending<'a>,
        report: Report<'a>,
    ) -> Self {
        NearSide {
            config,
            shares,
            thread,
            ready: config.lanes.div_ceil(config.threads.max(1)),
            counters,
            ending,
            report,
            has_no_applications: StopFlag::new(),
            free: Vec::new(),
            connecting: 0,
            most_connecting: most_connecting(config.threads),
            waiting: VecDeque::new(),
            address: 0,
            failed: 0,
            pause: FIRST_PAUSE,
            failed_at: None,
            retry_at: clock::now(),
        }
    }

    /// Opens a flow on a free lane, or on one that is to be connected; else it waits.
    fn place(&mut self, mut unplaced: Unplaced, event_loop: &mut EventLoop) {
        let now = event_loop.now;
        if let Some((id, relay)) = self.take_free(event_loop) {
            if relay.flows > 0 {
                self.shares.lane_taken(self.thread);
                self.counters.reused.increment();
            }
            self.open(relay, unplaced, now);
            event_loop.register_local(id);
            event_loop.wake(id);
            return;
        }
        if self.connecting >= self.most_connecting {
            self.waiting.push_back(unplaced);
            return;
        }
        loop {
            unplaced.attempts += 1;
            match self.begin_lane(now) {
                Ok(mut relay) => {
                    self.open(&mut relay, unplaced, now);
                    return self.add(relay, event_loop);
                }
                Err((far, why)) => {
                    let have_all_failed = self.unreachable(far, now, &why, now);
                    if have_all_failed || !self.may_try_again(&unplaced, now) {
                        return self.refuse(unplaced, Refusal::Unreachable, &why, now);
                    }
                }
            }
        }
    }

    /// The free lane that was used last.
    fn take_free<'e>(&mut self, event_loop: &'e mut EventLoop) -> Option<(usize, &'e mut Relay)> {
        let takes = |id: &usize| event_loop.get(*id).is_some_and(|relay| relay.takes_flow());
        let id = self.free.remove(self.free.iter().rposition(takes)?);
        Some((id, event_loop.get(id)?))
    }

    /// True if a flow whose lane has failed gets another one: each address once, while its time is
    /// not over.
    fn may_try_again(&self, unplaced: &Unplaced, now: Instant) -> bool {
        unplaced.attempts < self.config.far.len()
            && now.saturating_duration_since(unplaced.since) < CONNECT_TIMEOUT
    }

    /// Places the flow of a lane that far never took on another one, or refuses it.
    fn place_again(
        &mut self,
        local: LocalFlow,
        have_all_failed: bool,
        why: &str,
        event_loop: &mut EventLoop,
    ) {
        let now = event_loop.now;
        let end = FlowEnd::LaneFailed(why.to_owned());
        let failed = FlowSummary { end, ..local.summary(true, now) };
        match Unplaced::of_lane(local) {
            Some(unplaced) if !have_all_failed && self.may_try_again(&unplaced, now) => {
                // The next lane counts it again.
                self.counters.to_lane.subtract(unplaced.flow.early.len());
                self.place(unplaced, event_loop);
            }
            Some(unplaced) => self.refuse(unplaced, Refusal::Unreachable, why, now),
            None => self.ended(failed),
        }
    }

    /// Timeout of a lane until far has taken it.
    const fn lane_timeout(&self) -> Duration {
        match self.config.far.len() {
            0 | 1 => CONNECT_TIMEOUT,
            _ => ADDRESS_TIMEOUT,
        }
    }

    /// Places the flow that waits longest.
    fn place_next(&mut self, event_loop: &mut EventLoop) {
        if let Some(unplaced) = self.waiting.pop_front() {
            self.place(unplaced, event_loop);
        }
    }

    /// Places flows that wait while lanes may be begun.
    fn place_waiting(&mut self, event_loop: &mut EventLoop) {
        while self.connecting < self.most_connecting && !self.waiting.is_empty() {
            self.place_next(event_loop);
        }
    }

    /// Refuses the flows that no lane has taken in time.
    fn refuse_late(&mut self, now: Instant) {
        let is_late = |unplaced: &mut Unplaced| {
            now.saturating_duration_since(unplaced.since) >= CONNECT_TIMEOUT
        };
        while let Some(late) = self.waiting.pop_front_if(is_late) {
            self.refuse(late, Refusal::Unreachable, "no connection to the far box in time", now);
        }
    }

    fn open(&self, relay: &mut Relay, unplaced: Unplaced, now: Instant) {
        let Unplaced { flow, since, attempts } = unplaced;
        let NewFlow { stream, peer, target, negotiation, early, share } = flow;
        let mut local = LocalFlow::new(Local::Connected(stream), peer, target, now);
        (local.negotiation, local.share) = (Some(negotiation), Some(share));
        (local.began, local.attempts) = (since, attempts);
        relay.open(local, &early, self.counters);
    }

    fn add(&mut self, relay: Relay, event_loop: &mut EventLoop) {
        match event_loop.add(relay) {
            Ok(_) => self.connecting += 1,
            Err(failed) => {
                let (mut relay, why) = (failed.0, failed.1.to_string());
                relay.answer_refusal(Refusal::Busy);
                if let Some(flow) = relay.flow.take() {
                    self.ended(FlowSummary {
                        end: FlowEnd::LaneFailed(why),
                        ..flow.summary(true, event_loop.now)
                    });
                }
            }
        }
    }

    /// A flow that no lane has carried.
    fn refuse(&self, unplaced: Unplaced, refusal: Refusal, why: &str, now: Instant) {
        let Unplaced { mut flow, since, .. } = unplaced;
        if let Some(reply) = flow.negotiation.refused(refusal) {
            answer(&flow.stream, &reply);
        }
        let local = LocalFlow::new(Local::Gone, flow.peer, flow.target, since);
        self.ended(FlowSummary {
            end: FlowEnd::LaneFailed(why.to_owned()),
            ..local.summary(true, now)
        });
    }

    fn ended(&self, summary: FlowSummary) {
        self.shares.flow_ended(self.thread);
        self.counters.note_saved(saved_time(&summary, self.config.direct_rate));
        flow_ended(summary, self.counters, self.report);
    }

    /// The address of far that is tried next.
    fn address(&self) -> SocketAddr {
        let count = self.config.far.len().max(1);
        let far = self.config.far.get(self.address % count).copied();
        far.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// Begins to connect a lane; the address of far and the reason if that fails at once.
    fn begin_lane(&self, now: Instant) -> Result<Relay, (SocketAddr, String)> {
        let far = self.address();
        let begin = || -> Result<LaneSocket, String> {
            let key = self.config.key.as_ref();
            let tls = key.map(crate::PairKey::client).transpose();
            let tls = tls.map_err(|error| error.to_string())?.map(Box::new);
            let preamble = key.map(crate::PairKey::preamble).unwrap_or_default();
            let stream = sockets::connect_lane(far, &self.config.options)
                .map_err(|error| error.to_string())?;
            Ok(LaneSocket::connecting(stream, tls, preamble, Arc::clone(self.counters)))
        };
        let socket = begin().map_err(|why| (far, why))?;
        Ok(Relay::new(Role::Near, socket, far, self.config.compresses, now))
    }

    /// Goes on to the next address, if a lane that began then was the first to show that this one is
    /// of no use; after a pause, and true, once every address has failed.
    fn failed(&mut self, far: SocketAddr, began: Instant, now: Instant) -> bool {
        if far != self.address() || self.failed_at.is_some_and(|at| began < at) {
            return false;
        }
        self.failed_at = Some(now);
        self.address = self.address.wrapping_add(1);
        self.failed += 1;
        if self.failed < self.config.far.len() {
            return false;
        }
        self.failed = 0;
        self.retry_at = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }

    /// The same for a lane that far has not taken; reports it once every address has failed.
    fn unreachable(&mut self, far: SocketAddr, began: Instant, why: &str, now: Instant) -> bool {
        let have_all_failed = self.failed(far, began, now);
        if have_all_failed && self.shares.note_reach(false) {
            (self.report)(Event::FarUnreachable { far, why: why.to_owned() });
        }
        have_all_failed
    }

    /// An address of far is of use.
    const fn succeeded(&mut self) {
        self.pause = FIRST_PAUSE;
        self.failed = 0;
    }

    fn reached(&mut self, far: SocketAddr) {
        if self.shares.note_reach(true) {
            (self.report)(Event::FarReached { far });
        }
    }

    /// A lane carries nothing: it takes the next flow that waits.
    fn release(&mut self, id: usize, event_loop: &mut EventLoop) {
        self.free.push(id);
        self.place_next(event_loop);
    }

    fn is_ending(&self) -> bool {
        self.ending.drain.is_raised() || self.ending.stop.is_raised()
    }
}

impl Side for NearSide<'_> {
    type Job = NewFlow;

    fn job(&mut self, flow: NewFlow, event_loop: &mut EventLoop) {
        let since = event_loop.now;
        self.place(Unplaced { flow, since, attempts: 0 }, event_loop);
    }

    fn notice(&mut self, id: usize, notice: Notice, event_loop: &mut EventLoop) {
        match notice {
            Notice::LaneReady => {
                self.connecting = self.connecting.saturating_sub(1);
                let Some(relay) = event_loop.get(id) else { return };
                let (far, is_free) = (relay.peer, relay.is_free());
                self.reached(far);
                if is_free {
                    self.release(id, event_loop);
                } else {
                    // There is room for one more handshake.
                    self.place_next(event_loop);
                }
            }
            Notice::LaneFree => {
                self.succeeded();
                self.shares.lane_freed(self.thread);
                self.release(id, event_loop);
            }
            Notice::FlowEnded(summary) => self.ended(summary),
            Notice::Open(_) | Notice::ConnectFailed(_) => {}
        }
    }

    fn lane_ended(
        &mut self,
        id: usize,
        EndedLane { relay, end }: EndedLane,
        unproven: Option<LocalFlow>,
        event_loop: &mut EventLoop,
    ) {
        if relay.flows > 0 && self.free.contains(&id) {
            self.shares.lane_taken(self.thread);
        }
        self.free.retain(|free| *free != id);
        let now = event_loop.now;
        if relay.was_ready {
            // A far that takes lanes and ends them is not asked again at once.
            if relay.flows == 0 && !matches!(end, LaneEnd::Closed) {
                if now.saturating_duration_since(relay.since) >= LONGEST_PAUSE {
                    self.succeeded();
                }
                self.failed(relay.peer, relay.since, now);
            }
            return;
        }
        self.connecting = self.connecting.saturating_sub(1);
        let why = match end {
            LaneEnd::Failed(why) => why,
            LaneEnd::ClosedByPeer => "closed by the far box".to_owned(),
            // The box ends: that says nothing of far.
            LaneEnd::Closed => return,
        };
        let have_all_failed = self.unreachable(relay.peer, relay.since, &why, now);
        if let Some(local) = unproven {
            self.place_again(local, have_all_failed, &why, event_loop);
        }
        if have_all_failed {
            // Those that wait would each wait for a lane that fails.
            for unplaced in std::mem::take(&mut self.waiting) {
                self.refuse(unplaced, Refusal::Unreachable, &why, now);
            }
        }
        self.place_waiting(event_loop);
    }

    fn overdue(&self, relay: &Relay, id: usize, now: Instant) -> Option<Overdue> {
        let passed = |since: Instant, limit| now.saturating_duration_since(since) >= limit;
        if !relay.is_ready() {
            let timed_out = || Overdue::Lane("the far box did not answer in time".to_owned());
            return passed(relay.since, self.lane_timeout()).then(timed_out);
        }
        let Some(flow) = &relay.flow else {
            let extra = self.free.len().saturating_sub(self.ready);
            let is_extra = passed(relay.last_used, UNUSED_TIMEOUT)
                && self.free.iter().take(extra).any(|free| *free == id);
            if is_extra || self.is_ending() {
                return Some(Overdue::Unused);
            }
            let is_lost = relay.unanswered.is_some_and(|since| passed(since, PING_INTERVAL));
            return is_lost.then(|| Overdue::Lane("the far box does not answer".to_owned()));
        };
        if flow.is_gone() && flow.end != Some(FlowEnd::Orderly) {
            return passed(flow.last_active, RELEASE_TIMEOUT).then_some(Overdue::Unused);
        }
        if !flow.is_opened && passed(flow.began, OPEN_TIMEOUT) {
            return Some(Overdue::Lane("the far box did not answer in time".to_owned()));
        }
        passed(flow.last_active, self.config.timeouts.idle).then_some(Overdue::Flow)
    }

    fn sweep(&mut self, event_loop: &mut EventLoop) {
        let now = event_loop.now;
        let is_due = |relay: &Relay| {
            now.saturating_duration_since(relay.last_ping) >= PING_INTERVAL && relay.may_ping()
        };
        let due: Vec<usize> =
            event_loop.relays().filter_map(|(id, relay)| is_due(relay).then_some(id)).collect();
        for id in due {
            if let Some(relay) = event_loop.get(id) {
                relay.ping(now);
                event_loop.wake(id);
            }
        }
        if self.has_no_applications.is_raised() {
            leave(event_loop);
        }
        self.refuse_late(now);
        self.place_waiting(event_loop);
        if self.is_ending() || now < self.retry_at {
            return;
        }
        let unused = event_loop.relays().filter(|(_, relay)| relay.is_free()).count();
        let room = self.most_connecting.saturating_sub(self.connecting);
        for _ in 0..self.ready.saturating_sub(unused).min(room) {
            match self.begin_lane(now) {
                Ok(relay) => self.add(relay, event_loop),
                Err((far, why)) => {
                    self.unreachable(far, now, &why, now);
                    return;
                }
            }
        }
    }

    fn drain_timeout(&self) -> Duration {
        self.config.timeouts.drain
    }
}

/// Leaves the flows to far that wait for nothing but what their targets send.
fn leave(event_loop: &mut EventLoop) {
    let relays = event_loop.relays();
    let done: Vec<usize> =
        relays.filter(|(_, relay)| relay.may_leave()).map(|(id, _)| id).collect();
    for id in done {
        if let Some(relay) = event_loop.get(id) {
            relay.leave();
            event_loop.wake(id);
        }
    }
}

/// Most lanes that a thread connects at once.
fn most_connecting(threads: usize) -> usize {
    (MAX_CONNECTING / threads.max(1)).clamp(1, MAX_CONNECTING_OF_THREAD)
}

#[cfg(test)]
mod tests;
