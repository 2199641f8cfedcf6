//! Counters and connections read from the text of other tools: what
//! `longhaul doctor --read … --json` prints.

use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount};

/// The version of [`PastedReport`] in JSON.
pub const PASTED_SCHEMA: &str = "longhaul.pasted/1";

/// What a text of `netstat -s`, `netstat -st` or `ss -tin` says.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastedReport {
    /// [`PASTED_SCHEMA`].
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// The tool and system that printed the text.
    pub format: String,
    /// Totals and counters since boot, in the order of the report.
    pub counters: Vec<PastedCounter>,
    /// Connections, the one that sent most first.
    pub connections: Vec<PastedConnection>,
    /// Lines with numbers that are not explained.
    pub unread_lines: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// One counter.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastedCounter {
    /// Its name in the kernel, or the tool's words.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// The counter that it is a part of.
    pub of: Option<String>,
    /// Its share of that, 0 to 1.
    pub share: Option<f64>,
    /// What it counts.
    pub meaning: String,
    /// What to do, if growth is a problem.
    pub remedy: Option<String>,
}

/// One connection; what the text does not say is `None`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PastedConnection {
    /// The local address and port.
    pub local: String,
    /// The peer's address and port.
    pub peer: String,
    /// The congestion control.
    pub congestion: Option<String>,
    /// The smoothed RTT.
    pub rtt_ms: Option<f64>,
    /// The least RTT.
    pub min_rtt_ms: Option<f64>,
    /// The congestion window, segments.
    pub cwnd_segments: Option<u64>,
    /// Payload of a segment.
    pub mss_bytes: Option<u64>,
    /// Bytes sent, retransmissions included.
    pub sent_bytes: Option<ByteCount>,
    /// Bytes received.
    pub received_bytes: Option<ByteCount>,
    /// Bytes retransmitted.
    pub retransmitted_bytes: Option<ByteCount>,
    /// Retransmitted share of the bytes sent, 0 to 1.
    pub retransmitted_share: Option<f64>,
    /// The rate of delivery, as the sender measured it last.
    pub delivery_rate_bps: Option<BitRate>,
    /// One window per RTT: the rate that the congestion window allows.
    pub cwnd_rate_bps: Option<BitRate>,
    /// Time with data to send or unacknowledged.
    pub busy_ms: Option<f64>,
    /// Share of that time in which the peer's window limited it.
    pub rwnd_limited_share: Option<f64>,
    /// Share of that time in which the send buffer limited it.
    pub sndbuf_limited_share: Option<f64>,
    /// Whether the last delivery rate was limited by the application.
    pub is_app_limited: bool,
    /// What the values mean, in sentences.
    pub findings: Vec<String>,
}
