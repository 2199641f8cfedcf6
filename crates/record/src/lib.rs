//! What a measurement is: the spine between what measures and what explains,
//! stores or draws.
//!
//! Whatever sends traffic writes a [`Measurement`]; whatever judges one reads
//! it, today or from a file in a year. It holds what was asked, the hosts and
//! the path it ran over, the kernel's samples of every stream, and, where a
//! lab carried it, whether the emulation can be trusted. Pure: no I/O, no clock.
//!
//! JSON keys carry their unit (`_bps`, `_ms`, `_us`, `_bytes`, `_s`); a value
//! that could not be had is `null`, never a guess.

mod closed_loop;
mod comparison;
mod datagrams;
mod doctor;
mod find_rate;
mod finding;
mod latency;
mod millis;
mod path;
mod reach;
mod remedy;
mod sample;
mod tuning;
mod verified;
mod watch;

pub use closed_loop::{LOOP_SCHEMA, LoopReport, PlanItem};
pub use comparison::{Comparison, REPEAT_SCHEMA, RepeatReport, RepeatSummary, RunFigures};
pub use datagrams::{Datagrams, LossBurst};
pub use doctor::{
    Area, Check, DOCTOR_COMMANDS_SCHEMA, DOCTOR_SCHEMA, DoctorCommands, DoctorReport, DoctorTarget,
    Recipe, Verdict,
};
pub use find_rate::{FIND_RATE_SCHEMA, FindRateReport, RateTry};
pub use finding::{Confidence, Finding, Limit, Shares, Steady};
pub use latency::{LatencyPhase, LatencyProbe, LatencyUnderLoad};
pub use path::{Achieved, Asked, AskedWay, Drops, Lateness, PathChange, PathReport};
pub use reach::{Hop, PING_SCHEMA, Ping, PingReport, RoundTrips, TRACE_SCHEMA, TraceReport};
pub use remedy::{Remedy, RemedyPlace};
pub use sample::{ReceiverSample, Sample};
pub use tuning::{
    Held, Holding, KeptFile, LeftOut, MemoryCost, Outcome, PlannedSetting, Standing, State,
    TUNE_APPLY_SCHEMA, TUNE_PLAN_SCHEMA, TUNE_ROLLBACK_SCHEMA, TUNE_STATUS_SCHEMA, TuneApplied,
    TunePlan, TuneStatus, TuneUndone, Undone, Written,
};
pub use verified::{
    FarEndNeeds, StepVerdict, StepWay, VERIFY_SCHEMA, VerifyGoal, VerifyReport, VerifyStep,
};
pub use watch::{
    BbrView, ConnectionId, CounterChange, RECORDING_SCHEMA, RecordingHead, RecordingLine, Seen,
    WATCH_SCHEMA, WatchReport, WatchedConnection,
};

use serde::{Deserialize, Serialize};
use units::ByteCount;

/// The version of [`Measurement`] on disk; the number after the slash grows
/// when a reader of the older one would be misled. 2 added UDP and tests in
/// both directions; a file of 1 reads as what it is, TCP one way.
pub const MEASUREMENT_SCHEMA: &str = "longhaul.measurement/2";

/// Which way the test data went, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The client sends.
    Forward,
    /// The server sends (`-R`).
    Reverse,
    /// Both at the same time (`--bidir`), each over streams of its own.
    Both,
}

/// What carries the test data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Connections that share what the path carries.
    #[default]
    Tcp,
    /// Datagrams at a rate of their own (`-u`).
    Udp,
}

/// What was asked of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestSpec {
    /// The server as it was named on the command line.
    pub target: String,
    /// The server's port.
    pub port: u16,
    /// What carried the data.
    #[serde(default)]
    pub protocol: Protocol,
    /// Which way the data went.
    pub direction: Direction,
    /// Length asked, in seconds.
    pub seconds: f64,
    /// Parallel streams, in each direction.
    pub streams: u32,
    /// Socket buffers asked with `-w`.
    pub window_bytes: Option<ByteCount>,
    /// Rate asked with `-b`, for each stream; `None` is as fast as it goes.
    pub rate_bps: Option<units::BitRate>,
    /// Congestion control asked with `-C`.
    pub congestion: Option<String>,
}

/// Facts about the host that measured, as they were at the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `uname -r`.
    pub kernel: String,
    /// Cores this process may run on.
    pub cores: u32,
    /// `net.ipv4.tcp_rmem`: least, initial and most bytes of receive buffer.
    pub tcp_rmem: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`: least, initial and most bytes of send buffer.
    pub tcp_wmem: Option<[u64; 3]>,
    /// Share of the machine's CPU that was in use before the test began, 0 to 1.
    pub busy_before: Option<f64>,
}

/// One TCP connection or UDP stream of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// iperf3's stream id (1, 3, 4, …).
    pub id: u32,
    /// Whether the server sends on it.
    #[serde(default)]
    pub reverse: bool,
    /// Whether it was only watched: a connection of some program, which may have
    /// nothing more to send; a test's own sender always has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
    /// The congestion control the sender used, where known.
    pub congestion: Option<String>,
    /// Bytes the sender handed to its kernel.
    pub sent_bytes: u64,
    /// Bytes the receiving program read: the goodput.
    pub received_bytes: u64,
    /// Seconds the sender counted for its bytes.
    pub sent_seconds: f64,
    /// Seconds the receiver counted for its bytes.
    pub received_seconds: f64,
    /// Segments sent again, by the sender's kernel.
    pub retransmits: Option<u64>,
    /// What became of its datagrams; `None` for TCP.
    #[serde(default)]
    pub datagrams: Option<Datagrams>,
    /// The sending kernel's samples, oldest first; empty where the sender is
    /// a program that does not share them (a foreign iperf3).
    pub sender: Vec<Sample>,
    /// The receiving side's samples, oldest first; empty likewise.
    pub receiver: Vec<ReceiverSample>,
}

/// One test: everything needed to judge it later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// [`MEASUREMENT_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that measured.
    pub version: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// What was asked.
    pub spec: TestSpec,
    /// The client's host.
    pub host: HostFacts,
    /// The far end, as it names itself: `longhaul 0.1.0`, or `iperf3` where it says nothing.
    pub peer: String,
    /// The path, where it is known because a lab made it.
    pub path: Option<PathReport>,
    /// The connections, by id.
    pub streams: Vec<Stream>,
    /// CPU that the busiest sending thread used over the test, as a share of one core.
    pub sender_cpu: Option<f64>,
    /// How long that thread was ready to run while another had its core, likewise.
    #[serde(default)]
    pub sender_core_wait: Option<f64>,
    /// CPU that the busiest receiving thread used over the test, as a share of one core.
    pub receiver_cpu: Option<f64>,
    /// How long that thread was ready to run while another had its core, likewise.
    #[serde(default)]
    pub receiver_core_wait: Option<f64>,
    /// What the tool noticed and the user should know: a clamped window, a
    /// busy machine, an interruption.
    pub notes: Vec<String>,
    /// Round trips before, during and after it, where asked for.
    #[serde(default)]
    pub latency: Option<LatencyUnderLoad>,
}

impl Measurement {
    /// What the busiest sending thread wanted of a core: its time on one, and its
    /// wait for one that another thread had.
    #[must_use]
    pub fn sender_core(&self) -> Option<f64> {
        Some(self.sender_cpu? + self.sender_core_wait.unwrap_or(0.0))
    }

    /// The same of the receiving threads.
    #[must_use]
    pub fn receiver_core(&self) -> Option<f64> {
        Some(self.receiver_cpu? + self.receiver_core_wait.unwrap_or(0.0))
    }

    /// Bytes received over all streams.
    #[must_use]
    pub fn received(&self) -> ByteCount {
        self.streams
            .iter()
            .map(|stream| ByteCount::from_bytes(stream.received_bytes))
            .fold(ByteCount::ZERO, ByteCount::plus)
    }

    /// The part that went one way, as a measurement of its own: a test in both
    /// directions is explained one way at a time.
    #[must_use]
    pub fn one_way(&self, reverse: bool) -> Self {
        let mut part = self.clone();
        part.streams.retain(|stream| stream.reverse == reverse);
        if self.spec.direction == Direction::Both {
            part.spec.direction = if reverse { Direction::Reverse } else { Direction::Forward };
        }
        part
    }

    /// Longest time a receiver counted, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.streams.iter().map(|s| s.received_seconds).fold(0.0, f64::max)
    }

    /// Whether the sending kernel's clocks are at hand for every stream.
    #[must_use]
    pub fn has_sender_clocks(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(|s| s.sender.len() >= 2)
    }
}
