//! The protocols that are dissected, by the names that Wireshark's filters have.

/// A protocol, as a row of the hierarchy. What is not listed is [`Protocol::Data`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of the protocols")]
pub enum Protocol {
    /// No layer.
    #[default]
    None = 0,
    Ethernet,
    /// Linux cooked capture, version 1 or 2.
    LinuxCooked,
    /// BSD loopback.
    Null,
    /// Raw IP, without a link layer.
    Raw,
    Ppp,
    Vlan,
    /// The outer tag of QinQ (IEEE 802.1ad).
    ServiceVlan,
    Llc,
    Mpls,
    PppoeDiscovery,
    PppoeSession,
    Arp,
    Ipv4,
    /// With its extension headers.
    Ipv6,
    Authentication,
    Esp,
    Gre,
    Tcp,
    Udp,
    UdpLite,
    Sctp,
    Dccp,
    Icmp,
    Icmpv6,
    Igmp,
    Vxlan,
    GtpU,
    Geneve,
    Erspan,
    Teredo,
    /// A header of radiotap before an 802.11 frame.
    Radiotap,
    /// That of the Prism or of the AVS driver.
    Prism,
    Avs,
    Ppi,
    /// What such headers say of the radio, which has no bytes of its own.
    WlanRadio,
    /// IEEE 802.11.
    Wlan,
    CiscoHdlc,
    Fddi,
    EtherIp,
    /// QUIC with a long header.
    Quic,
    /// Multicast DNS.
    Mdns,
    Dhcpv6,
    /// BPDUs of the spanning tree protocols.
    Stp,
    /// Messages of iperf3's control connection, which the caller names:
    /// [`Layers::name_payload`](super::Layers::name_payload).
    Iperf3,
    /// Whatever follows the last layer that is known.
    Data,
    /// The packet was captured in part, and ends inside of a header.
    Truncated,
    /// A header contradicts the length of the packet.
    Malformed,
}

impl Protocol {
    /// Every protocol, in the order of their numbers.
    pub const ALL: [Protocol; 48] = [
        Protocol::None,
        Protocol::Ethernet,
        Protocol::LinuxCooked,
        Protocol::Null,
        Protocol::Raw,
        Protocol::Ppp,
        Protocol::Vlan,
        Protocol::ServiceVlan,
        Protocol::Llc,
        Protocol::Mpls,
        Protocol::PppoeDiscovery,
        Protocol::PppoeSession,
        Protocol::Arp,
        Protocol::Ipv4,
        Protocol::Ipv6,
        Protocol::Authentication,
        Protocol::Esp,
        Protocol::Gre,
        Protocol::Tcp,
        Protocol::Udp,
        Protocol::UdpLite,
        Protocol::Sctp,
        Protocol::Dccp,
        Protocol::Icmp,
        Protocol::Icmpv6,
        Protocol::Igmp,
        Protocol::Vxlan,
        Protocol::GtpU,
        Protocol::Geneve,
        Protocol::Erspan,
        Protocol::Teredo,
        Protocol::Radiotap,
        Protocol::Prism,
        Protocol::Avs,
        Protocol::Ppi,
        Protocol::WlanRadio,
        Protocol::Wlan,
        Protocol::CiscoHdlc,
        Protocol::Fddi,
        Protocol::EtherIp,
        Protocol::Quic,
        Protocol::Mdns,
        Protocol::Dhcpv6,
        Protocol::Stp,
        Protocol::Iperf3,
        Protocol::Data,
        Protocol::Truncated,
        Protocol::Malformed,
    ];

    /// The name that Wireshark's filters and `tshark -z io,phs` use; `iperf3` is our own.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::None => "",
            Protocol::Ethernet => "eth",
            Protocol::LinuxCooked => "sll",
            Protocol::Null => "null",
            Protocol::Raw => "raw",
            Protocol::Ppp => "ppp",
            Protocol::Vlan => "vlan",
            Protocol::ServiceVlan => "ieee8021ad",
            Protocol::Llc => "llc",
            Protocol::Mpls => "mpls",
            Protocol::PppoeDiscovery => "pppoed",
            Protocol::PppoeSession => "pppoes",
            Protocol::Arp => "arp",
            Protocol::Ipv4 => "ip",
            Protocol::Ipv6 => "ipv6",
            Protocol::Authentication => "ah",
            Protocol::Esp => "esp",
            Protocol::Gre => "gre",
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::UdpLite => "udplite",
            Protocol::Sctp => "sctp",
            Protocol::Dccp => "dccp",
            Protocol::Icmp => "icmp",
            Protocol::Icmpv6 => "icmpv6",
            Protocol::Igmp => "igmp",
            Protocol::Vxlan => "vxlan",
            Protocol::GtpU => "gtp",
            Protocol::Geneve => "geneve",
            Protocol::Erspan => "erspan",
            Protocol::Teredo => "teredo",
            Protocol::Radiotap => "radiotap",
            Protocol::Prism => "prism",
            Protocol::Avs => "wlancap",
            Protocol::Ppi => "ppi",
            Protocol::WlanRadio => "wlan_radio",
            Protocol::Wlan => "wlan",
            Protocol::CiscoHdlc => "chdlc",
            Protocol::Fddi => "fddi",
            Protocol::EtherIp => "etherip",
            Protocol::Quic => "quic",
            Protocol::Mdns => "mdns",
            Protocol::Dhcpv6 => "dhcpv6",
            Protocol::Stp => "stp",
            Protocol::Iperf3 => "iperf3",
            Protocol::Data => "data",
            Protocol::Truncated => "_ws.short",
            Protocol::Malformed => "_ws.malformed",
        }
    }

    /// The protocol of that number.
    #[must_use]
    pub(crate) fn from_number(number: u8) -> Protocol {
        Protocol::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_list() {
        for (number, protocol) in Protocol::ALL.into_iter().enumerate() {
            assert_eq!(protocol as usize, number, "{protocol:?}");
            assert_eq!(Protocol::from_number(number as u8), protocol);
        }
    }
}
