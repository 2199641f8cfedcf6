//! What a study varies or fixes.

use crate::value::ValueError;
use std::fmt;
use units::Rtt;

/// A setting that a plan varies or fixes, by the name that plans use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// `tcp` or `udp`.
    Protocol,
    /// What transfers: `longhaul`, or a program.
    Program,
    /// `4` or `6`.
    Ip,
    /// When a flow starts, since the test began.
    Start,
    /// How long a flow sends.
    Duration,
    /// Seconds at the start that count for no figure.
    Omit,
    /// Parallel streams.
    Streams,
    /// Streams of all clients together.
    TotalStreams,
    /// The receive window of each stream, as advertised.
    Window,
    /// The sum of the windows of all streams of all clients.
    TotalWindow,
    /// Limits of the hosts' socket buffers: `tuned` or `kernel`.
    Buffers,
    /// Congestion control of the sender.
    Congestion,
    /// `forward`, `reverse` or `both`.
    Direction,
    /// The rate that each stream sends at; for UDP the offered load.
    Bitrate,
    /// The sum of these rates over all streams of all clients.
    TotalBitrate,
    /// The rate at which the kernel paces each stream (`SO_MAX_PACING_RATE`).
    Pacing,
    /// Bytes per write, or the payload of a datagram.
    Block,
    /// What is sent: `memory` or `file`.
    Source,
    /// The rate of the disk that the file is on.
    Disk,
    /// Bytes of the file that are read before any of them is sent.
    Chunk,
    /// Bytes of the object that a program fetches.
    Object,
    /// First and last byte of it that are asked for.
    Range,
    /// What a cache on the way has of it: `cold`, `warm` or `expired`.
    CacheState,
    /// A key of the path, as of `--link`.
    Path(String),
    /// Clients and servers, such as `4x2`.
    Hosts,
    /// A sysctl below `net.`, of all hosts or of one side, such as `client.net.ipv4.tcp_rmem`.
    Sysctl(Side, String),
    /// A setting of one flow, such as `udp.bitrate`.
    OfFlow(String, Box<Setting>),
}

/// Which hosts a sysctl is set on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// All of them.
    Both,
    /// Those that begin the connections.
    Clients,
    /// The others.
    Servers,
}

impl Side {
    /// What precedes the sysctl's name.
    const fn prefix(self) -> &'static str {
        match self {
            Side::Both => "",
            Side::Clients => "client.",
            Side::Servers => "server.",
        }
    }
}

/// How the values of a setting are written and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A number without a unit.
    Count,
    /// Bytes.
    Bytes,
    /// Bit/s.
    Rate,
    /// Seconds.
    Time,
    /// 0 to 1, written as a percentage.
    Share,
    /// A word, or a number that stands for one.
    Word,
}

/// The names that [`Setting::parse`] knows beside those of a path and `net.*`.
const NAMES: [(&str, Setting); 24] = [
    ("protocol", Setting::Protocol),
    ("program", Setting::Program),
    ("hosts", Setting::Hosts),
    ("ip", Setting::Ip),
    ("start", Setting::Start),
    ("duration", Setting::Duration),
    ("omit", Setting::Omit),
    ("streams", Setting::Streams),
    ("total_streams", Setting::TotalStreams),
    ("window", Setting::Window),
    ("total_window", Setting::TotalWindow),
    ("buffers", Setting::Buffers),
    ("congestion", Setting::Congestion),
    ("direction", Setting::Direction),
    ("bitrate", Setting::Bitrate),
    ("total_bitrate", Setting::TotalBitrate),
    ("pacing", Setting::Pacing),
    ("block", Setting::Block),
    ("source", Setting::Source),
    ("disk", Setting::Disk),
    ("chunk", Setting::Chunk),
    ("object", Setting::Object),
    ("range", Setting::Range),
    ("cache_state", Setting::CacheState),
];

impl Setting {
    /// By its name.
    ///
    /// # Errors
    /// No setting has that name; the message lists those that exist.
    pub fn parse(name: &str) -> Result<Self, ValueError> {
        if let Some((_, setting)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(setting.clone());
        }
        for side in [Side::Both, Side::Clients, Side::Servers] {
            if let Some(sysctl) = name.strip_prefix(side.prefix()).filter(|n| n.starts_with("net."))
            {
                return Ok(Setting::Sysctl(side, sysctl.to_owned()));
            }
        }
        let of_time = changed_key(name).unwrap_or(name);
        let key = of_time.strip_prefix("up.").or_else(|| of_time.strip_prefix("down."));
        let key = key.unwrap_or(of_time);
        if topology::KEYS.iter().any(|known| known.name == key) {
            return Ok(Setting::Path(name.to_owned()));
        }
        let known: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
        let keys: Vec<&str> = topology::KEYS.iter().map(|key| key.name).collect();
        let known = format!(
            "settings are {}, net.* sysctls, and the keys of a path: {}{}",
            known.join(", "),
            keys.join(", "),
            topology::did_you_mean(name, known.iter().chain(&keys).copied())
        );
        Err(ValueError::unknown("setting", name, known))
    }

    /// By its name, which may begin with that of one of the `flows`.
    pub(crate) fn parse_among(name: &str, flows: &[String]) -> Result<Self, ValueError> {
        let Some((flow, rest)) = name.split_once('.') else { return Setting::parse(name) };
        if !flows.iter().any(|known| known == flow) {
            return Setting::parse(name);
        }
        let setting = Setting::parse(rest)?;
        if !setting.is_of_flow() {
            let setting = setting.to_string();
            return Err(ValueError::NotOfFlow { setting, flow: flow.to_owned() });
        }
        Ok(Setting::OfFlow(flow.to_owned(), Box::new(setting)))
    }

    /// Whether flows of one test may differ in it.
    fn is_of_flow(&self) -> bool {
        match self {
            Setting::Window
            | Setting::TotalStreams
            | Setting::TotalWindow
            | Setting::TotalBitrate
            | Setting::Buffers
            | Setting::Hosts
            | Setting::Path(_)
            | Setting::Sysctl(..)
            | Setting::OfFlow(..) => false,
            Setting::Protocol
            | Setting::Program
            | Setting::Ip
            | Setting::Start
            | Setting::Duration
            | Setting::Omit
            | Setting::Streams
            | Setting::Congestion
            | Setting::Direction
            | Setting::Bitrate
            | Setting::Pacing
            | Setting::Block
            | Setting::Source
            | Setting::Disk
            | Setting::Chunk
            | Setting::Object
            | Setting::Range
            | Setting::CacheState => true,
        }
    }

    /// How its values are written.
    #[must_use]
    pub fn kind(&self) -> ValueKind {
        match self {
            Setting::Streams | Setting::TotalStreams => ValueKind::Count,
            Setting::Window
            | Setting::TotalWindow
            | Setting::Block
            | Setting::Chunk
            | Setting::Object => ValueKind::Bytes,
            Setting::Bitrate | Setting::TotalBitrate | Setting::Pacing | Setting::Disk => {
                ValueKind::Rate
            }
            Setting::Start | Setting::Duration | Setting::Omit => ValueKind::Time,
            Setting::Protocol
            | Setting::Program
            | Setting::Hosts
            | Setting::Ip
            | Setting::Congestion
            | Setting::Direction
            | Setting::Buffers
            | Setting::Source
            | Setting::Range
            | Setting::CacheState
            | Setting::Sysctl(..) => ValueKind::Word,
            Setting::OfFlow(_, setting) => setting.kind(),
            Setting::Path(key) => match key.rsplit('.').next() {
                Some("rate") => ValueKind::Rate,
                Some("rtt" | "delay") => ValueKind::Time,
                Some("loss") => ValueKind::Share,
                _ => ValueKind::Word,
            },
        }
    }
}

/// The key of a change over time, such as `rtt` of `@1.5s.rtt`.
fn changed_key(name: &str) -> Option<&str> {
    let after = name.strip_prefix('@')?;
    let end = after.match_indices('.').find(|(at, _)| after[..*at].parse::<Rtt>().is_ok())?.0;
    Some(&after[end + 1..])
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Path(key) => f.write_str(key),
            Setting::Sysctl(side, key) => write!(f, "{}{key}", side.prefix()),
            Setting::OfFlow(flow, setting) => write!(f, "{flow}.{setting}"),
            other => {
                let name = NAMES.iter().find(|(_, setting)| setting == other);
                f.write_str(name.map_or("", |(name, _)| name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_tests_paths_and_sysctls() {
        for name in [
            "window",
            "streams",
            "total_window",
            "total_streams",
            "total_bitrate",
            "rtt",
            "up.rate",
            "net.ipv4.tcp_sack",
            "queue",
        ] {
            assert_eq!(Setting::parse(name).unwrap().to_string(), name);
        }
        for name in ["@15s.rtt", "@0.5s.up.loss"] {
            assert_eq!(Setting::parse(name).unwrap().to_string(), name);
        }
        for name in ["@15s", "@15s.streams", "@15s."] {
            assert!(Setting::parse(name).is_err(), "{name}");
        }
        assert!(Setting::parse("widnow").unwrap_err().to_string().contains("window"));
    }
}
