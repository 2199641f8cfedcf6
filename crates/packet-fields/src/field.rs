//! The fields of packets, by the names that Wireshark's filters have.

use crate::value::Kind;
use capture::dissect::Protocol;

/// What the table says of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// Its name in filters.
    pub name: &'static str,
    /// Whose header it is in; [`Protocol::None`] for those of the frame.
    pub protocol: Protocol,
    /// What its values are.
    pub kind: Kind,
    /// Wireshark's label.
    pub label: &'static str,
}

macro_rules! fields {
    ($($protocol:ident: { $($id:ident $name:literal $kind:ident $(($size:literal))? $label:literal,)* })*) => {
        /// A field.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the table has their names")]
        pub enum Field { $($($id,)*)* }

        impl Field {
            /// Every field, those of a protocol together.
            pub const ALL: &[Field] = &[$($(Field::$id,)*)*];

            /// What the table says of it.
            #[must_use]
            pub const fn description(self) -> Description {
                match self {
                    $($(Field::$id => Description {
                        name: $name,
                        protocol: Protocol::$protocol,
                        kind: Kind::$kind $(($size))?,
                        label: $label,
                    },)*)*
                }
            }
        }
    };
}

fields! {
    None: {
        FrameNumber "frame.number" Decimal(32) "Frame number",
        FrameTimeEpoch "frame.time_epoch" Time "Time since 1970",
        FrameTimeRelative "frame.time_relative" Time "Time since first frame",
        FrameTimeDelta "frame.time_delta" Time "Time since previous frame",
        FrameLen "frame.len" Decimal(32) "Length on the wire",
        FrameCapLen "frame.cap_len" Decimal(32) "Captured length",
        FrameInterfaceId "frame.interface_id" Decimal(32) "Interface",
        FrameComment "frame.comment" Text "Comment",
    }
    Ethernet: {
        EthDst "eth.dst" Ethernet "Destination",
        EthSrc "eth.src" Ethernet "Source",
        EthAddr "eth.addr" Ethernet "Source or destination",
        EthType "eth.type" Hex(16) "Type",
        EthLen "eth.len" Decimal(16) "Length",
    }
    LinuxCooked: {
        SllPktType "sll.pkttype" Decimal(16) "Packet type",
        SllEthertype "sll.etype" Hex(16) "Protocol",
    }
    Vlan: {
        VlanPriority "vlan.priority" Decimal(16) "Priority",
        VlanDei "vlan.dei" Boolean "DEI",
        VlanId "vlan.id" Decimal(16) "ID",
        VlanEtype "vlan.etype" Hex(16) "Type",
    }
    ServiceVlan: {
        ServiceVlanPriority "ieee8021ad.priority" Decimal(16) "Priority",
        ServiceVlanDei "ieee8021ad.dei" Decimal(16) "DEI",
        ServiceVlanId "ieee8021ad.id" Decimal(16) "ID",
    }
    Mpls: {
        MplsLabel "mpls.label" Decimal(32) "Label",
        MplsExp "mpls.exp" Decimal(32) "Traffic class",
        MplsBottom "mpls.bottom" Decimal(32) "Bottom of stack",
        MplsTtl "mpls.ttl" Decimal(32) "TTL",
    }
    Arp: {
        ArpHwType "arp.hw.type" Decimal(16) "Hardware type",
        ArpProtoType "arp.proto.type" Hex(16) "Protocol type",
        ArpOpcode "arp.opcode" Decimal(16) "Opcode",
        ArpSrcHwMac "arp.src.hw_mac" Ethernet "Sender MAC address",
        ArpSrcProtoIpv4 "arp.src.proto_ipv4" Ipv4 "Sender IP address",
        ArpDstHwMac "arp.dst.hw_mac" Ethernet "Target MAC address",
        ArpDstProtoIpv4 "arp.dst.proto_ipv4" Ipv4 "Target IP address",
    }
    Ipv4: {
        IpVersion "ip.version" Decimal(8) "Version",
        IpHdrLen "ip.hdr_len" Decimal(8) "Header length",
        IpDsfield "ip.dsfield" Hex(8) "Differentiated services",
        IpDscp "ip.dsfield.dscp" Decimal(8) "DSCP",
        IpEcn "ip.dsfield.ecn" Decimal(8) "ECN",
        IpLen "ip.len" Decimal(16) "Total length",
        IpId "ip.id" Hex(16) "Identification",
        IpFlags "ip.flags" Hex(8) "Flags",
        IpFlagsRb "ip.flags.rb" Boolean "Reserved bit",
        IpFlagsDf "ip.flags.df" Boolean "Don't fragment",
        IpFlagsMf "ip.flags.mf" Boolean "More fragments",
        IpFragOffset "ip.frag_offset" Decimal(16) "Fragment offset in units of 8 bytes",
        IpTtl "ip.ttl" Decimal(8) "Time to live",
        IpProto "ip.proto" Decimal(8) "Protocol",
        IpChecksum "ip.checksum" Hex(16) "Header checksum",
        IpSrc "ip.src" Ipv4 "Source",
        IpDst "ip.dst" Ipv4 "Destination",
        IpAddr "ip.addr" Ipv4 "Source or destination",
        IpReassembledLength "ip.reassembled.length" Decimal(32) "Length of the reassembled payload",
    }
    Ipv6: {
        Ipv6Version "ipv6.version" Decimal(8) "Version",
        Ipv6Tclass "ipv6.tclass" Hex(32) "Traffic class",
        Ipv6Dscp "ipv6.tclass.dscp" Decimal(32) "DSCP",
        Ipv6Ecn "ipv6.tclass.ecn" Decimal(32) "ECN",
        Ipv6Flow "ipv6.flow" Hex(24) "Flow label",
        Ipv6Plen "ipv6.plen" Decimal(16) "Payload length",
        Ipv6Nxt "ipv6.nxt" Decimal(8) "Next header",
        Ipv6Hlim "ipv6.hlim" Decimal(8) "Hop limit",
        Ipv6Src "ipv6.src" Ipv6 "Source",
        Ipv6Dst "ipv6.dst" Ipv6 "Destination",
        Ipv6Addr "ipv6.addr" Ipv6 "Source or destination",
        Ipv6FragOffset "ipv6.fraghdr.offset" Decimal(16) "Fragment offset in units of 8 bytes",
        Ipv6FragMore "ipv6.fraghdr.more" Boolean "More fragments",
        Ipv6FragIdent "ipv6.fraghdr.ident" Hex(32) "Fragment identification",
    }
    Gre: {
        GreProto "gre.proto" Hex(16) "Protocol type",
        GreKey "gre.key" Hex(32) "Key",
    }
    Tcp: {
        TcpSrcport "tcp.srcport" Decimal(16) "Source port",
        TcpDstport "tcp.dstport" Decimal(16) "Destination port",
        TcpPort "tcp.port" Decimal(16) "Source or destination port",
        TcpStream "tcp.stream" Decimal(32) "Stream",
        TcpCompleteness "tcp.completeness" Decimal(8) "Captured before: 1 SYN, 2 SYN-ACK, 4 ACK, 8 data, 16 FIN, 32 RST",
        TcpLen "tcp.len" Decimal(32) "Payload length",
        TcpSeq "tcp.seq" Decimal(32) "Sequence number, relative",
        TcpSeqRaw "tcp.seq_raw" Decimal(32) "Sequence number",
        TcpNxtseq "tcp.nxtseq" Decimal(32) "Next sequence number, relative",
        TcpAck "tcp.ack" Decimal(32) "Acknowledgment number, relative",
        TcpAckRaw "tcp.ack_raw" Decimal(32) "Acknowledgment number",
        TcpHdrLen "tcp.hdr_len" Decimal(8) "Header length",
        TcpFlags "tcp.flags" Hex(16) "Flags",
        TcpFlagsRes "tcp.flags.res" Boolean "Reserved",
        TcpFlagsAe "tcp.flags.ae" Boolean "Accurate ECN",
        TcpFlagsAce "tcp.flags.ace" Decimal(8) "Counter of AccECN: AE, CWR and ECE as a number",
        TcpFlagsCwr "tcp.flags.cwr" Boolean "Congestion window reduced",
        TcpFlagsEce "tcp.flags.ece" Boolean "ECN-Echo",
        TcpFlagsUrg "tcp.flags.urg" Boolean "Urgent",
        TcpFlagsAck "tcp.flags.ack" Boolean "Acknowledgment",
        TcpFlagsPush "tcp.flags.push" Boolean "Push",
        TcpFlagsReset "tcp.flags.reset" Boolean "Reset",
        TcpFlagsSyn "tcp.flags.syn" Boolean "Syn",
        TcpFlagsFin "tcp.flags.fin" Boolean "Fin",
        TcpWindowSizeValue "tcp.window_size_value" Decimal(16) "Window as sent",
        TcpWindowSize "tcp.window_size" Decimal(32) "Window, scaled",
        TcpWindowSizeScalefactor "tcp.window_size_scalefactor" Signed "Window scale factor; -1 unknown, -2 not scaled",
        TcpChecksum "tcp.checksum" Hex(16) "Checksum",
        TcpUrgentPointer "tcp.urgent_pointer" Decimal(16) "Urgent pointer",
        TcpOptions "tcp.options" Bytes "Options",
        TcpOptionKind "tcp.option_kind" Decimal(8) "Kind of an option",
        TcpOptionsMss "tcp.options.mss_val" Decimal(16) "MSS",
        TcpOptionsWscaleShift "tcp.options.wscale.shift" Decimal(8) "Window scale shift",
        TcpOptionsWscaleMultiplier "tcp.options.wscale.multiplier" Decimal(16) "Window scale factor",
        TcpOptionsSackPerm "tcp.options.sack_perm" Presence "SACK permitted",
        TcpOptionsSackLe "tcp.options.sack_le" Decimal(32) "SACK left edge, relative",
        TcpOptionsSackRe "tcp.options.sack_re" Decimal(32) "SACK right edge, relative",
        TcpOptionsSackCount "tcp.options.sack.count" Decimal(8) "SACK blocks",
        TcpOptionsTsval "tcp.options.timestamp.tsval" Decimal(32) "Timestamp value",
        TcpOptionsTsecr "tcp.options.timestamp.tsecr" Decimal(32) "Timestamp echo reply",
        TcpTimeRelative "tcp.time_relative" Time "Time since the stream's first frame",
        TcpTimeDelta "tcp.time_delta" Time "Time since the stream's previous frame",
        TcpPayload "tcp.payload" Bytes "Payload",
        TcpAnalysis "tcp.analysis" Presence "Analysis",
        TcpAnalysisFlags "tcp.analysis.flags" Presence "Any analysis flag",
        TcpAnalysisRetransmission "tcp.analysis.retransmission" Presence "Retransmission, of any kind",
        TcpAnalysisFastRetransmission "tcp.analysis.fast_retransmission" Presence "Fast retransmission",
        TcpAnalysisSpuriousRetransmission "tcp.analysis.spurious_retransmission" Presence "Spurious retransmission",
        TcpAnalysisOutOfOrder "tcp.analysis.out_of_order" Presence "Out of order",
        TcpAnalysisDuplicateAck "tcp.analysis.duplicate_ack" Presence "Duplicate ACK",
        TcpAnalysisAckLostSegment "tcp.analysis.ack_lost_segment" Presence "ACK of a segment that was not captured",
        TcpAnalysisLostSegment "tcp.analysis.lost_segment" Presence "Previous segment not captured",
        TcpAnalysisZeroWindow "tcp.analysis.zero_window" Presence "Zero window",
        TcpAnalysisZeroWindowProbe "tcp.analysis.zero_window_probe" Presence "Zero-window probe",
        TcpAnalysisZeroWindowProbeAck "tcp.analysis.zero_window_probe_ack" Presence "ACK of a zero-window probe",
        TcpAnalysisWindowFull "tcp.analysis.window_full" Presence "Window full",
        TcpAnalysisWindowUpdate "tcp.analysis.window_update" Presence "Window update",
        TcpAnalysisKeepAlive "tcp.analysis.keep_alive" Presence "Keep-alive",
        TcpAnalysisKeepAliveAck "tcp.analysis.keep_alive_ack" Presence "ACK of a keep-alive",
        TcpAnalysisReusedPorts "tcp.analysis.reused_ports" Presence "Ports reused",
        TcpAnalysisDuplicateAckNum "tcp.analysis.duplicate_ack_num" Decimal(32) "Duplicate ACK number",
        TcpAnalysisDuplicateAckFrame "tcp.analysis.duplicate_ack_frame" Decimal(32) "Frame whose ACK it repeats",
        TcpAnalysisAcksFrame "tcp.analysis.acks_frame" Decimal(32) "Frame that it acknowledges",
        TcpAnalysisAckRtt "tcp.analysis.ack_rtt" Time "RTT of that segment",
        TcpAnalysisInitialRtt "tcp.analysis.initial_rtt" Time "Initial RTT of the stream",
        TcpAnalysisBytesInFlight "tcp.analysis.bytes_in_flight" Decimal(32) "Bytes in flight",
        TcpAnalysisRto "tcp.analysis.rto" Time "Time since the oldest unacknowledged segment",
    }
    Udp: {
        UdpSrcport "udp.srcport" Decimal(16) "Source port",
        UdpDstport "udp.dstport" Decimal(16) "Destination port",
        UdpPort "udp.port" Decimal(16) "Source or destination port",
        UdpLength "udp.length" Decimal(16) "Length",
        UdpChecksum "udp.checksum" Hex(16) "Checksum",
        UdpStream "udp.stream" Decimal(32) "Stream",
        UdpPayload "udp.payload" Bytes "Payload",
    }
    Icmp: {
        IcmpType "icmp.type" Decimal(8) "Type",
        IcmpCode "icmp.code" Decimal(8) "Code",
        IcmpChecksum "icmp.checksum" Hex(16) "Checksum",
        IcmpIdent "icmp.ident" Decimal(16) "Identifier",
        IcmpSeq "icmp.seq" Decimal(16) "Sequence number",
    }
    Icmpv6: {
        Icmpv6Type "icmpv6.type" Decimal(8) "Type",
        Icmpv6Code "icmpv6.code" Decimal(8) "Code",
        Icmpv6Checksum "icmpv6.checksum" Hex(16) "Checksum",
        Icmpv6Ident "icmpv6.echo.identifier" Decimal(16) "Identifier",
        Icmpv6Seq "icmpv6.echo.sequence_number" Decimal(16) "Sequence number",
    }
    Vxlan: {
        VxlanVni "vxlan.vni" Decimal(24) "Network identifier",
    }
    GtpU: {
        GtpMessage "gtp.message" Hex(8) "Message type",
        GtpTeid "gtp.teid" Hex(32) "Tunnel endpoint identifier",
    }
    Quic: {
        QuicHeaderForm "quic.header_form" Decimal(8) "Header form",
        QuicVersion "quic.version" Hex(32) "Version",
        QuicPacketType "quic.long.packet_type" Decimal(8) "Packet type",
        QuicDcil "quic.dcil" Decimal(8) "Destination connection ID length",
        QuicDcid "quic.dcid" Bytes "Destination connection ID",
        QuicScil "quic.scil" Decimal(8) "Source connection ID length",
        QuicScid "quic.scid" Bytes "Source connection ID",
    }
    Data: {
        DataData "data.data" Bytes "Data",
        DataLen "data.len" Decimal(32) "Length",
    }
}

impl Field {
    /// The field of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.iter().find(|field| field.description().name == name).copied()
    }

    /// Whether its values are those of two other fields: source and destination.
    #[must_use]
    pub fn is_either(self) -> bool {
        use Field::{EthAddr, IpAddr, Ipv6Addr, TcpPort, UdpPort};
        matches!(self, EthAddr | IpAddr | Ipv6Addr | TcpPort | UdpPort)
    }

    /// Whether a header of `protocol` has it.
    #[must_use]
    #[inline]
    pub fn is_of(self, protocol: Protocol) -> bool {
        let own = self.description().protocol;
        // Wireshark's IPv6 header has a hidden `ip.version`.
        own == protocol || (self == Field::IpVersion && protocol == Protocol::Ipv6)
    }
}

/// Protocols that filters can test for: the name, and the protocol; frames are
/// [`Protocol::None`].
pub fn protocols() -> impl Iterator<Item = (&'static str, Protocol)> {
    let name = |protocol: Protocol| match protocol {
        Protocol::None => "frame",
        other => other.name(),
    };
    Protocol::ALL.into_iter().map(move |protocol| (name(protocol), protocol))
}

/// The protocol of that name.
#[must_use]
pub fn protocol_from_name(name: &str) -> Option<Protocol> {
    protocols().find(|(its, _)| *its == name).map(|(_, protocol)| protocol)
}

/// The field or protocol whose name is nearest to `name`.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    let fields = Field::ALL.iter().map(|field| field.description().name);
    let names = fields.chain(protocols().map(|(name, _)| name));
    let scored = names.map(|its| (strsim::jaro_winkler(its, name), its));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.75).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_begin_with_their_protocol() {
        let mut names: Vec<&str> = Field::ALL.iter().map(|it| it.description().name).collect();
        names.extend(protocols().map(|(name, _)| name));
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for field in Field::ALL {
            let Description { name, protocol, .. } = field.description();
            let of = if protocol == Protocol::None { "frame" } else { protocol.name() };
            assert!(name.starts_with(&format!("{of}.")), "{name}");
            assert_eq!(Field::from_name(name), Some(*field));
        }
    }

    #[test]
    fn a_misspelt_name_has_a_neighbour() {
        assert_eq!(nearest("tcp.prot"), Some("tcp.port"));
        assert_eq!(nearest("ip.adr"), Some("ip.addr"));
        assert_eq!(nearest("zzz"), None);
    }
}
