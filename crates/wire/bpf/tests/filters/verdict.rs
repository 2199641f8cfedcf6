//! Random filters, and what the dissector says of a packet.

use crate::packets::{PORTS, V4, V6, below, one_of};
use capture::LinkType;
use capture::dissect::{Layers, PacketDirection, Protocol, dissect};
use rand_core::Rng;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A filter, as text by [`fmt::Display`].
#[derive(Debug)]
pub(crate) enum Filter {
    And(Box<Filter>, Box<Filter>),
    Or(Box<Filter>, Box<Filter>),
    Not(Box<Filter>),
    Protocol(&'static str),
    Host(&'static str, IpAddr),
    Net(&'static str, IpAddr, u8),
    Ports(&'static str, &'static str, [u16; 2]),
    Less(usize),
    Greater(usize),
}

const ENDS: [&str; 5] = ["", "src ", "dst ", "src or dst ", "src and dst "];

impl Filter {
    /// A random one.
    pub(crate) fn random(random: &mut impl Rng, depth: u32) -> Filter {
        if depth > 0 {
            let which = below(random, 5);
            let mut inner = || Box::new(Filter::random(random, depth - 1));
            match which {
                0 => return Filter::And(inner(), inner()),
                1 => return Filter::Or(inner(), inner()),
                2 => return Filter::Not(inner()),
                _ => {}
            }
        }
        let v4 = |random: &mut _| Ipv4Addr::from(one_of(random, &V4));
        match below(random, 7) {
            0 => Filter::Less(below(random, 150) as usize),
            1 => Filter::Greater(below(random, 150) as usize),
            2 => Filter::Host(one_of(random, &ENDS), v4(random).into()),
            3 => {
                let [a, b] = one_of(random, &V6);
                let last = u16::from_be_bytes([a, b]);
                let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
                if below(random, 2) == 0 {
                    return Filter::Host(one_of(random, &ENDS), address.into());
                }
                let length = one_of(random, &[0, 16, 32, 33, 64, 120, 128]);
                let bits = u128::from(address) & !u128::MAX.checked_shr(length).unwrap_or(0);
                Filter::Net(one_of(random, &ENDS), Ipv6Addr::from(bits).into(), length as u8)
            }
            4 => {
                let length = one_of(random, &[0, 8, 15, 16, 24, 31, 32]);
                let bits = u32::from(v4(random)) & !u32::MAX.checked_shr(length).unwrap_or(0);
                Filter::Net(one_of(random, &ENDS), Ipv4Addr::from(bits).into(), length as u8)
            }
            5 => {
                let first = one_of(random, &PORTS);
                let last = if below(random, 2) == 0 { first } else { one_of(random, &PORTS) };
                let ports = [first.min(last), first.max(last)];
                let protocol = one_of(random, &["", "tcp ", "udp ", "sctp "]);
                Filter::Ports(protocol, one_of(random, &ENDS), ports)
            }
            _ => {
                let all = ["ip", "ip6", "arp", "tcp", "udp", "sctp", "icmp", "icmp6"];
                Filter::Protocol(one_of(random, &all))
            }
        }
    }

    /// Whether the packet of these facts matches.
    pub(crate) fn matches(&self, facts: &Facts) -> bool {
        let ends = |ends: &str, holds: [bool; 2]| match ends {
            "src " => holds[0],
            "dst " => holds[1],
            "src and dst " => holds[0] && holds[1],
            _ => holds[0] || holds[1],
        };
        match self {
            Filter::And(left, right) => left.matches(facts) && right.matches(facts),
            Filter::Or(left, right) => left.matches(facts) || right.matches(facts),
            Filter::Not(inner) => !inner.matches(facts),
            Filter::Protocol(name) => facts.protocols.iter().any(|it| it.name() == its_name(name)),
            Filter::Host(which, address) => facts
                .addresses
                .is_some_and(|addresses| ends(which, addresses.map(|it| it == *address))),
            Filter::Net(which, network, length) => facts.addresses.is_some_and(|addresses| {
                ends(which, addresses.map(|it| is_in(it, *network, u32::from(*length))))
            }),
            Filter::Ports(protocol, which, [first, last]) => {
                let has = |it: &Protocol| protocol.is_empty() || it.name() == protocol.trim();
                facts.ports.is_some_and(|(of, ports)| {
                    has(&of) && ends(which, ports.map(|port| (*first..=*last).contains(&port)))
                })
            }
            Filter::Less(bytes) => facts.length <= *bytes,
            Filter::Greater(bytes) => facts.length >= *bytes,
        }
    }
}

/// The dissector's name of a protocol.
fn its_name(name: &str) -> &str {
    match name {
        "ip6" => "ipv6",
        "icmp6" => "icmpv6",
        other => other,
    }
}

fn is_in(address: IpAddr, network: IpAddr, length: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let differ = u32::from(address) ^ u32::from(network);
            differ.leading_zeros() >= length
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let differ = u128::from(address) ^ u128::from(network);
            differ.leading_zeros() >= length
        }
        _ => false,
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Filter::And(left, right) => write!(f, "({left}) and ({right})"),
            Filter::Or(left, right) => write!(f, "({left}) or ({right})"),
            Filter::Not(inner) => write!(f, "not ({inner})"),
            Filter::Protocol(name) => f.write_str(name),
            Filter::Host(ends, address) => write!(f, "{ends}host {address}"),
            Filter::Net(ends, address, length) => write!(f, "{ends}net {address}/{length}"),
            Filter::Ports(protocol, ends, [first, last]) if first == last => {
                write!(f, "{protocol}{ends}port {first}")
            }
            Filter::Ports(protocol, ends, [first, last]) => {
                write!(f, "{protocol}{ends}portrange {first}-{last}")
            }
            Filter::Less(bytes) => write!(f, "less {bytes}"),
            Filter::Greater(bytes) => write!(f, "greater {bytes}"),
        }
    }
}

/// What the dissector says of a packet.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) protocols: Vec<Protocol>,
    /// Source and destination.
    addresses: Option<[IpAddr; 2]>,
    ports: Option<(Protocol, [u16; 2])>,
    length: usize,
    pub(crate) is_fragment: bool,
}

impl Facts {
    /// Of an Ethernet frame.
    pub(crate) fn of(frame: &[u8]) -> Facts {
        let mut layers = Layers::new();
        dissect(LinkType::ETHERNET, frame, frame.len() as u32, &mut layers);
        let mut facts = Facts {
            protocols: layers.iter().map(|(protocol, _)| protocol).collect(),
            addresses: None,
            ports: None,
            length: frame.len(),
            is_fragment: layers.is_fragment(),
        };
        for (place, (protocol, layer)) in layers.iter().enumerate() {
            let start = layer.start as usize;
            match protocol {
                Protocol::Ipv4 | Protocol::Ipv6 => {
                    let (key, direction) = layers.addresses(place, frame).unwrap();
                    let [a, b] = [key.a_address(), key.b_address()];
                    facts.addresses =
                        Some(if direction == PacketDirection::AToB { [a, b] } else { [b, a] });
                }
                Protocol::Arp => {
                    let address = |at: usize| {
                        let bytes: [u8; 4] = frame[start + at..][..4].try_into().unwrap();
                        IpAddr::from(bytes)
                    };
                    facts.addresses = Some([address(14), address(24)]);
                }
                Protocol::Tcp | Protocol::Udp | Protocol::Sctp => {
                    let port =
                        |at: usize| u16::from_be_bytes([frame[start + at], frame[start + at + 1]]);
                    facts.ports = Some((protocol, [port(0), port(2)]));
                }
                _ => {}
            }
        }
        facts
    }
}
