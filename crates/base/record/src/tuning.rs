//! Tuning a host: the plan, the result of applying and reverting it, and the status.
//! What `longhaul tune … --json` prints.

use crate::{AppliedRoute, RevertedRoute};
use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount};

/// The version of [`TunePlan`] in JSON.
pub const TUNE_PLAN_SCHEMA: &str = "longhaul.tune-plan/1";
/// The version of [`TuneApplied`] in JSON.
pub const TUNE_APPLY_SCHEMA: &str = "longhaul.tune-apply/1";
/// The version of [`TuneRollback`] in JSON.
pub const TUNE_ROLLBACK_SCHEMA: &str = "longhaul.tune-rollback/1";
/// The version of [`TuneStatus`] in JSON.
pub const TUNE_STATUS_SCHEMA: &str = "longhaul.tune-status/1";

/// The settings to change on one host for a target or profile.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunePlan {
    /// [`TUNE_PLAN_SCHEMA`].
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// The target or profile, in words.
    pub goal: String,
    /// The settings to change, in the order of writing.
    pub settings: Vec<PlannedSetting>,
    /// Settings skipped because this host does not support them or lacks a prerequisite.
    pub left_out: Vec<SkippedSetting>,
    /// Settings that other guides change and this plan does not, each with the reason.
    #[serde(default)]
    pub unchanged: Vec<SkippedSetting>,
    /// The maximum rate of one connection at the target RTT with the present buffers.
    pub carries_now_bps: Option<BitRate>,
    /// The same with the plan applied.
    pub carries_then_bps: Option<BitRate>,
    /// The memory that the buffers may use.
    pub memory: MemoryCost,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// One setting to change.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Its risk.
    pub risk: String,
}

/// A setting that is skipped.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedSetting {
    /// The sysctl, with dots.
    pub key: String,
    /// Why it is skipped, and how to change that.
    pub why: String,
}

/// The memory that the planned buffers may use.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryCost {
    /// Maximum per connection, with both buffers full.
    pub per_connection_bytes: ByteCount,
    /// The target's number of connections.
    pub connections: u32,
    /// Maximum of all of them.
    pub together_bytes: ByteCount,
    /// TCP's memory pressure threshold (`tcp_mem`, second value).
    pub pressure_bytes: Option<ByteCount>,
    /// TCP's memory limit (`tcp_mem`, third value).
    pub limit_bytes: Option<ByteCount>,
    /// Total memory of the host.
    pub machine_bytes: Option<ByteCount>,
}

/// The result of writing one setting.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It reads back as planned.
    Set,
    /// The kernel accepted it with a different value.
    Bounded,
    /// It was not changed.
    Skipped,
}

/// One setting of an applied plan.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The sysctl, with dots.
    pub key: String,
    /// Its value before.
    pub before: String,
    /// Its value read back.
    pub now: String,
    /// The result.
    pub outcome: Outcome,
    /// An explanation, if it is not as planned.
    pub note: String,
}

/// The result of applying a plan.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneApplied {
    /// [`TUNE_APPLY_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that applied it.
    pub version: String,
    /// The plan.
    pub plan: TunePlan,
    /// The journal that `rollback` reads; `null` if nothing was written.
    pub journal: Option<String>,
    /// Each setting of the plan.
    pub settings: Vec<Written>,
    /// The file that sets them at each boot, if requested.
    pub persisted: Option<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Whether nothing was written because of `--dry-run`.
    pub dry_run: bool,
}

/// The status of a setting compared with its journal.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingStatus {
    /// It has the value that was set.
    AsSet,
    /// It has its earlier value.
    AsBefore,
    /// It was changed by someone else since.
    Foreign,
    /// It was lost at a reboot; a route: it no longer exists.
    Gone,
    /// It cannot be read.
    Unreadable,
}

/// The result of reverting a setting.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RevertOutcome {
    /// Reverted.
    Restored,
    /// It already had its earlier value.
    AsBefore,
    /// Another's value was overwritten with the earlier one.
    Overwritten,
    /// Another's value was kept.
    Left,
    /// It was lost at a reboot; a route: it no longer exists.
    Gone,
    /// It could not be reverted.
    Failed,
}

/// One setting, or the file that sets them at each boot, when reverted.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertedSetting {
    /// The sysctl with dots, or the file.
    pub key: String,
    /// Its value found; `null` for a file.
    pub found: Option<String>,
    /// Its value before tuning; `null` for a file.
    pub before: Option<String>,
    /// The result.
    pub state: RevertOutcome,
    /// What remains to be done, if anything.
    pub note: String,
}

/// The result of a rollback.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneRollback {
    /// [`TUNE_ROLLBACK_SCHEMA`].
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// Number of plans reverted.
    pub undone: usize,
    /// Number of plans still applied.
    pub remain: usize,
    /// The settings, in the order of reverting.
    pub settings: Vec<RevertedSetting>,
    /// The routes, in the order of reverting.
    #[serde(default)]
    pub routes: Vec<RevertedRoute>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// One setting of an applied plan.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedSetting {
    /// The sysctl, with dots.
    pub key: String,
    /// Its value before.
    pub before: String,
    /// The value that was set.
    pub set: String,
    /// Its value now; `null` if it cannot be read.
    pub now: Option<String>,
    /// The status.
    #[serde(rename = "standing")]
    pub status: SettingStatus,
}

/// The file that sets a plan's values at each boot.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedFile {
    /// Its path.
    pub path: String,
    /// The status of its contents.
    #[serde(rename = "standing")]
    pub status: SettingStatus,
}

/// One applied plan.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedPlan {
    /// The target or profile, in words.
    pub goal: String,
    /// When it was applied: seconds since 1970-01-01 UTC.
    pub since_s: u64,
    /// Its journal.
    pub journal: String,
    /// Whether applying it was interrupted.
    #[serde(rename = "broken_off")]
    pub interrupted: bool,
    /// Whether it was applied before the last boot.
    pub earlier_boot: bool,
    /// Its settings.
    pub settings: Vec<AppliedSetting>,
    /// Its routes.
    #[serde(default)]
    pub routes: Vec<AppliedRoute>,
    /// Its file, if it has one.
    pub file: Option<AppliedFile>,
}

/// The plans applied on this host.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneStatus {
    /// [`TUNE_STATUS_SCHEMA`].
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// The time of this status: seconds since 1970-01-01 UTC.
    pub at_s: u64,
    /// The applied plans, oldest first.
    pub applied: Vec<AppliedPlan>,
    /// The journals of other network namespaces of this boot, such as those of labs.
    #[serde(default)]
    pub other_networks: Vec<OtherNetwork>,
}

/// A journal of another network namespace.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherNetwork {
    /// Its path.
    pub journal: String,
    /// The inode number of the namespace (namespaces(7)).
    pub network: u64,
}
