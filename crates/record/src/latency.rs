//! How long round trips took before, during and after a load.

use serde::{Deserialize, Serialize};

/// Round trips beside a transfer, on flows of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyUnderLoad {
    /// What was sent: `icmp`, or `tcp` for TCP connects.
    pub method: String,
    /// TCP's port; `None` for ICMP echoes.
    pub port: Option<u16>,
    /// Time between probes.
    pub interval_ms: f64,
    /// Without load, right before it.
    pub before: LatencyPhase,
    /// From the test's start to its end, the warm-up left out.
    pub during: LatencyPhase,
    /// Without load, once the results were there.
    pub after: LatencyPhase,
    /// The mean during the load less the mean before it.
    pub rise_ms: Option<f64>,
    /// Its grade after DSLReports, from A+ to F; they take the mean of the
    /// rise under download and upload, and this is the test's own direction.
    pub grade: Option<String>,
    /// 60 000 over the mean of the loaded TCP round trips in ms, the longest
    /// 5 % left out: the part of connecting in the responsiveness of
    /// draft-ietf-ippm-responsiveness-09. `None` where too few were answered.
    pub rpm_tcp: Option<f64>,
    /// That in a word: poor, fair, good, excellent.
    pub rpm_word: Option<String>,
    /// The port that was connected to for it.
    pub rpm_port: Option<u16>,
    /// Connects that counted for it.
    pub rpm_count: u64,
    /// Each probe, in the order they were sent.
    pub probes: Vec<LatencyProbe>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// One part of the time. What nothing answered has no figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyPhase {
    /// Probes sent.
    pub count: u64,
    /// Those without an answer.
    pub lost: u64,
    /// The shortest round trip.
    pub min_ms: Option<f64>,
    /// Their mean.
    pub mean_ms: Option<f64>,
    /// Half took no longer, by nearest rank.
    pub p50_ms: Option<f64>,
    /// 90 % did not.
    pub p90_ms: Option<f64>,
    /// 95 % did not.
    pub p95_ms: Option<f64>,
    /// 99 % did not.
    pub p99_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
}

/// One probe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyProbe {
    /// When it was sent, in seconds since the load began; negative before it.
    pub at_s: f64,
    /// The round trip; `None` where nothing answered.
    pub rtt_ms: Option<f64>,
}
