//! Names of values, which filters may have in the place of numbers: `ip.proto == TCP`.

use crate::expert::{Group, Severity};
use crate::field::Field;
use crate::value::FieldKind;
use iperf3_proto::State;

type Names = &'static [(i64, &'static str)];

const STATUS: Names = &[(0, "Bad"), (1, "Good"), (2, "Unverified"), (3, "Not present")];

const ETHER_TYPES: Names = &[
    (0x0800, "IPv4"),
    (0x0806, "ARP"),
    (0x8100, "802.1Q Virtual LAN"),
    (0x86dd, "IPv6"),
    (0x8847, "MPLS label switched packet"),
    (0x8863, "PPPoE Discovery"),
    (0x8864, "PPPoE Session"),
    (0x88a8, "802.1ad Provider Bridge (Q-in-Q)"),
    (0x88cc, "802.1 Link Layer Discovery Protocol (LLDP)"),
];

const IP_PROTOCOLS: Names = &[
    (0, "IPv6 Hop-by-Hop Option"),
    (1, "ICMP"),
    (2, "IGMP"),
    (4, "IPIP"),
    (6, "TCP"),
    (17, "UDP"),
    (33, "DCCP"),
    (41, "IPv6"),
    (43, "IPv6-Route"),
    (44, "IPv6-Frag"),
    (47, "GRE"),
    (50, "ESP"),
    (51, "AH"),
    (58, "ICMPv6"),
    (88, "EIGRP"),
    (89, "OSPF IGP"),
    (103, "PIM"),
    (112, "VRRP"),
    (115, "L2TP"),
    (132, "SCTP"),
    (136, "UDPlite"),
];

const ARP_OPCODES: Names = &[(1, "request"), (2, "reply")];

const ECN: Names = &[
    (0, "Not ECN-Capable Transport"),
    (1, "ECN-Capable Transport codepoint '01'"),
    (2, "ECN-Capable Transport codepoint '10'"),
    (3, "Congestion Experienced"),
];

const DSCP: Names = &[
    (0, "Default"),
    (8, "Class Selector 1"),
    (10, "Assured Forwarding 11"),
    (12, "Assured Forwarding 12"),
    (14, "Assured Forwarding 13"),
    (16, "Class Selector 2"),
    (18, "Assured Forwarding 21"),
    (20, "Assured Forwarding 22"),
    (22, "Assured Forwarding 23"),
    (24, "Class Selector 3"),
    (26, "Assured Forwarding 31"),
    (28, "Assured Forwarding 32"),
    (30, "Assured Forwarding 33"),
    (32, "Class Selector 4"),
    (34, "Assured Forwarding 41"),
    (36, "Assured Forwarding 42"),
    (38, "Assured Forwarding 43"),
    (40, "Class Selector 5"),
    (46, "Expedited Forwarding"),
    (48, "Class Selector 6"),
    (56, "Class Selector 7"),
];

const SEVERITIES: Names = &[
    (Severity::Chat as i64, "Chat"),
    (Severity::Note as i64, "Note"),
    (Severity::Warning as i64, "Warning"),
    (Severity::Error as i64, "Error"),
];

const GROUPS: Names = &[
    (0x100_0000, "Checksum"),
    (Group::Sequence as i64, "Sequence"),
    (0x300_0000, "Response"),
    (0x400_0000, "Request"),
    (0x500_0000, "Undecoded"),
    (0x600_0000, "Reassemble"),
    (Group::Malformed as i64, "Malformed"),
    (0x800_0000, "Debug"),
    (0x900_0000, "Protocol"),
    (0xa00_0000, "Security"),
    (0xb00_0000, "Comment"),
];

const RCODES: Names = &[
    (0, "No error"),
    (1, "Format error"),
    (2, "Server failure"),
    (3, "No such name"),
    (4, "Not implemented"),
    (5, "Refused"),
];

const OPCODES: Names = &[
    (0, "Standard query"),
    (1, "Inverse query"),
    (2, "Server status request"),
    (4, "Zone change notification"),
    (5, "Dynamic update"),
];

pub(crate) const DNS_TYPES: Names = &[
    (1, "A (Host Address)"),
    (2, "NS (authoritative Name Server)"),
    (5, "CNAME (Canonical NAME for an alias)"),
    (6, "SOA (Start Of a zone of Authority)"),
    (12, "PTR (domain name PoinTeR)"),
    (15, "MX (Mail eXchange)"),
    (16, "TXT (Text strings)"),
    (28, "AAAA (IPv6 Address)"),
    (33, "SRV (Server Selection)"),
];

const CONTENT_TYPES: Names =
    &[(20, "Change Cipher Spec"), (21, "Alert"), (22, "Handshake"), (23, "Application Data")];

const HANDSHAKE_TYPES: Names = &[
    (1, "Client Hello"),
    (2, "Server Hello"),
    (4, "New Session Ticket"),
    (8, "Encrypted Extensions"),
    (11, "Certificate"),
    (12, "Server Key Exchange"),
    (13, "Certificate Request"),
    (14, "Server Hello Done"),
    (15, "Certificate Verify"),
    (16, "Client Key Exchange"),
    (20, "Finished"),
];

const TLS_VERSIONS: Names = &[
    (0x300, "SSL 3.0"),
    (0x301, "TLS 1.0"),
    (0x302, "TLS 1.1"),
    (0x303, "TLS 1.2"),
    (0x304, "TLS 1.3"),
];

const DHCP_MESSAGES: Names = &[
    (1, "Discover"),
    (2, "Offer"),
    (3, "Request"),
    (4, "Decline"),
    (5, "ACK"),
    (6, "NAK"),
    (7, "Release"),
    (8, "Inform"),
];

pub(crate) const DHCPV6_MESSAGES: Names = &[
    (1, "Solicit"),
    (2, "Advertise"),
    (3, "Request"),
    (4, "Confirm"),
    (5, "Renew"),
    (6, "Rebind"),
    (7, "Reply"),
    (8, "Release"),
    (9, "Decline"),
    (10, "Reconfigure"),
    (11, "Information-request"),
    (12, "Relay-forw"),
    (13, "Relay-reply"),
];

const STP_VERSIONS: Names = &[
    (0, "Spanning Tree"),
    (2, "Rapid Spanning Tree"),
    (3, "Multiple Spanning Tree"),
    (4, "Shortest Path Tree"),
];

const STP_TYPES: Names = &[
    (0, "Configuration"),
    (2, "Rapid/Multiple Spanning Tree"),
    (0x80, "Topology Change Notification"),
];

const STP_PORT_ROLES: Names =
    &[(0, "Unknown"), (1, "Alternate or Backup"), (2, "Root"), (3, "Designated")];

const fn state(state: State) -> (i64, &'static str) {
    (state as i8 as i64, state.name())
}

const IPERF3_STATES: Names = &[
    state(State::TestStart),
    state(State::TestRunning),
    state(State::TestEnd),
    state(State::ParamExchange),
    state(State::CreateStreams),
    state(State::ServerTerminate),
    state(State::ClientTerminate),
    state(State::ExchangeResults),
    state(State::DisplayResults),
    state(State::IperfDone),
    state(State::AccessDenied),
    state(State::ServerError),
];

const NTP_MODES: Names = &[
    (1, "symmetric active"),
    (2, "symmetric passive"),
    (3, "client"),
    (4, "server"),
    (5, "broadcast"),
];

const SET: Names = &[(1, "Set"), (0, "Not set"), (1, "True"), (0, "False")];
const GROUP_BIT: Names =
    &[(1, "Group address (multicast/broadcast)"), (0, "Individual address (unicast)")];
const LOCAL_BIT: Names = &[
    (1, "Locally administered address (this is NOT the factory default)"),
    (0, "Globally unique address (factory default)"),
];
const RESPONSE: Names = &[(1, "Message is a response"), (0, "Message is a query")];

/// The names of a field's values.
pub(crate) fn of(field: Field) -> Names {
    match field {
        Field::IpProto | Field::Ipv6Nxt => IP_PROTOCOLS,
        Field::EthType | Field::VlanEtype | Field::SllEthertype | Field::ArpProtoType => {
            ETHER_TYPES
        }
        Field::ArpOpcode => ARP_OPCODES,
        Field::IpEcn | Field::Ipv6Ecn => ECN,
        Field::IpDscp | Field::Ipv6Dscp => DSCP,
        Field::IpChecksumStatus
        | Field::TcpChecksumStatus
        | Field::UdpChecksumStatus
        | Field::IcmpChecksumStatus => STATUS,
        Field::ExpertSeverity => SEVERITIES,
        Field::ExpertGroup => GROUPS,
        Field::DnsFlagsRcode => RCODES,
        Field::DnsFlagsOpcode => OPCODES,
        Field::DnsQryType | Field::DnsRespType => DNS_TYPES,
        Field::DnsFlagsResponse => RESPONSE,
        Field::TlsRecordContentType => CONTENT_TYPES,
        Field::TlsHandshakeType => HANDSHAKE_TYPES,
        Field::TlsHandshakeVersion | Field::TlsRecordVersion => TLS_VERSIONS,
        Field::DhcpOptionDhcp => DHCP_MESSAGES,
        Field::Dhcpv6MsgType => DHCPV6_MESSAGES,
        Field::StpVersion => STP_VERSIONS,
        Field::StpType => STP_TYPES,
        Field::StpFlagsPortRole => STP_PORT_ROLES,
        Field::Iperf3State => IPERF3_STATES,
        Field::NtpFlagsMode => NTP_MODES,
        Field::EthIg | Field::EthDstIg | Field::EthSrcIg => GROUP_BIT,
        Field::EthLg | Field::EthDstLg | Field::EthSrcLg => LOCAL_BIT,
        _ if field.description().kind == FieldKind::Boolean => SET,
        _ => &[],
    }
}

/// The value of that name, without regard to case.
pub(crate) fn value_of(name: &[u8], names: &[(i64, &str)]) -> Option<i64> {
    let found = names.iter().find(|(_, its)| its.as_bytes().eq_ignore_ascii_case(name));
    found.map(|(value, _)| *value)
}
