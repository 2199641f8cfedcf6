//! What a box reports while it runs.

use crate::local_flow::FlowSummary;
use crate::mux::CappedBuffer;
use std::net::SocketAddr;
use units::ByteCount;

/// An event. Texts of peers are not printable as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A flow has ended, or was refused by far.
    FlowEnded(FlowSummary),
    /// Near: a connection was closed before its target was known.
    RequestRefused {
        /// The application.
        peer: SocketAddr,
        /// The reason.
        why: String,
    },
    /// Far: a connection was closed before it was a lane.
    LaneRefused {
        /// Its address.
        peer: SocketAddr,
        /// The reason.
        why: String,
    },
    /// Near: far cannot be reached at any of its addresses; reported once until it can.
    FarUnreachable {
        /// The address of the last attempt.
        far: SocketAddr,
        /// The reason.
        why: String,
    },
    /// Near: UDP does not reach far, so TCP carries the sessions.
    UdtBlocked {
        /// Its address.
        far: SocketAddr,
        /// The reason.
        why: String,
    },
    /// Near: a session is carried by several connections, as the kernel caps a buffer.
    SeveralConnections {
        /// Their number.
        connections: usize,
        /// The smallest buffer of both boxes.
        capped: CappedBuffer,
        /// What the kernel grants.
        granted: ByteCount,
        /// What it was asked for.
        asked: ByteCount,
    },
    /// Near: the first lane is connected, or the first after far was unreachable.
    FarReached {
        /// Its address.
        far: SocketAddr,
    },
}
