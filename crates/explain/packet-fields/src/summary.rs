//! The columns of a packet list, as Wireshark has them.

mod info;
mod messages;

use crate::view::PacketView;
use capture::dissect::Protocol;
use core::fmt::Write;
use core::net::{Ipv4Addr, Ipv6Addr};
use tcp_analysis::Flags;

/// The columns of a packet. One value is used for all packets, and its texts are written
/// anew.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Address of the sender: of the innermost IP header, or of Ethernet.
    pub source: String,
    /// Address of the receiver.
    pub destination: String,
    /// The protocol of the innermost header that is dissected.
    pub protocol: &'static str,
    /// Marks of the analysis, such as `[TCP Retransmission]`; with a space at the end of
    /// each.
    pub marks: String,
    /// Ports, flags, numbers; or what the packet is.
    pub info: String,
}

impl Summary {
    /// Fills the columns for a packet. The only text of the file in them are names of multicast
    /// DNS, in which other characters than graphic ASCII are replaced.
    pub fn fill(&mut self, view: &PacketView<'_>) {
        self.clear();
        let (mut innermost, mut ip) = (None, None);
        let mut ethernet = None;
        for (place, (protocol, _)) in view.layers.iter().enumerate() {
            match protocol {
                Protocol::Ipv4 | Protocol::Ipv6 => (ip, innermost) = (Some(place), Some(place)),
                Protocol::Ethernet => (ethernet, innermost) = (Some(place), Some(place)),
                Protocol::Data | Protocol::Raw => {}
                _ => innermost = Some(place),
            }
        }
        self.addresses(view, ip, ethernet);
        let found = innermost.and_then(|place| view.layers.get(place));
        self.protocol = found.map_or("data", |(protocol, _)| title(protocol));
        // Formatting into a string cannot fail.
        let _ = info::write(self, view, innermost);
    }

    fn clear(&mut self) {
        for text in [&mut self.source, &mut self.destination, &mut self.marks, &mut self.info] {
            text.clear();
        }
    }

    fn addresses(&mut self, view: &PacketView<'_>, ip: Option<usize>, ethernet: Option<usize>) {
        let header = |place: usize| {
            let (protocol, layer) = view.layers.get(place)?;
            Some((protocol, view.bytes(place, layer)))
        };
        let ip = ip.and_then(header);
        let texts = (&mut self.source, &mut self.destination);
        let written = match ip {
            Some((Protocol::Ipv4, bytes)) => bytes.get(12..20).map(|addresses| {
                let mut each = addresses.as_chunks::<4>().0.iter().map(|it| Ipv4Addr::from(*it));
                let _ = each.next().map(|it| write!(texts.0, "{it}"));
                each.next().map(|it| write!(texts.1, "{it}"))
            }),
            Some((_, bytes)) => bytes.get(8..40).map(|addresses| {
                let mut each = addresses.as_chunks::<16>().0.iter().map(|it| Ipv6Addr::from(*it));
                let _ = each.next().map(|it| write!(texts.0, "{it}"));
                each.next().map(|it| write!(texts.1, "{it}"))
            }),
            None => None,
        };
        if written.is_none()
            && let Some((_, bytes)) = ethernet.and_then(header)
            && let Some(addresses) = bytes.get(..12)
        {
            let (destination, source) = addresses.split_at(6);
            info::write_ethernet(&mut self.source, source);
            info::write_ethernet(&mut self.destination, destination);
        }
    }
}

/// The name in the protocol column.
fn title(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::None | Protocol::Data | Protocol::Raw => "data",
        Protocol::Ethernet => "Ethernet",
        Protocol::LinuxCooked => "SLL",
        Protocol::Null => "Null",
        Protocol::Ppp => "PPP",
        Protocol::Vlan | Protocol::ServiceVlan => "VLAN",
        Protocol::Llc => "LLC",
        Protocol::Mpls => "MPLS",
        Protocol::PppoeDiscovery => "PPPoED",
        Protocol::PppoeSession => "PPPoES",
        Protocol::Arp => "ARP",
        Protocol::Ipv4 => "IPv4",
        Protocol::Ipv6 => "IPv6",
        Protocol::Authentication => "AH",
        Protocol::Esp => "ESP",
        Protocol::Gre => "GRE",
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::UdpLite => "UDPlite",
        Protocol::Sctp => "SCTP",
        Protocol::Dccp => "DCCP",
        Protocol::Icmp => "ICMP",
        Protocol::Icmpv6 => "ICMPv6",
        Protocol::Igmp => "IGMP",
        Protocol::Vxlan => "VXLAN",
        Protocol::GtpU => "GTP",
        Protocol::Geneve => "Geneve",
        Protocol::Erspan => "ERSPAN",
        Protocol::Teredo => "Teredo",
        Protocol::Radiotap | Protocol::Prism | Protocol::Avs | Protocol::Ppi => "radio",
        Protocol::WlanRadio | Protocol::Wlan => "802.11",
        Protocol::CiscoHdlc => "HDLC",
        Protocol::Fddi => "FDDI",
        Protocol::EtherIp => "EtherIP",
        Protocol::Quic => "QUIC",
        Protocol::Mdns => "MDNS",
        Protocol::Dhcpv6 => "DHCPv6",
        Protocol::Stp => "STP",
        Protocol::Iperf3 => "iperf3",
        Protocol::Truncated => "truncated",
        Protocol::Malformed => "malformed",
    }
}

/// Marks of the analysis in the order in which Wireshark writes them.
const MARKS: [(Flags, &str); 15] = [
    (Flags::ZERO_WINDOW_PROBE_ACK, "TCP ZeroWindowProbeAck"),
    (Flags::ZERO_WINDOW, "TCP ZeroWindow"),
    (Flags::ZERO_WINDOW_PROBE, "TCP ZeroWindowProbe"),
    (Flags::DUPLICATE_ACK, "TCP Dup ACK"),
    (Flags::KEEP_ALIVE_ACK, "TCP Keep-Alive ACK"),
    (Flags::KEEP_ALIVE, "TCP Keep-Alive"),
    (Flags::WINDOW_FULL, "TCP Window Full"),
    (Flags::WINDOW_UPDATE, "TCP Window Update"),
    (Flags::ACK_LOST_SEGMENT, "TCP ACKed unseen segment"),
    (Flags::LOST_SEGMENT, "TCP Previous segment not captured"),
    (Flags::REUSED_PORTS, "TCP Port numbers reused"),
    (Flags::OUT_OF_ORDER, "TCP Out-Of-Order"),
    (Flags::FAST_RETRANSMISSION, "TCP Fast Retransmission"),
    (Flags::SPURIOUS_RETRANSMISSION, "TCP Spurious Retransmission"),
    (Flags::RETRANSMISSION, "TCP Retransmission"),
];
