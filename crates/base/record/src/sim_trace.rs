//! What a simulation shows every 100 ms beside its measurement: the state of every sender, and the
//! bottleneck's queue.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The state of a sender within an interval: repairing a loss if it was at any time, else that at
/// the interval's end. Those of Linux's `tcp_ca_state`, with slow start told apart (RFC 5681, section
/// 3.1), and of BBR (draft-ietf-ccwg-bbr, section 4.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SenderState {
    /// Slow start.
    #[default]
    SlowStart,
    /// BBR's Startup.
    Startup,
    /// Congestion avoidance.
    CongestionAvoidance,
    /// BBR's Drain.
    Drain,
    /// BBR's ProbeBW.
    ProbeBandwidth,
    /// BBR's ProbeRTT.
    ProbeRtt,
    /// Fast recovery, or a reduction by ECN marks. BBR has its own state instead.
    Recovery,
    /// A retransmission timeout.
    Loss,
}

impl SenderState {
    /// All states, from the one that says least to the one that says most.
    pub const ALL: [SenderState; 8] = [
        SenderState::CongestionAvoidance,
        SenderState::ProbeBandwidth,
        SenderState::SlowStart,
        SenderState::Startup,
        SenderState::Drain,
        SenderState::ProbeRtt,
        SenderState::Recovery,
        SenderState::Loss,
    ];

    /// The name on pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SenderState::SlowStart => "slow start",
            SenderState::Startup => "startup",
            SenderState::CongestionAvoidance => "congestion avoidance",
            SenderState::Drain => "drain",
            SenderState::ProbeBandwidth => "probe bandwidth",
            SenderState::ProbeRtt => "probe RTT",
            SenderState::Recovery => "recovery",
            SenderState::Loss => "loss (timeout)",
        }
    }

    /// Whether a sender is in it most of the time.
    #[must_use]
    pub const fn is_usual(self) -> bool {
        matches!(self, SenderState::CongestionAvoidance | SenderState::ProbeBandwidth)
    }
}

/// One interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimMoment {
    /// Its end, in ms since the start.
    pub to_ms: u64,
    /// Bytes in the bottleneck's queue at its end.
    pub queue_bytes: u64,
    /// The time in which the link sends them, at its rate then; `None` where it has no rate.
    pub queue_time: Option<Duration>,
    /// The state of each flow's sender, in the order of the measurement's streams.
    pub states: Vec<SenderState>,
}
