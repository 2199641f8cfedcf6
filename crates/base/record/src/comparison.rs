//! Repeated tests, and the comparison of two results.

use crate::{Finding, LatencyUnderLoad, Limit, Measurement, TestSpec};
use serde::{Deserialize, Serialize};
use units::BitRate;

/// The version of [`RepeatReport`] in JSON. Version 2 has the limits of `longhaul.test/2`.
pub const REPEAT_SCHEMA: &str = "longhaul.repeat/2";

/// Repeated runs of one test (`--repeat`).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatReport {
    /// [`REPEAT_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that measured.
    pub version: String,
    /// The request of each run.
    pub spec: TestSpec,
    /// Runs requested; fewer were made if interrupted or failed.
    pub asked: u32,
    /// The runs in order.
    pub runs: Vec<RunFigures>,
    /// Their summary.
    pub summary: RepeatSummary,
    /// The comparison with an earlier result, if one was given.
    #[serde(default)]
    pub comparison: Option<Comparison>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// The figures of one run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// Start time: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// Goodput over the steady part.
    pub throughput_bps: BitRate,
    /// Goodput over the whole test.
    pub average_bps: BitRate,
    /// Length in seconds of each block of `blocks_bps`.
    pub block_s: f64,
    /// Goodput over blocks of equal length of the steady part.
    pub blocks_bps: Vec<f64>,
    /// Bytes received.
    pub received_bytes: u64,
    /// Retransmitted segments.
    pub retransmits: Option<u64>,
    /// The limit.
    pub limit: Option<Limit>,
    /// Minimum RTT.
    pub min_rtt_ms: Option<f64>,
    /// Bytes of other traffic on the interface, by its counters; `None` if they could not
    /// be read.
    pub other_bytes: Option<u64>,
    /// Latency under load, if requested.
    #[serde(default)]
    pub latency: Option<LatencyUnderLoad>,
    /// The diagnosis in one sentence.
    pub sentence: String,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl RunFigures {
    /// The figures of a measurement and its finding.
    #[must_use]
    pub fn of(
        measurement: &Measurement,
        finding: &Finding,
        block_s: f64,
        blocks: Vec<f64>,
    ) -> Self {
        RunFigures {
            started_unix_s: measurement.started_unix_s,
            throughput_bps: finding.throughput_bps,
            average_bps: finding.average_bps,
            block_s,
            blocks_bps: blocks,
            received_bytes: measurement.received().bytes(),
            retransmits: measurement.streams.iter().map(|stream| stream.retransmits).sum(),
            limit: finding.limit,
            min_rtt_ms: finding.min_rtt.map(units::Rtt::millis_f64),
            other_bytes: None,
            latency: measurement.latency.clone(),
            sentence: finding.sentence.clone(),
            notes: measurement.notes.clone(),
        }
    }
}

/// The summary of several runs. A single one has no variation and no interval.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatSummary {
    /// Number of runs.
    pub count: u64,
    /// Median goodput.
    pub median_bps: Option<f64>,
    /// Mean goodput.
    pub mean_bps: Option<f64>,
    /// Minimum goodput.
    pub min_bps: Option<f64>,
    /// Maximum goodput.
    pub max_bps: Option<f64>,
    /// Lower end of the confidence interval of the mean, by Student's t.
    pub mean_low_bps: Option<f64>,
    /// Upper end of it.
    pub mean_high_bps: Option<f64>,
    /// The confidence level: 0.95.
    pub confidence: f64,
    /// Coefficient of variation.
    pub variation: Option<f64>,
    /// Whether the runs fall into two groups.
    pub two_groups: bool,
    /// The limit in which all runs agree; `None` where they differ, or where none is known.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// In how many runs each limit was found, the most frequent first.
    #[serde(default)]
    pub limits: Vec<LimitCount>,
    /// The limit over all runs in words; empty in files of earlier versions.
    #[serde(default)]
    pub limit_sentence: String,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

/// The number of runs with a limit.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitCount {
    /// The limit; [`Limit::Unknown`] where the evidence shows none.
    pub limit: Limit,
    /// Runs.
    pub runs: u64,
}

/// The comparison of two results.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What was compared: the goodput of `runs`, or of `blocks` within runs.
    pub method: String,
    /// Number of values of the earlier result.
    pub baseline_count: u64,
    /// Their mean.
    pub baseline_bps: f64,
    /// Number of values of the present one.
    pub count: u64,
    /// Their mean.
    pub now_bps: f64,
    /// The present mean less the baseline mean.
    pub difference_bps: f64,
    /// That over the baseline mean.
    pub difference_share: Option<f64>,
    /// Lower end of the confidence interval of the difference.
    pub low_bps: Option<f64>,
    /// Upper end of it.
    pub high_bps: Option<f64>,
    /// The confidence level: 0.95.
    pub confidence: f64,
    /// The p-value of Welch's t-test.
    pub p: Option<f64>,
    /// Whether the difference is significant at that confidence; `None` with too few
    /// values.
    pub real: Option<bool>,
    /// The result in one sentence.
    pub sentence: String,
}
