//! The lanes of one thread of far, and the targets of their flows.

use super::{FarConfig, NewLane};
use crate::connector::{Connector, Step, refusal};
use crate::counters::Counters;
use crate::event_loop::{EndedLane, Ending, EventLoop, Inbox, Overdue, Report, Side, flow_ended};
use crate::lane_socket::LaneSocket;
use crate::local_flow::{Local, LocalFlow};
use crate::relay::{Notice, Relay};
use crate::resolver::{Answer, Resolver};
use lane::{Refusal, Role, Target};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that near may take to end a flow that is over here.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(30);
/// A free lane on which near is silent for so long is closed; near sends `Ping` every 20 s, but
/// not within a long run of payload.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(90);

/// What other threads hand over.
pub(crate) enum Job {
    Lane(NewLane),
    /// The answer to a query for a relay's flow, by its number.
    Resolved {
        id: usize,
        flow: u64,
        found: Result<Vec<SocketAddr>, Refusal>,
    },
}

/// One thread of far.
pub(super) struct FarSide<'a> {
    config: &'a FarConfig,
    inbox: Inbox<Job>,
    counters: &'a Arc<Counters>,
    ending: Ending<'a>,
    report: Report<'a>,
    connector: Connector,
}

impl<'a> FarSide<'a> {
    pub(super) fn new(
        config: &'a FarConfig,
        resolver: Resolver,
        inbox: Inbox<Job>,
        counters: &'a Arc<Counters>,
        ending: Ending<'a>,
        report: Report<'a>,
    ) -> Self {
        let connector = Connector::new(Arc::clone(&config.policy), resolver);
        FarSide { config, inbox, counters, ending, report, connector }
    }

    fn open(&mut self, id: usize, target: &Target, event_loop: &mut EventLoop) {
        self.counters.flows.increment();
        self.counters.active_flows.increment();
        let Some(near) = event_loop.get(id).map(|relay| relay.peer.ip()) else { return };
        let inbox = self.inbox.clone();
        let answer = |flow| -> Answer {
            Box::new(move |found| inbox.put(Job::Resolved { id, flow, found }))
        };
        let step = self.connector.begin(id, target, near, event_loop.now, answer);
        self.take(id, step, event_loop);
    }

    fn take(&self, id: usize, step: Step, event_loop: &mut EventLoop) {
        let Some(relay) = event_loop.get(id) else { return };
        match step {
            Step::Wait => {}
            Step::Connect(stream) => {
                relay.set_local(Local::Connecting(stream));
                event_loop.register_local(id);
            }
            Step::Refuse(refusal) => {
                relay.refuse(refusal);
                event_loop.wake(id);
            }
        }
    }

    fn attempt_failed(&mut self, id: usize, failure: Refusal, event_loop: &mut EventLoop) {
        let step = self.connector.failed(id, failure, event_loop.now);
        self.take(id, step, event_loop);
    }
}

impl Side for FarSide<'_> {
    type Job = Job;

    fn job(&mut self, job: Job, event_loop: &mut EventLoop) {
        match job {
            Job::Lane(NewLane { stream, peer, tls, preface, share, .. }) => {
                let socket = LaneSocket::accepted(stream, tls, Arc::clone(self.counters));
                let compresses = self.config.compresses;
                let relay = Relay::new(Role::Far, socket, peer, compresses, event_loop.now);
                let mut relay = relay.greeted(preface);
                relay.share = Some(share);
                // Without descriptors the lane is closed, and near learns of that.
                let _ = event_loop.add(relay);
            }
            Job::Resolved { id, flow, found } => {
                let step = self.connector.resolved(id, flow, found, event_loop.now);
                self.take(id, step, event_loop);
            }
        }
    }

    fn notice(&mut self, id: usize, notice: Notice, event_loop: &mut EventLoop) {
        match notice {
            Notice::Open(target) => self.open(id, &target, event_loop),
            Notice::ConnectFailed(error) => self.attempt_failed(id, refusal(&error), event_loop),
            Notice::FlowEnded(summary) => {
                self.connector.end(id);
                flow_ended(summary, self.counters, self.report);
            }
            Notice::LaneReady | Notice::LaneFree => {}
        }
    }

    fn lane_ended(
        &mut self,
        id: usize,
        _ended: EndedLane,
        _unproven: Option<LocalFlow>,
        _event_loop: &mut EventLoop,
    ) {
        self.connector.end(id);
    }

    fn overdue(&self, relay: &Relay, _id: usize, now: Instant) -> Option<Overdue> {
        let passed = |since: Instant, limit| now.saturating_duration_since(since) >= limit;
        match &relay.flow {
            None if self.ending.drain.is_raised() => Some(Overdue::Unused),
            None => passed(relay.last_heard.max(relay.last_used), SILENCE_TIMEOUT)
                .then_some(Overdue::Unused),
            Some(flow) if flow.is_gone() => {
                passed(flow.last_active, RELEASE_TIMEOUT).then_some(Overdue::Unused)
            }
            Some(flow) => {
                passed(flow.last_active, self.config.timeouts.idle).then_some(Overdue::Flow)
            }
        }
    }

    fn sweep(&mut self, event_loop: &mut EventLoop) {
        let now = event_loop.now;
        let is_late = |id: usize, event_loop: &mut EventLoop| {
            let flow = event_loop.get(id).and_then(|relay| relay.flow.as_ref());
            flow.is_some_and(|flow| flow.connected().is_none())
        };
        for id in self.connector.late(now) {
            if is_late(id, event_loop) {
                self.attempt_failed(id, Refusal::TimedOut, event_loop);
            } else {
                self.connector.end(id);
            }
        }
    }

    fn drain_timeout(&self) -> Duration {
        self.config.timeouts.drain
    }
}

#[cfg(test)]
mod tests;
