//! Far's sessions: of each near box a few, bound to its key.

use super::engine::{Engine, Side};
use super::link::Link;
use super::live::Live;
use super::udt_carrier::{self, Keys};
use super::{OTHER_COMPRESSION, RESUME_TIMEOUT};
use crate::address_share::{AddressShares, ShareTicket};
use crate::connector::{Connector, Step, refusal};
use crate::counters::Counters;
use crate::event::Event;
use crate::event_loop::{Inbox, Report, flow_ended};
use crate::far::{FarConfig, NewLane};
use crate::keys::KeyId;
use crate::lane_buffers::GrantedBuffers;
use crate::lane_socket::LaneSocket;
use crate::local_flow::FlowSummary;
use crate::resolver::{Answer, Resolver};
use crate::{Timeouts, sockets};
use lane::{Carries, Preface, Refusal, Role, Target};
use mux::{Attachment, Hello, MAX_CONNECTIONS, Session, UdtOffer, Verdict, Welcome};
use pinned_tls::PublicKey;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Most sessions, in all and of one key; of one address at most seven times the room that is left.
/// Each keeps at most 33 MiB that are not acknowledged, 38 MiB that arrived early, and 128 MiB for slow
/// receivers.
const MAX_SESSIONS: u64 = 8;
const MAX_OF_KEY: usize = 4;
/// Connections that have not said which session they are of.
const MAX_UNGREETED: usize = 256;

/// What other threads hand over.
pub(crate) enum Job {
    Link(NewLane),
    Resolved { flow: usize, number: u64, found: Result<Vec<SocketAddr>, Refusal> },
}

/// The sessions of far.
pub(crate) struct FarSide<'a> {
    config: &'a FarConfig,
    inbox: Inbox<Job>,
    counters: &'a Arc<Counters>,
    report: Report<'a>,
    connector: Connector,
    /// Sessions by the address that began them.
    by_address: AddressShares,
}

impl<'a> FarSide<'a> {
    pub(crate) fn new(
        config: &'a FarConfig,
        resolver: Resolver,
        inbox: Inbox<Job>,
        counters: &'a Arc<Counters>,
        report: Report<'a>,
    ) -> Self {
        let connector = Connector::new(Arc::clone(&config.policy), resolver);
        let by_address = AddressShares::new(MAX_SESSIONS);
        FarSide { config, inbox, counters, report, connector, by_address }
    }

    fn step(&mut self, flow: usize, mut step: Step, engine: &mut Engine) {
        loop {
            step = match step {
                Step::Wait => return,
                Step::Connect(stream) => match engine.set_local(flow, stream) {
                    Ok(()) => return,
                    Err(error) => self.connector.failed(flow, refusal(&error), engine.now),
                },
                Step::Refuse(refusal) => return engine.refuse(flow, refusal, self),
            };
        }
    }

    /// The session of a `Hello`, new or not; with the answer to it.
    fn find(
        &mut self,
        hello: &Hello,
        key: Option<KeyId>,
        peer: SocketAddr,
        engine: &mut Engine,
    ) -> Result<(usize, u64), Verdict> {
        let found = engine.sessions().find(|(_, live)| live.id == hello.session && live.key == key);
        let found = found.map(|(id, _)| id);
        match (hello.attachment, found) {
            (attachment, Some(id)) => {
                let live = engine.session(id).ok_or(Verdict::Unknown)?;
                // One that begins again has lost the answer to its first `Hello`.
                if attachment == Attachment::First && live.session.received() > 0 {
                    return Err(Verdict::Unknown);
                }
                if attachment == Attachment::Additional && live.links.len() >= MAX_CONNECTIONS {
                    return Err(Verdict::Busy);
                }
                live.peer = peer;
                Ok((id, live.session.received()))
            }
            (Attachment::Resumed(_) | Attachment::Additional, None) => Err(Verdict::Unknown),
            (Attachment::First, None) => {
                let share = self.share(key, peer, engine).ok_or(Verdict::Busy)?;
                let session = Session::new(Role::Far);
                let mut live = Live::new(session, hello.session, key, peer, engine.now);
                live.share = Some(share);
                Ok((engine.add_session(live), 0))
            }
        }
    }

    /// Room for one more session: that of a near box that has left, if there is no other.
    fn share(
        &mut self,
        key: Option<KeyId>,
        peer: SocketAddr,
        engine: &mut Engine,
    ) -> Option<ShareTicket> {
        let of_key = engine.sessions().filter(|(_, live)| live.key == key).count();
        if key.is_some() && of_key >= MAX_OF_KEY && !self.end_unused(engine, |live| live.key == key)
        {
            return None;
        }
        let ip = peer.ip();
        if let Ok(share) = self.by_address.take(ip) {
            return Some(share);
        }
        let is_ended =
            self.end_unused(engine, |live| live.key == key) || self.end_unused(engine, |_| true);
        if is_ended { self.by_address.take(ip).ok() } else { None }
    }

    /// Ends the session that has had no connection for longest, of those without flows.
    fn end_unused(&mut self, engine: &mut Engine, of: impl Fn(&Live) -> bool) -> bool {
        let unused = engine
            .sessions()
            .filter(|(_, live)| live.streams.is_empty() && of(live))
            .filter_map(|(id, live)| Some((live.unlinked?, id)))
            .min();
        let Some((_, id)) = unused else { return false };
        engine.end_session(id, "another session needs its place", self);
        true
    }

    /// Waits for a UDT connection of near, if that asks for it; `None` also where the system has no
    /// port: the connection that greets carries the session.
    fn offer_udt(
        &self,
        link: usize,
        hello: &Hello,
        engine: &mut Engine,
    ) -> Option<(UdtOffer, TcpStream)> {
        let near = PublicKey::from_bytes(hello.udt?);
        let local = engine.link(link)?.socket.stream.local_addr().ok()?;
        let mut offered = || -> io::Result<_> {
            let socket = sockets::bind_udp(local, self.config.udt_ports.as_ref())?;
            let port = socket.local_addr()?.port();
            let identity = udt_carrier::fresh_identity()?;
            let key = identity.public_key().to_bytes();
            let keys = Keys { identity, peer: near, algorithm: self.config.udt };
            Ok((UdtOffer { port, key }, engine.carriers.accept(socket, keys)?))
        };
        offered().ok()
    }

    fn refused(&self, peer: SocketAddr, why: &str) {
        (self.report)(Event::LaneRefused { peer, why: why.to_owned() });
    }
}

/// What the kernel lets a connection hold, rounded up: a buffer that is granted as asked is not capped.
fn window_kib(link: &Link) -> Option<NonZeroU32> {
    let (_, least) = GrantedBuffers::of(&link.socket.stream).ok()?.least();
    NonZeroU32::new(u32::try_from(least.bytes().div_ceil(1 << 10)).unwrap_or(u32::MAX))
}

impl Side for FarSide<'_> {
    type Job = Job;

    fn job(&mut self, job: Job, engine: &mut Engine) {
        match job {
            Job::Link(NewLane { stream, peer, tls, key, share, preface }) => {
                if engine.links().filter(|link| link.session.is_none()).count() >= MAX_UNGREETED {
                    return self.refused(peer, "too many connections without a session");
                }
                let socket = LaneSocket::accepted(stream, tls, Arc::clone(self.counters));
                let own =
                    Preface { carries: Carries::ManyFlows, compresses: self.config.compresses };
                let mut link = Link::new(socket, peer, &own.encode(), Hello::BYTES, engine.now);
                (link.key, link.share) = (key, Some(share));
                link.compresses = own.compresses && preface.compresses;
                engine.add_link(link, self);
            }
            Job::Resolved { flow, number, found } => {
                let step = self.connector.resolved(flow, number, found, engine.now);
                self.step(flow, step, engine);
            }
        }
    }

    fn greeted(&mut self, link: usize, greeting: &[u8], engine: &mut Engine) {
        let of_link = engine.link(link).map(|link| (link.peer, link.key, link.compresses));
        let Some((peer, key, compresses)) = of_link else { return };
        let Some(hello) = greeting.try_into().ok().and_then(Hello::decode) else {
            self.refused(peer, "it did not say which session it is of");
            return engine.close_link(link, "refused", self);
        };
        let is_other = |live: &Live| {
            let is_same = live.id == hello.session && live.key == key;
            is_same && live.session.admits_compressed() != compresses
        };
        if engine.sessions().any(|(_, live)| is_other(live)) {
            self.refused(peer, OTHER_COMPRESSION);
            return engine.close_link(link, "refused", self);
        }
        let (verdict, found) = match self.find(&hello, key, peer, engine) {
            Ok(found) => (Verdict::Accepted, Some(found)),
            Err(verdict) => (verdict, None),
        };
        let resumes_at = found.map_or(0, |(_, received)| received);
        let udt = found.and_then(|_| self.offer_udt(link, &hello, engine));
        let offer = udt.as_ref().map(|(offer, _)| *offer);
        let Some(open) = engine.link(link) else { return };
        let welcome = Welcome { verdict, resumes_at, window_kib: window_kib(open), udt: offer };
        open.socket.queue().extend_from_slice(&welcome.encode());
        let Some((session, _)) = found else {
            open.ends = true;
            self.refused(
                peer,
                match verdict {
                    Verdict::Busy if hello.attachment == Attachment::Additional => {
                        "too many connections of its session"
                    }
                    Verdict::Busy => "too many sessions",
                    Verdict::Accepted | Verdict::Unknown => "its session is unknown here",
                },
            );
            return engine.pump_link(link, self);
        };
        let offset = match hello.attachment {
            Attachment::First => 0,
            Attachment::Resumed(offset) => offset,
            Attachment::Additional => return engine.attach_beside(session, link),
        };
        let Some(live) = engine.session(session) else { return };
        if compresses {
            live.compresses = true;
            live.session.admit_compressed();
        }
        // Wrong offsets end the session, not only the connection.
        if let Err(error) = live.session.resume(offset) {
            self.refused(peer, &error.to_string());
            engine.close_link(link, "refused", self);
            return engine.end_session(session, &error.to_string(), self);
        }
        let Some((_, stream)) = udt else { return engine.attach(session, link, self) };
        let socket = LaneSocket::accepted(stream, None, Arc::clone(self.counters));
        let now = engine.now;
        let Some(greeted) = engine.link(link) else { return };
        let carrying = Link::carrying(socket, greeted, now);
        greeted.ends = true;
        engine.pump_link(link, self);
        // Without room for its socket near hears nothing, and comes back over TCP.
        if let Some(carrying) = engine.add_link(carrying, self) {
            engine.attach(session, carrying, self);
        }
    }

    fn open(&mut self, flow: usize, target: &Target, engine: &mut Engine) {
        let Some(near) = engine.flow(flow).map(|flow| flow.local.peer.ip()) else { return };
        let inbox = self.inbox.clone();
        let answer = |number| -> Answer {
            Box::new(move |found| inbox.put(Job::Resolved { flow, number, found }))
        };
        let step = self.connector.begin(flow, target, near, engine.now, answer);
        self.step(flow, step, engine);
    }

    fn connect_failed(&mut self, flow: usize, error: &io::Error, engine: &mut Engine) {
        let step = self.connector.failed(flow, refusal(error), engine.now);
        self.step(flow, step, engine);
    }

    fn flow_ended(&mut self, flow: usize, summary: FlowSummary) {
        self.connector.end(flow);
        flow_ended(summary, self.counters, self.report);
    }

    fn link_lost(&mut self, _link: &Link, _why: &str, _engine: &mut Engine) {}

    fn sweep(&mut self, drains: bool, engine: &mut Engine) -> bool {
        let now = engine.now;
        let lost: Vec<usize> = engine
            .sessions()
            .filter(|(_, live)| {
                live.unlinked
                    .is_some_and(|since| now.saturating_duration_since(since) >= RESUME_TIMEOUT)
            })
            .map(|(id, _)| id)
            .collect();
        for id in lost {
            let why = "the connection between the boxes broke, and was not resumed within 30 s";
            engine.end_session(id, why, self);
        }
        for flow in self.connector.late(now) {
            let flow_of = engine.flow(flow);
            if flow_of.is_some_and(|flow| flow.local.connected().is_none()) {
                let step = self.connector.failed(flow, Refusal::TimedOut, now);
                self.step(flow, step, engine);
            } else {
                self.connector.end(flow);
            }
        }
        if !drains || engine.has_flows() {
            return false;
        }
        // Near acknowledges what it has of the last flows; of a lost connection nobody does.
        let kept: Vec<usize> = engine
            .sessions()
            .filter(|(_, live)| live.unlinked.is_none() && !live.session.is_acknowledged())
            .map(|(id, _)| id)
            .collect();
        kept.iter().for_each(|id| engine.ping(*id));
        kept.is_empty()
    }

    fn timeouts(&self) -> Timeouts {
        self.config.timeouts
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine;
    use super::*;
    use crate::Destinations;
    use control::Algorithm;
    use host::stop::StopFlag;
    use mux::SessionId;

    /// Runs a test with a far box that listens nowhere.
    fn with_far(test: impl FnOnce(&mut FarSide<'_>, &mut Engine)) {
        let config = FarConfig {
            keys: None,
            udt: Algorithm::Bbr3,
            udt_ports: None,
            policy: Arc::new(Destinations::new(Vec::new(), Box::new(|_| false))),
            compresses: false,
            timeouts: Timeouts::default(),
            max_lanes: 100,
            threads: 1,
        };
        let counters = Arc::default();
        std::thread::scope(|scope| {
            let resolver = Resolver::start(scope, &StopFlag::new()).unwrap();
            let (mut prepared, inbox) = engine::prepare(Role::Far, &counters).unwrap();
            let mut side = FarSide::new(&config, resolver, inbox, &counters, &|_| {});
            test(&mut side, prepared.engine());
        });
    }

    /// A session begins, and has a connection.
    fn begin(
        side: &mut FarSide<'_>,
        key: Option<u8>,
        last: u8,
        id: u8,
        engine: &mut Engine,
    ) -> Result<usize, Verdict> {
        let hello =
            Hello { session: SessionId([id; 16]), attachment: Attachment::First, udt: None };
        let peer = SocketAddr::from(([192, 0, 2, last], 1));
        let (found, _) = side.find(&hello, key.map(|key| [key; 32]), peer, engine)?;
        engine.session(found).unwrap().unlinked = None;
        Ok(found)
    }

    #[test]
    fn no_address_has_all_sessions() {
        with_far(|side, engine| {
            let begun: Vec<_> = (0..8).map(|id| begin(side, None, 1, id, engine)).collect();
            assert_eq!(begun.iter().filter(|one| one.is_ok()).count(), 7, "{begun:?}");
            assert!(begin(side, None, 2, 8, engine).is_ok());
            assert_eq!(begin(side, None, 3, 9, engine), Err(Verdict::Busy));
            engine.end_session(0, "over", side);
            assert!(begin(side, None, 3, 9, engine).is_ok());
        });
    }

    #[test]
    fn a_near_box_that_has_left_leaves_its_place_to_the_next_one() {
        with_far(|side, engine| {
            let key = Some(1);
            let own: Vec<usize> =
                (0..4).map(|id| begin(side, key, id, id, engine).unwrap()).collect();
            assert_eq!(begin(side, key, 9, 9, engine), Err(Verdict::Busy), "all are connected");
            let other = begin(side, Some(2), 8, 8, engine).unwrap();
            let now = engine.now;
            let leave = |session: usize, seconds: u64, engine: &mut Engine| {
                let since = now - std::time::Duration::from_secs(seconds);
                engine.session(session).unwrap().unlinked = Some(since);
            };
            leave(other, 20, engine);
            leave(own[0], 10, engine);
            leave(own[1], 5, engine);
            leave(own[2], 9, engine);
            engine.session(own[0]).unwrap().streams.insert(1, 0);
            // That of another key, and one with flows, have been without a connection for longer.
            begin(side, key, 9, 9, engine).unwrap();
            let left: Vec<usize> = engine.sessions().map(|(id, _)| id).collect();
            assert!(!left.contains(&own[2]), "{left:?}");
            assert!([own[0], own[1], own[3], other].iter().all(|id| left.contains(id)));
            begin(side, key, 9, 10, engine).unwrap();
            assert_eq!(begin(side, key, 9, 11, engine), Err(Verdict::Busy), "one has flows");
            // With all places taken, a near box of another key has that of the one that has left.
            for id in 20..23 {
                begin(side, Some(id), id, id, engine).unwrap();
            }
            assert_eq!(engine.sessions().count(), 8);
            begin(side, Some(30), 30, 30, engine).unwrap();
            assert!(engine.session(other).is_none());
            assert_eq!(begin(side, Some(31), 31, 31, engine), Err(Verdict::Busy));
        });
    }

    #[test]
    fn a_session_whose_welcome_was_lost_begins_again() {
        with_far(|side, engine| {
            let session = begin(side, Some(1), 1, 7, engine).unwrap();
            assert_eq!(begin(side, Some(1), 2, 7, engine), Ok(session));
            assert_ne!(begin(side, Some(2), 2, 7, engine), Ok(session), "another key");
            let live = engine.session(session).unwrap();
            let mut near = Session::new(Role::Near);
            near.ping();
            live.session.receive(near.outgoing()).unwrap();
            assert_eq!(begin(side, Some(1), 1, 7, engine), Err(Verdict::Unknown));
        });
    }
}
