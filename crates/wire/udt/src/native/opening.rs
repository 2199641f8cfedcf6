//! From the first datagram to an open connection: UDT's handshake, whose cookie shows that
//! the client receives at its address, then TLS. Nothing is kept of a client before its
//! cookie is valid, and until then no answer is longer than what it answers.

use super::packet::Header;
use super::protection::Protection;
use super::tls::{TlsFailed, TlsHandshake};
use crate::CloseReason;
use crate::cookie::{Cookies, PeerAddress};
use crate::handshake::{Handshake, Request, SocketType, VERSION};
use crate::listener::datagram;
use crate::packet::{Control, Packet};
use crate::sequence::Sequence;
use hmac::{Hmac, KeyInit, Mac};
use pinned_tls::{Identity, IdentityError, PublicKey};
use sha2::Sha256;
use std::collections::VecDeque;
use units::Nanos;

/// What was sent is repeated after this time without an answer, ns.
const REPEAT_NS: u64 = 250_000_000;
/// A client gives up after this time without any answer, ns,
const ANSWER_NS: u64 = 3_000_000_000;
/// and both ends after this time in all.
const DEADLINE_NS: u64 = 10_000_000_000;
/// Clients whose TLS handshake is under way at a time.
const MAX_HALF_OPEN: usize = 16;
/// Those of one IPv4 address or IPv6 /64.
const MAX_ALIKE: usize = 4;
/// A handshake is not given up for another one before this time, ns.
const FRESH_NS: u64 = 1_000_000_000;
/// Answers that wait to be sent; a flood of requests gets no more.
const MAX_QUEUE: usize = 64;

/// What an end tells the other one of itself under TLS's protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Its connection ID, also in UDT's handshake.
    pub(crate) id: u64,
    /// UDP payload of its packets at most, bytes.
    pub(crate) packet_bytes: u32,
    /// Packets that its receive buffer holds.
    pub(crate) window: u32,
}

impl Parameters {
    fn bytes(self) -> Vec<u8> {
        [&self.id.to_be_bytes()[..], &self.packet_bytes.to_be_bytes(), &self.window.to_be_bytes()]
            .concat()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (packet_bytes, rest) = rest.split_first_chunk()?;
        Some(Parameters {
            id: u64::from_be_bytes(*id),
            packet_bytes: u32::from_be_bytes(*packet_bytes),
            window: u32::from_be_bytes(*rest.first_chunk()?),
        })
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) address: PeerAddress,
    pub(crate) peer: Parameters,
    pub(crate) protection: Protection,
    /// This end's connection ID.
    pub(crate) our_id: u64,
    /// A client's last messages are repeated until the server shows that it has them.
    pub(crate) last_messages: Option<TlsHandshake>,
}

/// What a datagram leads to.
#[derive(Debug)]
pub(crate) enum Progress {
    Pending,
    Opened(Box<Opened>),
    Failed(CloseReason),
}

/// One end on the way to an open connection.
#[derive(Debug)]
pub(crate) enum Opening {
    Client(Box<ClientOpening>),
    Server(Box<ServerOpening>),
}

#[derive(Debug)]
pub(crate) struct ClientOpening {
    ours: Parameters,
    request: Handshake,
    /// The server's connection ID, once it is known.
    peer_id: u64,
    /// Until the connection has it.
    tls: Option<TlsHandshake>,
    began: Nanos,
    was_answered: bool,
    /// The TLS messages were sent before.
    was_repeated: bool,
    repeat: Nanos,
    queue: VecDeque<Vec<u8>>,
    address: PeerAddress,
}

#[derive(Debug)]
pub(crate) struct ServerOpening {
    ours: Parameters,
    identity: Identity,
    peer: PublicKey,
    cookies: Cookies,
    secret: [u8; 32],
    clients: VecDeque<HalfOpen>,
    queue: VecDeque<(PeerAddress, Vec<u8>)>,
}

/// A client with a valid cookie.
#[derive(Debug)]
struct HalfOpen {
    address: PeerAddress,
    /// Its connection ID, and ours for it: nobody else learns that.
    id: u64,
    our_id: u64,
    began: Nanos,
    tls: TlsHandshake,
    repeat: Nanos,
    deadline: Nanos,
}

fn handshake(ours: Parameters, request: Request) -> Handshake {
    Handshake {
        version: VERSION,
        socket_type: SocketType::Stream.wire(),
        initial_sequence: Sequence::new(0),
        packet_bytes: ours.packet_bytes,
        flow_window: ours.window,
        request,
        // UDT's socket ID has no use here, but must not be zero.
        socket_id: (ours.id >> 32) as u32 | 1,
        cookie: 0,
        peer_address: [0; 4],
        native: Some(ours.id),
    }
}

impl Opening {
    pub(crate) fn client(
        now: Nanos,
        ours: Parameters,
        address: PeerAddress,
        identity: &Identity,
        peer: PublicKey,
    ) -> Result<Self, IdentityError> {
        Ok(Opening::Client(Box::new(ClientOpening {
            ours,
            request: handshake(ours, Request::Induction),
            peer_id: 0,
            tls: Some(TlsHandshake::client(identity, peer, ours.bytes())?),
            began: now,
            was_answered: false,
            was_repeated: false,
            repeat: now,
            queue: VecDeque::new(),
            address,
        })))
    }

    pub(crate) fn server(
        ours: Parameters,
        identity: Identity,
        peer: PublicKey,
        secret: [u8; 32],
    ) -> Self {
        Opening::Server(Box::new(ServerOpening {
            ours,
            identity,
            peer,
            cookies: Cookies::new(secret),
            secret,
            clients: VecDeque::new(),
            queue: VecDeque::new(),
        }))
    }

    pub(crate) fn receive(&mut self, now: Nanos, from: PeerAddress, datagram: &[u8]) -> Progress {
        match self {
            Opening::Client(client) => client.receive(now, datagram),
            Opening::Server(server) => server.receive(now, from, datagram),
        }
    }

    /// A datagram to send, and where to.
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<(PeerAddress, Vec<u8>)> {
        match self {
            Opening::Client(client) => {
                client.repeat(now);
                Some((client.address, client.queue.pop_front()?))
            }
            Opening::Server(server) => {
                server.repeat(now);
                server.queue.pop_front()
            }
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Nanos> {
        match self {
            Opening::Client(client) => Some(client.repeat.min(client.deadline())),
            Opening::Server(server) => {
                server.clients.iter().map(|client| client.repeat.min(client.deadline)).min()
            }
        }
    }

    /// Whether a client has to give up.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        matches!(self, Opening::Client(client) if now >= client.deadline())
    }
}

impl ClientOpening {
    fn deadline(&self) -> Nanos {
        self.began.plus_nanos(if self.was_answered { DEADLINE_NS } else { ANSWER_NS })
    }

    fn repeat(&mut self, now: Nanos) {
        if now < self.repeat {
            return;
        }
        self.repeat = now.plus_nanos(REPEAT_NS);
        if self.peer_id == 0 {
            self.queue.push_back(datagram(&self.request, 0));
        } else if let Some(tls) = &mut self.tls {
            if !tls.is_answered() && self.was_repeated {
                // A server that has given the handshake up begins anew.
                self.queue.push_back(datagram(&self.request, 0));
            }
            self.was_repeated = true;
            self.queue.extend(tls.datagrams(self.peer_id));
        }
    }

    fn receive(&mut self, now: Nanos, datagram: &[u8]) -> Progress {
        if let Some((header, _)) = Header::parse(datagram) {
            if header.destination != self.ours.id || self.peer_id == 0 {
                return Progress::Pending;
            }
            return self.on_tls(header, datagram);
        }
        match Packet::parse(datagram) {
            Ok(Packet::Control(header, Control::Handshake(answer)))
                if header.destination == self.request.socket_id =>
            {
                self.on_handshake(now, &answer)
            }
            _ => Progress::Pending,
        }
    }

    fn on_handshake(&mut self, now: Nanos, answer: &Handshake) -> Progress {
        match (self.request.request, answer.request, answer.native) {
            (_, Request::Refused, _) => return Progress::Failed(CloseReason::Refused),
            (Request::Induction, Request::Induction, Some(_)) => {
                self.request.request = Request::Conclusion;
                self.request.cookie = answer.cookie;
            }
            (Request::Conclusion, Request::Conclusion, Some(id)) if id != 0 => {
                // The first answer counts: TLS confirms its ID.
                if self.peer_id == 0 {
                    self.peer_id = id;
                }
            }
            (request, answer, None) if request == answer => {
                return Progress::Failed(CloseReason::NoNativeMode);
            }
            _ => return Progress::Pending,
        }
        self.was_answered = true;
        self.repeat = now;
        Progress::Pending
    }

    fn on_tls(&mut self, header: Header, datagram: &[u8]) -> Progress {
        let Some(tls) = &mut self.tls else { return Progress::Pending };
        match tls.receive(header, &mut datagram.to_vec()) {
            Err(TlsFailed) => return Progress::Failed(CloseReason::Authentication),
            Ok(false) => return Progress::Pending,
            Ok(true) => {}
        }
        let peer = tls.peer_parameters().and_then(Parameters::parse);
        let Some(protection) = tls.take_protection() else { return Progress::Pending };
        let Some(peer) = peer.filter(|peer| peer.id == self.peer_id) else {
            return Progress::Failed(CloseReason::Protocol("another connection ID under TLS"));
        };
        let (address, last_messages) = (self.address, self.tls.take());
        Progress::Opened(Box::new(Opened {
            address,
            peer,
            protection,
            our_id: self.ours.id,
            last_messages,
        }))
    }
}

impl ServerOpening {
    fn repeat(&mut self, now: Nanos) {
        self.clients.retain(|client| now < client.deadline);
        for client in &mut self.clients {
            if now >= client.repeat {
                client.repeat = now.plus_nanos(REPEAT_NS);
                let datagrams = client.tls.datagrams(client.id);
                let address = client.address;
                if self.queue.len() >= MAX_QUEUE {
                    break;
                }
                self.queue.extend(datagrams.into_iter().map(|datagram| (address, datagram)));
            }
        }
    }

    fn receive(&mut self, now: Nanos, from: PeerAddress, bytes: &[u8]) -> Progress {
        if let Some((header, _)) = Header::parse(bytes) {
            return self.on_tls(now, from, header, bytes);
        }
        if let Ok(Packet::Control(header, Control::Handshake(asked))) = Packet::parse(bytes)
            && header.destination == 0
            && self.queue.len() < MAX_QUEUE
            && let Some(answer) = self.on_handshake(now, from, &asked)
        {
            self.queue.push_back((from, datagram(&answer, asked.socket_id)));
        }
        Progress::Pending
    }

    fn on_handshake(
        &mut self,
        now: Nanos,
        from: PeerAddress,
        asked: &Handshake,
    ) -> Option<Handshake> {
        let refusal = Handshake { request: Request::Refused, native: None, ..*asked };
        match (asked.request, asked.native) {
            // An answer has a cookie: two servers do not answer each other.
            (Request::Induction, _) if asked.cookie != 0 => None,
            (Request::Induction, Some(_)) => {
                Some(Handshake { cookie: self.cookies.make(&from, now), ..*asked })
            }
            (Request::Conclusion, Some(id)) if self.cookies.is_valid(asked.cookie, &from, now) => {
                let our_id = self.admit(now, from, id)?;
                Some(handshake(Parameters { id: our_id, ..self.ours }, Request::Conclusion))
            }
            // There is no plain connection here.
            (Request::Induction, None) => Some(refusal),
            _ => None,
        }
    }

    /// A client with a valid cookie begins its TLS handshake, or repeats its request. Gives our
    /// connection ID for it. `None` if there are too many, or the same network has begun one a
    /// moment ago; it asks again.
    fn admit(&mut self, now: Nanos, from: PeerAddress, id: u64) -> Option<u64> {
        let known = self.clients.iter().find(|client| client.address == from && client.id == id);
        if let Some(client) = known {
            return Some(client.our_id);
        }
        let is_fresh = |client: &HalfOpen| now.nanos_since(client.began) < FRESH_NS;
        let is_alike = |client: &HalfOpen| client.address.network() == from.network();
        let alike = self.clients.iter().filter(|client| is_alike(client)).count();
        if alike >= MAX_ALIKE {
            let index =
                self.clients.iter().position(|client| is_alike(client) && !is_fresh(client));
            self.clients.remove(index?);
        } else if self.clients.len() >= MAX_HALF_OPEN {
            let index = self.clients.iter().position(|client| !is_fresh(client));
            self.clients.remove(index?);
        }
        let our_id = self.id_for(&from, id);
        let ours = Parameters { id: our_id, ..self.ours };
        let tls = TlsHandshake::server(&self.identity, self.peer, ours.bytes()).ok()?;
        self.clients.push_back(HalfOpen {
            address: from,
            id,
            our_id,
            began: now,
            tls,
            repeat: now.plus_nanos(REPEAT_NS),
            deadline: now.plus_nanos(DEADLINE_NS),
        });
        Some(our_id)
    }

    fn id_for(&self, from: &PeerAddress, id: u64) -> u64 {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return self.ours.id };
        mac.update(b"connection ID of a client");
        mac.update(&from.address);
        mac.update(&from.port.to_be_bytes());
        mac.update(&id.to_be_bytes());
        let digest = mac.finalize().into_bytes();
        // Zero is no ID.
        digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes)).max(1)
    }

    fn on_tls(&mut self, now: Nanos, from: PeerAddress, header: Header, bytes: &[u8]) -> Progress {
        let is_its =
            |client: &HalfOpen| client.address == from && client.our_id == header.destination;
        let Some(index) = self.clients.iter().position(is_its) else {
            return Progress::Pending;
        };
        let client = &mut self.clients[index];
        match client.tls.receive(header, &mut bytes.to_vec()) {
            Err(TlsFailed) => {
                self.clients.remove(index);
                return Progress::Pending;
            }
            Ok(false) => return Progress::Pending,
            Ok(true) => client.repeat = now,
        }
        let peer = client.tls.peer_parameters().and_then(Parameters::parse);
        let Some(protection) = client.tls.take_protection() else { return Progress::Pending };
        let Some(peer) = peer.filter(|peer| peer.id == client.id) else {
            self.clients.remove(index);
            return Progress::Pending;
        };
        Progress::Opened(Box::new(Opened {
            address: from,
            peer,
            protection,
            our_id: client.our_id,
            last_messages: None,
        }))
    }
}
