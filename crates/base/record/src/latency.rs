//! RTTs before, during and after a load.

use serde::{Deserialize, Serialize};

/// RTTs of separate probe flows beside a transfer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyUnderLoad {
    /// The probe: `icmp`, or `tcp` for TCP handshakes.
    pub method: String,
    /// The TCP port; `None` for ICMP.
    pub port: Option<u16>,
    /// Probe interval.
    pub interval_ms: f64,
    /// Before the load.
    pub before: LatencyPhase,
    /// Under load, without the warm-up.
    pub during: LatencyPhase,
    /// After the load, once all data has arrived.
    pub after: LatencyPhase,
    /// The mean under load less the mean before it.
    pub rise_ms: Option<f64>,
    /// Its bufferbloat grade after DSLReports, A+ to F; theirs is the mean of download
    /// and upload, this one is for the test's own direction.
    pub grade: Option<String>,
    /// 60 000 over the mean of the TCP handshake RTTs under load in ms, without the
    /// longest 5 %: the handshake part of the responsiveness (RPM) of
    /// draft-ietf-ippm-responsiveness-09. `None` with too few replies.
    pub rpm_tcp: Option<f64>,
    /// Its rating: poor, fair, good, excellent.
    pub rpm_word: Option<String>,
    /// The TCP port of those handshakes.
    pub rpm_port: Option<u16>,
    /// The number of those handshakes.
    pub rpm_count: u64,
    /// The probes, in sending order.
    pub probes: Vec<LatencyProbe>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// One phase. Without replies it has no figures.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyPhase {
    /// Probes sent.
    pub count: u64,
    /// Probes without a reply.
    pub lost: u64,
    /// Minimum RTT.
    pub min_ms: Option<f64>,
    /// Mean RTT.
    pub mean_ms: Option<f64>,
    /// Median RTT, by nearest rank.
    pub p50_ms: Option<f64>,
    /// 90th percentile, likewise.
    pub p90_ms: Option<f64>,
    /// 95th percentile, likewise.
    pub p95_ms: Option<f64>,
    /// 99th percentile, likewise.
    pub p99_ms: Option<f64>,
    /// Maximum RTT.
    pub max_ms: Option<f64>,
}

/// One probe.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyProbe {
    /// Sending time in seconds since the load began; negative before it.
    pub at_s: f64,
    /// The RTT; `None` without a reply.
    pub rtt_ms: Option<f64>,
}
