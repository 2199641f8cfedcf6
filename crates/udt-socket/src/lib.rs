//! UDT connections over UDP sockets: one thread carries a connection, with trains of
//! datagrams in and out (`UDP_SEGMENT`, `UDP_GRO`) and timers to the microsecond.
//!
//! The thread calls the [`Application`], which reads and writes through the
//! [`udt::Connection`]; nothing is copied between threads.

mod accept;
mod driver;

pub use accept::accept;
pub use driver::{Driver, SOCKET_BUFFER};

use udt::Connection;
use units::Nanos;

/// What uses a connection.
pub trait Application {
    /// Called whenever data may have arrived, room to write may have become free, or the
    /// connection's state may have changed: reads and writes what it can.
    fn poll(&mut self, now: Nanos, connection: &mut Connection) -> Next;
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

impl<F: FnMut(Nanos, &mut Connection) -> Next> Application for F {
    fn poll(&mut self, now: Nanos, connection: &mut Connection) -> Next {
        self(now, connection)
    }
}
