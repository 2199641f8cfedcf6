//! What an endpoint tells while it works.

use iperf2::{Mode, ServerReport};
use std::net::SocketAddr;
use std::time::Duration;

/// One stream's name in the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// Its number, from 1 in the order of connections.
    pub id: u32,
    /// The way that is not the usual one: a client receives, a server sends.
    pub other_way: bool,
}

/// What the kernel says of a new connection (`TCP_INFO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpFacts {
    /// First congestion window, KiB.
    pub window_kib: u64,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Round trip of the handshake, µs.
    pub rtt_us: u32,
}

/// What only a receiver of datagrams knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Datagrams sent, by their numbers.
    pub datagrams: u64,
    /// Of those, the ones that never came.
    pub lost: u64,
    /// The ones that came after a later one.
    pub late: u64,
    /// RFC 1889's jitter; sums have none.
    pub jitter: Option<Duration>,
}

/// Bytes over a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Which stream; `None` for the sum of those with the same peer.
    pub label: Option<Label>,
    /// Our end and the other one; `None` for sums.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// Whether we send them; of a sum, whether its first stream does.
    pub sending: bool,
    /// From when, since the stream began.
    pub from: Duration,
    /// Until when.
    pub to: Duration,
    /// Bytes of payload in between.
    pub bytes: u64,
    /// Whether this is the whole test and not an interval.
    pub whole: bool,
    /// Datagrams received.
    pub received: Option<Received>,
}

/// What happens, in its order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A connection will be opened, or datagrams sent, to there.
    Connecting {
        /// The other end.
        peer: SocketAddr,
        /// Our send buffer, bytes, as the kernel counts it.
        buffer: Option<u64>,
    },
    /// A server's port is open for the other way of a client's test.
    Listening {
        /// The port.
        port: u16,
    },
    /// A stream begins.
    Connected {
        /// Its name.
        label: Label,
        /// Our end.
        local: SocketAddr,
        /// The other end.
        peer: SocketAddr,
        /// What is asked.
        mode: Mode,
        /// What the kernel says of it; `None` for datagrams.
        tcp: Option<TcpFacts>,
    },
    /// A row of the table.
    Row(Row),
    /// Datagrams sent, the last one included.
    Sent {
        /// Whose.
        label: Label,
        /// How many.
        datagrams: u64,
    },
    /// What the receiver of our datagrams says.
    Report {
        /// Whose.
        label: Label,
        /// Our end and the other one.
        ends: (SocketAddr, SocketAddr),
        /// What it says.
        report: ServerReport,
    },
    /// The receiver of our datagrams said nothing.
    NoReport {
        /// Whose.
        label: Label,
        /// How often it was asked.
        tries: u32,
    },
    /// Something was refused, or ended before its time; the work goes on.
    Trouble {
        /// Whose.
        peer: SocketAddr,
        /// What, and what to do.
        why: String,
    },
}
