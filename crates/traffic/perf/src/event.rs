//! Events of running tests, for whatever displays them.

use crate::{control::Control, extra, stream::Stream};
use host::clock;
use iperf3_proto::{Cookie, JsonText, Params, Results};
pub use record::{DatagramInterval, Interval};
use socket2::Socket;
use std::{io, net::SocketAddr};
use units::ByteCount;

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

/// A test whose streams are open and whose traffic is about to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// The other end of the control connection.
    pub peer: SocketAddr,
    /// This end of it.
    pub local: SocketAddr,
    /// Cookie shared by the test's connections.
    pub cookie: String,
    /// Seconds since 1970-01-01 UTC.
    pub unix_s: f64,
    /// Every stream, in the order they were opened.
    pub streams: Vec<StreamAddress>,
    /// The client's parameters, with the default filled in for `len`.
    pub params: Params,
    /// Segment size of the control connection, bytes of payload.
    pub control_mss: u32,
    /// The first stream's send buffer, as the kernel counts it.
    pub send_buffer: ByteCount,
    /// Its receive buffer.
    pub receive_buffer: ByteCount,
    /// Notes so far, such as a busy machine or a clamped window; the
    /// measurement has them too.
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

/// What is known of a test when its streams are open.
pub(crate) fn started(
    control: &Control,
    cookie: &Cookie,
    params: &Params,
    streams: &[Stream],
    notes: Vec<String>,
) -> Started {
    let buffer = |size: fn(&Socket) -> io::Result<usize>| {
        let bytes = streams.first().and_then(|stream| size(&stream.socket).ok()).unwrap_or(0);
        ByteCount::from_bytes(bytes as u64)
    };
    Started {
        peer: control.address(),
        local: control.local(),
        cookie: cookie.to_string(),
        unix_s: clock::unix_time().as_secs_f64(),
        streams: streams
            .iter()
            .map(|stream| StreamAddress {
                id: stream.id,
                sending: stream.sending,
                local: stream.local,
                peer: stream.peer,
            })
            .collect(),
        params: Params { len: i64::from(params.block()), ..params.clone() },
        control_mss: control.mss(),
        send_buffer: buffer(Socket::send_buffer_size),
        receive_buffer: buffer(Socket::recv_buffer_size),
        notes,
    }
}

/// Progress of a client's test, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The control connection and all streams are open.
    Connected(Box<Started>),
    /// A report interval of one stream, or of the sum, has ended.
    Interval(Interval),
}

/// Result of a finished session.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Duration measured at this end, in seconds.
    pub seconds: f64,
    /// Bytes sent, warm-up excluded.
    pub sent: ByteCount,
    /// Bytes received, likewise.
    pub received: ByteCount,
    /// This end's results.
    pub ours: Results,
    /// The client's results.
    pub theirs: Results,
}

/// Events of a server. Sessions run concurrently and are identified by number.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// A client's parameters were accepted and its streams are open.
    Started {
        /// The session's number, from 1.
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
    /// A test completed and results were exchanged.
    Finished {
        /// The session.
        session: u64,
        /// The client's control connection.
        peer: SocketAddr,
        /// The result.
        summary: Box<Summary>,
    },
    /// A session failed, or a connection before it became one.
    Failed {
        /// The session; `None` for a connection that never became one.
        session: Option<u64>,
        /// The other end.
        peer: SocketAddr,
        /// Cause and remedy in one line.
        why: String,
    },
    /// A client was refused.
    Refused {
        /// The other end.
        peer: SocketAddr,
        /// The category.
        reason: RefusalReason,
        /// Cause in one line.
        why: String,
    },
    /// New clients are refused from now on; the server ends after the last session.
    Draining {
        /// Running sessions.
        sessions: usize,
    },
}

/// Categories of refused clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The maximum number of tests is running.
    Busy,
    /// The maximum number of tests of one address is running.
    AddressBusy,
    /// The server is shutting down.
    Draining,
    /// Login or token missing or invalid.
    Authentication,
    /// More streams, time, rate or bytes than this server allows.
    Limit,
    /// A test type that this server does not offer.
    NotOffered,
    /// A connection for a session that already has all its streams.
    ExtraStream,
    /// Too many half-open connections.
    HalfOpen,
    /// The limit on all tests' streams or memory is reached, or the system's
    /// limit on threads.
    Capacity,
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
            RefusalReason::Capacity => "capacity",
        }
    }

    /// Every one.
    pub const ALL: [RefusalReason; 9] = [
        RefusalReason::Busy,
        RefusalReason::AddressBusy,
        RefusalReason::Draining,
        RefusalReason::Authentication,
        RefusalReason::Limit,
        RefusalReason::NotOffered,
        RefusalReason::ExtraStream,
        RefusalReason::HalfOpen,
        RefusalReason::Capacity,
    ];
}

/// Server output of a test, for a client that requests it (`--get-server-output`).
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// Text lines.
    Text(String),
    /// iperf3's JSON document.
    Json(JsonText),
}

/// Receives a server's events, in the sessions' threads.
pub trait Observer: Sync {
    /// Handles an event.
    fn event(&self, event: ServerEvent);

    /// Server output for a session's client; called right before the results
    /// are exchanged.
    fn output(&self, _session: u64) -> Option<ServerOutput> {
        None
    }
}

impl<F: Fn(ServerEvent) + Sync> Observer for F {
    fn event(&self, event: ServerEvent) {
        self(event);
    }
}
