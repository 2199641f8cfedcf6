//! Events of a running test or server.

use iperf2_proto::{Mode, ServerReport};
use std::net::SocketAddr;
use std::time::Duration;

/// Identifies a stream in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// Its number, from 1 in the order of connections.
    pub id: u32,
    /// Reverse direction: a client receives, a server sends.
    pub reverse: bool,
}

/// The `TCP_INFO` of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// Initial congestion window, KiB.
    pub window_kib: u64,
    /// Maximum segment size, bytes.
    pub mss: u32,
    /// RTT of the handshake, µs.
    pub rtt_us: u32,
}

/// Statistics of a UDP receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramStats {
    /// Datagrams sent, by their sequence numbers.
    pub datagrams: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Datagrams received out of order.
    pub late: u64,
    /// Jitter (RFC 1889); sums have none.
    pub jitter: Option<Duration>,
}

/// An interval report, or the report of a whole test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalReport {
    /// The stream; `None` for the sum of streams with the same peer.
    pub label: Option<Label>,
    /// Local and remote address; `None` for sums.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// Whether this endpoint sends; for a sum, whether its first stream does.
    pub sending: bool,
    /// Start, since the beginning of the stream.
    pub from: Duration,
    /// End, since the beginning of the stream.
    pub to: Duration,
    /// Bytes in between.
    pub bytes: u64,
    /// Whether this covers the whole test, not an interval.
    pub whole: bool,
    /// Statistics of a UDP receiver.
    pub received: Option<DatagramStats>,
}

/// Events, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A connection will be opened, or datagrams sent, to a peer.
    Connecting {
        /// The remote address.
        peer: SocketAddr,
        /// The send buffer, bytes, as the kernel counts it.
        buffer: Option<u64>,
    },
    /// The client listens for the reverse connection.
    Listening {
        /// The port.
        port: u16,
    },
    /// A stream started.
    Connected {
        /// The stream.
        label: Label,
        /// The local address.
        local: SocketAddr,
        /// The remote address.
        peer: SocketAddr,
        /// The mode of the test.
        mode: Mode,
        /// `TCP_INFO`; `None` for UDP.
        tcp: Option<ConnectionInfo>,
    },
    /// An interval or the end of a stream or sum.
    Interval(IntervalReport),
    /// Number of datagrams sent, including the last one.
    Sent {
        /// The stream.
        label: Label,
        /// Their number.
        datagrams: u64,
    },
    /// The server report.
    Report {
        /// The stream.
        label: Label,
        /// Local and remote address.
        ends: (SocketAddr, SocketAddr),
        /// The report.
        report: ServerReport,
    },
    /// No server report arrived.
    NoReport {
        /// The stream.
        label: Label,
        /// Number of attempts.
        attempts: u32,
    },
    /// What a server did not report since the last such event, because of its limits.
    Suppressed {
        /// Streams from their start to their end.
        streams: u64,
        /// Interval reports.
        intervals: u64,
        /// Errors of peers.
        errors: u64,
    },
    /// A client was refused or failed; the server continues.
    PeerError {
        /// The client.
        peer: SocketAddr,
        /// The error and its remedy.
        reason: String,
    },
}
