//! Link types of pcap files (<https://www.tcpdump.org/linktypes.html>).

use std::fmt;

/// A link type by its number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in the byte order of the host.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// PPP.
    pub const PPP: LinkType = LinkType(9);
    /// Raw IP, of either version.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux cooked, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux cooked, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// The type's name; `None` for one that is not dissected.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            LinkType::NULL | LinkType::LOOP => "loopback",
            LinkType::ETHERNET => "Ethernet",
            LinkType::PPP => "PPP",
            // Some BSDs write their own number of raw IP.
            LinkType::RAW | LinkType(12 | 14) => "raw IP",
            LinkType::LINUX_SLL => "Linux cooked v1",
            LinkType::IPV4 => "raw IPv4",
            LinkType::IPV6 => "raw IPv6",
            LinkType::LINUX_SLL2 => "Linux cooked v2",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "link type {}", self.0),
        }
    }
}
