//! What a running test tells whoever shows it.

use crate::{control::Control, extra, flow::Flow};
use host::clock;
use iperf3::{Cookie, Params, Results};
use socket2::Socket;
use std::{io, net::SocketAddr};
use units::{BitRate, ByteCount, Rtt};

/// One stream's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamAddress {
    /// iperf3's stream id (1, 3, 4, …).
    pub id: u32,
    /// Whether this end sends on it.
    pub sending: bool,
    /// This end.
    pub local: SocketAddr,
    /// The far end.
    pub peer: SocketAddr,
}

/// A test whose streams stand; its traffic is about to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// The other end of the control connection.
    pub peer: SocketAddr,
    /// This end of it.
    pub local: SocketAddr,
    /// What ties the test's connections together.
    pub cookie: String,
    /// Seconds since 1970-01-01 UTC.
    pub unix_s: f64,
    /// Every stream, in the order they were opened.
    pub streams: Vec<StreamAddress>,
    /// What the client asked, `len` filled in where it left the size open.
    pub params: Params,
    /// Segment size of the control connection, bytes of payload.
    pub control_mss: u32,
    /// The first stream's send buffer, as the kernel counts it.
    pub send_buffer: ByteCount,
    /// Its receive buffer.
    pub receive_buffer: ByteCount,
    /// What was noticed so far and the user should know before reading on: a
    /// busy machine, a clamped window. They are in the measurement too.
    pub notes: Vec<String>,
}

impl Started {
    /// The client as it names itself: `longhaul 0.1.0` or `iperf 3.12`.
    #[must_use]
    pub fn client(&self) -> String {
        if let Some(version) = self.params.longhaul.as_ref().and_then(extra::announced_version) {
            return format!("longhaul {version}");
        }
        let version = self.params.client_version.as_deref().unwrap_or("of unknown version");
        let version: String = version.chars().filter(|c| !c.is_control()).take(32).collect();
        format!("iperf {version}")
    }
}

/// What is known of a test when its streams stand.
pub(crate) fn started(
    control: &Control,
    cookie: &Cookie,
    params: &Params,
    flows: &[Flow],
    notes: Vec<String>,
) -> Started {
    let buffer = |size: fn(&Socket) -> io::Result<usize>| {
        let bytes = flows.first().and_then(|flow| size(&flow.socket).ok()).unwrap_or(0);
        ByteCount::from_bytes(bytes as u64)
    };
    Started {
        peer: control.address(),
        local: control.local(),
        cookie: cookie.to_string(),
        unix_s: clock::unix_time().as_secs_f64(),
        streams: flows
            .iter()
            .map(|flow| StreamAddress {
                id: flow.id,
                sending: flow.sending,
                local: flow.local,
                peer: flow.peer,
            })
            .collect(),
        params: Params { len: i64::from(params.block()), ..params.clone() },
        control_mss: control.mss(),
        send_buffer: buffer(Socket::send_buffer_size),
        receive_buffer: buffer(Socket::recv_buffer_size),
        notes,
    }
}

/// Progress of a client's test, in the order it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The control connection and all streams stand.
    Connected(Box<Started>),
    /// A report interval has passed, for one stream or for the sum.
    Interval(Interval),
}

/// What passed in one report interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The stream's id; `None` in the row that sums all streams of one
    /// direction, which comes after theirs and only where there is more than one.
    pub stream: Option<u32>,
    /// Whether this end sends.
    pub sending: bool,
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
    /// Segments sent again within the interval; `None` where this end
    /// receives, and for UDP.
    pub retransmits: Option<u64>,
    /// Congestion window at its end; `None` likewise, and in sums.
    pub cwnd: Option<ByteCount>,
    /// The window the receiver advertised; `None` likewise.
    pub peer_window: Option<ByteCount>,
    /// Smoothed round trip at its end; `None` likewise.
    pub rtt: Option<Rtt>,
    /// Its mean deviation; `None` likewise.
    pub rttvar: Option<Rtt>,
    /// The path's MTU in bytes; `None` likewise.
    pub pmtu: Option<u32>,
    /// UDP only.
    pub datagrams: Option<DatagramInterval>,
    /// Whether it lies in the warm-up that the result leaves out (`-O`).
    pub omitted: bool,
}

/// What became of the datagrams of one report interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DatagramInterval {
    /// Sent where this end sends; otherwise those that should have arrived.
    pub packets: u64,
    /// Missing among them; zero where this end sends.
    pub lost: u64,
    /// Arrived after one that was sent later.
    pub out_of_order: u64,
    /// Jitter at its end; in sums the mean over the streams.
    pub jitter: Rtt,
}

/// What a finished session moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Seconds this end counted.
    pub seconds: f64,
    /// Bytes it sent, the warm-up left out.
    pub sent: ByteCount,
    /// Bytes it received, likewise.
    pub received: ByteCount,
    /// What it reported.
    pub ours: Results,
    /// What the client reported.
    pub theirs: Results,
}

/// What a server tells whoever shows it. Sessions run side by side: the number
/// tells them apart.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// A client's parameters were accepted and its streams stand.
    Started {
        /// Counts from 1 as sessions begin.
        session: u64,
        /// The test.
        started: Box<Started>,
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
        summary: Box<Summary>,
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
        /// The kind of reason.
        reason: RefusalReason,
        /// One line: why.
        why: String,
    },
    /// No new clients are taken from here on; the server ends with the last one.
    Draining {
        /// Sessions that are still there.
        sessions: usize,
    },
}

/// Why clients are turned away, in kinds that can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RefusalReason {
    /// As many tests as there may be are running.
    Busy,
    /// As many as one address may have.
    AddressBusy,
    /// The server is about to end.
    Draining,
    /// No login or token, or a wrong one.
    Authentication,
    /// More streams, time, rate or bytes than this server allows.
    Limit,
    /// A kind of test that this server does not offer.
    NotOffered,
    /// A connection for a session that has its streams.
    ExtraStream,
    /// Too many connections that had not said who they are.
    HalfOpen,
}

impl RefusalReason {
    /// Its name in logs and counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RefusalReason::Busy => "busy",
            RefusalReason::AddressBusy => "address_busy",
            RefusalReason::Draining => "draining",
            RefusalReason::Authentication => "authentication",
            RefusalReason::Limit => "limit",
            RefusalReason::NotOffered => "not_offered",
            RefusalReason::ExtraStream => "extra_stream",
            RefusalReason::HalfOpen => "half_open",
        }
    }

    /// Every one.
    pub const ALL: [RefusalReason; 8] = [
        RefusalReason::Busy,
        RefusalReason::AddressBusy,
        RefusalReason::Draining,
        RefusalReason::Authentication,
        RefusalReason::Limit,
        RefusalReason::NotOffered,
        RefusalReason::ExtraStream,
        RefusalReason::HalfOpen,
    ];
}

/// What a client that asks for it is told of its own test (`--get-server-output`).
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// Lines.
    Text(String),
    /// iperf3's document.
    Json(serde_json::Value),
}

/// Whoever shows what a server does. Called from the sessions' threads.
pub trait Observer: Sync {
    /// Something happened.
    fn event(&self, event: ServerEvent);

    /// What a session's client is told of its own test, right before the
    /// results are exchanged.
    fn output(&self, _session: u64) -> Option<ServerOutput> {
        None
    }
}

impl<F: Fn(ServerEvent) + Sync> Observer for F {
    fn event(&self, event: ServerEvent) {
        self(event);
    }
}
