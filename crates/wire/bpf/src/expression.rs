//! What a filter asks for.

use core::net::IpAddr;

/// A filter, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    /// Every one of them; with none, any packet.
    All(Vec<Expression>),
    /// At least one of them.
    Any(Vec<Expression>),
    /// Not this.
    Not(Box<Expression>),
    /// One property of a packet.
    Primitive(Primitive),
}

/// One property of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Primitive {
    /// The network layer is this protocol.
    Network(Network),
    /// The transport layer is the protocol of this number, over one version of IP or any.
    Transport(Option<Version>, u8),
    /// An address is in this prefix.
    Address(Option<Network>, Ends, Prefix),
    /// A port is in this range; of one protocol, or of TCP, UDP and SCTP.
    Port(Option<u8>, Ends, [u16; 2]),
    /// The packet has a VLAN tag, with this identifier or any.
    Vlan(Option<u16>),
    /// It has at most so many bytes.
    AtMost(u32),
    /// It has at least so many bytes.
    AtLeast(u32),
    /// This host sent it.
    Outbound,
}

/// A protocol of the network layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    Ip(Version),
    Arp,
    Rarp,
}

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

/// Which end of a packet a property is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Source,
    Destination,
    Either,
    Both,
}

/// Addresses with the same first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) address: IpAddr,
    /// Bits.
    pub(crate) length: u8,
}

impl Prefix {
    /// One address.
    pub(crate) fn host(address: IpAddr) -> Self {
        Prefix { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether no bit behind the prefix is set.
    pub(crate) fn is_network(self) -> bool {
        match self.address {
            IpAddr::V4(address) => {
                let rest = u32::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
                u32::from(address) & rest == 0
            }
            IpAddr::V6(address) => {
                let rest = u128::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
                u128::from(address) & rest == 0
            }
        }
    }
}

/// Protocol numbers of IP (IANA).
pub(crate) mod number {
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const IGMP: u8 = 2;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const GRE: u8 = 47;
    pub(crate) const ESP: u8 = 50;
    pub(crate) const AH: u8 = 51;
    pub(crate) const ICMP6: u8 = 58;
    pub(crate) const SCTP: u8 = 132;
}
