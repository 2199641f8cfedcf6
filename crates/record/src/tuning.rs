//! Tuning a host: the plan, what came of applying it, of undoing it, and what
//! is in force. What `longhaul tune … --json` prints.

use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount};

/// The version of [`TunePlan`] in JSON.
pub const TUNE_PLAN_SCHEMA: &str = "longhaul.tune-plan/1";
/// The version of [`TuneApplied`] in JSON.
pub const TUNE_APPLY_SCHEMA: &str = "longhaul.tune-apply/1";
/// The version of [`TuneUndone`] in JSON.
pub const TUNE_ROLLBACK_SCHEMA: &str = "longhaul.tune-rollback/1";
/// The version of [`TuneStatus`] in JSON.
pub const TUNE_STATUS_SCHEMA: &str = "longhaul.tune-status/1";

/// What to set on one host, and what for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunePlan {
    /// [`TUNE_PLAN_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that planned.
    pub version: String,
    /// The target or profile, in words.
    pub goal: String,
    /// What changes, in the order in which it is written.
    pub settings: Vec<PlannedSetting>,
    /// What the goal asks for and this host cannot have, or has to get first.
    pub left_out: Vec<LeftOut>,
    /// The most that the present buffers let one connection carry over the
    /// goal's round trip.
    pub carries_now_bps: Option<BitRate>,
    /// The same with the plan applied.
    pub carries_then_bps: Option<BitRate>,
    /// What the buffers may take.
    pub memory: MemoryCost,
    /// What else to know before applying it.
    pub notes: Vec<String>,
}

/// One setting to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSetting {
    /// The sysctl, with dots.
    pub key: String,
    /// Its value now.
    pub now: String,
    /// The value to set.
    pub planned: String,
    /// Why, with the numbers it was computed from.
    pub why: String,
    /// What may go wrong with it.
    pub risk: String,
}

/// A setting that the plan or the run does without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The sysctl, with dots.
    pub key: String,
    /// Why it is left out, and what would change that.
    pub why: String,
}

/// What the planned buffers may take of the host's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryCost {
    /// Most that one connection holds, both its buffers full.
    pub per_connection_bytes: ByteCount,
    /// The goal's connections.
    pub connections: u32,
    /// Most that those hold.
    pub together_bytes: ByteCount,
    /// Where TCP begins to shrink buffers, of all connections (`tcp_mem`, second number).
    pub pressure_bytes: Option<ByteCount>,
    /// What TCP may take at all (`tcp_mem`, third number).
    pub limit_bytes: Option<ByteCount>,
    /// All memory of the machine.
    pub machine_bytes: Option<ByteCount>,
}

/// What became of one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It reads as planned.
    Set,
    /// The kernel took it and holds something else.
    Bounded,
    /// It was left as it was.
    Skipped,
}

/// One setting of a plan that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The sysctl, with dots.
    pub key: String,
    /// Its value before.
    pub before: String,
    /// Its value read back.
    pub now: String,
    /// What became of it.
    pub outcome: Outcome,
    /// In words, where it is not as planned.
    pub note: String,
}

/// What came of applying a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneApplied {
    /// [`TUNE_APPLY_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that applied it.
    pub version: String,
    /// The plan.
    pub plan: TunePlan,
    /// The journal that `rollback` reads; `null` where nothing was written.
    pub journal: Option<String>,
    /// Each setting of the plan.
    pub settings: Vec<Written>,
    /// The file that sets them at each boot, where one was asked for.
    pub persisted: Option<String>,
    /// What else to know.
    pub notes: Vec<String>,
    /// Whether nothing was written because `--dry-run` asked so.
    pub dry_run: bool,
}

/// How a setting stands against what a journal says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// As it was set.
    AsSet,
    /// As it was before.
    AsBefore,
    /// Someone else has set it since.
    Foreign,
    /// It went with an earlier boot.
    Gone,
    /// It cannot be read here.
    Unreadable,
}

/// How a setting ended when it was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Put back.
    Restored,
    /// It already was as before.
    AsBefore,
    /// Someone else's value, overwritten with what was before.
    Overwritten,
    /// Someone else's value, left.
    Left,
    /// It went with an earlier boot.
    Gone,
    /// It could not be put back.
    Failed,
}

/// One setting, or the file that sets them at each boot, undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// The sysctl with dots, or the file.
    pub key: String,
    /// What it held; `null` for a file.
    pub found: Option<String>,
    /// What it held before it was tuned; `null` for a file.
    pub before: Option<String>,
    /// How it ended.
    pub state: State,
    /// In words, where something remains to be done.
    pub note: String,
}

/// What came of undoing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneUndone {
    /// [`TUNE_ROLLBACK_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that undid it.
    pub version: String,
    /// How many applied plans were undone and forgotten.
    pub undone: usize,
    /// How many remain.
    pub remain: usize,
    /// Each setting, in the order in which it was put back.
    pub settings: Vec<Undone>,
    /// What else to know.
    pub notes: Vec<String>,
}

/// One setting of a plan in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The sysctl, with dots.
    pub key: String,
    /// Its value before.
    pub before: String,
    /// The value that was set.
    pub set: String,
    /// Its value now; `null` where it cannot be read.
    pub now: Option<String>,
    /// How these compare.
    pub standing: Standing,
}

/// The file that sets a plan's values at each boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Its path.
    pub path: String,
    /// How it compares with what was written.
    pub standing: Standing,
}

/// One plan in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The target or profile, in words.
    pub goal: String,
    /// When it was applied, in seconds since 1970.
    pub since_s: u64,
    /// Its journal.
    pub journal: String,
    /// Whether applying it was broken off.
    pub broken_off: bool,
    /// Whether it is of an earlier boot.
    pub earlier_boot: bool,
    /// Its settings.
    pub settings: Vec<Held>,
    /// Its file, where it has one.
    pub file: Option<KeptFile>,
}

/// What is applied on this host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneStatus {
    /// [`TUNE_STATUS_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that looked.
    pub version: String,
    /// The time of the look, in seconds since 1970.
    pub at_s: u64,
    /// The plans in force, the first applied first.
    pub applied: Vec<Holding>,
}
