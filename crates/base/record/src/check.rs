//! One check of a host, in the reports of `doctor` and of a baseline.

use serde::{Deserialize, Serialize};
use std::fmt;
use units::{BitRate, Rtt};

/// The result of a check, worst first.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
