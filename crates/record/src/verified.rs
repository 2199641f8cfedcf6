//! A host tuned step by step, each step measured: what `longhaul tune verify
//! --json` prints.

use crate::{
    Comparison, Direction, Finding, PlannedSetting, RepeatSummary, RunFigures, Undone, Written,
};
use serde::{Deserialize, Serialize};
use units::{BitRate, Rtt};

/// The version of [`VerifyReport`] in JSON.
pub const VERIFY_SCHEMA: &str = "longhaul.verify/1";

/// What was tuned for, and where that is known from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyGoal {
    /// The path's rate.
    pub rate_bps: BitRate,
    /// `asked`, or the interface whose speed it is.
    pub rate_from: String,
    /// The path's round trip without queueing.
    #[serde(rename = "rtt_ms", with = "crate::millis")]
    pub rtt: Rtt,
    /// `asked` or `measured`.
    pub rtt_from: String,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepVerdict {
    /// It helped, and stays.
    Kept,
    /// It did not help, or that could not be shown: all is as before it.
    RolledBack,
    /// It was not tried: nothing of it could be set, or nothing of it bears on these tests.
    Skipped,
    /// It was stopped while it was tried: all is as before it.
    Interrupted,
    /// What was before could not all be put back; the journal has it.
    Stuck,
}

/// One direction of a step: without it and with it, in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepWay {
    /// Which way the data went.
    pub direction: Direction,
    /// The tests without the step.
    pub before: Vec<RunFigures>,
    /// What they come to.
    pub before_summary: RepeatSummary,
    /// The tests with it.
    pub after: Vec<RunFigures>,
    /// What they come to.
    pub after_summary: RepeatSummary,
    /// Whether they differ.
    pub comparison: Comparison,
    /// The goodput predicted with the step; `None` where none was promised.
    pub predicted_bps: Option<BitRate>,
    /// How that was computed, or why nothing was promised.
    pub prediction: String,
    /// The gain measured over the gain predicted.
    pub of_predicted_gain: Option<f64>,
}

/// Settings that were tried together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifyStep {
    /// What they are about.
    pub name: String,
    /// The settings as planned.
    pub settings: Vec<PlannedSetting>,
    /// What the kernel made of them when they were last set.
    pub written: Vec<Written>,
    /// What was not put back, where the verdict is [`StepVerdict::Stuck`].
    pub not_put_back: Vec<Undone>,
    /// The directions measured.
    pub ways: Vec<StepWay>,
    /// What became of it.
    pub verdict: StepVerdict,
    /// Why, in a sentence.
    pub because: String,
    /// The journal that undoes it; `None` unless it was kept or is stuck.
    pub journal: Option<String>,
}

/// What the other end has to change, which is not ours to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarEndNeeds {
    /// The direction that it holds back.
    pub direction: Direction,
    /// What to type on that host.
    pub command: String,
    /// The goodput predicted with it; `None` where none is promised.
    pub expects_bps: Option<BitRate>,
    /// How that is computed, or why nothing is promised.
    pub why: String,
}

/// A host tuned step by step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// [`VERIFY_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that did it.
    pub version: String,
    /// The server that was measured to.
    pub target: String,
    /// What was tuned for.
    pub goal: VerifyGoal,
    /// Tests of each kind, step and direction.
    pub repeats: u32,
    /// Length of a test, in seconds.
    pub seconds: f64,
    /// The first test of each direction, explained, with the host as it was.
    pub first: Vec<Finding>,
    /// The last test of each direction with the host as it is now, explained.
    pub last: Vec<Finding>,
    /// The steps, in the order in which they were tried.
    pub steps: Vec<VerifyStep>,
    /// What is left to the other end.
    pub far_end: Vec<FarEndNeeds>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// What else to know.
    pub notes: Vec<String>,
}
