//! A rule of `--allow`: `HOST:PORTS`, `ADDRESS:PORTS` or `PREFIX:PORTS`.

use super::AddressClass;
use lane::{HostName, Target, TargetHost};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Destinations that are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowRule {
    hosts: Hosts,
    ports: RangeInclusive<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    /// `*`: every public address.
    Public,
    /// A name: its public and private addresses.
    Name(HostName),
    /// Every address with this beginning, whatever its class.
    Prefix { address: IpAddr, length: u8 },
}

/// A text that is not a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// No host, address or prefix.
    #[error("use HOST:PORTS, ADDRESS:PORTS or PREFIX:PORTS, such as 10.0.0.0/8:22 or [::1]:80")]
    Hosts,
    /// No ports.
    #[error("ports are a port, a range such as 8000-8999, or * for all")]
    Ports,
    /// A prefix with bits beyond its length.
    #[error("the prefix has bits set beyond its length")]
    HostBits,
}

impl AllowRule {
    /// Returns true if the rule allows this address of a target. A name's addresses are in the hands
    /// of whoever answers for the name, so it reaches loopback, special and metadata addresses only by
    /// a rule that has the address; but `localhost` is always this host (RFC 6761, section 6.3).
    pub(super) fn admits(&self, target: &Target, address: SocketAddr, class: AddressClass) -> bool {
        self.ports.contains(&address.port())
            && match &self.hosts {
                Hosts::Public => class == AddressClass::Public,
                Hosts::Name(name) => {
                    is_name(target, name)
                        && match class {
                            AddressClass::Public | AddressClass::Private => true,
                            AddressClass::Loopback => same(name.as_str(), "localhost"),
                            AddressClass::Special | AddressClass::Metadata => false,
                        }
                }
                Hosts::Prefix { address: prefix, length } => {
                    has_prefix(address.ip(), *prefix, *length)
                }
            }
    }

    /// Returns true if some address of the target's name could be allowed.
    pub(super) fn may_match_name(&self, target: &Target) -> bool {
        self.ports.contains(&target.port)
            && match &self.hosts {
                Hosts::Public | Hosts::Prefix { .. } => true,
                Hosts::Name(name) => is_name(target, name),
            }
    }
}

fn is_name(target: &Target, wanted: &HostName) -> bool {
    matches!(&target.host, TargetHost::Name(name) if same(name.as_str(), wanted.as_str()))
}

fn same(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

fn has_prefix(address: IpAddr, prefix: IpAddr, length: u8) -> bool {
    match (address, prefix) {
        (IpAddr::V4(address), IpAddr::V4(prefix)) => {
            (address.to_bits() ^ prefix.to_bits()).leading_zeros() >= u32::from(length)
        }
        (IpAddr::V6(address), IpAddr::V6(prefix)) => {
            (address.to_bits() ^ prefix.to_bits()).leading_zeros() >= u32::from(length)
        }
        _ => false,
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Public => f.write_str("*")?,
            Hosts::Name(name) => name.fmt(f)?,
            Hosts::Prefix { address: IpAddr::V4(address), length: 32 } => address.fmt(f)?,
            Hosts::Prefix { address: IpAddr::V4(address), length } => {
                write!(f, "{address}/{length}")?;
            }
            Hosts::Prefix { address, length: 128 } => write!(f, "[{address}]")?,
            Hosts::Prefix { address, length } => write!(f, "[{address}/{length}]")?,
        }
        match (*self.ports.start(), *self.ports.end()) {
            (1, u16::MAX) => f.write_str(":*"),
            (first, last) if first == last => write!(f, ":{first}"),
            (first, last) => write!(f, ":{first}-{last}"),
        }
    }
}

impl FromStr for AllowRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let (hosts, ports) = text.rsplit_once(':').ok_or(InvalidRule::Ports)?;
        Ok(AllowRule { ports: parse_ports(ports)?, hosts: parse_hosts(hosts)? })
    }
}

fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, InvalidRule> {
    if text == "*" {
        return Ok(1..=u16::MAX);
    }
    let port = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().filter(|port| *port > 0)
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = port(first).zip(port(last)).ok_or(InvalidRule::Ports)?;
    if first > last { Err(InvalidRule::Ports) } else { Ok(first..=last) }
}

fn parse_hosts(text: &str) -> Result<Hosts, InvalidRule> {
    if text == "*" {
        return Ok(Hosts::Public);
    }
    // An IPv6 address without brackets has no unambiguous port.
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or(InvalidRule::Hosts)?,
        None if text.contains(':') => return Err(InvalidRule::Hosts),
        None => text,
    };
    let (host, length) = match bare.split_once('/') {
        Some((host, length)) => (host, Some(length.parse().map_err(|_| InvalidRule::Hosts)?)),
        None => (bare, None),
    };
    let address = match (host.parse().map_err(|_| InvalidRule::Hosts)?, length) {
        (TargetHost::Name(name), None) if bare == text => return Ok(Hosts::Name(name)),
        (TargetHost::Address(address), _) => address,
        _ => return Err(InvalidRule::Hosts),
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(bits);
    let trailing = match address {
        IpAddr::V4(address) => address.to_bits().trailing_zeros(),
        IpAddr::V6(address) => address.to_bits().trailing_zeros(),
    };
    if length > bits {
        return Err(InvalidRule::Hosts);
    }
    if trailing < u32::from(bits - length) {
        return Err(InvalidRule::HostBits);
    }
    Ok(Hosts::Prefix { address, length })
}
