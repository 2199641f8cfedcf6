//! The handshake of a client and of a rendezvous.

use crate::handshake::{Handshake, Request, SocketType, VERSION};
use crate::sequence::Sequence;
use crate::{CloseReason, Config};
use units::Nanos;

/// A request is repeated after this time without an answer, ns.
const REPEAT_NS: u64 = 250_000_000;
/// A client gives up after this time, ns.
const CLIENT_TIMEOUT_NS: u64 = 3_000_000_000;
/// Both ends of a rendezvous may begin this far apart, ns.
const RENDEZVOUS_TIMEOUT_NS: u64 = 30_000_000_000;

/// A handshake that is under way.
#[derive(Debug)]
pub(crate) struct Connecting {
    request: Handshake,
    is_rendezvous: bool,
    /// When the request is sent next, and when it is given up.
    repeat: Nanos,
    deadline: Nanos,
    /// Header's destination of the next request; zero until the peer's ID is known.
    destination: u32,
}

/// What both ends agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) peer_id: u32,
    pub(crate) packet_bytes: u32,
    /// The peer's flow window, packets.
    pub(crate) flow_window: u32,
    /// Sequence numbers of the first packet of each end.
    pub(crate) our_first: Sequence,
    pub(crate) peer_first: Sequence,
}

/// What an answer leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It is of no use, or the next request is due.
    Pending,
    /// The connection is established; in a rendezvous the peer may still need an answer.
    Established(Agreed, Option<Handshake>),
    Failed(CloseReason),
}

/// A handshake's fields that follow from the configuration.
pub(crate) fn request(config: &Config, request: Request) -> Handshake {
    Handshake {
        version: VERSION,
        socket_type: config.socket_type.wire(),
        initial_sequence: config.initial_sequence,
        packet_bytes: config.packet_bytes,
        flow_window: config.flow_window(),
        request,
        socket_id: config.socket_id,
        cookie: 0,
        peer_address: [0; 4],
        native: None,
    }
}

impl Connecting {
    pub(crate) fn new(now: Nanos, config: &Config, is_rendezvous: bool) -> Self {
        let (first, timeout_ns) = if is_rendezvous {
            (Request::Rendezvous, RENDEZVOUS_TIMEOUT_NS)
        } else {
            (Request::Induction, CLIENT_TIMEOUT_NS)
        };
        Connecting {
            request: request(config, first),
            is_rendezvous,
            repeat: now,
            deadline: now.plus_nanos(timeout_ns),
            destination: 0,
        }
    }

    pub(crate) fn next_timeout(&self) -> Nanos {
        self.repeat.min(self.deadline)
    }

    pub(crate) const fn is_over(&self, now: Nanos) -> bool {
        now.0 >= self.deadline.0
    }

    /// The request to send now, and its destination.
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<(Handshake, u32)> {
        if now < self.repeat {
            return None;
        }
        self.repeat = now.plus_nanos(REPEAT_NS);
        Some((self.request, self.destination))
    }

    pub(crate) fn on_handshake(&mut self, now: Nanos, answer: &Handshake) -> Progress {
        if answer.request == Request::Refused {
            return Progress::Failed(CloseReason::Refused);
        }
        if answer.version != VERSION || answer.socket_type() != self.socket_type() {
            return Progress::Pending;
        }
        if self.is_rendezvous { self.meet(now, answer) } else { self.ask(now, answer) }
    }

    fn socket_type(&self) -> Option<SocketType> {
        self.request.socket_type()
    }

    /// A client's two requests.
    fn ask(&mut self, now: Nanos, answer: &Handshake) -> Progress {
        match (self.request.request, answer.request) {
            (Request::Induction, Request::Induction) => {
                self.request.request = Request::Conclusion;
                self.request.cookie = answer.cookie;
                self.repeat = now;
                Progress::Pending
            }
            (Request::Conclusion, Request::Conclusion) => {
                if answer.initial_sequence != self.request.initial_sequence {
                    return Progress::Failed(CloseReason::Protocol("another initial sequence"));
                }
                self.agree(answer, None)
            }
            _ => Progress::Pending,
        }
    }

    /// Both ends ask, then agree.
    fn meet(&mut self, now: Nanos, answer: &Handshake) -> Progress {
        match answer.request {
            Request::Rendezvous => {
                self.request.request = Request::Conclusion;
                self.destination = answer.socket_id;
                self.repeat = now;
                Progress::Pending
            }
            Request::Conclusion | Request::RendezvousDone => {
                let last = Handshake { request: Request::RendezvousDone, ..self.request };
                // The peer is established, too, if this was its last answer.
                let answered = answer.request == Request::Conclusion;
                self.agree(answer, answered.then_some(last))
            }
            _ => Progress::Pending,
        }
    }

    fn agree(&self, answer: &Handshake, last: Option<Handshake>) -> Progress {
        match Agreed::new(&self.request, answer) {
            Ok(agreed) => Progress::Established(agreed, last),
            Err(reason) => Progress::Failed(reason),
        }
    }
}

impl Agreed {
    /// What follows from both ends' requests.
    pub(crate) fn new(ours: &Handshake, peers: &Handshake) -> Result<Agreed, CloseReason> {
        let packet_bytes = ours.packet_bytes.min(peers.packet_bytes);
        if packet_bytes < Config::MIN_PACKET_BYTES {
            return Err(CloseReason::Protocol("packet size below 76 bytes"));
        }
        if peers.flow_window == 0 {
            return Err(CloseReason::Protocol("flow window of zero"));
        }
        Ok(Agreed {
            peer_id: peers.socket_id,
            packet_bytes,
            flow_window: peers.flow_window,
            our_first: ours.initial_sequence,
            peer_first: peers.initial_sequence,
        })
    }
}
