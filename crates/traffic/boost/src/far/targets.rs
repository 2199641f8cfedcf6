//! The targets of one thread of far: resolved once, checked, connected one address after another.

use super::{FarConfig, NewLane};
use crate::counters::Counters;
use crate::event_loop::{EndedLane, Ending, EventLoop, Inbox, Overdue, Report, Side, flow_ended};
use crate::lane_socket::LaneSocket;
use crate::local_flow::{Local, LocalFlow};
use crate::relay::{Notice, Relay};
use crate::resolver::{self, Resolver};
use crate::sockets;
use lane::{Refusal, Role, Target, TargetHost};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout of the connection to a target, over all of its addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most of it for one address while others are left.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);
/// Most addresses of a target.
const MAX_ADDRESSES: usize = 8;
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

/// A target that is being connected.
struct Attempt {
    /// The number of the flow among all of this thread.
    flow: u64,
    addresses: VecDeque<SocketAddr>,
    /// Why the last address failed.
    failure: Refusal,
    /// When the current address is given up.
    next_at: Instant,
    /// When the name is given up, and then the target.
    until: Instant,
}

/// One thread of far.
pub(super) struct FarSide<'a> {
    config: &'a FarConfig,
    resolver: Resolver,
    inbox: Inbox<Job>,
    counters: &'a Arc<Counters>,
    ending: Ending<'a>,
    report: Report<'a>,
    attempts: HashMap<usize, Attempt>,
    flows: u64,
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
        let attempts = HashMap::new();
        FarSide { config, resolver, inbox, counters, ending, report, attempts, flows: 0 }
    }

    fn open(&mut self, id: usize, target: &Target, event_loop: &mut EventLoop) {
        self.counters.flows.increment();
        self.counters.active_flows.increment();
        self.flows += 1;
        let flow = self.flows;
        let until = event_loop.now + resolver::TIMEOUT;
        let failure = Refusal::Unreachable;
        let attempt = Attempt { flow, addresses: VecDeque::new(), failure, next_at: until, until };
        self.attempts.insert(id, attempt);
        if let Err(refusal) = self.look_up(id, flow, target, event_loop) {
            self.refuse(id, refusal, event_loop);
        }
    }

    fn look_up(
        &mut self,
        id: usize,
        flow: u64,
        target: &Target,
        event_loop: &mut EventLoop,
    ) -> Result<(), Refusal> {
        self.config.policy.before_resolving(target)?;
        match &target.host {
            TargetHost::Address(address) => {
                let address = SocketAddr::from((*address, target.port));
                self.resolved(id, target, &[address], event_loop)
            }
            TargetHost::Name(name) => {
                let inbox = self.inbox.clone();
                let answer = Box::new(move |found| inbox.put(Job::Resolved { id, flow, found }));
                let Some(relay) = event_loop.get(id) else { return Ok(()) };
                self.resolver.ask(name.clone(), target.port, relay.peer.ip(), answer)
            }
            TargetHost::NameServer => {
                let servers = host::resolve::name_servers().into_iter();
                let port = Target::NAME_SERVER.port;
                let servers: Vec<_> = servers.map(|ip| (ip, port).into()).collect();
                self.resolved(id, target, &servers, event_loop)
            }
        }
    }

    fn resolved(
        &mut self,
        id: usize,
        target: &Target,
        found: &[SocketAddr],
        event_loop: &mut EventLoop,
    ) -> Result<(), Refusal> {
        let mut allowed = self.config.policy.after_resolving(target, found)?;
        allowed.truncate(MAX_ADDRESSES);
        let Some(attempt) = self.attempts.get_mut(&id) else { return Ok(()) };
        attempt.addresses = allowed.into();
        attempt.until = event_loop.now + CONNECT_TIMEOUT;
        self.connect_next(id, event_loop)
    }

    /// Connects to the next address.
    fn connect_next(&mut self, id: usize, event_loop: &mut EventLoop) -> Result<(), Refusal> {
        let now = event_loop.now;
        let Some(attempt) = self.attempts.get_mut(&id) else { return Ok(()) };
        while now < attempt.until
            && let Some(address) = attempt.addresses.pop_front()
        {
            let remaining = attempt.until.saturating_duration_since(now);
            attempt.next_at = now + address_timeout(remaining, attempt.addresses.len());
            match sockets::connect_target(address) {
                Ok(stream) => {
                    let Some(relay) = event_loop.get(id) else { return Ok(()) };
                    relay.set_local(Local::Connecting(stream));
                    event_loop.register_local(id);
                    return Ok(());
                }
                Err(error) => attempt.failure = refusal(&error),
            }
        }
        Err(attempt.failure)
    }

    fn refuse(&mut self, id: usize, refusal: Refusal, event_loop: &mut EventLoop) {
        self.attempts.remove(&id);
        if let Some(relay) = event_loop.get(id) {
            relay.refuse(refusal);
            event_loop.wake(id);
        }
    }

    fn attempt_failed(&mut self, id: usize, failure: Refusal, event_loop: &mut EventLoop) {
        if let Some(attempt) = self.attempts.get_mut(&id) {
            attempt.failure = failure;
        }
        if let Err(refusal) = self.connect_next(id, event_loop) {
            self.refuse(id, refusal, event_loop);
        }
    }
}

/// The share of the remaining time that an address has, with so many behind it.
fn address_timeout(remaining: Duration, others: usize) -> Duration {
    match u32::try_from(others) {
        Ok(0) => remaining,
        Ok(others) => (remaining / (others + 1)).min(ADDRESS_TIMEOUT),
        Err(_) => Duration::ZERO,
    }
}

/// The reason that near is told.
fn refusal(error: &io::Error) -> Refusal {
    match error.kind() {
        // A target may reset what its system has accepted before this host has seen it connected.
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Refusal::Refused,
        io::ErrorKind::TimedOut => Refusal::TimedOut,
        _ if host::socket::is_exhausted(error) => Refusal::Busy,
        _ => Refusal::Unreachable,
    }
}

impl Side for FarSide<'_> {
    type Job = Job;

    fn job(&mut self, job: Job, event_loop: &mut EventLoop) {
        match job {
            Job::Lane(NewLane { stream, peer, tls, share }) => {
                let socket = LaneSocket::accepted(stream, tls, Arc::clone(self.counters));
                let mut relay = Relay::greeted(Role::Far, socket, peer, event_loop.now);
                relay.share = Some(share);
                // Without descriptors the lane is closed, and near learns of that.
                let _ = event_loop.add(relay);
            }
            Job::Resolved { id, flow, found } => {
                if self.attempts.get(&id).is_none_or(|attempt| attempt.flow != flow) {
                    return;
                }
                let target = event_loop.get(id).and_then(|relay| relay.flow.as_ref());
                let Some(target) = target.map(|flow| flow.target.clone()) else { return };
                let result = found.and_then(|found| self.resolved(id, &target, &found, event_loop));
                if let Err(refusal) = result {
                    self.refuse(id, refusal, event_loop);
                }
            }
        }
    }

    fn notice(&mut self, id: usize, notice: Notice, event_loop: &mut EventLoop) {
        match notice {
            Notice::Open(target) => self.open(id, &target, event_loop),
            Notice::ConnectFailed(error) => self.attempt_failed(id, refusal(&error), event_loop),
            Notice::FlowEnded(summary) => {
                self.attempts.remove(&id);
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
        self.attempts.remove(&id);
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
        let late: Vec<usize> = self
            .attempts
            .iter()
            .filter(|(_, attempt)| now >= attempt.next_at)
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            if is_late(id, event_loop) {
                self.attempt_failed(id, Refusal::TimedOut, event_loop);
            } else {
                self.attempts.remove(&id);
            }
        }
    }

    fn drain_timeout(&self) -> Duration {
        self.config.timeouts.drain
    }
}

#[cfg(test)]
mod tests;
