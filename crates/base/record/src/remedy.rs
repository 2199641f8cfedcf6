//! Remedies for a limited transfer, and the goodput expected with each.

use serde::{Deserialize, Serialize};
use std::fmt;
use units::BitRate;

/// Where a remedy is applied.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemedyPlace {
    /// On the sending host.
    Sender,
    /// On the receiving host.
    Receiver,
    /// In the options of the test or program.
    Call,
    /// On neither host, where those cannot be changed: boxes on the path.
    Boxes,
}

/// What a remedy changes. Prints, and is stored in JSON, as the text to type: a
/// command line for a host, options for a call.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum RemedyCommand {
    /// `sysctl -w KEY="VALUE"`.
    Sysctl {
        /// The sysctl's name, with dots.
        key: String,
        /// Its new value, without quotes.
        value: String,
    },
    /// `-C NAME`: another congestion control.
    CongestionControl(String),
    /// `-w NM`: socket buffers of N MiB.
    SocketBufferMib(u64),
    /// `-w NK`: socket buffers of N KiB.
    SocketBufferKib(u64),
    /// `-P N`: parallel streams.
    Streams(u32),
    /// `-t N`: test length in whole seconds.
    Seconds(u64),
    /// `-b Nkbit`: a rate limit for each stream, in kbit/s.
    RateLimitKbit(u64),
    /// `no -b`: remove the rate limit.
    NoRateLimit,
    /// `no --fq-rate`: remove the pacing limit.
    NoPacingLimit,
    /// `longhaul boost plan --link PATH --congestion NAME`: what a pair of boxes would gain.
    BoostPlan {
        /// The path in the syntax of `--link`, without spaces.
        link: String,
        /// The window of each connection, where it is the limit.
        window_bytes: Option<u64>,
        /// The sender's congestion control.
        congestion: String,
    },
    /// Text that this version does not know, from the file of another one.
    Other(String),
}

impl fmt::Display for RemedyCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemedyCommand::Sysctl { key, value } => write!(f, "sysctl -w {key}=\"{value}\""),
            RemedyCommand::CongestionControl(name) => write!(f, "-C {name}"),
            RemedyCommand::SocketBufferMib(mib) => write!(f, "-w {mib}M"),
            RemedyCommand::SocketBufferKib(kib) => write!(f, "-w {kib}K"),
            RemedyCommand::Streams(streams) => write!(f, "-P {streams}"),
            RemedyCommand::Seconds(seconds) => write!(f, "-t {seconds}"),
            RemedyCommand::RateLimitKbit(kbit) => write!(f, "-b {kbit}kbit"),
            RemedyCommand::NoRateLimit => f.write_str("no -b"),
            RemedyCommand::NoPacingLimit => f.write_str("no --fq-rate"),
            RemedyCommand::BoostPlan { link, window_bytes, congestion } => {
                write!(f, "longhaul boost plan --link {link}")?;
                if let Some(window) = window_bytes {
                    write!(f, " --window {window}")?;
                }
                write!(f, " --congestion {congestion}")
            }
            RemedyCommand::Other(text) => f.write_str(text),
        }
    }
}

impl From<RemedyCommand> for String {
    fn from(command: RemedyCommand) -> String {
        command.to_string()
    }
}

impl From<String> for RemedyCommand {
    /// Only text that prints the same again becomes a typed command.
    fn from(text: String) -> RemedyCommand {
        match RemedyCommand::parse(&text) {
            Some(command) if command.to_string() == text => command,
            _ => RemedyCommand::Other(text),
        }
    }
}

impl RemedyCommand {
    fn parse(text: &str) -> Option<Self> {
        if let Some(setting) = text.strip_prefix("sysctl -w ") {
            let (key, value) = setting.split_once('=')?;
            let value = value.strip_prefix('"')?.strip_suffix('"')?;
            return Some(RemedyCommand::Sysctl { key: key.to_owned(), value: value.to_owned() });
        }
        if let Some(words) = text.strip_prefix("longhaul boost plan --link ") {
            let (words, congestion) = words.rsplit_once(" --congestion ")?;
            let (link, window) = words.split_once(" --window ").unzip();
            let link = link.unwrap_or(words);
            let is_plain = |word: &str| {
                word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".,=%".contains(&byte))
            };
            if !is_plain(link) || !is_plain(congestion) {
                return None;
            }
            let window_bytes = window.map(str::parse).transpose().ok()?;
            let (link, congestion) = (link.to_owned(), congestion.to_owned());
            return Some(RemedyCommand::BoostPlan { link, window_bytes, congestion });
        }
        Some(match text.split_once(' ')? {
            ("-C", name) => RemedyCommand::CongestionControl(name.to_owned()),
            ("-w", size) => match size.strip_suffix('M') {
                Some(mib) => RemedyCommand::SocketBufferMib(mib.parse().ok()?),
                None => RemedyCommand::SocketBufferKib(size.strip_suffix('K')?.parse().ok()?),
            },
            ("-P", streams) => RemedyCommand::Streams(streams.parse().ok()?),
            ("-t", seconds) => RemedyCommand::Seconds(seconds.parse().ok()?),
            ("-b", rate) => RemedyCommand::RateLimitKbit(rate.strip_suffix("kbit")?.parse().ok()?),
            ("no", "-b") => RemedyCommand::NoRateLimit,
            ("no", "--fq-rate") => RemedyCommand::NoPacingLimit,
            _ => return None,
        })
    }
}

/// One change that would raise the goodput.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// Where to apply it.
    pub place: RemedyPlace,
    /// What to change there.
    pub command: RemedyCommand,
    /// The sysctl that the command sets, with dots; `None` for a call.
    pub setting: Option<String>,
    /// The goodput predicted with it; `None` where there is no prediction.
    pub expects_bps: Option<BitRate>,
    /// How that was computed, or why there is no prediction.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::RemedyCommand;

    #[test]
    fn commands_are_read_as_they_are_printed() {
        let typed = |text: &str| RemedyCommand::from(text.to_owned());
        let key = "net.ipv4.tcp_rmem".to_owned();
        let value = "4096 131072 17825792".to_owned();
        for (text, command) in [
            (
                "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 17825792\"",
                RemedyCommand::Sysctl { key, value },
            ),
            ("-C bbr", RemedyCommand::CongestionControl("bbr".to_owned())),
            ("-w 9M", RemedyCommand::SocketBufferMib(9)),
            ("-w 256K", RemedyCommand::SocketBufferKib(256)),
            ("-P 8", RemedyCommand::Streams(8)),
            ("-t 40", RemedyCommand::Seconds(40)),
            ("-b 47500kbit", RemedyCommand::RateLimitKbit(47_500)),
            ("no -b", RemedyCommand::NoRateLimit),
            ("no --fq-rate", RemedyCommand::NoPacingLimit),
            (
                "longhaul boost plan --link rate=100mbit,rtt=173ms --window 65536 --congestion cubic",
                RemedyCommand::BoostPlan {
                    link: "rate=100mbit,rtt=173ms".to_owned(),
                    window_bytes: Some(65_536),
                    congestion: "cubic".to_owned(),
                },
            ),
        ] {
            assert_eq!(typed(text), command);
            assert_eq!(command.to_string(), text);
        }
        for text in [
            "",
            "-C",
            "-P many",
            "-P 08",
            "-w 9G",
            "sysctl -w key=value",
            "buy fibre",
            "longhaul boost plan --link $(reboot) --congestion cubic",
            "longhaul boost plan --link a --window x --congestion cubic",
        ] {
            assert_eq!(typed(text), RemedyCommand::Other(text.to_owned()));
            assert_eq!(typed(text).to_string(), text);
        }
    }
}
