//! Samples of running connections: one report, and a recording of many samples.

use crate::{Limit, ReceiverSample, Sample, Shares};
use serde::{Deserialize, Serialize};
use units::BitRate;

/// The schema id of [`WatchReport`]. Version 2 has the limits of `longhaul.test/2`.
pub const WATCH_SCHEMA: &str = "longhaul.watch/2";

/// The schema id of a recording: its first line is a [`RecordingHead`], every other
/// a [`RecordingLine`].
pub const RECORDING_SCHEMA: &str = "longhaul.recording/1";

/// A connection and its owner.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionId {
    /// The kernel's socket cookie in hex, unique since boot.
    pub id: String,
    /// The local address and port.
    pub local: String,
    /// The remote address and port.
    pub remote: String,
    /// The owning process; `None` without permission to see it.
    pub pid: Option<u32>,
    /// Its name.
    pub program: Option<String>,
    /// The owning user.
    pub uid: u32,
    /// Its congestion control.
    pub congestion: Option<String>,
}

/// BBR's model of the path.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BbrView {
    /// Bottleneck bandwidth.
    pub bandwidth_bps: BitRate,
    /// Minimum RTT of the last ten seconds, in ms.
    pub min_rtt_ms: f64,
    /// Pacing rate over bandwidth.
    pub pacing_gain: f64,
    /// Congestion window over BDP.
    pub cwnd_gain: f64,
}

/// One connection over the last interval.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchedConnection {
    /// The connection.
    #[serde(flatten)]
    pub who: ConnectionId,
    /// `established`, `fin-wait-1`, …
    pub state: String,
    /// Rate of acknowledged payload; `None` at the first sample.
    pub sends_bps: Option<BitRate>,
    /// Rate of received payload; likewise.
    pub receives_bps: Option<BitRate>,
    /// Smoothed RTT in ms; `None` before the first sample.
    pub rtt_ms: Option<f64>,
    /// Minimum RTT in ms.
    pub min_rtt_ms: Option<f64>,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Bytes in flight: sent, and neither acknowledged nor known lost.
    pub in_flight_bytes: u64,
    /// Bytes written by the application and not yet sent.
    pub unsent_bytes: u64,
    /// Bytes received and not yet read by the application.
    pub unread_bytes: u64,
    /// The window that the peer advertises; `None` before Linux 5.4.
    pub peer_window_bytes: Option<u64>,
    /// The window that this host advertises; `None` before Linux 6.2.
    pub own_window_bytes: Option<u64>,
    /// Retransmitted segments in the interval.
    pub retransmits: u64,
    /// Retransmitted segments since the connection began.
    pub retransmits_total: u64,
    /// Time of the interval by cause; `None` if this kernel has no such timers.
    pub shares: Option<Shares>,
    /// BBR's model, if that is its congestion control.
    pub bbr: Option<BbrView>,
    /// Seconds since the last payload, as far as watched.
    pub idle_s: f64,
    /// The limit over the last seconds; `None` with too little traffic.
    pub limit: Option<Limit>,
    /// The diagnosis in one line.
    pub why: Option<String>,
}

/// A counter of the host that grew in the interval.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterChange {
    /// The kernel's name: `TcpExt.TCPTimeouts`.
    pub name: String,
    /// The increase.
    pub delta: u64,
    /// The increase per second.
    pub per_s: f64,
    /// What it counts.
    pub meaning: String,
    /// What to do about it; `None` if it is harmless.
    pub remedy: Option<String>,
}

/// One sample of the connections of a host.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchReport {
    /// [`WATCH_SCHEMA`].
    pub schema: String,
    /// Seconds since the first sample.
    pub t_s: f64,
    /// Seconds since the previous sample; zero at the first.
    pub interval_s: f64,
    /// Number of TCP connections of this host.
    pub sockets: usize,
    /// Those that match the filter.
    pub matching: usize,
    /// Those of them with payload in the interval.
    pub busy: usize,
    /// Their total sending rate.
    pub sends_bps: BitRate,
    /// Their total receiving rate.
    pub receives_bps: BitRate,
    /// The first of them, in the requested order.
    pub connections: Vec<WatchedConnection>,
    /// Host counters that grew.
    pub counters: Vec<CounterChange>,
    /// Unavailable data, with reasons.
    pub notes: Vec<String>,
}

/// The first line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// [`RECORDING_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that recorded.
    pub version: String,
    /// Start time: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// Requested sampling interval in seconds.
    pub interval_s: f64,
    /// The host's facts.
    pub host: crate::HostFacts,
}

/// One sample of one connection, in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSample {
    /// As a sender; the time is in seconds since the recording's first sample.
    pub sent: Sample,
    /// As a receiver.
    pub received: ReceiverSample,
    /// Bytes received and not yet read by the application.
    pub unread_bytes: u64,
    /// Whether the kernel has timers; if not, those of `sent` are zero.
    #[serde(rename = "has_clocks")]
    pub has_timers: bool,
}

/// Every other line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "nearly every line is a sample")]
pub enum RecordingLine {
    /// A new connection, or one whose owner became known.
    Connection(ConnectionId),
    /// A sample of a connection recorded before.
    #[serde(rename = "look")]
    Sample {
        /// Its id.
        id: String,
        /// The sample.
        #[serde(flatten)]
        seen: ConnectionSample,
    },
}
