//! RTTs to the routers on the route of an open TCP connection, while its user loads the path and does
//! not: the first router whose RTT grows under load is behind the queue.
//!
//! Probes are segments of the connection itself (`tcp_segment`) that expire on the way: they take its
//! route, pass its NAT, and go to no address but its peer's. They need `CAP_NET_RAW`, and are few: Linux
//! routers answer a host six times at once and then once a second (icmp(7), `icmp_ratelimit`).

use crate::ProbeError;
use crate::prober::is_icmp_error;
use crate::tcp_segment::{self, NUMBERS, Position};
use host::{clock, recvmsg, wait};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The farthest router that is searched for.
const MAX_HOPS: u8 = 30;
/// Routers without an answer after which the search ends.
const MAX_SILENT: u8 = 4;
/// Routers that are probed again, those nearest to the peer, and the one nearest to this host.
const PROBED: usize = 5;
/// The time between two probes.
const GAP: Duration = Duration::from_millis(20);
/// The time in which an answer is expected.
const TIMEOUT: Duration = Duration::from_secs(3);
/// What the search waits for the last answers.
const SETTLE: Duration = Duration::from_millis(400);
/// The interval of rounds: the first ones take what a router answers at once.
const FIRST_INTERVAL: Duration = Duration::from_millis(400);
const FIRST_ROUNDS: usize = 4;
const INTERVAL: Duration = Duration::from_secs(1);
/// The time in which the peer says something, and the longest time of all.
const SPEAK_TIME: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(90);
/// RTTs that are kept.
const MAX_SAMPLES: usize = 1000;
/// Packets that are read at a time: a flood of forged errors does not keep the thread from its end.
const MAX_READ: usize = 256;
/// The interval at which the phase is looked at.
const POLL: Duration = Duration::from_millis(20);
/// What senders begin a TTL with (Linux and macOS, Windows, routers).
const INITIAL_TTLS: [u8; 3] = [64, 128, 255];

/// What the connection's user does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Something whose RTTs are told apart by this number.
    Measure(u8),
    /// Nothing that RTTs are wanted of.
    Rest,
    /// The end.
    End,
}

/// An RTT to a router.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HopRtt {
    /// The number of the router, from this host on, the first being 1.
    pub ttl: u8,
    /// The number of the phase in which the probe was sent.
    pub phase: u8,
    /// The RTT, ms.
    pub rtt_ms: f64,
}

/// What was found of a route.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConnectionRoute {
    /// RTTs, in the order of the answers.
    pub rtts: Vec<HopRtt>,
    /// The routers that answered in the search, in order.
    pub routers: Vec<u8>,
    /// How many routers the peer's packets have passed, by the TTL that is left of the usual initial
    /// ones: the last router before the peer has this number, if both directions take the same route.
    pub passed: Option<u8>,
}

/// Probes the routers on the route of a connection until `phase` says [`Phase::End`].
///
/// # Errors
/// [`ProbeError::RawSockets`] without `CAP_NET_RAW`; a connection whose peer says nothing for 5 s, or
/// another error of the system.
pub fn connection_route(
    local: SocketAddr,
    peer: SocketAddr,
    phase: &dyn Fn() -> Phase,
) -> Result<ConnectionRoute, ProbeError> {
    let failed = |source| ProbeError::System {
        operation: "probe the route of a connection",
        address: peer.ip(),
        source,
    };
    let mut probing = Probing::open(local, peer).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => ProbeError::RawSockets,
        _ => failed(error),
    })?;
    let began = clock::now();
    while probing.position.is_none() {
        if phase() == Phase::End {
            return Ok(probing.found());
        }
        if began.elapsed() >= SPEAK_TIME {
            return Err(ProbeError::SilentConnection { address: peer.ip() });
        }
        probing.receive_until(clock::now() + POLL).map_err(failed)?;
    }
    probing.search(phase).map_err(failed)?;
    probing.rounds(phase, began + LONGEST).map_err(failed)?;
    Ok(probing.found())
}

/// A probe that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    sequence: u32,
    ttl: u8,
    /// `None` where no RTT is wanted.
    phase: Option<u8>,
    at: Instant,
}

struct Probing {
    local: SocketAddr,
    peer: SocketAddr,
    /// Sends probes, and receives a copy of the peer's segments.
    segments: Socket,
    /// Receives what routers say.
    errors: Socket,
    position: Option<Position>,
    arrival_ttl: Option<u8>,
    next: u32,
    sent: Vec<Sent>,
    route: ConnectionRoute,
    buffer: Vec<u8>,
}

impl Probing {
    fn open(local: SocketAddr, peer: SocketAddr) -> io::Result<Self> {
        let (domain, is_v6) = (Domain::for_address(peer), peer.is_ipv6());
        let icmp = if is_v6 { Protocol::ICMPV6 } else { Protocol::ICMPV4 };
        let segments = Socket::new(domain, Type::RAW, Some(Protocol::TCP))?;
        let errors = Socket::new(domain, Type::RAW, Some(icmp))?;
        recvmsg::only_time_exceeded(&errors, is_v6)?;
        segments.attach_filter(&ports(peer, local))?;
        for socket in [&segments, &errors] {
            socket.set_nonblocking(true)?;
            recvmsg::prepare(socket, is_v6)?;
        }
        // Raw IPv6 sockets refuse ports.
        let bare = |mut address: SocketAddr| {
            address.set_port(0);
            address.into()
        };
        segments.bind(&bare(local))?;
        segments.connect(&bare(peer))?;
        Ok(Probing {
            local,
            peer,
            segments,
            errors,
            position: None,
            arrival_ttl: None,
            next: 0,
            sent: Vec::new(),
            route: ConnectionRoute::default(),
            buffer: vec![0; 65_535],
        })
    }

    /// Finds the routers that answer.
    fn search(&mut self, phase: &dyn Fn() -> Phase) -> io::Result<()> {
        for ttl in 1..=MAX_HOPS {
            let last = self.route.routers.last().copied().unwrap_or(0);
            if ttl > last.saturating_add(MAX_SILENT) || phase() == Phase::End {
                break;
            }
            let number = match phase() {
                Phase::Measure(number) => Some(number),
                Phase::Rest | Phase::End => None,
            };
            self.send(ttl, number)?;
            self.receive_until(clock::now() + GAP)?;
        }
        self.receive_until(clock::now() + SETTLE)?;
        self.route.routers.sort_unstable();
        Ok(())
    }

    /// Probes the routers that answered again and again.
    fn rounds(&mut self, phase: &dyn Fn() -> Phase, ends: Instant) -> io::Result<()> {
        let probed = self.probed();
        let (mut rounds, mut due) = (0, clock::now());
        loop {
            let (now, current) = (clock::now(), phase());
            match current {
                Phase::End => break,
                _ if now >= ends || probed.is_empty() => break,
                Phase::Measure(number) if now >= due => {
                    for ttl in &probed {
                        self.send(*ttl, Some(number))?;
                        self.receive_until(clock::now() + GAP)?;
                    }
                    rounds += 1;
                    let interval = if rounds < FIRST_ROUNDS { FIRST_INTERVAL } else { INTERVAL };
                    due = now + interval;
                }
                Phase::Measure(_) | Phase::Rest => self.receive_until(now + POLL)?,
            }
        }
        Ok(())
    }

    /// The routers of the rounds.
    fn probed(&self) -> Vec<u8> {
        let all = &self.route.routers;
        let near = all.len().saturating_sub(PROBED - 1);
        let first = all.first().filter(|_| near > 0);
        first.into_iter().chain(all.get(near..).unwrap_or_default()).copied().collect()
    }

    /// Sends a probe that expires at a router. One that cannot be sent is one without an answer.
    fn send(&mut self, ttl: u8, phase: Option<u8>) -> io::Result<()> {
        let Some(position) = self.position else { return Ok(()) };
        let now = clock::now();
        self.sent.retain(|sent| now.saturating_duration_since(sent.at) < TIMEOUT);
        let is_v6 = self.peer.is_ipv6();
        let Some(number) = unused(position, self.next, &self.sent) else { return Ok(()) };
        self.next = (number + 1) % NUMBERS;
        match is_v6 {
            true => self.segments.set_unicast_hops_v6(ttl.into())?,
            false => self.segments.set_ttl_v4(ttl.into())?,
        }
        let segment = position.probe(self.local, self.peer, number);
        let at = clock::now();
        if self.segments.send(&segment).is_ok() {
            self.sent.push(Sent { sequence: position.sequence(number), ttl, phase, at });
        }
        Ok(())
    }

    /// Receives until a time.
    fn receive_until(&mut self, until: Instant) -> io::Result<()> {
        loop {
            self.receive_errors()?;
            self.receive_segments()?;
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return Ok(());
            }
            wait::readable([self.segments.as_fd(), self.errors.as_fd()], Some(left))?;
        }
    }

    fn receive_errors(&mut self) -> io::Result<()> {
        for _ in 0..MAX_READ {
            let Some(received) = recvmsg::take(&self.errors, &mut self.buffer)? else { break };
            let at = clock::now() - received.waited;
            let packet = self.buffer.get(..received.length).unwrap_or_default();
            let quoted = tcp_segment::expired(packet, self.local, self.peer);
            let found = quoted
                .and_then(|quoted| self.sent.iter().position(|sent| sent.sequence == quoted))
                .map(|found| self.sent.swap_remove(found));
            let Some(Sent { ttl, phase, at: sent, .. }) = found else { continue };
            if !self.route.routers.contains(&ttl) {
                self.route.routers.push(ttl);
            }
            if let Some(phase) = phase.filter(|_| self.route.rtts.len() < MAX_SAMPLES) {
                let rtt_ms = at.saturating_duration_since(sent).as_secs_f64() * 1e3;
                self.route.rtts.push(HopRtt { ttl, phase, rtt_ms });
            }
        }
        Ok(())
    }

    fn receive_segments(&mut self) -> io::Result<()> {
        // What routers say of probes is queued here as well, and would wake every wait.
        for _ in 0..MAX_READ {
            if recvmsg::take_error(&self.segments, &mut self.buffer)?.is_none() {
                break;
            }
        }
        for _ in 0..MAX_READ {
            match recvmsg::take(&self.segments, &mut self.buffer) {
                Ok(Some(received)) => {
                    let packet = self.buffer.get(..received.length).unwrap_or_default();
                    if let Some(found) = tcp_segment::position(packet, self.local, self.peer) {
                        self.position = Some(found);
                        self.arrival_ttl = received.ttl;
                    }
                }
                Ok(None) => break,
                Err(error) if is_icmp_error(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn found(mut self) -> ConnectionRoute {
        self.route.routers.sort_unstable();
        ConnectionRoute { passed: self.arrival_ttl.and_then(passed), ..self.route }
    }
}

/// The first number from `next` on whose sequence number no unanswered probe has: as the peer
/// acknowledges bytes, that of a later number may be that of an earlier one.
fn unused(position: Position, next: u32, sent: &[Sent]) -> Option<u32> {
    let is_free = |number: &u32| {
        let sequence = position.sequence(*number);
        sent.iter().all(|sent| sent.sequence != sequence)
    };
    (0..NUMBERS).map(|more| (next + more) % NUMBERS).find(is_free)
}

/// Routers that a packet has passed, by the TTL that is left.
fn passed(ttl: u8) -> Option<u8> {
    let initial = INITIAL_TTLS.into_iter().find(|initial| *initial >= ttl)?;
    Some(initial - ttl).filter(|passed| *passed <= MAX_HOPS)
}

/// A filter for segments between two ports, so that a socket is not woken by other connections of
/// the peer: for IPv4 it begins with the IP header, for IPv6 with TCP's.
fn ports(from: SocketAddr, to: SocketAddr) -> Vec<SockFilter> {
    /// Instructions of classic BPF (linux/bpf_common.h).
    const LOAD_HEADER_LENGTH: u16 = 0xb1;
    const LOAD_HALF_INDEXED: u16 = 0x48;
    const LOAD_INDEX: u16 = 0x01;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let first = match from {
        SocketAddr::V4(_) => SockFilter::new(LOAD_HEADER_LENGTH, 0, 0, 0),
        SocketAddr::V6(_) => SockFilter::new(LOAD_INDEX, 0, 0, 0),
    };
    vec![
        first,
        SockFilter::new(LOAD_HALF_INDEXED, 0, 0, 0),
        SockFilter::new(JUMP_EQUAL, 0, 3, from.port().into()),
        SockFilter::new(LOAD_HALF_INDEXED, 0, 0, 2),
        SockFilter::new(JUMP_EQUAL, 0, 1, to.port().into()),
        SockFilter::new(RETURN, 0, 0, 65_535),
        SockFilter::new(RETURN, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_that_are_unanswered_have_different_sequence_numbers() {
        let (mut sent, mut next) = (Vec::<Sent>::new(), 0);
        // The peer acknowledges a byte before each probe, as many as numbers count down.
        for una in 0..100u32 {
            let position = Position { una: una.wrapping_sub(50), next: 1 };
            let number = unused(position, next, &sent).unwrap();
            let sequence = position.sequence(number);
            assert!(sent.iter().all(|sent| sent.sequence != sequence), "{una}: {sequence}");
            assert!((1..=NUMBERS).contains(&position.una.wrapping_sub(sequence)));
            next = (number + 1) % NUMBERS;
            sent.push(Sent { sequence, ttl: 1, phase: None, at: clock::now() });
        }
        let position = Position { una: 0, next: 1 };
        let all = (0..NUMBERS).map(|number| position.sequence(number));
        let sent = |sequence| Sent { sequence, ttl: 1, phase: None, at: clock::now() };
        assert_eq!(unused(position, 7, &all.map(sent).collect::<Vec<_>>()), None);
    }

    #[test]
    fn routers_that_were_passed_are_told_by_the_usual_initial_ttls() {
        assert_eq!(passed(64), Some(0));
        assert_eq!(passed(57), Some(7));
        assert_eq!(passed(128), Some(0));
        assert_eq!(passed(120), Some(8));
        assert_eq!(passed(250), Some(5));
        // Farther than any path: the initial one is none of the usual.
        assert_eq!(passed(90), None);
        assert_eq!(passed(0), None);
    }
}
