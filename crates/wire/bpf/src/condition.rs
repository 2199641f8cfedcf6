//! From what is asked for to tests of a packet's bytes.
//!
//! Offsets are those of libpcap: an IPv6 header is followed by the transport header, or by one
//! fragment header; ports are those of first fragments only.

use crate::FirstHeader;
use crate::expression::{Ends, Expression, Network, Prefix, Primitive, Version, number};
use core::net::IpAddr;

/// A combination of tests.
#[derive(Debug, Clone)]
pub(crate) enum Condition {
    /// Every one of them holds.
    All(Vec<Condition>),
    /// At least one of them holds.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// A field of the packet compares like this.
    Test { field: Field, mask: u32, comparison: Comparison, value: u32 },
}

/// A field that a program can load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// Bytes at an offset.
    At(Width, u32),
    /// Bytes behind the IPv4 header, which begins at the first offset, at the second one of it.
    BehindIpv4(u32, u32),
    /// The packet's length.
    Length,
    /// What the kernel knows of the packet (linux/filter.h, SKF_AD_OFF).
    Metadata(Metadata),
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Byte,
    Half,
    Word,
}

/// What the kernel knows of a packet, by its offset there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata {
    /// The EtherType.
    Protocol = 0,
    /// Received, sent, or of others (linux/if_packet.h).
    PacketType = 4,
    /// The VLAN tag that was taken off.
    VlanTag = 44,
    /// Whether one was.
    VlanTagPresent = 48,
}

/// How a field compares with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Greater,
    GreaterOrEqual,
    /// They have a bit in common.
    AnyBit,
}

/// EtherTypes (IEEE 802 registry).
const IPV4: u32 = 0x0800;
const ARP: u32 = 0x0806;
const RARP: u32 = 0x8035;
const IPV6: u32 = 0x86dd;
const VLANS: [u32; 3] = [0x8100, 0x88a8, 0x9100];

/// IPv6's next header that is a fragment header, and that header's length (RFC 8200).
const FRAGMENT: u32 = 44;
const IPV6_HEADER: u32 = 40;

/// PACKET_OUTGOING of linux/if_packet.h.
const OUTGOING: u32 = 4;

const TYPE: Field = Field::At(Width::Half, 12);

impl Condition {
    /// The tests of a filter for packets that begin with `first`.
    pub(crate) fn of(expression: &Expression, first: FirstHeader) -> Condition {
        let each = |parts: &[Expression]| parts.iter().map(|part| Self::of(part, first)).collect();
        match expression {
            Expression::All(parts) => Condition::All(each(parts)),
            Expression::Any(parts) => Condition::Any(each(parts)),
            Expression::Not(inner) => Condition::Not(Box::new(Self::of(inner, first))),
            Expression::Primitive(primitive) => Headers::begin_with(first).primitive(primitive),
        }
    }

    fn equal(field: Field, value: u32) -> Condition {
        Condition::Test { field, mask: u32::MAX, comparison: Comparison::Equal, value }
    }

    fn equals_any<const N: usize>(field: Field, values: [u32; N]) -> Condition {
        Condition::Any(values.map(|value| Self::equal(field, value)).into())
    }

    fn has_bits(field: Field, value: u32) -> Condition {
        Condition::Test { field, mask: u32::MAX, comparison: Comparison::AnyBit, value }
    }
}

/// Where the headers of a packet are.
#[derive(Debug, Clone, Copy)]
struct Headers {
    /// The EtherType.
    ether_type: Field,
    /// Offset of the network header.
    network: u32,
}

impl Headers {
    fn begin_with(first: FirstHeader) -> Headers {
        match first {
            FirstHeader::Ethernet => Headers { ether_type: TYPE, network: 14 },
            FirstHeader::Network => {
                Headers { ether_type: Field::Metadata(Metadata::Protocol), network: 0 }
            }
        }
    }

    fn primitive(self, primitive: &Primitive) -> Condition {
        match *primitive {
            Primitive::Network(network) => self.is(network),
            Primitive::Transport(version, protocol) => self.transport(version, protocol),
            Primitive::Address(network, ends, prefix) => self.address(network, ends, prefix),
            Primitive::Port(protocol, ends, range) => self.port(protocol, ends, range),
            Primitive::Vlan(identifier) => self.vlan(identifier),
            Primitive::AtMost(bytes) => Condition::Not(Box::new(Condition::Test {
                field: Field::Length,
                mask: u32::MAX,
                comparison: Comparison::Greater,
                value: bytes,
            })),
            Primitive::AtLeast(bytes) => Condition::Test {
                field: Field::Length,
                mask: u32::MAX,
                comparison: Comparison::GreaterOrEqual,
                value: bytes,
            },
            Primitive::Outbound => {
                Condition::equal(Field::Metadata(Metadata::PacketType), OUTGOING)
            }
        }
    }

    fn byte(self, offset: u32) -> Field {
        Field::At(Width::Byte, self.network + offset)
    }

    fn half(self, offset: u32) -> Field {
        Field::At(Width::Half, self.network + offset)
    }

    fn word(self, offset: u32) -> Field {
        Field::At(Width::Word, self.network + offset)
    }

    fn is(self, network: Network) -> Condition {
        let ether_type = match network {
            Network::Ip(Version::V4) => IPV4,
            Network::Ip(Version::V6) => IPV6,
            Network::Arp => ARP,
            Network::Rarp => RARP,
        };
        Condition::equal(self.ether_type, ether_type)
    }

    fn transport(self, version: Option<Version>, protocol: u8) -> Condition {
        let protocol = u32::from(protocol);
        let v4 = || {
            let is = self.is(Network::Ip(Version::V4));
            Condition::All(vec![is, Condition::equal(self.byte(9), protocol)])
        };
        let v6 = || {
            let next = self.byte(6);
            let behind_fragment = Condition::All(vec![
                Condition::equal(next, FRAGMENT),
                Condition::equal(self.byte(IPV6_HEADER), protocol),
            ]);
            let either = Condition::Any(vec![Condition::equal(next, protocol), behind_fragment]);
            Condition::All(vec![self.is(Network::Ip(Version::V6)), either])
        };
        match version {
            Some(Version::V4) => v4(),
            Some(Version::V6) => v6(),
            None => Condition::Any(vec![v4(), v6()]),
        }
    }

    /// Both ends' fields by which of them are asked for.
    fn ends(ends: Ends, source: Condition, destination: Condition) -> Condition {
        match ends {
            Ends::Source => source,
            Ends::Destination => destination,
            Ends::Either => Condition::Any(vec![source, destination]),
            Ends::Both => Condition::All(vec![source, destination]),
        }
    }

    fn address(self, network: Option<Network>, ends: Ends, prefix: Prefix) -> Condition {
        // Where the address of the source is, and where that of the destination.
        let in_header = |offsets: [u32; 2]| {
            let [source, destination] = offsets.map(|offset| self.in_prefix(offset, prefix));
            Self::ends(ends, source, destination)
        };
        let of = |network: Network| {
            let offsets = match network {
                Network::Ip(Version::V4) => [12, 16],
                Network::Ip(Version::V6) => [8, 24],
                // Of Ethernet and IPv4 (RFC 826).
                Network::Arp | Network::Rarp => [14, 24],
            };
            Condition::All(vec![self.is(network), in_header(offsets)])
        };
        match (network, prefix.address) {
            (Some(network), _) => of(network),
            (None, IpAddr::V6(_)) => of(Network::Ip(Version::V6)),
            (None, IpAddr::V4(_)) => Condition::Any(vec![
                of(Network::Ip(Version::V4)),
                of(Network::Arp),
                of(Network::Rarp),
            ]),
        }
    }

    /// Whether the address at `offset` is in a prefix: its words but those that are of any value.
    fn in_prefix(self, offset: u32, prefix: Prefix) -> Condition {
        let words: Vec<u32> = match prefix.address {
            IpAddr::V4(address) => vec![address.into()],
            IpAddr::V6(address) => {
                let bytes = address.octets();
                bytes.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect()
            }
        };
        let tests = (0_u32..).zip(words).filter_map(|(index, value)| {
            let bits = u32::from(prefix.length).saturating_sub(32 * index).min(32);
            let mask = !u32::MAX.checked_shr(bits).unwrap_or(0);
            let field = self.word(offset + 4 * index);
            (bits > 0).then_some(Condition::Test {
                field,
                mask,
                comparison: Comparison::Equal,
                value: value & mask,
            })
        });
        Condition::All(tests.collect())
    }

    fn port(self, protocol: Option<u8>, ends: Ends, range: [u16; 2]) -> Condition {
        let has_protocol = |field: Field| match protocol {
            Some(protocol) => Condition::equal(field, u32::from(protocol)),
            None => {
                let with_ports = [number::SCTP, number::TCP, number::UDP];
                Condition::equals_any(field, with_ports.map(u32::from))
            }
        };
        let [source, destination] = [0, 2].map(|offset| {
            let behind = Field::BehindIpv4(self.network, offset);
            (in_range(behind, range), in_range(self.half(IPV6_HEADER + offset), range))
        });
        let v4 = Condition::All(vec![
            self.is(Network::Ip(Version::V4)),
            has_protocol(self.byte(9)),
            // Only a first fragment has the ports.
            Condition::Not(Box::new(Condition::has_bits(self.half(6), 0x1fff))),
            Self::ends(ends, source.0, destination.0),
        ]);
        let v6 = Condition::All(vec![
            self.is(Network::Ip(Version::V6)),
            has_protocol(self.byte(6)),
            Self::ends(ends, source.1, destination.1),
        ]);
        Condition::Any(vec![v6, v4])
    }

    /// A tag that the kernel took off, or one that is still there.
    fn vlan(self, identifier: Option<u16>) -> Condition {
        let with = |present: Condition, tag: Field| match identifier {
            None => present,
            Some(identifier) => Condition::All(vec![
                present,
                Condition::Test {
                    field: tag,
                    mask: 0xfff,
                    comparison: Comparison::Equal,
                    value: u32::from(identifier),
                },
            ]),
        };
        let present = Condition::equal(Field::Metadata(Metadata::VlanTagPresent), 1);
        let in_packet = Condition::equals_any(self.ether_type, VLANS);
        Condition::Any(vec![
            with(present, Field::Metadata(Metadata::VlanTag)),
            with(in_packet, self.half(0)),
        ])
    }
}

fn in_range(field: Field, [first, last]: [u16; 2]) -> Condition {
    let (first, last) = (u32::from(first), u32::from(last));
    if first == last {
        return Condition::equal(field, first);
    }
    let test = |comparison, value| Condition::Test { field, mask: u32::MAX, comparison, value };
    let above = test(Comparison::Greater, last);
    Condition::All(vec![test(Comparison::GreaterOrEqual, first), Condition::Not(Box::new(above))])
}
