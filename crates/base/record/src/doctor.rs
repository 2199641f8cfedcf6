//! A host checked against a target: what `longhaul doctor … --json` prints.

use serde::{Deserialize, Serialize};
use std::fmt;
use units::{BitRate, ByteCount, Rtt};

/// The version of [`DoctorReport`] in JSON.
pub const DOCTOR_SCHEMA: &str = "longhaul.doctor/1";
/// The version of [`DoctorCommands`] in JSON.
pub const DOCTOR_COMMANDS_SCHEMA: &str = "longhaul.doctor-commands/2";

/// The result of a check, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The target cannot be reached.
    Fail,
    /// The target is at risk.
    Warn,
    /// It could not be checked.
    Unknown,
    /// It meets the target.
    Pass,
}

/// The subject of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// The path to the remote host.
    Path,
    /// Kernel settings (sysctls).
    Settings,
    /// Kernel version and built-in behaviour.
    Kernel,
    /// The network device and its link.
    Nic,
    /// CPUs and interrupts.
    Cpu,
    /// Memory for socket buffers.
    Memory,
    /// Disk throughput.
    Disk,
}

impl Area {
    /// All areas, in display order.
    pub const ALL: [Area; 7] =
        [Area::Path, Area::Settings, Area::Kernel, Area::Nic, Area::Cpu, Area::Memory, Area::Disk];
}

/// The command that fixes a check. Prints, and is stored in JSON, as its command line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum CheckCommand {
    /// `sudo longhaul tune apply FLAGS`: applies the tuning plan.
    TuneApply {
        /// The flags of `tune apply`.
        flags: String,
    },
    /// Any other command line.
    Shell(String),
}

impl CheckCommand {
    const TUNE_APPLY: &str = "sudo longhaul tune apply ";

    /// Applies the plan for a rate over an RTT, which is rounded up to a tenth of a millisecond: a
    /// measured RTT is never the longest.
    #[must_use]
    pub fn tune_apply(rate: BitRate, rtt: Rtt, streams: u32) -> Self {
        let bps = rate.bps();
        let rate = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit")]
            .into_iter()
            .find(|(unit, _)| bps > 0 && bps.is_multiple_of(*unit))
            .map_or_else(|| format!("{bps}bit"), |(unit, name)| format!("{}{name}", bps / unit));
        let tenths = rtt.nanos().div_ceil(100_000);
        let time = match tenths % 10 {
            0 => format!("{}ms", tenths / 10),
            rest => format!("{}.{rest}ms", tenths / 10),
        };
        let streams = if streams > 1 { format!(" --streams {streams}") } else { String::new() };
        CheckCommand::TuneApply { flags: format!("--rate {rate} --rtt {time}{streams} --yes") }
    }
}

impl fmt::Display for CheckCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckCommand::TuneApply { flags } => write!(f, "{}{flags}", Self::TUNE_APPLY),
            CheckCommand::Shell(line) => f.write_str(line),
        }
    }
}

impl From<CheckCommand> for String {
    fn from(command: CheckCommand) -> String {
        command.to_string()
    }
}

impl From<String> for CheckCommand {
    fn from(line: String) -> CheckCommand {
        match line.strip_prefix(Self::TUNE_APPLY) {
            Some(flags) => CheckCommand::TuneApply { flags: flags.to_owned() },
            None => CheckCommand::Shell(line),
        }
    }
}

impl From<&str> for CheckCommand {
    fn from(line: &str) -> CheckCommand {
        CheckCommand::from(line.to_owned())
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name: the sysctl with dots, or the area and a word (`nic.speed`).
    pub id: String,
    /// Its subject.
    pub area: Area,
    /// Its result.
    pub verdict: Verdict,
    /// The value found, or why there is none.
    pub seen: String,
    /// The value needed for the target.
    pub needed: String,
    /// The reason, with its numbers.
    pub why: String,
    /// What to do; empty if nothing.
    pub remedy: String,
    /// The same as a command, if there is one.
    pub command: Option<CheckCommand>,
    /// The source: RFC, man page, kernel file.
    pub source: String,
}

/// The target of the checks.
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

impl DoctorReport {
    /// The number of checks with this result.
    #[must_use]
    pub fn count(checks: &[Check], verdict: Verdict) -> usize {
        checks.iter().filter(|check| check.verdict == verdict).count()
    }
}

/// One check as commands for another host. It only inspects, or it has all five parts.
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

#[cfg(test)]
mod tests {
    use super::CheckCommand;

    #[test]
    fn a_plan_s_command_has_the_whole_target() {
        let command = |rate: &str, rtt: &str, streams| {
            CheckCommand::tune_apply(rate.parse().unwrap(), rtt.parse().unwrap(), streams)
        };
        for (command, flags) in [
            (command("10gbit", "200ms", 1), "--rate 10gbit --rtt 200ms --yes"),
            (command("2500mbit", "163.61ms", 4), "--rate 2500mbit --rtt 163.7ms --streams 4 --yes"),
            (command("1bit", "1us", 1), "--rate 1bit --rtt 0.1ms --yes"),
        ] {
            let line = format!("sudo longhaul tune apply {flags}");
            assert_eq!(command.to_string(), line);
            assert_eq!(CheckCommand::from(line), command);
        }
    }
}
