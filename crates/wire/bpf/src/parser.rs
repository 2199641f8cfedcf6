//! From words to an expression. As in pcap-filter(7), `and` and `or` have equal precedence and
//! associate to the left, `not` binds tighter, and an identifier alone has the qualifiers of the
//! one before: `tcp port 80 or 443`.

use crate::expression::{Ends, Expression, Network, Prefix, Primitive, Version, number};
use crate::{FilterError, MAX_NESTING, words};
use core::net::{IpAddr, Ipv4Addr};

pub(crate) fn parse(
    filter: &str,
    resolve: &mut dyn FnMut(&str) -> Vec<IpAddr>,
) -> Result<Expression, FilterError> {
    let words = words::split(filter)?;
    let mut parser = Parser { words: &words, last: None, nesting: 0, resolve };
    if words.is_empty() {
        return Ok(Expression::All(Vec::new()));
    }
    let expression = parser.expression()?;
    match parser.next() {
        None => Ok(expression),
        Some(word) => Err(unexpected(Some(word), "'and', 'or' or the end")),
    }
}

/// What an identifier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Host, Kind::Net, Kind::Port, Kind::PortRange];

    fn name(self) -> &'static str {
        match self {
            Kind::Host => "host",
            Kind::Net => "net",
            Kind::Port => "port",
            Kind::PortRange => "portrange",
        }
    }

    fn of(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == word)
    }
}

/// A protocol before an identifier, or alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Network(Network),
    Transport(u8),
}

/// Every protocol by its name. ICMP and IGMP are IPv4's only, ICMPv6 is IPv6's.
const PROTOCOLS: [(&str, Protocol, Option<Version>); 10] = [
    ("ip", Protocol::Network(Network::Ip(Version::V4)), None),
    ("ip6", Protocol::Network(Network::Ip(Version::V6)), None),
    ("arp", Protocol::Network(Network::Arp), None),
    ("rarp", Protocol::Network(Network::Rarp), None),
    ("tcp", Protocol::Transport(number::TCP), None),
    ("udp", Protocol::Transport(number::UDP), None),
    ("sctp", Protocol::Transport(number::SCTP), None),
    ("icmp", Protocol::Transport(number::ICMP), Some(Version::V4)),
    ("igmp", Protocol::Transport(number::IGMP), Some(Version::V4)),
    ("icmp6", Protocol::Transport(number::ICMP6), Some(Version::V6)),
];

/// Names of protocols after `proto`.
const NUMBERS: [(&str, u8); 9] = [
    ("icmp", number::ICMP),
    ("igmp", number::IGMP),
    ("tcp", number::TCP),
    ("udp", number::UDP),
    ("gre", number::GRE),
    ("esp", number::ESP),
    ("ah", number::AH),
    ("icmp6", number::ICMP6),
    ("sctp", number::SCTP),
];

/// What comes before an identifier.
#[derive(Debug, Clone, Copy)]
struct Qualifiers {
    protocol: Option<&'static str>,
    ends: Ends,
    kind: Kind,
}

struct Parser<'w, 'r> {
    words: &'w [String],
    /// The qualifiers of the last identifier.
    last: Option<Qualifiers>,
    nesting: usize,
    resolve: &'r mut dyn FnMut(&str) -> Vec<IpAddr>,
}

impl<'w> Parser<'w, '_> {
    fn peek(&self) -> Option<&'w str> {
        self.words.first().map(String::as_str)
    }

    fn next(&mut self) -> Option<&'w str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn expression(&mut self) -> Result<Expression, FilterError> {
        let mut left = self.term()?;
        loop {
            left = match self.peek() {
                Some("and") => {
                    self.next();
                    let right = self.term()?;
                    match left {
                        Expression::All(mut parts) => {
                            parts.push(right);
                            Expression::All(parts)
                        }
                        other => Expression::All(vec![other, right]),
                    }
                }
                Some("or") => {
                    self.next();
                    let right = self.term()?;
                    match left {
                        Expression::Any(mut parts) => {
                            parts.push(right);
                            Expression::Any(parts)
                        }
                        other => Expression::Any(vec![other, right]),
                    }
                }
                _ => return Ok(left),
            }
        }
    }

    fn term(&mut self) -> Result<Expression, FilterError> {
        match self.peek() {
            Some("not" | "!") => {
                self.next();
                let inner = self.nested(Self::term)?;
                Ok(Expression::Not(Box::new(inner)))
            }
            Some("(") => {
                self.next();
                let inner = self.nested(Self::expression)?;
                match self.next() {
                    Some(")") => Ok(inner),
                    other => Err(unexpected(other, "')'")),
                }
            }
            Some(word) => self.primitive(word),
            None => Err(unexpected(None, "an expression")),
        }
    }

    fn nested(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Expression, FilterError>,
    ) -> Result<Expression, FilterError> {
        if self.nesting == MAX_NESTING {
            return Err(FilterError::TooDeep);
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn primitive(&mut self, word: &'w str) -> Result<Expression, FilterError> {
        let simple = |primitive| Ok(Expression::Primitive(primitive));
        match word {
            "vlan" => {
                self.next();
                let identifier = self.peek().and_then(|word| word.parse::<u16>().ok());
                if let Some(identifier) = identifier {
                    self.next();
                    if identifier > 0xfff {
                        return Err(unexpected(Some(&identifier.to_string()), "a VLAN identifier"));
                    }
                }
                simple(Primitive::Vlan(identifier))
            }
            "less" | "greater" => {
                self.next();
                let found = self.next();
                let bytes = found.and_then(|word| word.parse().ok());
                let bytes = bytes.ok_or_else(|| unexpected(found, "a number of bytes"))?;
                simple(if word == "less" {
                    Primitive::AtMost(bytes)
                } else {
                    Primitive::AtLeast(bytes)
                })
            }
            "outbound" | "inbound" => {
                self.next();
                let outbound = Expression::Primitive(Primitive::Outbound);
                Ok(if word == "outbound" { outbound } else { Expression::Not(Box::new(outbound)) })
            }
            _ => self.qualified(),
        }
    }

    /// `[protocol] [src|dst] [host|net|port|portrange] identifier`, `[ip|ip6] proto number`, or
    /// a protocol alone.
    fn qualified(&mut self) -> Result<Expression, FilterError> {
        let protocol = self.peek().and_then(|word| PROTOCOLS.iter().find(|row| row.0 == word));
        if protocol.is_some() {
            self.next();
        }
        if self.peek() == Some("proto") {
            self.next();
            return self.numbered(protocol.map(|row| (row.0, row.1)));
        }
        let ends = self.ends()?;
        let kind = self.peek().and_then(Kind::of);
        if kind.is_some() {
            self.next();
        }
        if let (Some((_, protocol, version)), None, None) = (protocol, ends, kind) {
            return Ok(Expression::Primitive(match *protocol {
                Protocol::Network(network) => Primitive::Network(network),
                Protocol::Transport(number) => Primitive::Transport(*version, number),
            }));
        }
        let qualifiers = match (protocol, ends, kind, self.last) {
            (None, None, None, Some(last)) => last,
            _ => Qualifiers {
                protocol: protocol.map(|row| row.0),
                ends: ends.unwrap_or(Ends::Either),
                kind: kind.unwrap_or(Kind::Host),
            },
        };
        let found = self.next();
        let word = found.filter(|word| !["and", "or", "not", "!", "(", ")"].contains(word));
        let Some(word) = word else {
            return Err(unexpected(found, "an address, a number or a name"));
        };
        // Without any qualifier, a word that is no address is none that a filter has.
        let bare = protocol.is_none() && ends.is_none() && kind.is_none();
        if bare && (self.last.is_none() || !word.starts_with(|c: char| c.is_ascii_hexdigit())) {
            match word.parse::<IpAddr>() {
                Ok(_) => {}
                Err(_) if word.contains(['[', '=', '<', '>', '&', '|']) => {
                    return Err(FilterError::Bytes { word: excerpt(word) });
                }
                Err(_) => return Err(FilterError::Unsupported { word: excerpt(word) }),
            }
        }
        self.last = Some(qualifiers);
        self.identifier(qualifiers, word)
    }

    /// `src`, `dst`, `src or dst`, `src and dst`.
    fn ends(&mut self) -> Result<Option<Ends>, FilterError> {
        let one = |word: Option<&str>| match word {
            Some("src") => Some(Ends::Source),
            Some("dst") => Some(Ends::Destination),
            _ => None,
        };
        let Some(first) = one(self.peek()) else { return Ok(None) };
        self.next();
        let second = one(self.words.get(1).map(String::as_str));
        let ends = match (self.peek(), second) {
            (Some("or"), Some(second)) if second != first => Ends::Either,
            (Some("and"), Some(second)) if second != first => Ends::Both,
            _ => return Ok(Some(first)),
        };
        self.words = self.words.get(2..).unwrap_or_default();
        Ok(Some(ends))
    }

    fn numbered(
        &mut self,
        protocol: Option<(&'static str, Protocol)>,
    ) -> Result<Expression, FilterError> {
        let version = match protocol {
            None => None,
            Some((_, Protocol::Network(Network::Ip(version)))) => Some(version),
            Some((qualifier, _)) => {
                return Err(FilterError::Qualifier { qualifier, kind: "proto" });
            }
        };
        let found = self.next();
        let name = found.unwrap_or_default();
        // tcpdump's keywords have a backslash there.
        let name = name.strip_prefix('\\').unwrap_or(name);
        let known = NUMBERS.iter().find(|row| row.0 == name).map(|row| row.1);
        let number = known.or_else(|| name.parse().ok());
        let number = number.ok_or_else(|| unexpected(found, "a protocol's number or name"))?;
        Ok(Expression::Primitive(Primitive::Transport(version, number)))
    }

    fn identifier(
        &mut self,
        qualifiers: Qualifiers,
        word: &str,
    ) -> Result<Expression, FilterError> {
        let Qualifiers { protocol, ends, kind } = qualifiers;
        let row = PROTOCOLS.iter().find(|row| Some(row.0) == protocol);
        let misplaced = |qualifier| FilterError::Qualifier { qualifier, kind: kind.name() };
        match kind {
            Kind::Host | Kind::Net => {
                let network = match row {
                    None => None,
                    Some((_, Protocol::Network(network), _)) => Some(*network),
                    Some((name, ..)) => return Err(misplaced(name)),
                };
                let prefixes = match kind {
                    Kind::Net => vec![net(word)?],
                    _ => self.host(word, network)?,
                };
                let one = |prefix: Prefix| {
                    let has_v6 = prefix.address.is_ipv6();
                    if network.is_some_and(|it| has_v6 != (it == Network::Ip(Version::V6))) {
                        return Err(unexpected(Some(word), "an address of that protocol"));
                    }
                    Ok(Expression::Primitive(Primitive::Address(network, ends, prefix)))
                };
                match prefixes.as_slice() {
                    [only] => one(*only),
                    all => {
                        all.iter().copied().map(one).collect::<Result<_, _>>().map(Expression::Any)
                    }
                }
            }
            Kind::Port | Kind::PortRange => {
                let transport = match row {
                    None => None,
                    Some((
                        _,
                        Protocol::Transport(number @ (number::TCP | number::UDP | number::SCTP)),
                        _,
                    )) => Some(*number),
                    Some((name, ..)) => return Err(misplaced(name)),
                };
                let range = ports(word, kind)?;
                Ok(Expression::Primitive(Primitive::Port(transport, ends, range)))
            }
        }
    }

    /// An address, or those of a name that have the version of IP asked for.
    fn host(&mut self, word: &str, network: Option<Network>) -> Result<Vec<Prefix>, FilterError> {
        if let Ok(address) = word.parse::<IpAddr>() {
            return Ok(vec![Prefix::host(address)]);
        }
        if word.contains('/') {
            return Err(unexpected(Some(word), "an address (net has a prefix length)"));
        }
        let mut found = (self.resolve)(word);
        found.retain(|address| {
            network.is_none_or(|it| address.is_ipv6() == (it == Network::Ip(Version::V6)))
        });
        if found.is_empty() {
            return Err(FilterError::Name { name: excerpt(word) });
        }
        Ok(found.into_iter().map(Prefix::host).collect())
    }
}

/// A network: `10.0.0.0/8`, `fd00::/8`, or the first numbers of one: `192.168`.
fn net(word: &str) -> Result<Prefix, FilterError> {
    let wrong = || unexpected(Some(word), "a network such as 192.0.2.0/24 or 2001:db8::/32");
    let (address, length) = match word.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().map_err(|_| wrong())?)),
        None => (word, None),
    };
    let prefix = match address.parse::<IpAddr>() {
        Ok(address) => Prefix { address, ..Prefix::host(address) },
        Err(_) => short_net(address).ok_or_else(wrong)?,
    };
    let length = length.unwrap_or(prefix.length);
    if length > Prefix::host(prefix.address).length {
        return Err(wrong());
    }
    let prefix = Prefix { length, ..prefix };
    if !prefix.is_network() {
        return Err(FilterError::HostBits { text: excerpt(word) });
    }
    Ok(prefix)
}

/// `10`, `10.1` or `10.1.2`, of 8, 16 or 24 bits.
fn short_net(word: &str) -> Option<Prefix> {
    let mut octets = [0; 4];
    let numbers: Vec<&str> = word.split('.').collect();
    if numbers.len() > 3 {
        return None;
    }
    for (octet, number) in octets.iter_mut().zip(&numbers) {
        *octet = number.parse().ok()?;
    }
    let length = u8::try_from(8 * numbers.len()).ok()?;
    Some(Prefix { address: Ipv4Addr::from(octets).into(), length })
}

fn ports(word: &str, kind: Kind) -> Result<[u16; 2], FilterError> {
    let port = |text: &str| text.parse::<u16>().ok();
    let range = match (kind, word.split_once('-')) {
        (Kind::PortRange, Some((first, last))) => port(first).zip(port(last)),
        _ => port(word).map(|port| (port, port)),
    };
    let range = range.map(|(first, last)| [first.min(last), first.max(last)]);
    let expected = match kind {
        Kind::PortRange => "a range of ports such as 5201-5210",
        _ => "a port number",
    };
    range.ok_or_else(|| unexpected(Some(word), expected))
}

fn unexpected(found: Option<&str>, expected: &'static str) -> FilterError {
    let found = match found {
        Some(word) => format!("'{}'", excerpt(word)),
        None => "its end".to_owned(),
    };
    FilterError::Expected { found, expected }
}

/// The beginning of a word, for a message of one line.
fn excerpt(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests;
