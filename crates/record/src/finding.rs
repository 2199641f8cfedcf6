//! What limited a transfer, in numbers and one sentence.

use crate::Remedy;
use serde::{Deserialize, Serialize};
use units::{BitRate, Rtt};

/// The one thing that held the transfer back most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The window the receiver advertised.
    ReceiveWindow,
    /// The sender's socket buffer.
    SendBuffer,
    /// The sending program wrote less than the path carries.
    Application,
    /// The congestion window, without random loss and without a full bottleneck.
    Congestion,
    /// Random loss keeps the congestion window small.
    Loss,
    /// The bottleneck is full.
    PathRate,
    /// A policer drops what is over its rate.
    Policer,
    /// The sender paces itself below the path's rate.
    Pacing,
    /// A sending or receiving thread used up its core.
    Cpu,
    /// The transfer ended before it was at speed.
    Ramp,
    /// The evidence does not tell.
    Unknown,
}

impl Limit {
    /// The name in JSON and on the terminal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Limit::ReceiveWindow => "receive-window",
            Limit::SendBuffer => "send-buffer",
            Limit::Application => "application",
            Limit::Congestion => "congestion",
            Limit::Loss => "loss",
            Limit::PathRate => "path-rate",
            Limit::Policer => "policer",
            Limit::Pacing => "pacing",
            Limit::Cpu => "cpu",
            Limit::Ramp => "ramp",
            Limit::Unknown => "unknown",
        }
    }
}

/// How far a limit is to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The evidence is far from any other cause's.
    Sure,
    /// It fits this cause best.
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

/// Shares of the steady part's time by the sending kernel's own clock; they add up to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Nothing to send: 1 - busy.
    pub application: f64,
    /// Held by the receiver's window.
    pub receive_window: f64,
    /// Held by the send buffer.
    pub send_buffer: f64,
    /// Busy and held by neither: the network or its congestion control.
    pub network: f64,
}

/// The part of a test after its ramp-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Where it begins, in seconds since the test's start.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
}

/// The verdict on one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Goodput (TCP payload received) over the steady part.
    pub throughput_bps: BitRate,
    /// Goodput over the whole test, as iperf3 counts it.
    pub average_bps: BitRate,
    /// The part of the test that `throughput_bps` and `shares` speak of.
    pub steady: Steady,
    /// The goodput the equation of the limit gives; `None` where no equation applies.
    pub predicted_bps: Option<BitRate>,
    /// The equation behind the prediction, with its numbers and the payload it means.
    pub equation: Option<String>,
    /// What limited it; `None` where neither the sender's clocks nor the receiver tell.
    pub limit: Option<Limit>,
    /// How sure that is; `None` where the limit is unknown.
    #[serde(default)]
    pub confidence: Option<Confidence>,
    /// Time by cause; `None` where the sender's clocks cannot be had.
    pub shares: Option<Shares>,
    /// Least round trip seen.
    #[serde(rename = "min_rtt_ms", with = "crate::millis::option")]
    pub min_rtt: Option<Rtt>,
    /// Median smoothed round trip over the steady part: what queues added shows here.
    #[serde(rename = "loaded_rtt_ms", with = "crate::millis::option")]
    pub loaded_rtt: Option<Rtt>,
    /// The verdict in one sentence.
    pub sentence: String,
    /// What would help, where the path is known well enough to say.
    #[serde(default)]
    pub remedies: Vec<Remedy>,
}
