//! The table of fields: names, kinds and labels.

use super::{Description, Owner};
use crate::application::Application;
use crate::value::FieldKind;
use capture::dissect::Protocol;

macro_rules! fields {
    ($($owner:expr => { $($id:ident $name:literal $kind:ident $(($size:literal))? $label:literal,)* })*) => {
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
                        owner: $owner,
                        kind: FieldKind::$kind $(($size))?,
                        label: $label,
                    },)*)*
                }
            }
        }
    };
}

fields! {
    Owner::Frame => {
        FrameNumber "frame.number" Decimal(32) "Frame number",
        FrameTime "frame.time" Date "Arrival time",
        FrameTimeEpoch "frame.time_epoch" Time "Time since 1970",
        FrameTimeRelative "frame.time_relative" Time "Time since first frame",
        FrameTimeDelta "frame.time_delta" Time "Time since previous frame",
        FrameTimeDeltaDisplayed "frame.time_delta_displayed" Time "Time since the previous frame that passed the filter",
        FrameLen "frame.len" Decimal(32) "Length on the wire",
        FrameCapLen "frame.cap_len" Decimal(32) "Captured length",
        FrameInterfaceId "frame.interface_id" Decimal(32) "Interface",
        FrameComment "frame.comment" Text "Comment",
        FrameProtocols "frame.protocols" Text "Protocols from the outside in",
        FrameMarked "frame.marked" Boolean "Marked; never",
        FrameIgnored "frame.ignored" Boolean "Ignored; never",
        FrameDirection "frame.packet_flags_direction" Hex(32) "Direction: 1 inbound, 2 outbound",
    }
    Owner::Header(Protocol::Ethernet) => {
        EthDst "eth.dst" Ethernet "Destination",
        EthSrc "eth.src" Ethernet "Source",
        EthAddr "eth.addr" Ethernet "Source or destination",
        EthType "eth.type" Hex(16) "Type",
        EthLen "eth.len" Decimal(16) "Length",
        EthIg "eth.ig" Boolean "Group bit of source or destination",
        EthLg "eth.lg" Boolean "Locally administered bit of source or destination",
        EthDstIg "eth.dst.ig" Boolean "Group bit of the destination",
        EthDstLg "eth.dst.lg" Boolean "Locally administered bit of the destination",
        EthSrcIg "eth.src.ig" Boolean "Group bit of the source",
        EthSrcLg "eth.src.lg" Boolean "Locally administered bit of the source",
        EthDstOui "eth.dst.oui" Hex(24) "Vendor of the destination",
        EthSrcOui "eth.src.oui" Hex(24) "Vendor of the source",
    }
    Owner::Header(Protocol::LinuxCooked) => {
        SllPktType "sll.pkttype" Decimal(16) "Packet type",
        SllEthertype "sll.etype" Hex(16) "Protocol",
    }
    Owner::Header(Protocol::Vlan) => {
        VlanPriority "vlan.priority" Decimal(16) "Priority",
        VlanDei "vlan.dei" Boolean "DEI",
        VlanId "vlan.id" Decimal(16) "ID",
        VlanEtype "vlan.etype" Hex(16) "Type",
    }
    Owner::Header(Protocol::ServiceVlan) => {
        ServiceVlanPriority "ieee8021ad.priority" Decimal(16) "Priority",
        ServiceVlanDei "ieee8021ad.dei" Decimal(16) "DEI",
        ServiceVlanId "ieee8021ad.id" Decimal(16) "ID",
    }
    Owner::Header(Protocol::Mpls) => {
        MplsLabel "mpls.label" Decimal(32) "Label",
        MplsExp "mpls.exp" Decimal(32) "Traffic class",
        MplsBottom "mpls.bottom" Decimal(32) "Bottom of stack",
        MplsTtl "mpls.ttl" Decimal(32) "TTL",
    }
    Owner::Header(Protocol::Arp) => {
        ArpHwType "arp.hw.type" Decimal(16) "Hardware type",
        ArpProtoType "arp.proto.type" Hex(16) "Protocol type",
        ArpHwSize "arp.hw.size" Decimal(8) "Length of a hardware address",
        ArpProtoSize "arp.proto.size" Decimal(8) "Length of a protocol address",
        ArpOpcode "arp.opcode" Decimal(16) "Opcode",
        ArpIsGratuitous "arp.isgratuitous" Boolean "Sender and target are the same",
        ArpSrcHwMac "arp.src.hw_mac" Ethernet "Sender MAC address",
        ArpSrcProtoIpv4 "arp.src.proto_ipv4" Ipv4 "Sender IP address",
        ArpDstHwMac "arp.dst.hw_mac" Ethernet "Target MAC address",
        ArpDstProtoIpv4 "arp.dst.proto_ipv4" Ipv4 "Target IP address",
    }
    Owner::Header(Protocol::Ipv4) => {
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
        IpChecksumStatus "ip.checksum.status" Decimal(8) "Header checksum: 0 bad, 1 good, 2 unverified",
        IpSrc "ip.src" Ipv4 "Source",
        IpDst "ip.dst" Ipv4 "Destination",
        IpAddr "ip.addr" Ipv4 "Source or destination",
        IpSrcHost "ip.src_host" Text "Source, as text",
        IpDstHost "ip.dst_host" Text "Destination, as text",
        IpHost "ip.host" Text "Source or destination, as text",
        IpReassembledLength "ip.reassembled.length" Decimal(32) "Length of the reassembled payload",
    }
    Owner::Header(Protocol::Ipv6) => {
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
        Ipv6SrcHost "ipv6.src_host" Text "Source, as text",
        Ipv6DstHost "ipv6.dst_host" Text "Destination, as text",
        Ipv6Host "ipv6.host" Text "Source or destination, as text",
        Ipv6FragOffset "ipv6.fraghdr.offset" Decimal(16) "Fragment offset in units of 8 bytes",
        Ipv6FragMore "ipv6.fraghdr.more" Boolean "More fragments",
        Ipv6FragIdent "ipv6.fraghdr.ident" Hex(32) "Fragment identification",
    }
    Owner::Header(Protocol::Gre) => {
        GreProto "gre.proto" Hex(16) "Protocol type",
        GreKey "gre.key" Hex(32) "Key",
    }
    Owner::Header(Protocol::Tcp) => {
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
        TcpFlagsStr "tcp.flags.str" Text "Flags as letters",
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
        TcpChecksumStatus "tcp.checksum.status" Decimal(8) "Checksum: 0 bad, 1 good, 2 unverified",
        TcpUrgentPointer "tcp.urgent_pointer" Decimal(16) "Urgent pointer",
        TcpOptions "tcp.options" Bytes "Options",
        TcpOptionKind "tcp.option_kind" Decimal(8) "Kind of an option",
        TcpOptionLen "tcp.option_len" Decimal(8) "Length of an option",
        TcpOptionsMssOption "tcp.options.mss" Bytes "MSS option",
        TcpOptionsNop "tcp.options.nop" Bytes "No-operation",
        TcpOptionsEol "tcp.options.eol" Bytes "End of the options",
        TcpOptionsMss "tcp.options.mss_val" Decimal(16) "MSS",
        TcpOptionsWscale "tcp.options.wscale" Bytes "Window scale option",
        TcpOptionsWscaleShift "tcp.options.wscale.shift" Decimal(8) "Window scale shift",
        TcpOptionsWscaleMultiplier "tcp.options.wscale.multiplier" Decimal(16) "Window scale factor",
        TcpOptionsSackPerm "tcp.options.sack_perm" Presence "SACK permitted",
        TcpOptionsSack "tcp.options.sack" Bytes "SACK option",
        TcpOptionsSackLe "tcp.options.sack_le" Decimal(32) "SACK left edge, relative",
        TcpOptionsSackRe "tcp.options.sack_re" Decimal(32) "SACK right edge, relative",
        TcpOptionsSackCount "tcp.options.sack.count" Decimal(8) "SACK blocks",
        TcpOptionsTimestamp "tcp.options.timestamp" Bytes "Timestamps option",
        TcpOptionsTsval "tcp.options.timestamp.tsval" Decimal(32) "Timestamp value",
        TcpOptionsTsecr "tcp.options.timestamp.tsecr" Decimal(32) "Timestamp echo reply",
        TcpOptionsTfo "tcp.options.tfo" Bytes "Fast open option",
        TcpOptionsMptcpSubtype "tcp.options.mptcp.subtype" Decimal(8) "MPTCP subtype",
        TcpTimeRelative "tcp.time_relative" Time "Time since the stream's first frame",
        TcpTimeDelta "tcp.time_delta" Time "Time since the stream's previous frame",
        TcpPayload "tcp.payload" Bytes "Payload",
        TcpConnectionSyn "tcp.connection.syn" Presence "SYN of a connection",
        TcpConnectionSynack "tcp.connection.synack" Presence "SYN-ACK of a connection",
        TcpConnectionFin "tcp.connection.fin" Presence "FIN of a connection",
        TcpConnectionFinActive "tcp.connection.fin_active" Presence "FIN of the end that closes first",
        TcpConnectionFinPassive "tcp.connection.fin_passive" Presence "FIN of the other end",
        TcpConnectionRst "tcp.connection.rst" Presence "RST of a connection",
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
        TcpAnalysisPushBytesSent "tcp.analysis.push_bytes_sent" Decimal(32) "Bytes sent since the last PSH",
        TcpAnalysisRto "tcp.analysis.rto" Time "Time since the oldest unacknowledged segment",
    }
    Owner::Header(Protocol::Udp) => {
        UdpSrcport "udp.srcport" Decimal(16) "Source port",
        UdpDstport "udp.dstport" Decimal(16) "Destination port",
        UdpPort "udp.port" Decimal(16) "Source or destination port",
        UdpLength "udp.length" Decimal(16) "Length",
        UdpChecksum "udp.checksum" Hex(16) "Checksum",
        UdpChecksumStatus "udp.checksum.status" Decimal(8) "Checksum: 0 bad, 1 good, 2 unverified, 3 not present",
        UdpStream "udp.stream" Decimal(32) "Stream",
        UdpPayload "udp.payload" Bytes "Payload",
    }
    Owner::Header(Protocol::Icmp) => {
        IcmpType "icmp.type" Decimal(8) "Type",
        IcmpCode "icmp.code" Decimal(8) "Code",
        IcmpChecksum "icmp.checksum" Hex(16) "Checksum",
        IcmpChecksumStatus "icmp.checksum.status" Decimal(8) "Checksum: 0 bad, 1 good, 2 unverified",
        IcmpIdent "icmp.ident" Decimal(16) "Identifier",
        IcmpSeq "icmp.seq" Decimal(16) "Sequence number",
    }
    Owner::Header(Protocol::Icmpv6) => {
        Icmpv6Type "icmpv6.type" Decimal(8) "Type",
        Icmpv6Code "icmpv6.code" Decimal(8) "Code",
        Icmpv6Checksum "icmpv6.checksum" Hex(16) "Checksum",
        Icmpv6Ident "icmpv6.echo.identifier" Decimal(16) "Identifier",
        Icmpv6Seq "icmpv6.echo.sequence_number" Decimal(16) "Sequence number",
    }
    Owner::Header(Protocol::Vxlan) => {
        VxlanVni "vxlan.vni" Decimal(24) "Network identifier",
    }
    Owner::Header(Protocol::GtpU) => {
        GtpMessage "gtp.message" Hex(8) "Message type",
        GtpTeid "gtp.teid" Hex(32) "Tunnel endpoint identifier",
    }
    Owner::Header(Protocol::Quic) => {
        QuicHeaderForm "quic.header_form" Decimal(8) "Header form",
        QuicVersion "quic.version" Hex(32) "Version",
        QuicPacketType "quic.long.packet_type" Decimal(8) "Packet type",
        QuicDcil "quic.dcil" Decimal(8) "Destination connection ID length",
        QuicDcid "quic.dcid" Bytes "Destination connection ID",
        QuicScil "quic.scil" Decimal(8) "Source connection ID length",
        QuicScid "quic.scid" Bytes "Source connection ID",
    }
    Owner::Header(Protocol::Dhcpv6) => {
        Dhcpv6MsgType "dhcpv6.msgtype" Decimal(8) "Message type",
        Dhcpv6Xid "dhcpv6.xid" Hex(24) "Transaction ID",
        Dhcpv6HopCount "dhcpv6.hopcount" Decimal(8) "Relays so far",
        Dhcpv6LinkAddr "dhcpv6.linkaddr" Ipv6 "Address of the client's link",
        Dhcpv6PeerAddr "dhcpv6.peeraddr" Ipv6 "Address of the client or relay",
        Dhcpv6OptionType "dhcpv6.option.type" Decimal(16) "Type of an option",
        Dhcpv6OptionLength "dhcpv6.option.length" Decimal(16) "Length of an option",
        Dhcpv6DuidBytes "dhcpv6.duid.bytes" Bytes "DUID of the client or the server",
        Dhcpv6DuidType "dhcpv6.duid.type" Decimal(16) "Type of a DUID",
        Dhcpv6ElapsedTime "dhcpv6.elapsed_time" Decimal(32) "Time since the client began, in ms",
        Dhcpv6RequestedOption "dhcpv6.requested_option_code" Decimal(16) "Type of a requested option",
        Dhcpv6Iaid "dhcpv6.iaid" Text "Identity association, in hexadecimal",
        Dhcpv6IaAddress "dhcpv6.iaaddr.ip" Ipv6 "Assigned address",
        Dhcpv6IaPreferred "dhcpv6.iaaddr.pref_lifetime" Decimal(32) "Preferred lifetime of an address, in seconds",
        Dhcpv6IaValid "dhcpv6.iaaddr.valid_lifetime" Decimal(32) "Valid lifetime of an address, in seconds",
        Dhcpv6PrefixAddress "dhcpv6.iaprefix.pref_addr" Ipv6 "Delegated prefix",
        Dhcpv6PrefixLength "dhcpv6.iaprefix.pref_len" Decimal(8) "Length of a delegated prefix",
        Dhcpv6StatusCode "dhcpv6.status_code" Decimal(16) "Status code",
        Dhcpv6DnsServer "dhcpv6.dns_server" Ipv6 "Address of a DNS server",
        Dhcpv6ClientDomain "dhcpv6.client_domain" Text "Name of the client",
    }
    Owner::Header(Protocol::Stp) => {
        StpVersion "stp.version" Decimal(8) "Version: 0 STP, 2 RSTP, 3 MSTP, 4 SPT",
        StpType "stp.type" Hex(8) "Type of the BPDU",
        StpFlags "stp.flags" Hex(8) "Flags",
        StpFlagsTcAck "stp.flags.tcack" Boolean "Topology change acknowledged",
        StpFlagsAgreement "stp.flags.agreement" Boolean "Agreement",
        StpFlagsForwarding "stp.flags.forwarding" Boolean "Forwarding",
        StpFlagsLearning "stp.flags.learning" Boolean "Learning",
        StpFlagsPortRole "stp.flags.port_role" Decimal(8) "Role of the port",
        StpFlagsProposal "stp.flags.proposal" Boolean "Proposal",
        StpFlagsTc "stp.flags.tc" Boolean "Topology change",
        StpRootPriority "stp.root.prio" Decimal(16) "Priority of the root bridge",
        StpRootExtension "stp.root.ext" Decimal(16) "System ID extension of the root bridge",
        StpRootAddress "stp.root.hw" Ethernet "MAC address of the root bridge",
        StpRootCost "stp.root.cost" Decimal(32) "Cost of the path to the root bridge",
        StpBridgePriority "stp.bridge.prio" Decimal(16) "Priority of the bridge",
        StpBridgeExtension "stp.bridge.ext" Decimal(16) "System ID extension of the bridge",
        StpBridgeAddress "stp.bridge.hw" Ethernet "MAC address of the bridge",
        StpPort "stp.port" Hex(16) "Port identifier",
        StpMessageAge "stp.msg_age" Time "Age of the message",
        StpMaxAge "stp.max_age" Time "Maximum age",
        StpHello "stp.hello" Time "Hello time",
        StpForward "stp.forward" Time "Forward delay",
    }
    Owner::Header(Protocol::Iperf3) => {
        Iperf3Cookie "iperf3.cookie" Text "Cookie of the test, first on each of its connections",
        Iperf3State "iperf3.state" Signed "State that an end sends",
        Iperf3Length "iperf3.length" Decimal(32) "Length of a JSON text: parameters or results",
    }
    Owner::Header(Protocol::Data) => {
        DataData "data.data" Bytes "Data",
        DataLen "data.len" Decimal(32) "Length",
    }
    Owner::Expert => {
        ExpertMessage "_ws.expert.message" Text "Message of the expert information",
        ExpertSeverity "_ws.expert.severity" Decimal(32) "Severity: Chat, Note, Warning, Error",
        ExpertGroup "_ws.expert.group" Decimal(32) "Group: Sequence, Malformed and others",
    }
    Owner::Application(Application::Http) => {
        HttpRequest "http.request" Boolean "Request",
        HttpRequestMethod "http.request.method" Text "Method",
        HttpRequestUri "http.request.uri" Text "Target of the request",
        HttpRequestFullUri "http.request.full_uri" Text "URI of the request",
        HttpRequestVersion "http.request.version" Text "Version of the request",
        HttpResponse "http.response" Boolean "Response",
        HttpResponseCode "http.response.code" Decimal(16) "Status code",
        HttpResponsePhrase "http.response.phrase" Text "Reason",
        HttpResponseVersion "http.response.version" Text "Version of the response",
        HttpHost "http.host" Text "Host",
        HttpUserAgent "http.user_agent" Text "User agent",
        HttpReferer "http.referer" Text "Referer",
        HttpCookie "http.cookie" Text "Cookie",
        HttpSetCookie "http.set_cookie" Text "Set-Cookie",
        HttpServer "http.server" Text "Server",
        HttpLocation "http.location" Text "Location",
        HttpContentType "http.content_type" Text "Content type",
        HttpContentLength "http.content_length" Decimal(32) "Content length",
        HttpContentEncoding "http.content_encoding" Text "Content encoding",
        HttpTransferEncoding "http.transfer_encoding" Text "Transfer encoding",
        HttpConnection "http.connection" Text "Connection",
        HttpAuthorization "http.authorization" Text "Authorization",
        HttpAccept "http.accept" Text "Accept",
        HttpXForwardedFor "http.x_forwarded_for" Text "X-Forwarded-For",
    }
    Owner::Application(Application::Dns) => {
        DnsId "dns.id" Hex(16) "Transaction ID",
        DnsFlags "dns.flags" Hex(16) "Flags",
        DnsFlagsResponse "dns.flags.response" Boolean "Response",
        DnsFlagsOpcode "dns.flags.opcode" Decimal(16) "Opcode",
        DnsFlagsAuthoritative "dns.flags.authoritative" Boolean "Authoritative answer",
        DnsFlagsTruncated "dns.flags.truncated" Boolean "Truncated",
        DnsFlagsRecdesired "dns.flags.recdesired" Boolean "Recursion desired",
        DnsFlagsRecavail "dns.flags.recavail" Boolean "Recursion available",
        DnsFlagsRcode "dns.flags.rcode" Decimal(16) "Reply code",
        DnsCountQueries "dns.count.queries" Decimal(16) "Questions",
        DnsCountAnswers "dns.count.answers" Decimal(16) "Answers",
        DnsCountAuthRr "dns.count.auth_rr" Decimal(16) "Authority records",
        DnsCountAddRr "dns.count.add_rr" Decimal(16) "Additional records",
        DnsQryName "dns.qry.name" Text "Name of a question",
        DnsQryNameLen "dns.qry.name.len" Decimal(16) "Length of the name",
        DnsQryType "dns.qry.type" Decimal(16) "Type of a question",
        DnsQryClass "dns.qry.class" Hex(16) "Class of a question",
        DnsQryQu "dns.qry.qu" Boolean "Unicast answer requested, in multicast DNS",
        DnsRespName "dns.resp.name" Text "Name of a record",
        DnsRespType "dns.resp.type" Decimal(16) "Type of a record",
        DnsRespClass "dns.resp.class" Hex(16) "Class of a record",
        DnsRespCacheFlush "dns.resp.cache_flush" Boolean "Older records are obsolete, in multicast DNS",
        DnsRespTtl "dns.resp.ttl" Decimal(32) "Time to live of a record, in seconds",
        DnsA "dns.a" Ipv4 "IPv4 address of a record",
        DnsAaaa "dns.aaaa" Ipv6 "IPv6 address of a record",
        DnsCname "dns.cname" Text "Canonical name of a record",
        DnsPtr "dns.ptr.domain_name" Text "Name that a PTR record points to",
        DnsSrvPriority "dns.srv.priority" Decimal(16) "Priority of a service",
        DnsSrvWeight "dns.srv.weight" Decimal(16) "Weight of a service",
        DnsSrvPort "dns.srv.port" Decimal(16) "Port of a service",
        DnsSrvTarget "dns.srv.target" Text "Host of a service",
        DnsTxt "dns.txt" Text "Text of a record",
    }
    Owner::Application(Application::Tls) => {
        TlsRecord "tls.record" Presence "Record",
        TlsRecordContentType "tls.record.content_type" Decimal(8) "Content type of a record",
        TlsRecordVersion "tls.record.version" Hex(16) "Version of a record",
        TlsRecordLength "tls.record.length" Decimal(16) "Length of a record",
        TlsHandshake "tls.handshake" Presence "Handshake message",
        TlsHandshakeType "tls.handshake.type" Decimal(8) "Type of a handshake message",
        TlsHandshakeVersion "tls.handshake.version" Hex(16) "Version of a hello",
        TlsHandshakeServerName "tls.handshake.extensions_server_name" Text "Server name (SNI)",
        TlsHandshakeAlpn "tls.handshake.extensions_alpn_str" Text "Application protocol (ALPN)",
        TlsHandshakeExtensionType "tls.handshake.extension.type" Decimal(16) "Type of an extension",
        TlsChangeCipherSpec "tls.change_cipher_spec" Presence "Change of the cipher",
        TlsAlertMessage "tls.alert_message" Presence "Alert",
        TlsAlertLevel "tls.alert_message.level" Decimal(8) "Level of an alert",
        TlsAlertDesc "tls.alert_message.desc" Decimal(8) "Description of an alert",
        TlsAppData "tls.app_data" Bytes "Encrypted data",
    }
    Owner::Application(Application::Dhcp) => {
        DhcpType "dhcp.type" Decimal(8) "1 request, 2 reply",
        DhcpId "dhcp.id" Hex(32) "Transaction ID",
        DhcpIpClient "dhcp.ip.client" Ipv4 "Address of the client",
        DhcpIpYour "dhcp.ip.your" Ipv4 "Address for the client",
        DhcpIpServer "dhcp.ip.server" Ipv4 "Address of the next server",
        DhcpHwMacAddr "dhcp.hw.mac_addr" Ethernet "MAC address of the client",
        DhcpOptionType "dhcp.option.type" Decimal(8) "Type of an option",
        DhcpOptionDhcp "dhcp.option.dhcp" Decimal(8) "Message type",
        DhcpOptionHostname "dhcp.option.hostname" Text "Host name",
    }
    Owner::Application(Application::Ntp) => {
        NtpFlagsMode "ntp.flags.mode" Decimal(8) "Mode",
        NtpFlagsVn "ntp.flags.vn" Decimal(8) "Version",
        NtpStratum "ntp.stratum" Decimal(8) "Stratum",
    }
    Owner::Application(Application::Ssh) => {
        SshProtocol "ssh.protocol" Text "Version of an end",
    }
    Owner::Application(Application::Ftp) => {
        FtpRequest "ftp.request" Boolean "Request",
        FtpRequestCommand "ftp.request.command" Text "Command",
        FtpRequestArg "ftp.request.arg" Text "Argument of the command",
        FtpResponse "ftp.response" Boolean "Response",
        FtpResponseCode "ftp.response.code" Decimal(32) "Code",
        FtpResponseArg "ftp.response.arg" Text "Text of the response",
    }
    Owner::Application(Application::Smtp) => {
        SmtpReq "smtp.req" Boolean "Request",
        SmtpReqCommand "smtp.req.command" Text "Command",
        SmtpReqParameter "smtp.req.parameter" Text "Parameter of the command",
        SmtpRsp "smtp.rsp" Boolean "Response",
        SmtpResponseCode "smtp.response.code" Decimal(32) "Code",
        SmtpRspParameter "smtp.rsp.parameter" Text "Text of the response",
    }
    Owner::Application(Application::Sip) => {
        SipMethod "sip.Method" Text "Method",
        SipRequestLine "sip.Request-Line" Text "First line of a request",
        SipStatusLine "sip.Status-Line" Text "First line of a response",
        SipStatusCode "sip.Status-Code" Decimal(32) "Status code",
    }
}
