//! The limit of a transfer, in numbers and one sentence.

use crate::{Caveat, NextCommand, Remedy};
use serde::{Deserialize, Serialize};
use units::{BitRate, Rtt};

/// The main limit of a transfer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The receive window (rwnd-limited).
    ReceiveWindow,
    /// A middlebox removed or altered window scaling (RFC 7323).
    WindowScaling,
    /// The receiving application reads more slowly than data arrives.
    SlowReceiver,
    /// The sender's socket buffer (sndbuf-limited).
    SendBuffer,
    /// The sending application wrote less than the network could send.
    Application,
    /// The sender paces below the bottleneck rate.
    Pacing,
    /// A sending or receiving thread saturated its core.
    Cpu,
    /// On a path of under 1 ms, buffers far above the BDP: CPU time per byte grows as data
    /// leaves the caches before it is read.
    Memory,
    /// On a path of under 1 ms, BBR's pacing: TCP waits for a timer before each segment.
    PacingTimers,
    /// The transfer ended during ramp-up.
    Ramp,
    /// The congestion window grows slowly (congestion avoidance) towards the BDP, after slow
    /// start's overshoot or an earlier loss: the goodput is below the bottleneck rate.
    #[serde(alias = "congestion")]
    CongestionAvoidance,
    /// The bottleneck is saturated, and its drop-tail queue is deep.
    PathRate,
    /// A drop-tail queue far smaller than the BDP overflows.
    ShallowQueue,
    /// The bottleneck is saturated, and active queue management (AQM) keeps its queue short.
    Aqm,
    /// Other traffic shares the saturated bottleneck.
    SharedBottleneck,
    /// A policer drops traffic above its rate.
    Policer,
    /// Congestion experienced (CE) marks reduce the congestion window (RFC 3168).
    EcnMarks,
    /// Independent random loss keeps the congestion window small.
    Loss,
    /// Random loss in clusters (Gilbert-Elliott) keeps the congestion window small.
    ClusteredLoss,
    /// Reordered packets are mistaken for lost ones.
    Reordering,
    /// The path of the acknowledgements is saturated or loses them.
    AckPath,
    /// The path's rate or route changed during the transfer.
    PathChange,
    /// The bytes in flight stay at one value, as a window or a buffer bounds them: which of
    /// both, the figures do not show.
    FixedWindow,
    /// Nothing arrived for a while, although data was outstanding.
    Outage,
    /// Full-size packets are lost, smaller ones arrive, and no ICMP message says so
    /// (RFC 2923, section 2.1; RFC 4821).
    PmtuBlackHole,
    /// The evidence shows no limit.
    Unknown,
}

impl Limit {
    /// Every limit, in the order of its declaration.
    pub const ALL: [Limit; 26] = [
        Limit::ReceiveWindow,
        Limit::WindowScaling,
        Limit::SlowReceiver,
        Limit::SendBuffer,
        Limit::Application,
        Limit::Pacing,
        Limit::Cpu,
        Limit::Memory,
        Limit::PacingTimers,
        Limit::Ramp,
        Limit::CongestionAvoidance,
        Limit::PathRate,
        Limit::ShallowQueue,
        Limit::Aqm,
        Limit::SharedBottleneck,
        Limit::Policer,
        Limit::EcnMarks,
        Limit::Loss,
        Limit::ClusteredLoss,
        Limit::Reordering,
        Limit::AckPath,
        Limit::PathChange,
        Limit::FixedWindow,
        Limit::Outage,
        Limit::PmtuBlackHole,
        Limit::Unknown,
    ];

    /// The name in JSON and on the terminal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Limit::ReceiveWindow => "receive-window",
            Limit::WindowScaling => "window-scaling",
            Limit::SlowReceiver => "slow-receiver",
            Limit::SendBuffer => "send-buffer",
            Limit::Application => "application",
            Limit::Pacing => "pacing",
            Limit::Cpu => "cpu",
            Limit::Memory => "memory",
            Limit::PacingTimers => "pacing-timers",
            Limit::Ramp => "ramp",
            Limit::CongestionAvoidance => "congestion-avoidance",
            Limit::PathRate => "path-rate",
            Limit::ShallowQueue => "shallow-queue",
            Limit::Aqm => "aqm",
            Limit::SharedBottleneck => "shared-bottleneck",
            Limit::Policer => "policer",
            Limit::EcnMarks => "ecn-marks",
            Limit::Loss => "loss",
            Limit::ClusteredLoss => "clustered-loss",
            Limit::Reordering => "reordering",
            Limit::AckPath => "ack-path",
            Limit::PathChange => "path-change",
            Limit::FixedWindow => "fixed-window",
            Limit::Outage => "outage",
            Limit::PmtuBlackHole => "pmtu-black-hole",
            Limit::Unknown => "unknown",
        }
    }

    /// Whether the bottleneck was saturated: only a faster link, or a larger share of it,
    /// would carry more.
    #[must_use]
    pub const fn is_saturated(self) -> bool {
        matches!(self, Limit::PathRate | Limit::Aqm | Limit::SharedBottleneck)
    }
}

/// The confidence in a limit.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The evidence fits no other cause.
    Sure,
    /// The evidence fits this cause best.
    Likely,
}

impl Confidence {
    /// The name in JSON and on the terminal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Sure => "sure",
            Confidence::Likely => "likely",
        }
    }
}

/// Shares of the steady part's time, by the sending kernel's timers; they add up to 1.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Nothing to send: 1 - busy.
    pub application: f64,
    /// Limited by the receive window.
    pub receive_window: f64,
    /// Limited by the send buffer.
    pub send_buffer: f64,
    /// Busy and limited by neither: the network or its congestion control.
    pub network: f64,
}

/// The part of a test after its ramp-up.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Its start, in seconds since the test's start.
    pub from_s: f64,
    /// Its end, likewise.
    pub to_s: f64,
}

/// A limit and its posterior probability.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probability {
    /// The limit.
    pub limit: Limit,
    /// Its probability, 0 to 1, given the evidence.
    pub probability: f64,
}

/// A part of a test with one limit.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Its start, in seconds since the test's start.
    pub from_s: f64,
    /// Its end, likewise.
    pub to_s: f64,
    /// The limit.
    pub limit: Limit,
    /// The confidence in it; `None` if the limit is unknown.
    pub confidence: Option<Confidence>,
    /// Goodput over the segment.
    pub throughput_bps: BitRate,
    /// Its share of the lost goodput of all segments, 0 to 1.
    pub lost_share: f64,
    /// Limits with a probability of at least 1 %, the most probable first.
    pub posterior: Vec<Probability>,
}

/// An estimate of the bottleneck's rate, with its 90 % interval.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateEstimate {
    /// The estimate of the payload rate (TCP payload).
    pub rate_bps: BitRate,
    /// The lower end of its interval.
    pub low_bps: BitRate,
    /// The upper end; `None` where the transfer shows a lower bound alone.
    pub high_bps: Option<BitRate>,
}

/// The diagnosis of one measurement.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Goodput (TCP payload received) over the steady part.
    pub throughput_bps: BitRate,
    /// Goodput over the whole test, as iperf3 counts it.
    pub average_bps: BitRate,
    /// The part of the test that `throughput_bps` and `shares` cover.
    pub steady: Steady,
    /// The goodput that the limit's equation predicts; `None` if none applies.
    pub predicted_bps: Option<BitRate>,
    /// The equation behind the prediction, with its numbers.
    pub equation: Option<String>,
    /// The limit; `None` if neither the sender's timers nor the receiver's samples show it.
    pub limit: Option<Limit>,
    /// The confidence in it; `None` if the limit is unknown.
    #[serde(default)]
    pub confidence: Option<Confidence>,
    /// Time by cause; `None` if the sender's timers are unavailable.
    pub shares: Option<Shares>,
    /// Minimum RTT.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    #[serde(rename = "min_rtt_ms", with = "crate::millis::option")]
    pub min_rtt: Option<Rtt>,
    /// Median smoothed RTT over the steady part: minimum RTT plus queueing delay.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    #[serde(rename = "loaded_rtt_ms", with = "crate::millis::option")]
    pub loaded_rtt: Option<Rtt>,
    /// The diagnosis in one sentence.
    pub sentence: String,
    /// Remedies; empty if the path is not known well enough.
    #[serde(default)]
    pub remedies: Vec<Remedy>,
    /// Limits of the costliest segment with a probability of at least 1 %, the most
    /// probable first; empty without samples.
    #[serde(default)]
    pub posterior: Vec<Probability>,
    /// The parts of the test by limit, in the order of time; empty without samples.
    #[serde(default)]
    pub segments: Vec<Segment>,
    /// The bottleneck's rate, estimated from the transfer.
    #[serde(default)]
    pub bottleneck: Option<RateEstimate>,
    /// What the figures behind it cannot show; said before anything else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
    /// The command to run next; `None` in files of earlier versions.
    #[serde(default)]
    pub next: Option<NextCommand>,
}
