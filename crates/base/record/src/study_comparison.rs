//! The statistics of the difference between two studies.

use serde::{Deserialize, Serialize};

/// The version of [`StudyComparison`] in JSON.
pub const STUDY_COMPARISON_SCHEMA: &str = "longhaul.study-comparison/1";

/// Two studies, cell by cell: those with the same values of the same factors.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyComparison {
    /// [`STUDY_COMPARISON_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that compared.
    pub version: String,
    /// The studies' names.
    pub names: [String; 2],
    /// Fixed settings that differ, each with both values; empty where one has none.
    pub differing: Vec<DifferingSetting>,
    /// The confidence level of intervals: 0.95.
    pub confidence: f64,
    /// Cells with valid runs in both studies.
    pub cells: Vec<ComparedCell>,
    /// Cells with valid runs in one of them only.
    pub unmatched: u64,
    /// Cells whose difference is significant.
    pub significant: u64,
    /// The geometric mean over the cells of the second study's goodput over the first one's;
    /// `None` unless the cells have the same factors and changed alike.
    pub ratio: Option<f64>,
    /// Lower end of its confidence interval (Student's t, over the cells' logarithms); `None`
    /// below two cells.
    pub ratio_low: Option<f64>,
    /// Its upper end.
    pub ratio_high: Option<f64>,
    /// Why there is no `ratio`.
    #[serde(default)]
    pub no_ratio: Option<String>,
    /// The result in a sentence.
    pub sentence: String,
}

/// A fixed setting that differs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferingSetting {
    /// The plan's part; empty in a study of one plan.
    pub part: String,
    /// The setting.
    pub name: String,
    /// Its values.
    pub values: [String; 2],
}

/// A cell of both studies.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedCell {
    /// The plan's part; empty in a study of one plan.
    pub part: String,
    /// The values of its factors, such as `window=64KiB streams=2`.
    pub label: String,
    /// Valid runs of each study.
    pub runs: [u32; 2],
    /// The mean goodput of each, in bit/s.
    pub goodput_bps: [f64; 2],
    /// The second less the first, in bit/s.
    pub difference_bps: f64,
    /// Lower end of its confidence interval (Welch); `None` unless both have two runs or more.
    pub low_bps: Option<f64>,
    /// Its upper end.
    pub high_bps: Option<f64>,
    /// The geometric mean of the second study's goodputs over that of the first one's; `None` if
    /// nothing arrived in a run.
    #[serde(default)]
    pub ratio: Option<f64>,
    /// Lower end of its confidence interval (Welch, of the logarithms), likewise.
    #[serde(default)]
    pub ratio_low: Option<f64>,
    /// Its upper end.
    #[serde(default)]
    pub ratio_high: Option<f64>,
    /// The p-value of Welch's t-test.
    pub p: Option<f64>,
    /// Whether the difference is significant, all cells considered (Holm 1979).
    pub significant: Option<bool>,
}
