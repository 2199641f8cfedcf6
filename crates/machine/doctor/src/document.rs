//! A host checked against a target: what `longhaul doctor … --json` prints.

use crate::facts::Facts;
use record::{Area, Check, Verdict};
use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount};

/// The version of [`DoctorReport`] in JSON.
pub const DOCTOR_SCHEMA: &str = "longhaul.doctor/1";
/// The version of [`DoctorCommands`] in JSON.
pub const DOCTOR_COMMANDS_SCHEMA: &str = "longhaul.doctor-commands/2";

/// The target of the checks.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoctorTarget {
    /// The rate of all streams together.
    pub rate_bps: BitRate,
    /// The source of the rate: requested, or the link speed.
    pub rate_from: String,
    /// The RTT.
    pub rtt_ms: Option<f64>,
    /// Its source: requested or measured.
    pub rtt_from: String,
    /// Parallel connections that share the rate.
    pub streams: u32,
    /// Segment payload (MSS) in bytes for the loss budgets.
    pub mss_bytes: u32,
    /// Bandwidth-delay product, of all streams.
    pub bdp_bytes: Option<ByteCount>,
    /// The window needed by each stream.
    pub window_bytes: Option<ByteCount>,
    /// The window scale needed to advertise it.
    pub window_scale: Option<u8>,
    /// The maximum loss at which Mathis' equation allows each stream its rate.
    pub loss_budget_mathis: Option<f64>,
    /// The same for CUBIC.
    pub loss_budget_cubic: Option<f64>,
}

/// The report on a host checked against a target.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// Time of the checks: seconds since 1970-01-01 UTC.
    pub at_unix_s: u64,
    /// The host's name.
    pub host: Option<String>,
    /// The remote host as named on the command line.
    pub to: Option<String>,
    /// The target of the checks.
    pub target: DoctorTarget,
    /// The worst result of the checks that could be made.
    pub verdict: Verdict,
    /// Number of checks that failed.
    pub fail: usize,
    /// Number of checks that warn.
    pub warn: usize,
    /// Number of checks that could not be made.
    pub unknown: usize,
    /// Number of checks that passed.
    pub pass: usize,
    /// The checks, area by area.
    pub checks: Vec<Check>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// The report with every fact read.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoctorDocument {
    /// The report.
    #[serde(flatten)]
    pub report: DoctorReport,
    /// The facts that the checks are about.
    pub facts: Facts,
}

impl DoctorReport {
    /// The number of checks with this result.
    #[must_use]
    pub fn count(checks: &[Check], verdict: Verdict) -> usize {
        checks.iter().filter(|check| check.verdict == verdict).count()
    }
}

/// One check as commands for another host. It only inspects, or it has all five parts.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Its name.
    pub id: String,
    /// Its subject.
    pub area: Area,
    /// The value needed for the target.
    pub needed: String,
    /// The reason, with its numbers.
    pub why: String,
    /// The commands that show the value.
    pub inspect: Vec<String>,
    /// The commands that save the present value; empty if it is not a setting.
    pub back_up: Vec<String>,
    /// The commands that set it now.
    pub apply: Vec<String>,
    /// The commands that set it at every boot.
    pub persist: Vec<String>,
    /// Whether the system keeps the value across restarts by itself.
    pub is_persistent: bool,
    /// The commands that restore the saved value.
    pub undo: Vec<String>,
    /// Further steps or remarks.
    pub remark: String,
    /// The source: manual page, kernel file, standard.
    pub source: String,
}

/// The checks as commands, for another host.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoctorCommands {
    /// [`DOCTOR_COMMANDS_SCHEMA`].
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// The operating system.
    pub system: String,
    /// The target of the checks.
    pub target: DoctorTarget,
    /// The checks, area by area.
    pub recipes: Vec<Recipe>,
}
