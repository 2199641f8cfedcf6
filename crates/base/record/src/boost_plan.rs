//! The options that would accelerate a transfer, each with its predicted goodput. What
//! `longhaul boost plan --json` prints.

use crate::{Confidence, Limit};
use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount, LossRatio};

/// The version of [`BoostPlan`] in JSON.
pub const BOOST_PLAN_SCHEMA: &str = "longhaul.boost-plan/1";

/// The ratio of predicted to present goodput from which an option is worth its price.
pub const BOOST_WORTH: f64 = 1.05;

/// What the path of a plan is known from.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostSource {
    /// A path in the syntax of `--link`.
    Link(String),
    /// A file.
    File(String),
    /// A test to a server.
    Host(String),
}

/// A value and its interval.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PredictionInterval<T> {
    /// The value.
    pub expected: T,
    /// The lower end.
    pub low: T,
    /// The upper end.
    pub high: T,
}

/// A way to accelerate a transfer, the cheapest first.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostKind {
    /// Nothing: the transfer as it is.
    Nothing,
    /// Settings of the sending host for this destination alone: congestion control and initial
    /// windows of a route.
    Route,
    /// More parallel connections, by an option of the program.
    Streams,
    /// Another program: `longhaul copy`, over UDP.
    Copy,
    /// A pair of boxes that splits TCP.
    Pair,
    /// The same with compression between the boxes.
    CompressedPair,
    /// A cache near the clients.
    Edge,
}

impl BoostKind {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BoostKind::Nothing => "nothing",
            BoostKind::Route => "route settings",
            BoostKind::Streams => "more streams",
            BoostKind::Copy => "copy (UDP)",
            BoostKind::Pair => "pair",
            BoostKind::CompressedPair => "pair, zstd",
            BoostKind::Edge => "edge cache",
        }
    }
}

/// Why an option brings no gain, or why none is predicted.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostReason {
    /// It is the present state.
    AsItIs,
    /// The sender uses BBR already, with buffers that hold the path.
    AlreadyBbr,
    /// The bottleneck is saturated.
    LineFull,
    /// Other traffic shares the saturated bottleneck.
    Shared,
    /// A policer or a shaper limits the rate.
    Policed,
    /// The sending application, or its disk.
    Application,
    /// The receiving application reads too slowly.
    Receiver,
    /// A window of the program's own, such as SFTP's requests in flight.
    ProgramWindow,
    /// The sender paces, by request.
    Pacing,
    /// A core of one of the hosts.
    Cpu,
    /// The data is encrypted, and does not compress.
    Ciphertext,
    /// No metric of a route raises a window or a buffer.
    WindowRemains,
    /// The congestion control is not what limits.
    NotCongestion,
    /// There are as many connections as programs open already.
    Parallel,
    /// The network between hosts and boxes would be the limit.
    Lan,
    /// The boxes' CPUs would be the limit.
    BoxCpu,
    /// The CPUs of the hosts would be the limit.
    HostCpu,
    /// The largest window of TCP would be the limit (RFC 7323, section 2.3).
    LargestWindow,
    /// Loss limits the congestion control, and no other one has an equation at this loss.
    Loss,
    /// The edge is not nearer to the clients than the origin.
    Farther,
    /// No prediction: the test used UDP.
    NotTcp,
    /// No prediction: the bottleneck's rate is unknown.
    RateUnknown,
    /// No prediction: the RTT is unknown.
    RttUnknown,
    /// No prediction: the limit of the transfer is unknown.
    LimitUnknown,
    /// No prediction: the transfer ended while its window still grew.
    TooShort,
    /// No prediction: the path itself fails or changes.
    PathFault,
    /// No prediction: no equation covers the case.
    NoModel,
}

impl BoostReason {
    /// Returns true where nothing is predicted; otherwise there is no gain.
    #[must_use]
    pub const fn is_unpredicted(self) -> bool {
        matches!(
            self,
            BoostReason::NotTcp
                | BoostReason::RateUnknown
                | BoostReason::RttUnknown
                | BoostReason::LimitUnknown
                | BoostReason::TooShort
                | BoostReason::PathFault
                | BoostReason::NoModel
        )
    }

    /// The reason as a clause.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            BoostReason::AsItIs => "the transfer as it is",
            BoostReason::AlreadyBbr => "already BBR with buffers that hold the path",
            BoostReason::LineFull => "the bottleneck is saturated already",
            BoostReason::Shared => {
                "the bottleneck is saturated and shared; a larger share would be taken from others"
            }
            BoostReason::Policed => "a policer limits the rate, whoever sends",
            BoostReason::Application => {
                "the sending application or its disk is the limit; use a faster source"
            }
            BoostReason::Receiver => {
                "the receiving application reads too slowly; make it read faster"
            }
            BoostReason::ProgramWindow => {
                "the program waits for its own window (SFTP: 64 requests of 32 KiB per RTT), which \
                 splitting TCP does not change"
            }
            BoostReason::Pacing => "the sender paces at a requested rate; raise it",
            BoostReason::Cpu => "a core of one of the hosts is the limit",
            BoostReason::NotTcp => {
                "no prediction: a test over UDP shows nothing of TCP, and no pair splits UDP"
            }
            BoostReason::Ciphertext => "encrypted data does not compress; as the pair alone",
            BoostReason::WindowRemains => {
                "a window or a buffer is the limit, and no metric of a route raises one: longhaul \
                 tune plan for that host's sysctls does"
            }
            BoostReason::NotCongestion => "the congestion control is not the limit",
            BoostReason::Parallel => "the transfer has as many connections as programs open",
            BoostReason::Lan => "the network between hosts and boxes would be the limit",
            BoostReason::BoxCpu => "the CPUs of the boxes would be the limit",
            BoostReason::HostCpu => "the CPUs of the hosts would be the limit",
            BoostReason::LargestWindow => {
                "TCP's largest window, 1 GiB for each connection, would be the limit"
            }
            BoostReason::Loss => {
                "loss limits the congestion control, and no other one has an equation at this loss"
            }
            BoostReason::Farther => "the edge is not nearer to the clients than the origin",
            BoostReason::RateUnknown => {
                "no prediction: the transfer does not show the bottleneck's rate; name it"
            }
            BoostReason::RttUnknown => "no prediction: the RTT is unknown",
            BoostReason::LimitUnknown => "no prediction: the limit of the transfer is unknown",
            BoostReason::TooShort => {
                "no prediction: the transfer ended while its window still grew; measure for longer"
            }
            BoostReason::PathFault => {
                "no prediction: the path loses, reorders or changes in a way that no option mends"
            }
            BoostReason::NoModel => "no prediction: no equation covers this case",
        }
    }
}

/// The send buffer of each connection.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoostSendBuffer {
    /// Its size: the third value of `tcp_wmem`.
    pub bytes: ByteCount,
    /// True if the source does not show it, and it is Linux's default.
    pub is_assumed: bool,
}

/// The path that predictions are made for.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostPath {
    /// The bottleneck's rate in TCP payload; `None` if unknown.
    pub rate_bps: Option<PredictionInterval<BitRate>>,
    /// The RTT, in ms; `None` if unknown.
    pub rtt_ms: Option<PredictionInterval<f64>>,
    /// Random loss, 0 to 1; `None` if unknown.
    pub loss: Option<PredictionInterval<LossRatio>>,
    /// The congestion control, as far as known.
    pub congestion: Option<String>,
    /// The window that limits each connection; `None` if none does.
    pub window_bytes: Option<ByteCount>,
    /// The send buffer, where it is smaller than the path's BDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<BoostSendBuffer>,
    /// What the program keeps in flight on each connection, if that limits it.
    pub program_window_bytes: Option<ByteCount>,
    /// Parallel connections.
    pub streams: u32,
}

/// The time of one object.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoostObject {
    /// Its size.
    pub bytes: ByteCount,
    /// Its time over the path, s.
    pub now_s: f64,
    /// Its time with the option, s.
    pub then_s: f64,
}

/// An option, with its prediction.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostOption {
    /// The option.
    pub kind: BoostKind,
    /// The predicted goodput; `None` without a prediction. Of an edge that of one object.
    pub goodput_bps: Option<PredictionInterval<BitRate>>,
    /// Its ratio to the present goodput, with the interval.
    pub factor: Option<PredictionInterval<f64>>,
    /// Of an edge, the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<BoostObject>,
    /// Why there is no gain or no prediction.
    pub reason: Option<BoostReason>,
    /// The send buffer that a connection needs to fill the path, where the present one is the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_send_buffer: Option<ByteCount>,
    /// What the option is, and what it needs.
    pub about: String,
    /// Commands to paste.
    pub commands: Vec<String>,
}

/// A program that keeps a window of its own in flight, whatever TCP does.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoostProgram {
    /// Names of the programs with this window.
    pub name: String,
    /// The window, on each connection.
    pub window_bytes: ByteCount,
    /// The most that one connection carries: the window in each RTT.
    pub goodput_bps: BitRate,
    /// True if that is less than the path's rate.
    pub limits: bool,
}

/// A transfer, and the options for it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostTransfer {
    /// Its name in the file; empty where there is one.
    pub name: String,
    /// What limits it; `None` for a path, and where it is not known.
    pub limit: Option<Limit>,
    /// The confidence in that.
    pub confidence: Option<Confidence>,
    /// The diagnosis in one sentence; `None` for a path.
    pub finding: Option<String>,
    /// The path.
    pub path: BoostPath,
    /// The options, the cheapest first.
    pub options: Vec<BoostOption>,
    /// The cheapest option within a tenth of the best one; `None` if none brings a gain.
    pub recommended: Option<BoostKind>,
    /// Well-known programs with windows of their own; empty for an unknown path.
    #[serde(default)]
    pub programs: Vec<BoostProgram>,
}

/// Shares of the bytes of a capture that no pair accelerates, 0 to 1.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrafficShares {
    /// Bytes of all TCP and UDP conversations, headers included.
    pub bytes: ByteCount,
    /// TCP.
    pub tcp: f64,
    /// UDP from or to port 443, which is QUIC (HTTP/3).
    pub quic: f64,
    /// Other UDP.
    pub other_udp: f64,
    /// TCP of several connections between the same two hosts at the same time.
    pub parallel_tcp: f64,
    /// TCP from or to a port of TLS or SSH, which does not compress.
    pub encrypted_tcp: f64,
}

/// The options for the transfers over a path.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostPlan {
    /// [`BOOST_PLAN_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that predicted.
    pub version: String,
    /// What the path is known from.
    pub source: BoostSource,
    /// The transfers, the largest first; empty for a capture without TCP.
    pub transfers: Vec<BoostTransfer>,
    /// Of a capture, the bytes that cannot be accelerated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficShares>,
    /// Remarks.
    pub notes: Vec<String>,
}
