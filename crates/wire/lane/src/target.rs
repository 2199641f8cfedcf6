//! Where far is to connect: a name or an address, and a port.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;

/// Longest name in bytes (RFC 1035 section 2.3.4, as text without the last dot).
const MAX_NAME: usize = 253;
/// Longest label of a name in bytes (RFC 1035 section 2.3.4).
const MAX_LABEL: usize = 63;
/// Kinds of host in a message; those of SOCKS (RFC 1928 section 5).
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// Not one of SOCKS: far's name server, without a body.
const NAME_SERVER: u8 = 0x80;

/// The name of a host: letters, digits, hyphens, underscores and dots, at most 253.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostName(String);

/// A target's host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TargetHost {
    /// An address.
    Address(IpAddr),
    /// A name, which far resolves.
    Name(HostName),
    /// The name server that far uses itself, for DNS over TCP (RFC 7766); at port 53 only.
    NameServer,
}

/// A TCP endpoint that a flow is to reach.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Its host.
    pub host: TargetHost,
    /// Its port, not 0.
    pub port: u16,
}

/// A text or a message that is not a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// Not a name.
    #[error("a host name has 1 to 253 letters, digits, hyphens, underscores and dots")]
    Name,
    /// Port 0, or none.
    #[error("give a port from 1 to 65535, such as example.com:443 or [2001:db8::1]:443")]
    Port,
    /// Bytes of another form.
    #[error("the target of a message is malformed")]
    Malformed,
}

impl HostName {
    /// Checks a name. A dot at its end is dropped.
    ///
    /// # Errors
    /// [`InvalidTarget::Name`].
    pub fn new(name: &str) -> Result<Self, InvalidTarget> {
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_label =
            |label: &str| (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_valid);
        if name.len() > MAX_NAME || !name.split('.').all(is_label) {
            return Err(InvalidTarget::Name);
        }
        Ok(HostName(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetHost::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            TargetHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            TargetHost::Name(name) => name.fmt(f),
            TargetHost::NameServer => f.write_str("far's name server"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for TargetHost {
    type Err = InvalidTarget;

    /// A name or an address; IPv6 with or without brackets.
    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Ok(TargetHost::Address(address));
        }
        HostName::new(text).map(TargetHost::Name)
    }
}

impl FromStr for Target {
    type Err = InvalidTarget;

    /// `HOST:PORT`, `ADDRESS:PORT`, `[IPV6]:PORT`.
    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let (host, port) = text.rsplit_once(':').ok_or(InvalidTarget::Port)?;
        // `parse` accepts a sign.
        let port = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok());
        let port = port.flatten().ok_or(InvalidTarget::Port)?;
        if host.contains(':') && !host.starts_with('[') {
            return Err(InvalidTarget::Port);
        }
        Target::new(host.parse()?, port)
    }
}

impl Target {
    /// Longest body in bytes.
    pub const MAX_BYTES: usize = 4 + MAX_NAME;

    /// A target.
    ///
    /// # Errors
    /// [`InvalidTarget::Port`] for port 0.
    pub fn new(host: TargetHost, port: u16) -> Result<Self, InvalidTarget> {
        if port == 0 { Err(InvalidTarget::Port) } else { Ok(Target { host, port }) }
    }

    /// Far's name server.
    pub const NAME_SERVER: Target = Target { host: TargetHost::NameServer, port: 53 };

    /// The body of `Open`: port, kind of host, host; a name has its length before it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.port.to_be_bytes());
        match &self.host {
            TargetHost::Address(IpAddr::V4(address)) => {
                out.push(IPV4);
                out.extend_from_slice(&address.octets());
            }
            TargetHost::Address(IpAddr::V6(address)) => {
                out.push(IPV6);
                out.extend_from_slice(&address.octets());
            }
            TargetHost::Name(name) => {
                // A name has at most 253 bytes.
                out.extend_from_slice(&[NAME, name.0.len() as u8]);
                out.extend_from_slice(name.0.as_bytes());
            }
            TargetHost::NameServer => out.push(NAME_SERVER),
        }
    }

    /// Reads the body of `Open`.
    ///
    /// # Errors
    /// [`InvalidTarget`].
    pub fn decode(body: &[u8]) -> Result<Self, InvalidTarget> {
        let malformed = InvalidTarget::Malformed;
        let (port, body) = body.split_first_chunk::<2>().ok_or(malformed)?;
        let (kind, body) = body.split_first().ok_or(malformed)?;
        let host = match *kind {
            IPV4 => <[u8; 4]>::try_from(body).map(|octets| TargetHost::Address(octets.into())),
            IPV6 => <[u8; 16]>::try_from(body)
                .map(|octets| TargetHost::Address(Ipv6Addr::from(octets).into())),
            NAME => return Target::new(decode_name(body)?, u16::from_be_bytes(*port)),
            // Any other port would be a service of far's network.
            NAME_SERVER if body.is_empty() => {
                let is_dns = *port == Target::NAME_SERVER.port.to_be_bytes();
                return is_dns.then_some(Target::NAME_SERVER).ok_or(malformed);
            }
            _ => return Err(malformed),
        };
        Target::new(host.map_err(|_| malformed)?, u16::from_be_bytes(*port))
    }
}

fn decode_name(body: &[u8]) -> Result<TargetHost, InvalidTarget> {
    let (length, name) = body.split_first().ok_or(InvalidTarget::Malformed)?;
    if usize::from(*length) != name.len() {
        return Err(InvalidTarget::Malformed);
    }
    let name = core::str::from_utf8(name).map_err(|_| InvalidTarget::Name)?;
    HostName::new(name).map(TargetHost::Name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_written() {
        for text in ["example.com:443", "192.0.2.1:80", "[2001:db8::1]:65535", "a_b-c:1"] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
            let mut body = Vec::new();
            target.encode(&mut body);
            assert!(body.len() <= Target::MAX_BYTES);
            assert_eq!(Target::decode(&body), Ok(target));
        }
        let mut body = Vec::new();
        Target::NAME_SERVER.encode(&mut body);
        assert_eq!(Target::decode(&body), Ok(Target::NAME_SERVER));
    }

    #[test]
    fn what_is_no_target_is_refused() {
        let name = |label: usize, last: usize| {
            format!("{0}.{0}.{0}.{1}:1", "a".repeat(label), "a".repeat(last))
        };
        let (long, label) = (name(63, 62), name(64, 1));
        for text in [
            "", "a", "a:", "a:0", "a:65536", "a:x", "a:+1", ":1", ".:1", "a..b:1", "a b:1", "é:1",
            "::1:1", &long, &label,
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        let longest = name(63, 61).replace(':', ".:");
        assert!(longest.parse::<Target>().is_ok(), "a dot at the end is not counted");
        for body in [
            &[][..],
            &[0, 1],
            &[0, 1, IPV4, 1, 2, 3],
            &[0, 1, IPV4, 1, 2, 3, 4, 5],
            &[0, 0, IPV4, 1, 2, 3, 4],
            &[0, 1, NAME],
            &[0, 1, NAME, 0],
            &[0, 1, NAME, 2, b'a'],
            &[0, 1, NAME, 1, 0],
            &[0, 1, NAME, 2, 0xc3, 0xa9],
            &[0, 1, 2, 1, 2, 3, 4],
            &[0, 53, NAME_SERVER, 0],
            &[0, 54, NAME_SERVER],
            &[0, 22, NAME_SERVER],
            &[53, 0, NAME_SERVER],
        ] {
            assert!(Target::decode(body).is_err(), "{body:?}");
        }
    }
}
