//! The server's side of the handshake. Nothing is kept of a client before its cookie shows
//! that it receives at its address, and no answer is longer than the request.

use crate::Config;
use crate::connecting::{Agreed, request};
use crate::connection::Connection;
use crate::cookie::{Cookies, PeerAddress};
use crate::handshake::{Handshake, Request, VERSION};
use crate::packet::{Control, ControlHeader};
use std::collections::HashMap;
use units::Nanos;

/// Answers clients.
#[derive(Debug)]
pub struct Listener {
    cookies: Cookies,
    max_connections: usize,
    /// The last answer to each client that is connected, by address and socket ID: a
    /// repeated request is answered again.
    answered: HashMap<(PeerAddress, u32), Handshake>,
}

/// What a handshake leads to.
#[derive(Debug)]
pub enum Incoming {
    /// It is no valid request: no answer.
    Ignore,
    /// This datagram is the answer.
    Reply(Vec<u8>),
    /// This datagram is the answer, and the connection is established.
    Accept(Vec<u8>, Box<Connection>),
}

impl Listener {
    /// A listener with at most `max_connections` at a time. `secret` is random.
    #[must_use]
    pub fn new(secret: [u8; 32], max_connections: usize) -> Self {
        Listener { cookies: Cookies::new(secret), max_connections, answered: HashMap::new() }
    }

    /// A handshake came that names no connection. `config` is that of the connection which
    /// may follow, with a random socket ID; its initial sequence is the client's.
    pub fn on_handshake(
        &mut self,
        now: Nanos,
        from: &PeerAddress,
        asked: &Handshake,
        config: &Config,
    ) -> Incoming {
        match asked.request {
            // An answer has a cookie, and a socket an ID: two listeners do not answer each
            // other.
            Request::Induction if asked.cookie != 0 || asked.socket_id == 0 => Incoming::Ignore,
            Request::Induction => {
                let cookie = self.cookies.make(from, now);
                let answer = Handshake { cookie, native: None, ..*asked };
                Incoming::Reply(datagram(&answer, asked.socket_id))
            }
            Request::Conclusion if self.cookies.is_valid(asked.cookie, from, now) => {
                self.conclude(now, from, asked, config)
            }
            _ => Incoming::Ignore,
        }
    }

    fn conclude(
        &mut self,
        now: Nanos,
        from: &PeerAddress,
        asked: &Handshake,
        config: &Config,
    ) -> Incoming {
        if let Some(answer) = self.answered.get(&(*from, asked.socket_id)) {
            return Incoming::Reply(datagram(answer, asked.socket_id));
        }
        let config = Config { initial_sequence: asked.initial_sequence, ..*config };
        let is_alike = asked.version == VERSION && asked.socket_type() == Some(config.socket_type);
        let has_room = self.answered.len() < self.max_connections;
        let ours = request(&config, Request::Conclusion);
        //= https://datatracker.ietf.org/doc/html/draft-gg-udt-03#page-10
        //# The server, when receiving a handshake packet and the correct cookie, compares the
        //# packet size and maximum window size with its own values and set its own values as
        //# the smaller ones.
        let agreed = Agreed::new(&ours, asked);
        let (true, true, Ok(agreed)) = (is_alike, has_room, agreed) else {
            let refusal = Handshake { request: Request::Refused, native: None, ..*asked };
            return Incoming::Reply(datagram(&refusal, asked.socket_id));
        };
        let answer = Handshake { packet_bytes: agreed.packet_bytes, cookie: asked.cookie, ..ours };
        self.answered.insert((*from, asked.socket_id), answer);
        let connection = Connection::established(now, config, agreed);
        Incoming::Accept(datagram(&answer, asked.socket_id), Box::new(connection))
    }

    /// A connection ended: its client is forgotten.
    pub fn forget(&mut self, peer: &PeerAddress, socket_id: u32) {
        self.answered.remove(&(*peer, socket_id));
    }

    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.answered.len()
    }
}

pub(crate) fn datagram(handshake: &Handshake, destination: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    let header = ControlHeader { timestamp_us: 0, destination };
    Control::Handshake(*handshake).write(header, &mut out);
    out
}
