//! The result of the closed loop: before, plan, after.

use crate::{Finding, PathReport};
use serde::{Deserialize, Serialize};

/// The version of [`LoopReport`] in JSON. Version 2 has the findings of `longhaul.test/2`.
pub const LOOP_SCHEMA: &str = "longhaul.loop/2";

/// One setting to change on one host.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanItem {
    /// The host: `client` (the sender in the demo) or `server`.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopReport {
    /// [`LOOP_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that ran it.
    pub version: String,
    /// The path, requested and achieved.
    pub path: PathReport,
    /// The transfer before tuning.
    pub before: Finding,
    /// The same transfer with the plan applied.
    pub after: Finding,
    /// The applied changes.
    pub plan: Vec<PlanItem>,
    /// `after.throughput_bps / before.throughput_bps`.
    pub gain: f64,
}
