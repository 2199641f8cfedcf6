//! UDT connections over UDP sockets: one thread carries a connection, with trains of
//! datagrams in and out (`UDP_SEGMENT`, `UDP_GRO`) and timers to the microsecond.
//!
//! The thread calls the [`Application`], which reads and writes through the
//! connection (an [`udt::Endpoint`] of either mode); nothing is copied between threads.

mod accept;
mod driver;
mod native;

pub use accept::accept;
pub use driver::{Driver, SOCKET_BUFFER};
pub use native::{NativeKeys, NativeSocket};

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use udt::{Connection, PeerAddress};
use units::Nanos;

/// What uses a connection.
pub trait Application<E = Connection> {
    /// Called whenever data may have arrived, room to write may have become free, or the
    /// connection's state may have changed: reads and writes what it can.
    fn poll(&mut self, now: Nanos, connection: &mut E) -> Next;

    /// What this is also called for once it can be read, beside datagrams and times.
    fn input(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// When an application is called next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// When something happened.
    OnEvent,
    /// At this time, or when something happened.
    At(Nanos),
    /// Never: the thread ends, and the connection is as it is.
    Never,
}

impl<E, F: FnMut(Nanos, &mut E) -> Next> Application<E> for F {
    fn poll(&mut self, now: Nanos, connection: &mut E) -> Next {
        self(now, connection)
    }
}

/// A socket's address as connections know it.
#[must_use]
pub fn peer_address(from: SocketAddr) -> PeerAddress {
    let (address, zone) = match from {
        SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped().octets(), 0),
        SocketAddr::V6(v6) => (v6.ip().octets(), v6.scope_id()),
    };
    PeerAddress { address, port: from.port(), zone }
}
