//! What a study varies, and the values that it takes.

use crate::plan::Written;
use std::fmt;
use units::{BitRate, ByteCount, LossRatio, Rtt};

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
    /// The receive window of each stream, as advertised.
    Window,
    /// Limits of the hosts' socket buffers: `tuned` or `kernel`.
    Buffers,
    /// Congestion control of the sender.
    Congestion,
    /// `forward`, `reverse` or `both`.
    Direction,
    /// The rate that each stream sends at; for UDP the offered load.
    Bitrate,
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
pub enum Kind {
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

/// One value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// As written, or as a range computed it; what a setting is parsed from.
    pub text: String,
    /// In the unit of its [`Kind`]; `None` for a word.
    pub number: Option<f64>,
    /// A multiple of the bandwidth-delay product of the path rather than bytes.
    pub per_bdp: bool,
}

/// The names that [`Setting::parse`] knows beside those of a path and `net.*`.
const NAMES: [(&str, Setting); 18] = [
    ("protocol", Setting::Protocol),
    ("program", Setting::Program),
    ("hosts", Setting::Hosts),
    ("ip", Setting::Ip),
    ("start", Setting::Start),
    ("duration", Setting::Duration),
    ("omit", Setting::Omit),
    ("streams", Setting::Streams),
    ("window", Setting::Window),
    ("buffers", Setting::Buffers),
    ("congestion", Setting::Congestion),
    ("direction", Setting::Direction),
    ("bitrate", Setting::Bitrate),
    ("pacing", Setting::Pacing),
    ("block", Setting::Block),
    ("source", Setting::Source),
    ("disk", Setting::Disk),
    ("chunk", Setting::Chunk),
];

/// The most values of one factor.
const MAX_LEVELS: usize = 1_000;

impl Setting {
    /// By its name.
    ///
    /// # Errors
    /// No setting has that name; the message lists those that exist.
    pub fn parse(name: &str) -> Result<Self, String> {
        if let Some((_, setting)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(setting.clone());
        }
        for side in [Side::Both, Side::Clients, Side::Servers] {
            if let Some(sysctl) = name.strip_prefix(side.prefix()).filter(|n| n.starts_with("net."))
            {
                return Ok(Setting::Sysctl(side, sysctl.to_owned()));
            }
        }
        let key = name.strip_prefix("up.").or_else(|| name.strip_prefix("down."));
        let key = key.unwrap_or(name);
        if topology::KEYS.iter().any(|known| known.name == key) {
            return Ok(Setting::Path(name.to_owned()));
        }
        let known: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
        let keys: Vec<&str> = topology::KEYS.iter().map(|key| key.name).collect();
        Err(format!(
            "no setting '{name}'; settings are {}, net.* sysctls, and the keys of a path: {}",
            known.join(", "),
            keys.join(", ")
        ))
    }

    /// By its name, which may begin with that of one of the `flows`.
    pub(crate) fn parse_among(name: &str, flows: &[String]) -> Result<Self, String> {
        let Some((flow, rest)) = name.split_once('.') else { return Setting::parse(name) };
        if !flows.iter().any(|known| known == flow) {
            return Setting::parse(name);
        }
        let setting = Setting::parse(rest)?;
        if !setting.is_of_flow() {
            return Err(format!(
                "{setting} is not a setting of a flow; write it without '{flow}.'"
            ));
        }
        Ok(Setting::OfFlow(flow.to_owned(), Box::new(setting)))
    }

    /// Whether flows of one test may differ in it.
    fn is_of_flow(&self) -> bool {
        match self {
            Setting::Window
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
            | Setting::Chunk => true,
        }
    }

    /// Whether it names what transfers.
    pub(crate) fn is_program(&self) -> bool {
        match self {
            Setting::OfFlow(_, setting) => setting.is_program(),
            other => *other == Setting::Program,
        }
    }

    /// Whether it names what is sent.
    pub(crate) fn is_source(&self) -> bool {
        match self {
            Setting::OfFlow(_, setting) => setting.is_source(),
            other => *other == Setting::Source,
        }
    }

    /// How its values are written.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Setting::Streams => Kind::Count,
            Setting::Window | Setting::Block | Setting::Chunk => Kind::Bytes,
            Setting::Bitrate | Setting::Pacing | Setting::Disk => Kind::Rate,
            Setting::Start | Setting::Duration | Setting::Omit => Kind::Time,
            Setting::Protocol
            | Setting::Program
            | Setting::Hosts
            | Setting::Ip
            | Setting::Congestion
            | Setting::Direction
            | Setting::Buffers
            | Setting::Source
            | Setting::Sysctl(..) => Kind::Word,
            Setting::OfFlow(_, setting) => setting.kind(),
            Setting::Path(key) => match key.rsplit('.').next() {
                Some("rate") => Kind::Rate,
                Some("rtt" | "delay") => Kind::Time,
                Some("loss") => Kind::Share,
                _ => Kind::Word,
            },
        }
    }

    /// The values that a plan gives it.
    ///
    /// # Errors
    /// A value or a range is not valid, in words.
    pub(crate) fn levels(&self, written: &Written) -> Result<Vec<Level>, String> {
        match written {
            // A file name may have two dots as well.
            Written::One(text) if text.contains("..") && text.starts_with(is_digit) => {
                self.range(text)
            }
            Written::One(text) => Ok(vec![self.level(text)?]),
            Written::List(items) if items.is_empty() => {
                Err(format!("{self} has no values; write at least one"))
            }
            Written::List(items) if items.len() > MAX_LEVELS => {
                Err(format!("{self} has {} values; at most {MAX_LEVELS}", items.len()))
            }
            Written::List(items) => items.iter().map(|(text, _)| self.level(text)).collect(),
        }
    }

    /// One value.
    ///
    /// # Errors
    /// It is not valid, in words.
    pub(crate) fn level(&self, text: &str) -> Result<Level, String> {
        let text = text.trim();
        let multiple = text.strip_suffix("bdp").filter(|_| self.kind() == Kind::Bytes);
        if let Some(multiple) = multiple {
            let number = number_of(Kind::Count, multiple.trim())?;
            return Ok(Level { text: text.to_owned(), number: Some(number), per_bdp: true });
        }
        // A path has words as well, such as `queue=fq_codel` and `loss=ge:...`.
        let number = match number_of(self.kind(), text) {
            Err(_) if matches!(self, Setting::Path(_)) => None,
            other => Some(other?).filter(|_| self.kind() != Kind::Word),
        };
        Ok(Level { text: text.to_owned(), number, per_bdp: false })
    }

    /// `FIRST..LAST [bdp] [xFACTOR | +STEP | log COUNT | linear COUNT]`.
    fn range(&self, text: &str) -> Result<Vec<Level>, String> {
        let kind = self.kind();
        if kind == Kind::Word {
            return Err(format!("{self} takes words, not a range; write a list"));
        }
        let wrong = || {
            format!(
                "'{text}' is not a range; write FIRST..LAST and how it is divided: x2, +STEP, \
                 log COUNT or linear COUNT"
            )
        };
        let (first, rest) = text.split_once("..").ok_or_else(wrong)?;
        let mut words = rest.split_whitespace().peekable();
        let last = words.next().ok_or_else(wrong)?;
        let per_bdp = kind == Kind::Bytes && words.next_if_eq(&"bdp").is_some();
        let unit = if per_bdp { Kind::Count } else { kind };
        let (first, last) = (number_of(unit, first.trim())?, number_of(unit, last)?);
        if first > last {
            return Err(format!("the range '{text}' is empty; its first value is the lower one"));
        }
        let numbers = match (words.next(), words.next(), words.next()) {
            (None, None, None) => multiplied(first, last, 2.0),
            (Some(step), None, None) => match (step.strip_prefix('x'), step.strip_prefix('+')) {
                (Some(factor), _) => multiplied(first, last, number_of(Kind::Count, factor)?),
                (_, Some(step)) => added(first, last, number_of(unit, step)?),
                _ => return Err(wrong()),
            },
            (Some("log"), Some(count), None) => divided(first, last, count, true),
            (Some("linear"), Some(count), None) => divided(first, last, count, false),
            _ => return Err(wrong()),
        };
        let numbers = numbers.ok_or_else(|| {
            format!(
                "'{text}' cannot be divided like that; at most {MAX_LEVELS} values, a factor \
                     above 1, a step above 0, and a first value above 0 for factors and log"
            )
        })?;
        Ok(numbers.into_iter().map(|number| of_number(unit, number, per_bdp)).collect())
    }
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

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

/// FIRST, FIRST x FACTOR, ... up to LAST, which is a value also where it is not reached.
fn multiplied(first: f64, last: f64, factor: f64) -> Option<Vec<f64>> {
    let mut all = vec![first];
    while factor > 1.0 && first > 0.0 && all.len() < MAX_LEVELS {
        let next = all.last()? * factor;
        if next > last * (1.0 + 1e-9) {
            return Some(ending_with(all, last));
        }
        all.push(next);
    }
    None
}

fn added(first: f64, last: f64, step: f64) -> Option<Vec<f64>> {
    let count = (last - first) / step + 1e-9;
    // False for NaN as well.
    let few = step > 0.0 && count < MAX_LEVELS as f64 - 1.0;
    few.then(|| {
        let all = (0..=count as usize).map(|index| first + index as f64 * step).collect();
        ending_with(all, last)
    })
}

fn ending_with(mut all: Vec<f64>, last: f64) -> Vec<f64> {
    if all.last().is_some_and(|highest| last - highest > 1e-9 * last) {
        all.push(last);
    }
    all
}

fn divided(first: f64, last: f64, count: &str, log: bool) -> Option<Vec<f64>> {
    let count: usize = count.parse().ok()?;
    let possible = (2..=MAX_LEVELS).contains(&count) && (!log || first > 0.0);
    possible.then(|| {
        let at = |index: usize| {
            let share = index as f64 / (count - 1) as f64;
            if log { first * (last / first).powf(share) } else { first + (last - first) * share }
        };
        (0..count).map(at).collect()
    })
}

fn number_of(kind: Kind, text: &str) -> Result<f64, String> {
    let finite = |number: f64| Some(number).filter(|n| n.is_finite() && *n >= 0.0);
    let number = match kind {
        Kind::Count => text.parse::<f64>().ok().and_then(finite),
        Kind::Bytes => text.parse::<ByteCount>().ok().map(ByteCount::as_f64),
        Kind::Rate => text.parse::<BitRate>().ok().map(BitRate::as_f64),
        Kind::Time => text.parse::<Rtt>().ok().map(Rtt::secs_f64),
        Kind::Share => text.parse::<LossRatio>().ok().map(LossRatio::fraction),
        Kind::Word => return Ok(0.0),
    };
    let wanted = match kind {
        Kind::Count => "a number, such as 4",
        Kind::Bytes => "a size, such as 64KiB",
        Kind::Rate => "a rate, such as 100mbit",
        Kind::Time => "a time, such as 50ms",
        Kind::Share | Kind::Word => "a share, such as 0.1%",
    };
    number.ok_or_else(|| format!("'{text}' is not {wanted}"))
}

/// A value of a range: as text that [`Setting::level`] reads again as the same number, the
/// short form where it is exact.
fn of_number(kind: Kind, number: f64, per_bdp: bool) -> Level {
    let short = |text: String| text.replace(' ', "");
    let exact = |text: &String| number_of(kind, text).is_ok_and(|same| same == number.round());
    let text = match kind {
        _ if per_bdp => format!("{} bdp", units::significant(number, 4)),
        Kind::Count | Kind::Word => format!("{}", number.round()),
        Kind::Bytes => Some(short(ByteCount::from_f64(number).to_string()))
            .filter(exact)
            .unwrap_or_else(|| format!("{}", number.round())),
        Kind::Rate => Some(short(BitRate::from_bps_f64(number).to_string()))
            .filter(exact)
            .unwrap_or_else(|| format!("{}bit", number.round())),
        Kind::Time => format!("{}ms", units::significant(number * 1e3, 6)),
        Kind::Share => format!("{}%", units::significant(number * 100.0, 6)),
    };
    Level { text, number: Some(number), per_bdp }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(setting: &Setting, text: &str) -> Result<Vec<f64>, String> {
        let levels = setting.levels(&Written::One(text.to_owned()))?;
        Ok(levels.iter().filter_map(|level| level.number).collect())
    }

    #[test]
    fn a_range_is_divided_by_factor_step_or_count() {
        let window = Setting::Window;
        let kib = |n: f64| n * 1024.0;
        assert_eq!(numbers(&window, "64KiB..256KiB").unwrap(), [64.0, 128.0, 256.0].map(kib));
        assert_eq!(numbers(&window, "64KiB..200KiB x2").unwrap(), [64.0, 128.0, 200.0].map(kib));
        assert_eq!(numbers(&window, "0.25..4 bdp x4").unwrap(), [0.25, 1.0, 4.0]);
        let rtt = Setting::Path("rtt".to_owned());
        let steps = numbers(&rtt, "0ms..100ms +50ms").unwrap();
        assert!(steps.iter().zip([0.0, 0.05, 0.1]).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(numbers(&Setting::Streams, "1..16 log 3").unwrap(), [1.0, 4.0, 16.0]);
        assert_eq!(numbers(&Setting::Streams, "1..5 linear 3").unwrap(), [1.0, 3.0, 5.0]);
    }

    #[test]
    fn values_of_a_range_are_written_as_they_are_read() {
        for (setting, range, texts) in [
            (Setting::Window, "64KiB..1MiB x4", ["64KiB", "256KiB", "1MiB"]),
            (Setting::Window, "1000..1003 linear 3", ["1kB", "1002", "1003"]),
            (Setting::Path("rtt".to_owned()), "0.25ms..100ms x20", ["0.25ms", "5ms", "100ms"]),
            (Setting::Path("loss".to_owned()), "0.01%..1% x10", ["0.01%", "0.1%", "1%"]),
            (Setting::Bitrate, "1mbit..3mbit +1mbit", ["1Mbit/s", "2Mbit/s", "3Mbit/s"]),
        ] {
            let levels = setting.levels(&Written::One(range.to_owned())).unwrap();
            let found: Vec<&str> = levels.iter().map(|level| level.text.as_str()).collect();
            assert_eq!(found, texts, "{range}");
            for level in &levels {
                let again = setting.level(&level.text).unwrap().number.unwrap();
                assert!((again - level.number.unwrap()).abs() <= 0.5, "{level:?}");
            }
        }
    }

    #[test]
    fn a_range_that_cannot_be_divided_is_refused() {
        let refused = |setting: &Setting, text| numbers(setting, text).unwrap_err();
        assert!(refused(&Setting::Streams, "8..1").contains("empty"));
        for text in ["0..8", "1..8 x1", "1..8 +0", "1..8 log 1", "1..1000000 +1", "1..inf"] {
            refused(&Setting::Streams, text);
        }
        for text in ["1..8 x", "1..8 by 2", "1..8 log", "1..", "1..8 log 3 4"] {
            refused(&Setting::Streams, text);
        }
        let queue = Setting::Path("queue".to_owned());
        assert!(refused(&queue, "10p..100p").contains("list"));
    }

    #[test]
    fn a_value_is_checked_against_its_kind() {
        assert!(Setting::Window.level("64KiB").unwrap().number == Some(65_536.0));
        assert!(Setting::Window.level("64 apples").is_err());
        assert!(Setting::Streams.level("-1").is_err());
        let queue = Setting::Path("queue".to_owned()).level("fq_codel").unwrap();
        assert_eq!((queue.text.as_str(), queue.number), ("fq_codel", None));
        assert_eq!(Setting::Path("loss".to_owned()).level("1%").unwrap().number, Some(0.01));
    }

    #[test]
    fn names_are_those_of_tests_paths_and_sysctls() {
        for name in ["window", "streams", "rtt", "up.rate", "net.ipv4.tcp_sack", "queue"] {
            assert_eq!(Setting::parse(name).unwrap().to_string(), name);
        }
        assert!(Setting::parse("widnow").unwrap_err().contains("window"));
    }
}
