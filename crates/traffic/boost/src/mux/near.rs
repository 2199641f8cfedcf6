//! Near's sessions: opens streams for flows, and connects again when a connection breaks.

mod udt;

use super::connections::Connections;
use super::engine::{Engine, Side};
use super::link::Link;
use super::live::Live;
use super::mux_flow::answer_refusal;
use super::udt_carrier;
use super::{OTHER_COMPRESSION, RESUME_TIMEOUT};
use crate::counters::Counters;
use crate::event::Event;
use crate::event_loop::{Report, flow_ended};
use crate::lane_buffers::GrantedBuffers;
use crate::lane_socket::LaneSocket;
use crate::local_flow::{FlowEnd, FlowSummary, Local, LocalFlow};
use crate::near::{ADDRESS_TIMEOUT, NearConfig, NewFlow};
use crate::saved::saved_time;
use crate::{Timeouts, sockets};
use host::clock;
use host::stop::StopFlag;
use lane::{Carries, Preface, Reduction, Refusal, Role, Target};
use mux::{Attachment, Hello, Session, SessionId, Verdict, Welcome};
use pinned_tls::Identity;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use units::ByteCount;

/// Pauses between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);
/// A session that far has never taken is given up after so long.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The preface and far's answer.
const GREETING_BYTES: usize = Preface::BYTES + Welcome::BYTES;

/// The session of near, and its next connections.
pub(crate) struct NearSide<'a> {
    config: &'a NearConfig,
    counters: &'a Arc<Counters>,
    report: Report<'a>,
    /// Raised once nobody is left who receives.
    has_no_applications: StopFlag,
    session: Option<usize>,
    /// Far has taken the session.
    has_begun: bool,
    /// Flows of the session so far.
    flows: u64,
    connections: Connections,
    pause: Duration,
    retry_at: Instant,
    /// Index of the address of far that is tried next.
    address: usize,
    /// Addresses that have failed one after another.
    failed: usize,
    is_reached: Option<bool>,
    /// What the connection that greets has told far of UDT.
    udt_identity: Option<Identity>,
    /// TCP carries the session until then.
    udt_at: Instant,
}

impl<'a> NearSide<'a> {
    pub(crate) fn new(
        config: &'a NearConfig,
        counters: &'a Arc<Counters>,
        report: Report<'a>,
        has_no_applications: StopFlag,
    ) -> Self {
        NearSide {
            config,
            counters,
            report,
            has_no_applications,
            session: None,
            has_begun: false,
            flows: 0,
            connections: Connections::new(config.connections, clock::now()),
            pause: FIRST_PAUSE,
            retry_at: clock::now(),
            address: 0,
            failed: 0,
            is_reached: None,
            udt_identity: None,
            udt_at: clock::now(),
        }
    }

    fn address(&self) -> SocketAddr {
        let far = self.config.far.get(self.address % self.config.far.len().max(1)).copied();
        far.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    /// The session, which begins with the first flow.
    fn session(&mut self, engine: &mut Engine) -> Result<usize, String> {
        if let Some(session) = self.session {
            return Ok(session);
        }
        let id = SessionId(host::random::secret().map_err(|error| error.to_string())?);
        let session = Session::new(Role::Near);
        let mut live = Live::new(session, id, None, self.address(), engine.now);
        live.compresses = self.config.compresses;
        let session = engine.add_session(live);
        self.session = Some(session);
        (self.has_begun, self.flows) = (false, 0);
        Ok(session)
    }

    /// Connections that carry the session.
    fn attached(&self, engine: &mut Engine) -> usize {
        let live = self.session.and_then(|session| engine.session(session));
        live.map_or(0, |live| live.links.len())
    }

    /// Begins a connection, unless one is there or a pause is on; those beside it that are missing.
    fn connect(&mut self, engine: &mut Engine) {
        let (attached, pending) = (self.attached(engine), engine.unattached().len());
        let far = self.address();
        if attached > 0 {
            for _ in 0..self.connections.missing(attached + pending, engine.now) {
                if self.try_connect(far, true, engine).is_err() {
                    return self.connections.lost(Duration::ZERO, engine.now);
                }
            }
        } else if pending == 0
            && engine.now >= self.retry_at
            && let Err(why) = self.try_connect(far, false, engine)
        {
            self.unreachable(far, &why, engine);
        }
    }

    fn try_connect(
        &mut self,
        far: SocketAddr,
        is_additional: bool,
        engine: &mut Engine,
    ) -> Result<(), String> {
        let session = self.session(engine)?;
        let wants_udt = !is_additional && self.config.udt.is_some() && engine.now >= self.udt_at;
        let Some(live) = engine.session(session) else { return Ok(()) };
        let attachment = match (is_additional, self.has_begun) {
            (true, _) => Attachment::Additional,
            (false, true) => Attachment::Resumed(live.session.received()),
            (false, false) => Attachment::First,
        };
        let identity = wants_udt.then(udt_carrier::fresh_identity).transpose();
        let identity = identity.map_err(|error| error.to_string())?;
        let udt = identity.as_ref().map(|identity| identity.public_key().to_bytes());
        if !is_additional {
            self.udt_identity = identity;
        }
        let hello = Hello { session: live.id, attachment, udt };
        let key = self.config.key.as_ref();
        let tls = key.map(crate::PairKey::client).transpose();
        let tls = tls.map_err(|error| error.to_string())?.map(Box::new);
        let preamble = key.map(crate::PairKey::preamble).unwrap_or_default();
        let stream =
            sockets::connect_lane(far, &self.config.options).map_err(|error| error.to_string())?;
        let socket = LaneSocket::connecting(stream, tls, preamble, Arc::clone(self.counters));
        let preface = Preface { carries: Carries::ManyFlows, compresses: self.config.compresses };
        let greeting = [&preface.encode()[..], &hello.encode()].concat();
        let mut link = Link::new(socket, far, &greeting, GREETING_BYTES, engine.now);
        link.is_additional = is_additional;
        if !self.has_begun && self.config.far.len() > 1 {
            link.timeout = ADDRESS_TIMEOUT;
        }
        let has_room = engine.add_link(link, self).map(drop);
        has_room.ok_or_else(|| "the system has no room for another connection".to_owned())
    }

    /// Goes on to the next address; after a pause once every address has failed. A session that has not
    /// begun then ends, as its flows would only wait for the same.
    fn unreachable(&mut self, far: SocketAddr, why: &str, engine: &mut Engine) {
        self.address = self.address.wrapping_add(1);
        self.failed += 1;
        if self.failed < self.config.far.len() {
            self.retry_at = engine.now;
            return;
        }
        self.failed = 0;
        self.retry_at = engine.now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        if self.is_reached.replace(false) != Some(false) {
            (self.report)(Event::FarUnreachable { far, why: why.to_owned() });
        }
        if !self.has_begun {
            self.drop_session(why, engine);
        }
    }

    fn drop_session(&mut self, why: &str, engine: &mut Engine) {
        let Some(session) = self.session.take() else { return };
        engine.end_session(session, why, self);
        self.close_unattached(why, engine);
    }

    /// Closes connections that have not begun to carry the session.
    fn close_unattached(&mut self, why: &str, engine: &mut Engine) {
        for link in engine.unattached() {
            engine.close_link(link, why, self);
        }
    }

    /// Takes far's answer.
    fn welcomed(
        &self,
        greeting: &[u8],
        is_additional: bool,
        engine: &mut Engine,
    ) -> Result<Welcome, String> {
        let (preface, rest) = greeting.split_first_chunk().ok_or("it sent no preface")?;
        let preface = Preface::decode(*preface).map_err(|error| error.to_string())?;
        if preface.carries != Carries::ManyFlows {
            return Err("it does not carry many flows over one connection".to_owned());
        }
        let welcome = rest.try_into().ok().and_then(Welcome::decode).ok_or("it sent no answer")?;
        match welcome.verdict {
            Verdict::Accepted => {}
            Verdict::Unknown => return Err("the far box no longer has the session".to_owned()),
            Verdict::Busy => return Err("the far box has too many sessions".to_owned()),
        }
        if let Some(session) = self.session {
            self.agree_on_compression(preface, session, engine)?;
            let live = engine.session(session).filter(|_| !is_additional);
            if let Some(live) = live {
                live.session.resume(welcome.resumes_at).map_err(|error| error.to_string())?;
            }
        }
        Ok(welcome)
    }

    /// Takes what far says of compression on the first connection of the session, which holds for all.
    fn agree_on_compression(
        &self,
        preface: Preface,
        session: usize,
        engine: &mut Engine,
    ) -> Result<(), String> {
        let agreed = self.config.compresses && preface.compresses;
        let Some(live) = engine.session(session) else { return Ok(()) };
        if self.has_begun {
            let is_same = live.session.admits_compressed() == agreed;
            return if is_same { Ok(()) } else { Err(OTHER_COMPRESSION.to_owned()) };
        }
        live.compresses = agreed;
        if agreed {
            live.session.admit_compressed();
            return Ok(());
        }
        let flows: Vec<usize> = live.streams.values().copied().collect();
        for flow in flows {
            if let Some(flow) = engine.flow(flow) {
                flow.local.to_lane.reduction = Reduction::default();
            }
        }
        Ok(())
    }
}

impl Side for NearSide<'_> {
    type Job = NewFlow;

    fn job(&mut self, flow: NewFlow, engine: &mut Engine) {
        let NewFlow { stream, peer, target, negotiation, early, share } = flow;
        let mut local = LocalFlow::new(Local::Connected(stream), peer, target, engine.now);
        (local.negotiation, local.share) = (Some(negotiation), Some(share));
        let opened = self.session(engine).map_err(|why| (Refusal::Unreachable, why));
        let opened = opened.and_then(|session| {
            let busy = || (Refusal::Busy, "too many flows in one session".to_owned());
            let live = engine.session(session).ok_or_else(busy)?;
            if !live.session.has_room() {
                let why = "the far box does not acknowledge what it gets".to_owned();
                return Err((Refusal::Busy, why));
            }
            let stream = live.session.open(&local.target).map_err(|_| busy())?;
            // At most 16 KiB, which is the credit of a new stream.
            live.session.send(stream, &early).map_err(|_| busy())?;
            Ok((session, stream, live.compresses))
        });
        match opened {
            Ok((session, stream, compresses)) => {
                if !early.is_empty() {
                    local.taken(early.len(), early.len(), engine.now);
                    self.counters.to_lane.add(early.len());
                    if compresses {
                        local.to_lane.reduction.begin(&early);
                    }
                }
                if self.flows > 0 {
                    self.counters.reused.increment();
                }
                self.flows += 1;
                engine.add_flow(session, stream, local);
                self.connect(engine);
            }
            Err((refusal, why)) => {
                answer_refusal(&mut local, refusal);
                let summary = local.summary(true, engine.now);
                let end = FlowEnd::LaneFailed(why);
                flow_ended(FlowSummary { end, ..summary }, self.counters, self.report);
            }
        }
    }

    fn greeted(&mut self, link: usize, greeting: &[u8], engine: &mut Engine) {
        let Some(open) = engine.link(link) else { return };
        let (far, is_additional) = (open.peer, open.is_additional);
        let own = GrantedBuffers::of(&open.socket.stream).ok();
        let welcome = match self.welcomed(greeting, is_additional, engine) {
            Ok(welcome) => welcome,
            Err(why) if is_additional => {
                engine.close_link(link, &why, self);
                return self.connections.lost(Duration::ZERO, engine.now);
            }
            Err(why) => {
                engine.close_link(link, &why, self);
                let had_begun = self.has_begun;
                self.unreachable(far, &why, engine);
                // One that has not begun may be taken at the next address.
                if had_begun {
                    self.drop_session(&why, engine);
                }
                return;
            }
        };
        let Some(session) = self.session else { return };
        if is_additional {
            return engine.attach_beside(session, link);
        }
        (self.has_begun, self.pause, self.failed) = (true, FIRST_PAUSE, 0);
        if self.is_reached.replace(true) != Some(true) {
            (self.report)(Event::FarReached { far });
        }
        if let Some(offer) = welcome.udt {
            return match self.change_to_udt(link, offer, engine) {
                Ok(carrying) => {
                    self.connections.one();
                    engine.attach(session, carrying, self);
                }
                Err(why) => {
                    self.udt_blocked(far, &why, engine);
                    engine.close_link(link, &why, self);
                    self.retry_at = engine.now;
                }
            };
        }
        if self.udt_identity.take().is_some() {
            self.udt_blocked(far, "it has no free UDP port", engine);
        }
        engine.attach(session, link, self);
        let options = &self.config.options;
        let of_far =
            welcome.window_kib.map(|size| ByteCount::from_bytes(u64::from(size.get()) << 10));
        if let Some(event) = self.connections.decide(options.buffer, own, of_far) {
            (self.report)(event);
        }
        self.connect(engine);
    }

    fn open(&mut self, _flow: usize, _target: &Target, _engine: &mut Engine) {}

    fn connect_failed(&mut self, _flow: usize, _error: &io::Error, _engine: &mut Engine) {}

    fn flow_ended(&mut self, _flow: usize, summary: FlowSummary) {
        self.counters.note_saved(saved_time(&summary, self.config.direct_rate));
        flow_ended(summary, self.counters, self.report);
    }

    fn link_lost(&mut self, link: &Link, why: &str, engine: &mut Engine) {
        // A peer that is not one of the protocol has ended it.
        if self.session.is_some_and(|session| engine.session(session).is_none()) {
            self.session = None;
            self.close_unattached(why, engine);
        }
        // Not where the session has ended, or goes on elsewhere.
        if link.session.is_some() && link.is_silent_udt() {
            let why = "UDP does not reach it; open its UDP port in firewalls";
            self.udt_blocked(link.peer, why, engine);
        }
        if self.attached(engine) > 0 {
            let lived = engine.now.saturating_duration_since(link.since);
            self.connections.lost(lived, engine.now);
        } else if link.session.is_some() {
            // The next one is connected at once, as the only one.
            self.retry_at = engine.now;
            self.close_unattached(why, engine);
        } else if !link.is_greeted() && !link.is_additional {
            self.unreachable(link.peer, why, engine);
        }
    }

    fn sweep(&mut self, drains: bool, engine: &mut Engine) -> bool {
        let now = engine.now;
        if self.has_no_applications.is_raised() {
            engine.leave(self);
        }
        let unlinked = self.session.and_then(|session| engine.session(session)?.unlinked);
        if let Some(since) = unlinked {
            let limit = if self.has_begun { RESUME_TIMEOUT } else { BEGIN_TIMEOUT };
            if now.saturating_duration_since(since) >= limit {
                let text = if self.has_begun {
                    "the connection between the boxes broke, and was not resumed within 30 s"
                } else {
                    "no connection to the far box in time"
                };
                self.drop_session(text, engine);
            }
        }
        let is_kept = |live: &mut Live| !live.session.is_acknowledged();
        let keeps =
            self.session.is_some_and(|session| engine.session(session).is_some_and(is_kept));
        let wants_link = self.session.is_some() || self.config.lanes > 0;
        if wants_link && (!drains || engine.has_flows() || keeps) {
            self.connect(engine);
        }
        if drains && !engine.has_flows() && keeps {
            // Far acknowledges what it has of the last flows.
            if let Some(session) = self.session {
                engine.ping(session);
            }
        }
        !engine.has_flows() && !keeps
    }

    fn timeouts(&self) -> Timeouts {
        self.config.timeouts
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine;
    use super::*;
    use crate::address_share::AddressShares;
    use crate::forward::PortForward;
    use crate::sockets::LaneOptions;
    use host::lock::lock;
    use std::net::{TcpListener, TcpStream};
    use std::sync::Mutex;

    #[test]
    fn a_session_that_far_does_not_acknowledge_gets_no_more_flows() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let config = NearConfig {
            far: vec![address],
            key: None,
            lanes: 0,
            mux: true,
            udt: None,
            connections: None,
            compresses: false,
            options: LaneOptions::default(),
            timeouts: Timeouts::default(),
            max_flows: 100,
            direct_rate: None,
            threads: 1,
        };
        let (counters, events) = (Arc::default(), Mutex::new(Vec::new()));
        let report = |event| lock(&events).push(event);
        let (mut prepared, _inbox) = engine::prepare::<NewFlow>(Role::Near, &counters).unwrap();
        let mut side = NearSide::new(&config, &counters, &report, StopFlag::new());
        let engine = prepared.engine();
        let target: Target = "example.com:443".parse().unwrap();
        let session = side.session(engine).unwrap();
        let live = engine.session(session).unwrap();
        while live.session.has_room() {
            let stream = live.session.open(&target).unwrap();
            live.session.send(stream, &[0; 16 << 10]).unwrap();
        }
        assert!(!live.session.is_full());
        let kept = live.session.kept();
        let _application = TcpStream::connect(address).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        let share = AddressShares::new(1).take(peer.ip()).unwrap();
        let negotiation = Box::new(PortForward(target.clone()));
        let flow = NewFlow { stream, peer, target, negotiation, early: vec![0; 100], share };
        side.job(flow, engine);
        assert_eq!(engine.session(session).unwrap().session.kept(), kept);
        assert!(!engine.has_flows());
        let events = lock(&events);
        let [Event::FlowEnded(summary)] = &events[..] else { panic!("{events:?}") };
        assert!(matches!(&summary.end, FlowEnd::LaneFailed(why) if why.contains("acknowledge")));
    }
}
