//! Values of settings, read.

use crate::level::{MAX_LEVELS, MAX_STREAMS};
use crate::program::Program;
use crate::setting::{Setting, ValueKind};
use model::IpVersion;
use record::{Direction, Protocol};
use std::sync::Arc;
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// A text that is not a setting, or not a value of one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum ValueError {
    #[error("no {what} '{text}'; {known}")]
    Unknown { what: &'static str, text: String, known: String },
    #[error("{setting}={text}: {error}")]
    Of { setting: String, text: String, error: Box<ValueError> },
    #[error("'{text}' is not {wanted}")]
    Form { text: String, wanted: &'static str },
    #[error(
        "hosts = '{0}'; write clients x servers, such as 4x2: 1 to {MAX_HOSTS} of each, not more \
         servers than clients"
    )]
    Hosts(String),
    #[error("'{address}' is not an address at which clients reach {ssh}")]
    Address { address: String, ssh: String },
    #[error("{setting} has no values; write at least one")]
    NoValues { setting: String },
    #[error("{setting} has {count} values; at most {MAX_LEVELS}")]
    TooManyValues { setting: String, count: usize },
    #[error("{setting} takes words, not a range; write a list")]
    RangeOfWords { setting: String },
    #[error("the range '{0}' is empty; its first value is the lower one")]
    EmptyRange(String),
    #[error(
        "'{0}' cannot be divided like that; at most {MAX_LEVELS} values, a factor above 1, a step \
         above 0, and a first value above 0 for factors and log"
    )]
    Division(String),
    #[error("streams = {0}; it must be 1 to {MAX_STREAMS}")]
    Streams(String),
    #[error("{setting} must be {min} s to {max} s")]
    Time { setting: &'static str, min: f64, max: u64 },
    #[error("{setting} is not a setting of a flow; write it without '{flow}.'")]
    NotOfFlow { setting: String, flow: String },
}

impl ValueError {
    pub(crate) fn unknown(what: &'static str, text: &str, known: impl Into<String>) -> Self {
        ValueError::Unknown { what, text: text.to_owned(), known: known.into() }
    }

    pub(crate) fn form(text: &str, wanted: &'static str) -> Self {
        ValueError::Form { text: text.to_owned(), wanted }
    }
}

/// A value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// In the unit of the setting's [`ValueKind`].
    Number(f64),
    /// A multiple of the bandwidth-delay product of the path.
    Bdp(f64),
    /// What the flow is carried by.
    Protocol(Protocol),
    /// What transfers; `None`: longhaul's own client and server.
    Program(Option<Arc<Program>>),
    /// IPv4 or IPv6.
    Ip(IpVersion),
    /// Who sends.
    Direction(Direction),
    /// What is sent.
    Source(Source),
    /// What a cache has of an object.
    CacheState(CacheState),
    /// First and last byte of an object.
    Range(u64, u64),
    /// Limits of the hosts' socket buffers.
    Buffers(Buffers),
    /// Clients and servers.
    Hosts(Hosts),
    /// Its text: of a path, a congestion control, or a sysctl.
    Word,
}

impl Value {
    /// Reads what is not a multiple of the bandwidth-delay product.
    pub(crate) fn of(
        setting: &Setting,
        text: &str,
        programs: &[Arc<Program>],
    ) -> Result<Self, ValueError> {
        let named = |error| ValueError::Of {
            setting: setting.to_string(),
            text: text.to_owned(),
            error: Box::new(error),
        };
        Ok(match setting {
            Setting::OfFlow(_, setting) => return Value::of(setting, text, programs),
            Setting::Protocol => Value::Protocol(protocol(text).map_err(named)?),
            Setting::Program => Value::Program(program(text, programs).map_err(named)?),
            Setting::Ip => Value::Ip(ip(text).map_err(named)?),
            Setting::Direction => Value::Direction(direction(text).map_err(named)?),
            Setting::Source => Value::Source(Source::parse(text).map_err(named)?),
            Setting::CacheState => Value::CacheState(CacheState::parse(text).map_err(named)?),
            Setting::Range => range(text).map_err(named)?,
            Setting::Buffers => Value::Buffers(Buffers::parse(text).map_err(named)?),
            Setting::Hosts => Value::Hosts(Hosts::parse(text)?),
            Setting::Congestion => congestion(text).map(|()| Value::Word).map_err(named)?,
            Setting::Sysctl(_, name) if is_buffer(name) => {
                buffer_limit(text).map_or(Value::Word, |limit| Value::Number(limit as f64))
            }
            other if other.kind() == ValueKind::Word => Value::Word,
            // A path has words as well, such as `loss=ge:...`.
            Setting::Path(_) => number_of(setting.kind(), text).map_or(Value::Word, Value::Number),
            other => Value::Number(number_of(other.kind(), text)?),
        })
    }
}

/// What a flow sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    /// Data that the client makes.
    #[default]
    Memory,
    /// A file on a disk of the client's.
    File,
}

impl Source {
    fn parse(text: &str) -> Result<Self, ValueError> {
        match text {
            "memory" => Ok(Source::Memory),
            "file" => Ok(Source::File),
            _ => Err(ValueError::unknown("source", text, "sources are memory and file")),
        }
    }
}

/// What a cache between client and origin has of an object when it is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheState {
    /// Nothing.
    #[default]
    Cold,
    /// All of it, fresh.
    Warm,
    /// All of it, expired and unchanged at the origin.
    Expired,
}

impl CacheState {
    /// As written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CacheState::Cold => "cold",
            CacheState::Warm => "warm",
            CacheState::Expired => "expired",
        }
    }

    fn parse(text: &str) -> Result<Self, ValueError> {
        let all = [CacheState::Cold, CacheState::Warm, CacheState::Expired];
        all.into_iter().find(|state| state.name() == text).ok_or_else(|| {
            ValueError::unknown("state of a cache", text, "states are cold, warm and expired")
        })
    }
}

/// `FIRST-LAST`, from 0 on.
fn range(text: &str) -> Result<Value, ValueError> {
    let bounds = text.split_once('-').and_then(|(first, last)| {
        let bounds: (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        (bounds.0 <= bounds.1).then_some(bounds)
    });
    let (first, last) = bounds.ok_or_else(|| ValueError::form(text, "a range, such as 0-999"))?;
    Ok(Value::Range(first, last))
}

/// How many hosts begin connections, and how many accept them. Every flow of a plan is sent
/// once by each client: from client `n` to server `n`, modulo their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosts {
    /// 1 to 16.
    pub clients: u8,
    /// 1 to 16, not more than the clients.
    pub servers: u8,
}

/// The most hosts of one side.
const MAX_HOSTS: u8 = 16;

/// The limits of the hosts' socket buffers (`tcp_rmem`, `tcp_wmem`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Buffers {
    /// As large as the path needs.
    #[default]
    Tuned,
    /// The kernel's defaults.
    Kernel,
}

impl Hosts {
    /// One client and one server.
    pub const PAIR: Hosts = Hosts { clients: 1, servers: 1 };

    /// The name of a client's flow; clients count from 0, and in names from 1.
    #[must_use]
    pub fn flow_name(self, flow: &str, client: u8) -> String {
        match self.clients {
            1 => flow.to_owned(),
            _ => format!("{flow}-{}", u16::from(client) + 1),
        }
    }

    fn parse(text: &str) -> Result<Self, ValueError> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=MAX_HOSTS).contains(n));
        let hosts = text.split_once('x').and_then(|(clients, servers)| {
            Some(Hosts { clients: number(clients)?, servers: number(servers)? })
        });
        let hosts = hosts.filter(|hosts| hosts.servers <= hosts.clients);
        hosts.ok_or_else(|| ValueError::Hosts(text.to_owned()))
    }
}

impl Buffers {
    fn parse(text: &str) -> Result<Self, ValueError> {
        match text {
            "tuned" => Ok(Buffers::Tuned),
            "kernel" => Ok(Buffers::Kernel),
            _ => Err(ValueError::unknown("buffers", text, "buffers are tuned and kernel")),
        }
    }
}

/// The name of longhaul's own client and server among the programs.
pub(crate) const LONGHAUL: &str = "longhaul";

fn protocol(text: &str) -> Result<Protocol, ValueError> {
    match text {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        "udt" => Ok(Protocol::Udt),
        _ => Err(ValueError::unknown("protocol", text, "protocols are tcp, udp and udt")),
    }
}

/// `None`: longhaul's own client and server.
fn program(text: &str, programs: &[Arc<Program>]) -> Result<Option<Arc<Program>>, ValueError> {
    if text == LONGHAUL {
        return Ok(None);
    }
    let all = || programs.iter().chain(Program::built_in());
    let found = all().find(|program| program.name == text).cloned();
    found.map(Some).ok_or_else(|| {
        let known: Vec<&str> = all().map(|program| program.name.as_str()).collect();
        let known = known.join(", ");
        let known = format!("programs are {LONGHAUL}, {known}, and those of [programs.NAME]");
        ValueError::unknown("program", text, known)
    })
}

fn ip(text: &str) -> Result<IpVersion, ValueError> {
    match text {
        "4" => Ok(IpVersion::Ipv4),
        "6" => Ok(IpVersion::Ipv6),
        _ => Err(ValueError::unknown("IP version", text, "versions are 4 and 6")),
    }
}

fn direction(text: &str) -> Result<Direction, ValueError> {
    match text {
        "forward" => Ok(Direction::Forward),
        "reverse" => Ok(Direction::Reverse),
        "both" => Ok(Direction::Both),
        _ => {
            let known = "directions are forward, reverse and both";
            Err(ValueError::unknown("direction", text, known))
        }
    }
}

fn congestion(text: &str) -> Result<(), ValueError> {
    // The colon is of psockets:N.
    let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | ':');
    let is_name = (1..16).contains(&text.len()) && text.chars().all(named);
    is_name.then_some(()).ok_or_else(|| ValueError::form(text, "a congestion control"))
}

/// Returns true for the sysctls that bound TCP's socket buffers, which are compared by that bound.
pub(crate) fn is_buffer(name: &str) -> bool {
    ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"].contains(&name)
}

/// The limit, in bytes, of a text of three numbers: least, default and most.
pub(crate) fn buffer_limit(text: &str) -> Option<u64> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let [Ok(_), Ok(_), Ok(most)] = [numbers.next()?, numbers.next()?, numbers.next()?] else {
        return None;
    };
    numbers.next().is_none().then_some(most)
}

pub(crate) fn number_of(kind: ValueKind, text: &str) -> Result<f64, ValueError> {
    let finite = |number: f64| Some(number).filter(|n| n.is_finite() && *n >= 0.0);
    let number = match kind {
        ValueKind::Count => text.parse::<f64>().ok().and_then(finite),
        ValueKind::Bytes => text.parse::<ByteCount>().ok().map(ByteCount::as_f64),
        ValueKind::Rate => text.parse::<BitRate>().ok().map(BitRate::as_f64),
        ValueKind::Time => text.parse::<Rtt>().ok().map(Rtt::secs_f64),
        ValueKind::Share => text.parse::<LossRatio>().ok().map(LossRatio::fraction),
        ValueKind::Word => None,
    };
    let wanted = match kind {
        ValueKind::Count => "a number, such as 4",
        ValueKind::Bytes => "a size, such as 64KiB",
        ValueKind::Rate => "a rate, such as 100mbit",
        ValueKind::Time => "a time, such as 50ms",
        ValueKind::Share | ValueKind::Word => "a share, such as 0.1%",
    };
    number.ok_or_else(|| ValueError::form(text, wanted))
}
