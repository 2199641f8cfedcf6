//! Congestion controls compared over a path in virtual time. What `longhaul sim advise --json`
//! prints.

use crate::NextCommand;
use serde::{Deserialize, Serialize};

/// The version of [`SimAdvice`] in JSON.
pub const SIM_ADVICE_SCHEMA: &str = "longhaul.sim-advice/1";

/// Median and range of several runs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRange {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl RunRange {
    /// Whether the two have a value in common.
    #[must_use]
    pub fn overlaps(&self, other: &RunRange) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// One congestion control over the path.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdvisedControl {
    /// Its name in Linux.
    pub control: String,
    /// Goodput of a single flow, bit/s.
    pub goodput_bps: RunRange,
    /// Queueing delay of that flow, in ms: the 95th percentile of its smoothed RTT, less the RTT of
    /// the idle path.
    pub queueing_ms: RunRange,
    /// Retransmitted segments, as a share of the packets sent.
    pub retransmitted: RunRange,
    /// Its goodput beside a CUBIC flow, bit/s.
    pub beside_cubic_bps: RunRange,
    /// Harm to that CUBIC flow: the share of its solo goodput that it loses (Ware, Mukerjee, Seshan
    /// and Sherry 2019, section 4).
    pub harm: RunRange,
}

/// Congestion controls compared over a path.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimAdvice {
    /// [`SIM_ADVICE_SCHEMA`].
    pub schema: String,
    /// The version of Longhaul.
    pub version: String,
    /// The path, in the syntax of `--link`.
    pub link: String,
    /// The duration of each run, s.
    pub seconds: f64,
    /// The seeds of the runs.
    pub seeds: Vec<u64>,
    /// Data packets of all runs.
    pub packets: u64,
    /// The controls.
    pub controls: Vec<AdvisedControl>,
    /// The control that the path is best used with; `None`: no clear winner.
    pub best: Option<String>,
    /// The answer, with its reason, in one sentence.
    pub sentence: String,
    /// What it costs neighbours, in one sentence.
    pub price: String,
    /// The setting that applies it; `None` without a winner.
    pub setting: Option<String>,
    /// Remarks: what the runs do not cover, what a kernel may lack.
    pub notes: Vec<String>,
    /// The command to run next.
    pub next: Option<NextCommand>,
}
