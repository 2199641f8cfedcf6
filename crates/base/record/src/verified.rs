//! A host tuned in measured steps: what `longhaul tune verify --json` prints.

use crate::{
    Comparison, Direction, Finding, PlannedSetting, RepeatSummary, RevertedSetting, RunFigures,
    Written,
};
use serde::{Deserialize, Serialize};
use units::{BitRate, Rtt};

/// The version of [`VerifyReport`] in JSON. Version 2 has the findings of `longhaul.test/2`.
pub const VERIFY_SCHEMA: &str = "longhaul.verify/2";

/// The tuning target, and the source of each value.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyGoal {
    /// The bottleneck rate.
    pub rate_bps: BitRate,
    /// `asked`, or the interface with that speed.
    pub rate_from: String,
    /// The RTT without queueing delay.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    #[serde(rename = "rtt_ms", with = "crate::millis")]
    pub rtt: Rtt,
    /// `asked` or `measured`.
    pub rtt_from: String,
}

/// The result of a step.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepVerdict {
    /// It helped and stays applied.
    Kept,
    /// It did not help significantly and was reverted.
    RolledBack,
    /// Not tried: none of its settings could be changed or affects these tests.
    Skipped,
    /// It was interrupted and reverted.
    Interrupted,
    /// It could not be fully reverted; the journal has the earlier values.
    Stuck,
}

/// One direction of a step, tested alternately without and with it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepDirection {
    /// The direction of the data.
    pub direction: Direction,
    /// Runs without the step.
    pub before: Vec<RunFigures>,
    /// Their summary.
    pub before_summary: RepeatSummary,
    /// Runs with the step.
    pub after: Vec<RunFigures>,
    /// Their summary.
    pub after_summary: RepeatSummary,
    /// The comparison of both.
    pub comparison: Comparison,
    /// The goodput predicted with the step; `None` without a prediction.
    pub predicted_bps: Option<BitRate>,
    /// How that was computed, or why there is no prediction.
    pub prediction: String,
    /// The gain measured over the gain predicted.
    pub of_predicted_gain: Option<f64>,
}

/// Settings that are tried together.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifyStep {
    /// Their subject.
    pub name: String,
    /// The settings as planned.
    pub settings: Vec<PlannedSetting>,
    /// The values read back when they were last set.
    pub written: Vec<Written>,
    /// Settings not reverted, if the verdict is [`StepVerdict::Stuck`].
    #[serde(rename = "not_put_back")]
    pub not_reverted: Vec<RevertedSetting>,
    /// The directions measured.
    #[serde(rename = "ways")]
    pub directions: Vec<StepDirection>,
    /// Its result.
    pub verdict: StepVerdict,
    /// The reason, in one sentence.
    pub because: String,
    /// The journal that reverts it; `None` unless it was kept or is stuck.
    pub journal: Option<String>,
}

/// A change that the remote host needs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarEndChange {
    /// The direction that it limits.
    pub direction: Direction,
    /// The command for that host.
    pub command: String,
    /// The goodput predicted with it; `None` without a prediction.
    pub expects_bps: Option<BitRate>,
    /// How that was computed, or why there is no prediction.
    pub why: String,
}

/// The report on a host tuned step by step.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// [`VERIFY_SCHEMA`].
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// The server of the tests.
    pub target: String,
    /// The tuning target.
    pub goal: VerifyGoal,
    /// Runs without and with each step, in each direction.
    pub repeats: u32,
    /// Length of a test, in seconds.
    pub seconds: f64,
    /// The diagnosis of the first test in each direction, before any step.
    pub first: Vec<Finding>,
    /// The diagnosis of the last test in each direction, with the kept steps.
    pub last: Vec<Finding>,
    /// The steps, in the order tried.
    pub steps: Vec<VerifyStep>,
    /// Changes that the remote host needs.
    pub far_end: Vec<FarEndChange>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
}
