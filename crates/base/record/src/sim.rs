//! Flows over a path in virtual time. What `longhaul sim run --json` prints.

use crate::{Drops, Finding, NextCommand, Stream};
use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount};

/// The version of [`SimReport`] in JSON.
pub const SIM_SCHEMA: &str = "longhaul.sim/1";

/// What ended a simulation.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SimEnd {
    /// Its time was over.
    Complete,
    /// It was interrupted; what was simulated before counts.
    Interrupted,
    /// It had carried the most packets that a simulation may.
    PacketLimit,
}

/// Flows over a path, simulated.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimReport {
    /// [`SIM_SCHEMA`].
    pub schema: String,
    /// The version of Longhaul.
    pub version: String,
    /// The path at the start, in the syntax of `--link`.
    pub link: String,
    /// The seed of its random numbers.
    pub seed: u64,
    /// The time that was asked for, s.
    pub requested_s: f64,
    /// The time that was simulated, s.
    pub seconds: f64,
    /// What ended it.
    pub ended: SimEnd,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// The flows, in the order of the request.
    pub flows: Vec<SimFlow>,
    /// Goodput of all flows over the whole time.
    pub goodput_bps: BitRate,
    /// Jain's fairness index of the flows' goodput while all were active (Jain, Chiu, Hawe 1984);
    /// `None` for one flow, and if they were never all active.
    pub jain: Option<f64>,
    /// The bottleneck of the data.
    pub bottleneck: SimBottleneck,
    /// What limited all flows together; no limit where they differ in when or how much they send.
    pub finding: Finding,
    /// Remarks.
    pub notes: Vec<String>,
    /// The command to run next.
    pub next: Option<NextCommand>,
}

/// One simulated flow.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimFlow {
    /// Its number, from 1: the id of its first stream in the measurement.
    pub id: u32,
    /// Its connections, whose streams follow each other in the measurement: several for PSockets.
    #[serde(default = "one")]
    pub connections: u32,
    /// The part of the request that it belongs to, such as `4xbbr,start=30s`.
    pub spec: String,
    /// Its congestion control.
    pub control: String,
    /// The RTT of the path at the start and of its own access link, without a queue, in ms; `None` in
    /// results of earlier versions.
    #[serde(default)]
    pub base_rtt_ms: Option<f64>,
    /// Its start, s.
    pub start_s: f64,
    /// The time at which everything that it sent was acknowledged, s; `None` if it had not ended.
    pub finished_s: Option<f64>,
    /// Payload that its application received.
    pub received_bytes: ByteCount,
    /// Goodput from its start to its end.
    pub goodput_bps: BitRate,
    /// Share of the goodput of all flows while all were active; over the whole time if they never
    /// were.
    pub share: f64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Median of its smoothed RTT, in ms.
    pub rtt_median_ms: Option<f64>,
    /// 95th percentile of its smoothed RTT, in ms.
    pub rtt_p95_ms: Option<f64>,
    /// What its sender waited for most of the time; `None` if it never sent.
    pub limited_by: Option<SenderLimit>,
    /// The share of its time in which it waited for that.
    pub limited_share: f64,
}

const fn one() -> u32 {
    1
}

impl SimFlow {
    /// Its streams, of those of the measurement.
    #[must_use]
    pub fn streams<'a>(&self, all: &'a [Stream]) -> &'a [Stream] {
        let first = (self.id as usize).saturating_sub(1).min(all.len());
        let end = first.saturating_add(self.connections as usize).min(all.len());
        all.get(first..end).unwrap_or_default()
    }
}

/// What a simulated sender waits for: known, where a finding infers it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SenderLimit {
    /// The application, which has nothing to send.
    Application,
    /// The congestion window.
    Cwnd,
    /// The receive window.
    Rwnd,
    /// The send buffer.
    SendBuffer,
    /// The pacing rate.
    Pacing,
}

impl SenderLimit {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SenderLimit::Application => "application",
            SenderLimit::Cwnd => "cwnd",
            SenderLimit::Rwnd => "rwnd",
            SenderLimit::SendBuffer => "sndbuf",
            SenderLimit::Pacing => "pacing",
        }
    }
}

/// The bottleneck of simulated flows.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SimBottleneck {
    /// Share of the time in which it was sending.
    pub utilization: f64,
    /// Median of its queue every 100 ms, bytes.
    pub queue_median_bytes: ByteCount,
    /// 95th percentile of its queue every 100 ms, bytes.
    pub queue_p95_bytes: ByteCount,
    /// The longest queue, bytes.
    pub queue_peak_bytes: ByteCount,
    /// Median time in which it sends its queue, at its rate then, in ms; `None` where it has no rate, or
    /// that of a recorded link.
    pub queue_median_ms: Option<f64>,
    /// Time in which it sends the 95th percentile, in ms.
    pub queue_p95_ms: Option<f64>,
    /// Packets dropped, by cause.
    pub drops: Drops,
    /// Packets lost by the loss model.
    pub lost: u64,
    /// Packets marked with congestion experienced.
    pub marked: u64,
}
