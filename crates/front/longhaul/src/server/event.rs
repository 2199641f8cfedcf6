//! Events of a server: lines of `longhaul.server-event/1`.

use perf::{Started, Summary, server};
use record::Interval;
use serde::ser::{Serialize, Serializer};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The schema of [`ServerLine`].
pub const SERVER_EVENT_SCHEMA: &str = "longhaul.server-event/1";

/// An event. Times are in seconds, rates in bit/s, directions as seen from the server.
///
/// Text of clients and peers is as they sent it: whoever prints it removes control characters.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ServerEvent {
    /// Other users of this host can read a file that is secret.
    SharedSecret {
        /// The file.
        file: PathBuf,
        /// Its contents.
        what: &'static str,
    },
    /// Copies are served.
    CopiesListening {
        /// The directory whose files are served.
        root: PathBuf,
        /// Clients may write there.
        writable: bool,
        /// The TCP address.
        address: SocketAddr,
    },
    /// Tests are served.
    Listening(Listening),
    /// The streams of a test are open.
    Started(TestStarted),
    /// A report interval of a test.
    Interval {
        /// The test.
        test: u64,
        /// Its figures.
        #[serde(flatten, serialize_with = "interval_figures")]
        interval: Interval,
    },
    /// A test completed.
    Finished(TestFinished),
    /// A test failed, or a connection before it became one.
    Failed {
        /// The test; `None` for a connection that never became one.
        test: Option<u64>,
        /// The other end.
        peer: SocketAddr,
        /// Cause and remedy.
        why: String,
    },
    /// A client was refused.
    Refused {
        /// The other end.
        peer: SocketAddr,
        /// The category.
        reason: &'static str,
        /// The cause.
        why: String,
    },
    /// New clients are refused from now on.
    Draining {
        /// Running tests.
        tests: usize,
    },
    /// Events that clients caused beyond a limit and that were not reported.
    HeldBack(HeldBack),
    /// Events that their reader was too slow for.
    LeftOut {
        /// Their number.
        count: u64,
    },
    /// A copy began.
    CopyStarted {
        /// The client.
        client: SocketAddr,
        /// Its request, in words.
        request: String,
    },
    /// A copy ended.
    CopyFinished {
        /// The client.
        client: SocketAddr,
        /// Files, directories and links.
        entries: u64,
        /// Bytes of file data.
        bytes: u64,
        /// Entries that were not copied.
        problems: u64,
        /// The reason it ended early.
        error: Option<String>,
    },
    /// A copy was refused.
    CopyRefused {
        /// The client.
        client: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// The server has ended.
    Stopped,
}

/// An event as a line of a log.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, serde::Serialize)]
pub struct ServerLine<'a> {
    /// [`SERVER_EVENT_SCHEMA`].
    pub schema: &'static str,
    /// Seconds since 1970-01-01 UTC.
    pub time: f64,
    /// The event.
    #[serde(flatten)]
    pub event: &'a ServerEvent,
}

impl<'a> ServerLine<'a> {
    /// The line of an event that happens now.
    #[must_use]
    pub fn now(event: &'a ServerEvent) -> Self {
        let time = host::clock::unix_time().as_secs_f64();
        ServerLine { schema: SERVER_EVENT_SCHEMA, time, event }
    }
}

/// Where the server listens, and its limits.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Listening {
    /// The address, with the port that the kernel chose.
    pub address: SocketAddr,
    /// False where another program has the UDP port.
    pub udp: bool,
    /// The page of metrics.
    pub metrics: Option<String>,
    /// The limits of tests.
    pub limits: TestLimits,
}

/// Limits of tests.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TestLimits {
    /// Concurrent tests.
    pub tests: u32,
    /// Concurrent tests of an address.
    pub tests_per_address: u32,
    /// Streams of a test, in each direction.
    pub streams: u32,
    /// The longest test.
    pub seconds: f64,
    /// The rate of a test.
    pub bps: Option<u64>,
    /// The bytes of a test.
    pub bytes: Option<u64>,
}

impl Listening {
    pub(super) fn new(
        server: &server::Server,
        limits: &server::Limits,
        metrics: Option<SocketAddr>,
    ) -> Self {
        Listening {
            address: server.local_addr(),
            udp: server.has_udp(),
            metrics: metrics.map(|at| format!("http://{at}/metrics")),
            limits: TestLimits {
                tests: limits.sessions,
                tests_per_address: limits.sessions_per_address(),
                streams: limits.streams,
                seconds: limits.duration.as_secs_f64(),
                bps: limits.rate.map(units::BitRate::bps),
                bytes: limits.bytes.map(units::ByteCount::bytes),
            },
        }
    }
}

/// A test that begins.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TestStarted {
    /// Its number, from 1.
    pub test: u64,
    /// The client.
    pub peer: SocketAddr,
    /// The client as it names itself.
    pub client: String,
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// `receive`, `send` or `both`.
    pub direction: &'static str,
    /// The streams, by id; as JSON their number.
    #[serde(serialize_with = "count")]
    pub streams: Vec<u32>,
    /// The duration that the client requested.
    pub seconds: Option<i64>,
    /// The bytes that it requested.
    pub bytes: Option<i64>,
    /// The rate of each stream that it requested.
    pub stream_bps: Option<i64>,
    /// Notes, such as a clamped window.
    pub notes: Vec<String>,
}

impl TestStarted {
    pub(super) fn new(test: u64, started: &Started) -> Self {
        let (protocol, direction) = kind(started);
        let positive = |number: i64| (number > 0).then_some(number);
        TestStarted {
            test,
            peer: started.peer,
            client: started.client(),
            protocol,
            direction,
            streams: started.streams.iter().map(|stream| stream.id).collect(),
            seconds: positive(started.params.time),
            bytes: positive(started.params.num),
            stream_bps: positive(started.params.bandwidth),
            notes: started.notes.clone(),
        }
    }
}

/// A test's protocol, and its direction as seen from the server.
pub(super) fn kind(started: &Started) -> (&'static str, &'static str) {
    let params = &started.params;
    let protocol = if params.udp { "udp" } else { "tcp" };
    let direction = match (params.bidirectional, params.reverse) {
        (true, _) => "both",
        (_, true) => "send",
        _ => "receive",
    };
    (protocol, direction)
}

fn count<S: Serializer>(streams: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    streams.len().serialize(serializer)
}

/// The figures of an interval that are reported.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(serde::Serialize)]
struct IntervalFigures {
    stream: Option<u32>,
    sending: bool,
    from_s: f64,
    to_s: f64,
    bytes: u64,
    bps: u64,
    retransmits: Option<u64>,
    cwnd_bytes: Option<u64>,
    rtt_s: Option<f64>,
    datagrams: Option<DatagramFigures>,
    omitted: bool,
}

#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(serde::Serialize)]
struct DatagramFigures {
    packets: u64,
    lost: u64,
    out_of_order: u64,
    jitter_s: f64,
}

fn interval_figures<S: Serializer>(of: &Interval, serializer: S) -> Result<S::Ok, S::Error> {
    let datagrams = of.datagrams.map(|datagrams| DatagramFigures {
        packets: datagrams.packets,
        lost: datagrams.lost,
        out_of_order: datagrams.out_of_order,
        jitter_s: datagrams.jitter.secs_f64(),
    });
    IntervalFigures {
        stream: of.stream,
        sending: of.sending,
        from_s: of.from_s,
        to_s: of.to_s,
        bytes: of.bytes.bytes(),
        bps: of.rate.bps(),
        retransmits: of.retransmits,
        cwnd_bytes: of.cwnd.map(units::ByteCount::bytes),
        rtt_s: of.rtt.map(units::Rtt::secs_f64),
        datagrams,
        omitted: of.omitted,
    }
    .serialize(serializer)
}

/// A test that completed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TestFinished {
    /// The test.
    pub test: u64,
    /// The client.
    pub peer: SocketAddr,
    /// Its duration at this end.
    pub seconds: f64,
    /// Bytes sent, without a warm-up.
    pub sent_bytes: u64,
    /// Bytes received, without a warm-up.
    pub received_bytes: u64,
    /// The mean rate of the data sent.
    pub sent_bps: f64,
    /// The mean rate of the data received.
    pub received_bps: f64,
    /// Datagrams of each direction; empty for TCP.
    pub datagrams: Vec<DatagramTotals>,
}

impl TestFinished {
    pub(super) fn new(
        test: u64,
        peer: SocketAddr,
        summary: &Summary,
        datagrams: Vec<DatagramTotals>,
    ) -> Self {
        let bps = |bytes: units::ByteCount| bytes.as_f64() * 8.0 / summary.seconds.max(1e-3);
        TestFinished {
            test,
            peer,
            seconds: summary.seconds,
            sent_bytes: summary.sent.bytes(),
            received_bytes: summary.received.bytes(),
            sent_bps: bps(summary.sent),
            received_bps: bps(summary.received),
            datagrams,
        }
    }
}

/// Datagram totals of one direction.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct DatagramTotals {
    /// This end sent them.
    pub sending: bool,
    /// Sent.
    pub packets: u64,
    /// Sent and not received.
    pub lost: u64,
    /// Mean over the streams.
    pub jitter_s: f64,
}

/// Numbers of events of each kind.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct HeldBack {
    /// All of them.
    pub count: u64,
    /// Connections that failed or were refused.
    pub connections: u64,
    /// Tests.
    pub tests: u64,
    /// Interval reports.
    pub rows: u64,
}

impl From<copy::Event> for ServerEvent {
    fn from(event: copy::Event) -> Self {
        match event {
            copy::Event::Began { from, what } => {
                ServerEvent::CopyStarted { client: from, request: what }
            }
            copy::Event::Ended { from, figures, error } => ServerEvent::CopyFinished {
                client: from,
                entries: figures.entries,
                bytes: figures.bytes,
                problems: figures.problems,
                error: error.map(|error| error.to_string()),
            },
            copy::Event::Refused { from, reason } => {
                ServerEvent::CopyRefused { client: from, reason }
            }
        }
    }
}
