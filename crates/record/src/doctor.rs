//! A host held against a target: what `longhaul doctor … --json` prints.

use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount};

/// The version of [`DoctorReport`] in JSON.
pub const DOCTOR_SCHEMA: &str = "longhaul.doctor/1";
/// The version of [`DoctorCommands`] in JSON.
pub const DOCTOR_COMMANDS_SCHEMA: &str = "longhaul.doctor-commands/1";

/// How a check came out, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The target cannot be reached with it.
    Fail,
    /// The target is in danger with it.
    Warn,
    /// It could not be looked at.
    Unknown,
    /// It serves the target.
    Pass,
}

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// The way to the far end.
    Path,
    /// The kernel's settings.
    Settings,
    /// What this kernel does by itself.
    Kernel,
    /// The network device and its line.
    Nic,
    /// Processors and interrupts.
    Cpu,
    /// Memory for buffers.
    Memory,
    /// Where files come from and go to.
    Disk,
}

impl Area {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Area; 7] =
        [Area::Path, Area::Settings, Area::Kernel, Area::Nic, Area::Cpu, Area::Memory, Area::Disk];
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name: the sysctl with dots, or the area and a word (`nic.speed`).
    pub id: String,
    /// What it is about.
    pub area: Area,
    /// How it came out.
    pub verdict: Verdict,
    /// The value seen; where there is none, why not.
    pub seen: String,
    /// The value that the target needs.
    pub needed: String,
    /// Why, with the numbers.
    pub why: String,
    /// What to do, in words; empty where there is nothing to do.
    pub remedy: String,
    /// The same as a command, where one does it.
    pub command: Option<String>,
    /// Who says so: RFC, man page, kernel file.
    pub source: String,
}

/// What the host is held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoctorTarget {
    /// The rate of all streams together.
    pub rate_bps: BitRate,
    /// Whether the rate was asked for or is the link's.
    pub rate_from: String,
    /// The round trip.
    pub rtt_ms: Option<f64>,
    /// Whether it was asked for or measured.
    pub rtt_from: String,
    /// Connections that share the rate.
    pub streams: u32,
    /// Payload bytes of a segment that the budgets are for.
    pub mss_bytes: u32,
    /// What is in flight at that rate, of all streams.
    pub bdp_bytes: Option<ByteCount>,
    /// The window that each stream needs.
    pub window_bytes: Option<ByteCount>,
    /// The window scale that announces such a window.
    pub window_scale: Option<u8>,
    /// The most loss at which Mathis' equation gives each stream its rate.
    pub loss_budget_mathis: Option<f64>,
    /// The same of CUBIC's.
    pub loss_budget_cubic: Option<f64>,
}

/// A host held against a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that looked.
    pub version: String,
    /// When it looked: seconds since 1970-01-01 UTC.
    pub at_unix_s: u64,
    /// The host's own name.
    pub host: Option<String>,
    /// The far end as it was named.
    pub to: Option<String>,
    /// What the host is held against.
    pub target: DoctorTarget,
    /// The worst of the checks that could be made.
    pub verdict: Verdict,
    /// How many checks failed, warn, are unknown and passed.
    pub fail: usize,
    /// See `fail`.
    pub warn: usize,
    /// See `fail`.
    pub unknown: usize,
    /// See `fail`.
    pub pass: usize,
    /// The checks, area by area.
    pub checks: Vec<Check>,
    /// What else to know.
    pub notes: Vec<String>,
}

impl DoctorReport {
    /// How many checks came out so.
    #[must_use]
    pub fn count(checks: &[Check], verdict: Verdict) -> usize {
        checks.iter().filter(|check| check.verdict == verdict).count()
    }
}

/// One check of a system that longhaul does not run on, as commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Its name.
    pub id: String,
    /// What it is about.
    pub area: Area,
    /// The command that shows the value.
    pub look: String,
    /// The value that the target needs.
    pub needed: String,
    /// Why, with the numbers.
    pub why: String,
    /// The commands that set it; none where it is no setting.
    pub set: Vec<String>,
    /// What else to do or to know.
    pub remark: String,
}

/// The checks of a system that longhaul does not run on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoctorCommands {
    /// [`DOCTOR_COMMANDS_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that wrote it.
    pub version: String,
    /// The system.
    pub system: String,
    /// What the host is held against.
    pub target: DoctorTarget,
    /// The checks, area by area.
    pub recipes: Vec<Recipe>,
}
