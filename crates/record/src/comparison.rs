//! Several tests that ask the same, and two results side by side.

use crate::{Finding, LatencyUnderLoad, Limit, Measurement, TestSpec};
use serde::{Deserialize, Serialize};
use units::BitRate;

/// The version of [`RepeatReport`] in JSON.
pub const REPEAT_SCHEMA: &str = "longhaul.repeat/1";

/// One test, one after the other (`--repeat`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatReport {
    /// [`REPEAT_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that measured.
    pub version: String,
    /// What was asked of each.
    pub spec: TestSpec,
    /// How many were asked for; fewer ran where it was interrupted or failed.
    pub asked: u32,
    /// The tests in their order.
    pub runs: Vec<RunFigures>,
    /// What they come to.
    pub summary: RepeatSummary,
    /// The difference from an earlier result, where one was given.
    #[serde(default)]
    pub comparison: Option<Comparison>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// What is kept of one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// When it began: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// Goodput over the part after the ramp-up.
    pub throughput_bps: BitRate,
    /// Goodput over the whole test.
    pub average_bps: BitRate,
    /// Length of the part after the ramp-up that `blocks_bps` cuts up, in
    /// seconds of each block.
    pub block_s: f64,
    /// Goodput over blocks of equal length of that part.
    pub blocks_bps: Vec<f64>,
    /// Bytes received.
    pub received_bytes: u64,
    /// Segments sent again.
    pub retransmits: Option<u64>,
    /// What limited it.
    pub limit: Option<Limit>,
    /// Least round trip seen.
    pub min_rtt_ms: Option<f64>,
    /// Bytes that passed the interface and were not this test's, by the
    /// interface's counters; `None` where they could not be read.
    pub other_bytes: Option<u64>,
    /// Round trips beside it, where asked for.
    #[serde(default)]
    pub latency: Option<LatencyUnderLoad>,
    /// The verdict in one sentence.
    pub sentence: String,
    /// What was noticed.
    pub notes: Vec<String>,
}

impl RunFigures {
    /// What is kept of a measurement and its finding.
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

/// What several tests come to. A single one has neither spread nor interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatSummary {
    /// Tests that count.
    pub count: u64,
    /// Of their goodputs.
    pub median_bps: Option<f64>,
    /// Of their goodputs.
    pub mean_bps: Option<f64>,
    /// The lowest.
    pub min_bps: Option<f64>,
    /// The highest.
    pub max_bps: Option<f64>,
    /// The true mean lies between these with `confidence`, by Student's t.
    pub mean_low_bps: Option<f64>,
    /// The upper end of it.
    pub mean_high_bps: Option<f64>,
    /// 0.95.
    pub confidence: f64,
    /// Standard deviation over mean.
    pub variation: Option<f64>,
    /// Whether the runs fall into two groups.
    pub two_groups: bool,
    /// What makes the figure doubtful, each in a sentence.
    pub warnings: Vec<String>,
}

/// Two results side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What was compared: `runs` by their goodputs, or `blocks` of time within one.
    pub method: String,
    /// Values of the earlier result.
    pub baseline_count: u64,
    /// Their mean.
    pub baseline_bps: f64,
    /// Values of this one.
    pub count: u64,
    /// Their mean.
    pub now_bps: f64,
    /// Now less baseline.
    pub difference_bps: f64,
    /// That over the baseline.
    pub difference_share: Option<f64>,
    /// The true difference lies between these with `confidence`.
    pub low_bps: Option<f64>,
    /// The upper end of it.
    pub high_bps: Option<f64>,
    /// 0.95.
    pub confidence: f64,
    /// How often chance alone makes a difference as large (Welch's t test).
    pub p: Option<f64>,
    /// Whether the difference is real at that confidence; `None` where too
    /// little was measured to say.
    pub real: Option<bool>,
    /// All that in one sentence.
    pub sentence: String,
}
