//! What is seen of running connections: one look, and a recording of many.

use crate::{Limit, ReceiverSample, Sample, Shares};
use serde::{Deserialize, Serialize};
use units::BitRate;

/// The version of [`WatchReport`].
pub const WATCH_SCHEMA: &str = "longhaul.watch/1";

/// The version of a recording: its first line is a [`RecordingHead`], every other
/// a [`RecordingLine`].
pub const RECORDING_SCHEMA: &str = "longhaul.recording/1";

/// Which connection of which program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionId {
    /// Unlike any other's since the machine was started: the kernel's cookie, in hex.
    pub id: String,
    /// This host's end: address and port.
    pub local: String,
    /// The other end.
    pub remote: String,
    /// The process that has it open; `None` where we may not see that.
    pub pid: Option<u32>,
    /// That process' name.
    pub program: Option<String>,
    /// The user who opened it.
    pub uid: u32,
    /// Its congestion control.
    pub congestion: Option<String>,
}

/// What BBR thinks of its path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BbrView {
    /// The bottleneck's rate.
    pub bandwidth_bps: BitRate,
    /// Least round trip of the last ten seconds, in ms.
    pub min_rtt_ms: f64,
    /// Pacing rate over bandwidth.
    pub pacing_gain: f64,
    /// Congestion window over the product of both.
    pub cwnd_gain: f64,
}

/// One connection over the last interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchedConnection {
    /// Which one.
    #[serde(flatten)]
    pub who: ConnectionId,
    /// `established`, `fin-wait-1`, …
    pub state: String,
    /// Payload acknowledged by the other end; `None` at the first look.
    pub sends_bps: Option<BitRate>,
    /// Payload received; likewise.
    pub receives_bps: Option<BitRate>,
    /// Smoothed round trip, ms; `None` before the first.
    pub rtt_ms: Option<f64>,
    /// Least round trip seen, ms.
    pub min_rtt_ms: Option<f64>,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Sent and neither acknowledged nor known lost.
    pub in_flight_bytes: u64,
    /// Written by the program and not yet sent.
    pub unsent_bytes: u64,
    /// Come and not read by the program.
    pub unread_bytes: u64,
    /// The window the other end advertises; `None` before Linux 5.4.
    pub peer_window_bytes: Option<u64>,
    /// The window this end advertises; `None` before Linux 6.2.
    pub own_window_bytes: Option<u64>,
    /// Segments sent again over the interval.
    pub retransmits: u64,
    /// Segments sent again since the connection began.
    pub retransmits_total: u64,
    /// The interval by cause; `None` where this kernel has no clocks for it.
    pub shares: Option<Shares>,
    /// What BBR thinks, where that is its congestion control.
    pub bbr: Option<BbrView>,
    /// Seconds since it last carried payload, as far as was watched.
    pub idle_s: f64,
    /// What limits it, over the last seconds; `None` where it carries too little.
    pub limit: Option<Limit>,
    /// The same in one line.
    pub why: Option<String>,
}

/// A counter of the whole host that has changed over the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterChange {
    /// As the kernel calls it: `TcpExt.TCPTimeouts`.
    pub name: String,
    /// How much it grew.
    pub delta: u64,
    /// The same for each second.
    pub per_s: f64,
    /// What it counts.
    pub meaning: String,
    /// What to do about it; `None` where it is no harm.
    pub remedy: Option<String>,
}

/// One look at the connections of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchReport {
    /// [`WATCH_SCHEMA`].
    pub schema: String,
    /// Seconds since the first look.
    pub t_s: f64,
    /// Seconds since the look before; zero at the first.
    pub interval_s: f64,
    /// Connections of this host.
    pub sockets: usize,
    /// Of those, the ones that were asked for.
    pub matching: usize,
    /// Of those, the ones that carried payload over the interval.
    pub busy: usize,
    /// What these sent.
    pub sends_bps: BitRate,
    /// What these received.
    pub receives_bps: BitRate,
    /// The first of them, in the order asked for.
    pub connections: Vec<WatchedConnection>,
    /// Counters of the host that grew.
    pub counters: Vec<CounterChange>,
    /// What could not be had, and why.
    pub notes: Vec<String>,
}

/// The first line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// [`RECORDING_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that recorded.
    pub version: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// Seconds between looks, as asked.
    pub interval_s: f64,
    /// The host's facts.
    pub host: crate::HostFacts,
}

/// One look at one connection. A receiver's program reads, and a sender's writes;
/// most connections do both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// As a sender; its time is in seconds since the recording's first look.
    pub sent: Sample,
    /// As a receiver.
    pub received: ReceiverSample,
    /// Come and not read by the program.
    pub unread_bytes: u64,
    /// Whether the kernel told its clocks; where not, those of `sent` are zeros.
    pub has_clocks: bool,
}

/// Every other line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordingLine {
    /// A connection is seen for the first time, or its owner is known by now.
    Connection(ConnectionId),
    /// A look at one that was told before.
    Look {
        /// Its id.
        id: String,
        /// What was seen.
        #[serde(flatten)]
        seen: Seen,
    },
}
