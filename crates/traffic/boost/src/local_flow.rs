//! The side of a flow that is not the lane: the application at near, the target at far.

use crate::address_share::ShareTicket;
use crate::ingress::Negotiation;
use host::edge_poller::Edge;
use host::splice::Pipe;
use lane::{Refusal, Target};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The socket of a flow.
pub(crate) enum Local {
    /// Far looks up the target.
    Awaited,
    /// Far connects to the target.
    Connecting(TcpStream),
    Connected(TcpStream),
    /// Closed or reset: what still comes from the lane is discarded.
    Gone,
}

/// How a flow ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowEnd {
    /// Both sides have sent FIN, and everything was delivered.
    Orderly,
    /// The application (near) or the target (far) sent RST.
    LocalReset,
    /// The other box reported an RST on its side.
    PeerReset,
    /// The target was not connected.
    Refused(Refusal),
    /// The connection between the boxes failed.
    LaneFailed(String),
    /// Nothing was sent in either direction for the idle timeout.
    IdleTimeout,
    /// The box was stopped.
    Stopped,
}

impl FlowEnd {
    /// True if the application saw an RST.
    #[must_use]
    pub const fn is_reset(&self) -> bool {
        !matches!(self, FlowEnd::Orderly | FlowEnd::Refused(_))
    }
}

/// A flow that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSummary {
    /// The application; at far, the near box.
    pub peer: SocketAddr,
    /// The target.
    pub target: Target,
    /// Bytes from the application to the target.
    pub sent: u64,
    /// Bytes from the target to the application.
    pub received: u64,
    /// Time from its beginning.
    pub duration: Duration,
    /// How it ended.
    pub end: FlowEnd,
}

/// From the local socket to the lane.
#[derive(Default)]
pub(crate) struct ToLane {
    /// Near: what was sent before far has taken the lane. If it never does, another lane can carry
    /// the flow.
    pub(crate) unproven: Vec<u8>,
    /// Holds the rest of a run that was announced.
    pub(crate) pipe: Option<Pipe>,
    /// The last read filled a buffer: splice(2) pays.
    pub(crate) is_bulk: bool,
    /// The local socket has sent FIN.
    pub(crate) has_fin: bool,
    /// `Reset` is to be sent as soon as the lane is between messages.
    pub(crate) reset_due: bool,
    pub(crate) bytes: u64,
}

/// From the lane to the local socket.
#[derive(Default)]
pub(crate) struct ToLocal {
    pub(crate) pipe: Option<Pipe>,
    /// Bytes that were copied and that the socket has not taken.
    pub(crate) queue: Vec<u8>,
    pub(crate) written: usize,
    /// The last run was long: splice(2) pays.
    pub(crate) is_bulk: bool,
    /// The peer has sent `End`.
    pub(crate) has_end: bool,
    /// FIN was sent.
    pub(crate) is_shut: bool,
    pub(crate) bytes: u64,
}

impl ToLocal {
    pub(crate) const fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.pipe.is_none()
    }
}

/// A flow at one of the boxes.
pub(crate) struct LocalFlow {
    pub(crate) local: Local,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The socket was reset; what had arrived before can still be read.
    pub(crate) has_failed: bool,
    /// Near: what answers the application.
    pub(crate) negotiation: Option<Box<dyn Negotiation>>,
    /// Near: far has connected the target. Far: near was told so.
    pub(crate) is_opened: bool,
    pub(crate) to_lane: ToLane,
    pub(crate) to_local: ToLocal,
    pub(crate) peer: SocketAddr,
    /// Near: lanes that were begun for it.
    pub(crate) attempts: usize,
    /// Near: counts it for its application's address until it is reported.
    pub(crate) share: Option<ShareTicket>,
    pub(crate) target: Target,
    pub(crate) began: Instant,
    pub(crate) last_active: Instant,
    pub(crate) end: Option<FlowEnd>,
    pub(crate) is_reported: bool,
}

impl LocalFlow {
    pub(crate) fn new(local: Local, peer: SocketAddr, target: Target, now: Instant) -> Self {
        LocalFlow {
            // A connected socket may have data, and has room.
            readable: true,
            writable: true,
            has_failed: false,
            local,
            negotiation: None,
            is_opened: false,
            to_lane: ToLane::default(),
            to_local: ToLocal::default(),
            peer,
            attempts: 0,
            share: None,
            target,
            began: now,
            last_active: now,
            end: None,
            is_reported: false,
        }
    }

    pub(crate) fn note(&mut self, edge: Edge) {
        self.readable |= edge.readable;
        self.writable |= edge.writable;
    }

    /// Takes note of an RST.
    pub(crate) const fn fail(&mut self) {
        (self.has_failed, self.readable) = (true, true);
    }

    /// True if the socket takes nothing any more.
    pub(crate) const fn discards(&self) -> bool {
        self.has_failed || self.is_gone()
    }

    pub(crate) const fn is_gone(&self) -> bool {
        matches!(self.local, Local::Gone)
    }

    pub(crate) const fn connected(&self) -> Option<&TcpStream> {
        match &self.local {
            Local::Connected(stream) => Some(stream),
            _ => None,
        }
    }

    /// The flow as it has ended; `at_near` tells which side its local one is.
    pub(crate) fn summary(&self, at_near: bool, now: Instant) -> FlowSummary {
        let (own, other) = (self.to_lane.bytes, self.to_local.bytes);
        let (sent, received) = if at_near { (own, other) } else { (other, own) };
        FlowSummary {
            peer: self.peer,
            target: self.target.clone(),
            sent,
            received,
            duration: now.saturating_duration_since(self.began),
            end: self.end.clone().unwrap_or(FlowEnd::Stopped),
        }
    }
}
