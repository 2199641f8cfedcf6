//! Values of settings, read.

use crate::program::Program;
use crate::setting::{Setting, ValueKind};
use model::IpVersion;
use record::{Direction, Protocol};
use std::sync::Arc;
use units::{BitRate, ByteCount, LossRatio, Rtt};

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
    ) -> Result<Self, String> {
        let named = |wrong| format!("{setting}={text}: {wrong}");
        Ok(match setting {
            Setting::OfFlow(_, setting) => return Value::of(setting, text, programs),
            Setting::Protocol => Value::Protocol(protocol(text).map_err(named)?),
            Setting::Program => Value::Program(program(text, programs).map_err(named)?),
            Setting::Ip => Value::Ip(ip(text).map_err(named)?),
            Setting::Direction => Value::Direction(direction(text).map_err(named)?),
            Setting::Source => Value::Source(Source::parse(text).map_err(named)?),
            Setting::Buffers => Value::Buffers(Buffers::parse(text).map_err(named)?),
            Setting::Hosts => Value::Hosts(Hosts::parse(text)?),
            Setting::Congestion => congestion(text).map(|()| Value::Word).map_err(named)?,
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
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "memory" => Ok(Source::Memory),
            "file" => Ok(Source::File),
            _ => Err(format!("no source '{text}'; sources are memory and file")),
        }
    }
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

    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=MAX_HOSTS).contains(n));
        let hosts = text.split_once('x').and_then(|(clients, servers)| {
            Some(Hosts { clients: number(clients)?, servers: number(servers)? })
        });
        hosts.filter(|hosts| hosts.servers <= hosts.clients).ok_or_else(|| {
            format!(
                "hosts = '{text}'; write clients x servers, such as 4x2: 1 to {MAX_HOSTS} of each, \
                 not more servers than clients"
            )
        })
    }
}

impl Buffers {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "tuned" => Ok(Buffers::Tuned),
            "kernel" => Ok(Buffers::Kernel),
            _ => Err(format!("no buffers '{text}'; buffers are tuned and kernel")),
        }
    }
}

/// The name of longhaul's own client and server among the programs.
pub(crate) const LONGHAUL: &str = "longhaul";

fn protocol(text: &str) -> Result<Protocol, String> {
    match text {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        "udt" => Ok(Protocol::Udt),
        _ => Err(format!("no protocol '{text}'; protocols are tcp, udp and udt")),
    }
}

/// `None`: longhaul's own client and server.
fn program(text: &str, programs: &[Arc<Program>]) -> Result<Option<Arc<Program>>, String> {
    if text == LONGHAUL {
        return Ok(None);
    }
    let all = || programs.iter().chain(Program::built_in());
    let found = all().find(|program| program.name == text).cloned();
    found.map(Some).ok_or_else(|| {
        let known: Vec<&str> = all().map(|program| program.name.as_str()).collect();
        format!(
            "no program '{text}'; programs are {LONGHAUL}, {}, and those of [programs.NAME]",
            known.join(", ")
        )
    })
}

fn ip(text: &str) -> Result<IpVersion, String> {
    match text {
        "4" => Ok(IpVersion::Ipv4),
        "6" => Ok(IpVersion::Ipv6),
        _ => Err(format!("no IP version '{text}'; versions are 4 and 6")),
    }
}

fn direction(text: &str) -> Result<Direction, String> {
    match text {
        "forward" => Ok(Direction::Forward),
        "reverse" => Ok(Direction::Reverse),
        "both" => Ok(Direction::Both),
        _ => Err(format!("no direction '{text}'; directions are forward, reverse and both")),
    }
}

fn congestion(text: &str) -> Result<(), String> {
    let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = (1..16).contains(&text.len()) && text.chars().all(named);
    is_name.then_some(()).ok_or_else(|| format!("'{text}' is not a congestion control"))
}

pub(crate) fn number_of(kind: ValueKind, text: &str) -> Result<f64, String> {
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
    number.ok_or_else(|| format!("'{text}' is not {wanted}"))
}
