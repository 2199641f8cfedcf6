//! What a running test tells whoever shows it.

use std::net::SocketAddr;
use units::{BitRate, ByteCount, Rtt};

/// One stream's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamAddress {
    /// iperf3's stream id (1, 3, 4, …).
    pub id: u32,
    /// This end.
    pub local: SocketAddr,
    /// The far end.
    pub peer: SocketAddr,
}

/// Progress of a client's test, in the order it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The control connection and all streams stand; traffic is about to run.
    Connected {
        /// The server's address, as the name resolved.
        peer: SocketAddr,
        /// Every stream's addresses.
        streams: Vec<StreamAddress>,
        /// What was noticed so far and the user should know before reading on:
        /// a busy machine, a clamped window. They are in the measurement too.
        notes: Vec<String>,
    },
    /// A report interval has passed, for one stream or for the sum.
    Interval(Interval),
}

/// What passed in one report interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The stream's id; `None` in the row that sums all streams, which comes
    /// after theirs and only where there is more than one.
    pub stream: Option<u32>,
    /// Seconds since the test's start; an omitted warm-up counts on its own.
    pub from_s: f64,
    /// Seconds since the test's start.
    pub to_s: f64,
    /// Bytes written where this end sends, read where it receives.
    pub bytes: ByteCount,
    /// Those bytes over that time.
    pub rate: BitRate,
    /// Payload that arrived within the interval, over that time: what fills a
    /// send buffer does not count. `None` where the kernel does not tell.
    pub arrival_rate: Option<BitRate>,
    /// Segments sent again within the interval; `None` where this end receives.
    pub retransmits: Option<u64>,
    /// Congestion window at its end; `None` where this end receives, and in sums.
    pub cwnd: Option<ByteCount>,
    /// Smoothed round trip at its end; `None` where this end receives, and in sums.
    pub rtt: Option<Rtt>,
    /// Whether it lies in the warm-up that the result leaves out (`-O`).
    pub omitted: bool,
}

/// What a finished session moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionSummary {
    /// Bytes this end sent or received, the warm-up left out.
    pub bytes: ByteCount,
    /// Seconds it counted for them.
    pub seconds: f64,
    /// Whether this end was the sender (the client asked for `-R`).
    pub sending: bool,
}

/// What a server tells whoever shows it. Sessions run side by side: the number
/// tells them apart.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// A client's parameters were accepted and its streams stand.
    Started {
        /// Counts from 1 as sessions begin.
        session: u64,
        /// The client's control connection.
        peer: SocketAddr,
        /// Its streams.
        streams: Vec<StreamAddress>,
        /// The version it names: `longhaul 0.1.0` or `iperf 3.12`.
        client: String,
        /// Whether this end sends.
        sending: bool,
    },
    /// A report interval of a session.
    Interval {
        /// The session.
        session: u64,
        /// Its figures.
        interval: Interval,
    },
    /// A test ran to its end and results were exchanged.
    Finished {
        /// The session.
        session: u64,
        /// The client's control connection.
        peer: SocketAddr,
        /// What it moved.
        summary: SessionSummary,
    },
    /// A session ended early, or a connection never became one.
    Failed {
        /// The session; `None` for a connection that never became one.
        session: Option<u64>,
        /// The other end.
        peer: SocketAddr,
        /// One line: what happened and what to do.
        why: String,
    },
    /// A client was turned away.
    Refused {
        /// The other end.
        peer: SocketAddr,
        /// One line: why.
        why: String,
    },
}
