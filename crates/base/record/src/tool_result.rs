//! A measurement that another tool made: its source, and what that does not say.

use serde::{Deserialize, Serialize};

/// The result of another tool, of which a measurement was made.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The tool and its version, as the file names them: `iperf3 3.12`.
    pub tool: String,
    /// The transfer in the file: `download`, or a connection's two ends; empty where the
    /// file has one transfer.
    pub transfer: String,
    /// What the file does not say.
    pub unavailable: Vec<Unavailable>,
    /// The test that would reveal more, as a command to paste; names taken from the file are
    /// quoted for a shell.
    pub next_test: String,
}

/// A figure that a tool does not report.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unavailable {
    /// Time limited by the receive window, by the send buffer, and with nothing to send.
    SenderTimers,
    /// Bytes waiting in the send buffer, and whether the application had none.
    Unsent,
    /// The window that the receiver advertises.
    ReceiveWindow,
    /// The congestion window.
    CongestionWindow,
    /// Bytes in flight.
    InFlight,
    /// The RTT under load.
    Rtt,
    /// The RTT without load.
    IdleRtt,
    /// Retransmitted segments.
    Retransmissions,
    /// The congestion control in use.
    CongestionControl,
    /// What arrived: the bytes are those that the sender wrote.
    Received,
    /// Whether a rate was requested (`-b`).
    RequestedRate,
    /// Times of the samples.
    Times,
    /// What was before the sample: there is one alone.
    Series,
}

impl Unavailable {
    /// Every figure, in the order of their declaration.
    pub const ALL: [Unavailable; 13] = [
        Unavailable::SenderTimers,
        Unavailable::Unsent,
        Unavailable::ReceiveWindow,
        Unavailable::CongestionWindow,
        Unavailable::InFlight,
        Unavailable::Rtt,
        Unavailable::IdleRtt,
        Unavailable::Retransmissions,
        Unavailable::CongestionControl,
        Unavailable::Received,
        Unavailable::RequestedRate,
        Unavailable::Times,
        Unavailable::Series,
    ];

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Unavailable::SenderTimers => "sender-timers",
            Unavailable::Unsent => "unsent",
            Unavailable::ReceiveWindow => "receive-window",
            Unavailable::CongestionWindow => "congestion-window",
            Unavailable::InFlight => "in-flight",
            Unavailable::Rtt => "rtt",
            Unavailable::IdleRtt => "idle-rtt",
            Unavailable::Retransmissions => "retransmissions",
            Unavailable::CongestionControl => "congestion-control",
            Unavailable::Received => "received",
            Unavailable::RequestedRate => "requested-rate",
            Unavailable::Times => "times",
            Unavailable::Series => "series",
        }
    }

    /// What is missing, and what is used instead.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Unavailable::SenderTimers => "the sender's timers (rwnd-limited, sndbuf-limited, idle)",
            Unavailable::Unsent => "the send buffer's contents",
            Unavailable::ReceiveWindow => "the receiver's window",
            Unavailable::CongestionWindow => "the congestion window",
            Unavailable::InFlight => "bytes in flight (estimated: rate x RTT)",
            Unavailable::Rtt => "the RTT under load",
            Unavailable::IdleRtt => "the RTT without load (used: the least in the file, if any)",
            Unavailable::Retransmissions => "retransmissions",
            Unavailable::CongestionControl => "the congestion control",
            Unavailable::Received => "received bytes (used: bytes written by the sender)",
            Unavailable::RequestedRate => "whether a rate was requested (-b)",
            Unavailable::Times => "times of the samples (used: the growth of the busy timer)",
            Unavailable::Series => "earlier samples (used: totals since the connection began)",
        }
    }
}
