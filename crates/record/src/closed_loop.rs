//! The loop's own result: before, plan, after.

use crate::{Finding, PathReport};
use serde::{Deserialize, Serialize};

/// The version of [`LoopReport`] in JSON.
pub const LOOP_SCHEMA: &str = "longhaul.loop/1";

/// One setting to change on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanItem {
    /// Which host: `client` (sends, in the demo) or `server`.
    pub host: String,
    /// The sysctl, with dots: `net.ipv4.tcp_rmem`.
    pub key: String,
    /// Its value now.
    pub from: String,
    /// The value to set.
    pub to: String,
    /// Why, with the numbers it was computed from.
    pub why: String,
}

/// Measure, explain, tune, measure again: what `longhaul demo --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopReport {
    /// [`LOOP_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that ran it.
    pub version: String,
    /// The path, asked and achieved.
    pub path: PathReport,
    /// The transfer with the hosts as they were.
    pub before: Finding,
    /// The same transfer after the plan.
    pub after: Finding,
    /// What was changed in between.
    pub plan: Vec<PlanItem>,
    /// `after.throughput_bps / before.throughput_bps`.
    pub gain: f64,
}
