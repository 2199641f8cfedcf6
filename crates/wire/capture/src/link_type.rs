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
    /// FDDI.
    pub const FDDI: LinkType = LinkType(10);
    /// PPP in frames as of HDLC, or Cisco's HDLC, by the first byte.
    pub const PPP_HDLC: LinkType = LinkType(50);
    /// The session stage of PPPoE, without Ethernet.
    pub const PPP_ETHER: LinkType = LinkType(51);
    /// Raw IP, of either version.
    pub const RAW: LinkType = LinkType(101);
    /// Cisco's HDLC.
    pub const CISCO_HDLC: LinkType = LinkType(104);
    /// IEEE 802.11.
    pub const IEEE802_11: LinkType = LinkType(105);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux cooked, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IEEE 802.11 after a header of the Prism driver.
    pub const PRISM: LinkType = LinkType(119);
    /// IEEE 802.11 after radiotap.
    pub const RADIOTAP: LinkType = LinkType(127);
    /// IEEE 802.11 after a header of the AVS driver.
    pub const AVS: LinkType = LinkType(163);
    /// PPP as pppd writes it, with the direction in place of the address.
    pub const PPP_PPPD: LinkType = LinkType(166);
    /// Per-packet information, and what it says that follows.
    pub const PPI: LinkType = LinkType(192);
    /// PPP after a byte of direction.
    pub const PPP_WITH_DIRECTION: LinkType = LinkType(204);
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
            LinkType::PPP | LinkType::PPP_PPPD | LinkType::PPP_WITH_DIRECTION => "PPP",
            LinkType::PPP_HDLC => "PPP or Cisco HDLC",
            LinkType::PPP_ETHER => "PPPoE",
            LinkType::CISCO_HDLC => "Cisco HDLC",
            LinkType::FDDI => "FDDI",
            LinkType::IEEE802_11 => "802.11",
            LinkType::PRISM => "802.11 with Prism header",
            LinkType::RADIOTAP => "802.11 with radiotap",
            LinkType::AVS => "802.11 with AVS header",
            LinkType::PPI => "PPI",
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
