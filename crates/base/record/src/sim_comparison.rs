//! A simulation beside the same flows under a kernel, in a lab. What `longhaul sim compare --json`
//! prints.

use serde::{Deserialize, Serialize};
use units::BitRate;

/// The version of [`SimComparison`] in JSON.
pub const SIM_COMPARISON_SCHEMA: &str = "longhaul.sim-comparison/1";

/// The figures of one run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimRunFigures {
    /// The seed of the path's random numbers.
    pub seed: u64,
    /// Payload of all flows over the whole time.
    pub all_bps: BitRate,
    /// Goodput of each flow of the request, in its order, over its own time.
    pub goodput_bps: Vec<BitRate>,
    /// Retransmitted segments of all flows.
    pub retransmits: u64,
    /// Median of the smoothed RTT of all flows, in ms.
    pub rtt_median_ms: Option<f64>,
    /// Why the run does not count; empty for a valid one.
    pub not_valid: Vec<String>,
}

/// A figure under both.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimAgreement {
    /// The figure: `goodput`, `goodput of bbr`, `retransmits`, `median RTT`.
    pub figure: String,
    /// Its unit: `bit/s`, `ms`, or none for a count.
    pub unit: String,
    /// Median of the simulated runs.
    pub simulated: f64,
    /// Median of the valid runs in the lab.
    pub lab: f64,
    /// The geometric mean of the ratios of simulated to lab; `None` where a run has zero.
    pub ratio: Option<f64>,
    /// The 95 % confidence interval of the ratio (Student's t, of the logarithms); `None` below two
    /// pairs.
    pub interval: Option<[f64; 2]>,
}

/// What the runs show.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SimVerdict {
    /// The interval of the goodput's ratio is within the tolerance.
    Agrees,
    /// It is outside.
    Differs,
    /// It is partly within, or too few runs in the lab were valid.
    CannotTell,
}

/// A simulation beside the same flows in a lab.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimComparison {
    /// [`SIM_COMPARISON_SCHEMA`].
    pub schema: String,
    /// The version of Longhaul.
    pub version: String,
    /// The path, in the syntax of `--link`.
    pub link: String,
    /// The flows, as requested.
    pub flows: Vec<String>,
    /// The kernel of the lab.
    pub kernel: String,
    /// The duration of each run, s.
    pub seconds: f64,
    /// The simulated runs.
    pub simulated: Vec<SimRunFigures>,
    /// The runs in the lab, each after the simulated one with its seed.
    pub lab: Vec<SimRunFigures>,
    /// The figures; the first is the goodput of all flows. Empty without a valid pair of runs.
    pub figures: Vec<SimAgreement>,
    /// The tolerance of the verdict, as a share: 0.1.
    pub tolerance: f64,
    /// The verdict on the goodput of all flows.
    pub verdict: SimVerdict,
    /// The verdict in one sentence.
    pub sentence: String,
}
