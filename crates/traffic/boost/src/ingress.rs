//! How a connection at near says where it is to go: a forwarded port, SOCKS5, HTTP CONNECT, the
//! address that a transparent connection was meant for.
//!
//! A negotiation has no I/O: near reads what the application sends, within [`MAX_NEGOTIATION`]
//! bytes and a deadline, and writes the replies.

use lane::{Refusal, Target};
use std::net::SocketAddr;

/// Bytes of an application that are held until its target is known.
pub const MAX_NEGOTIATION: usize = 16 << 10;

/// A connection that near has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The application's address; an IPv4-mapped one as IPv4.
    pub peer: SocketAddr,
    /// The address that it connected to.
    pub local: SocketAddr,
}

/// The protocol of a listener.
pub trait Ingress: Send + Sync {
    /// Begins a connection.
    fn begin(&self, accepted: Accepted) -> Box<dyn Negotiation>;

    /// True if connections come here whether they are accepted or not: while the box drains, new ones
    /// are carried like those that it has.
    fn accepts_while_draining(&self) -> bool {
        false
    }
}

/// One connection until it is relayed.
pub trait Negotiation: Send {
    /// Continues with bytes that arrived. It is first called without any, as soon as the
    /// connection is accepted.
    fn advance(&mut self, input: &[u8]) -> Step;

    /// The bytes that tell the application that its target is connected; they precede all that
    /// the target sends.
    fn opened(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// The bytes that tell the application why it is not; the connection is then closed. `None`
    /// if the protocol has no word for it: the connection is reset.
    fn refused(&mut self, _reason: Refusal) -> Option<Vec<u8>> {
        None
    }
}

/// What input led to. Bytes that were not `used` are given again with those that arrive later,
/// or, after `Open`, are the first that the target gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that were used.
    pub used: usize,
    /// Bytes for the application, to be written first.
    pub reply: Vec<u8>,
    /// What is to happen next.
    pub next: Next,
}

/// What is to happen after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// More input is needed.
    Read,
    /// The target is known. What the application sends from here on is the target's.
    Open(Target),
    /// The connection is closed after the reply: the request was refused by name.
    Close(String),
    /// The connection is reset: it does not speak this protocol.
    Reset(String),
}

impl Step {
    /// The target is known without any input.
    #[must_use]
    pub const fn open(target: Target) -> Self {
        Step { used: 0, reply: Vec::new(), next: Next::Open(target) }
    }
}
