//! Protocols of payloads, told by a port of TCP or UDP, an EtherType or an IP protocol number:
//! Wireshark's defaults (`tshark -G decodes`). What the payload says is not looked at, except for
//! TLS, which is recognised by its records on ports without a protocol of their own.

use crate::view::PacketView;
use capture::dissect::Protocol;

macro_rules! applications {
    ($($id:ident $name:literal $label:literal {
        $($carrier:ident [$($number:pat),*])*
    })*) => {
        /// A protocol that is told by a number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the table has their names")]
        pub enum Application { $($id,)* }

        impl Application {
            /// Every one of them.
            pub const ALL: &[Application] = &[$(Application::$id,)*];

            /// Its name in Wireshark's filters.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Application::$id => $name,)* }
            }

            /// What it is called.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self { $(Application::$id => $label,)* }
            }

            /// The numbers that tell it: `TCP port 80, 8080`.
            #[must_use]
            pub fn numbers(self) -> String {
                let lists: &[(Carrier, &str)] = match self {
                    $(Application::$id => &[
                        $((Carrier::$carrier, stringify!($($number),*)),)*
                    ],)*
                };
                let lists = lists.iter().map(|(carrier, numbers)| {
                    format!("{} {}", carrier.name(), numbers.replace("..=", " to "))
                });
                let lists = lists.collect::<Vec<_>>().join("; ");
                if lists.is_empty() { "what it says".to_owned() } else { lists }
            }

            fn of(carrier: Carrier, number: u16) -> Option<Application> {
                $($(
                    if carrier == Carrier::$carrier && matches!(number, $($number)|*) {
                        return Some(Application::$id);
                    }
                )*)*
                None
            }
        }
    };
}

/// What has the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Tcp,
    Udp,
    EtherType,
    IpProtocol,
}

impl Carrier {
    fn name(self) -> &'static str {
        match self {
            Carrier::Tcp => "TCP port",
            Carrier::Udp => "UDP port",
            Carrier::EtherType => "EtherType",
            Carrier::IpProtocol => "IP protocol",
        }
    }
}

applications! {
    Http "http" "HTTP" { Tcp [80, 631, 1900, 2710, 2869, 3128, 3132, 3689, 5985, 8080, 8088, 11371] }
    Tls "tls" "TLS" { Tcp [
        443, 465, 636, 802, 853, 993, 995, 1300, 2221, 2443, 3249..=3252, 3496, 5061, 5671, 5684,
        5868, 8883, 11207, 19999, 27017
    ] }
    Dtls "dtls" "DTLS" { Udp [853, 2221, 5684, 5868] }
    Ssh "ssh" "SSH" { Tcp [22, 29418] }
    Dns "dns" "DNS" { Tcp [53, 5353] Udp [53] }
    Llmnr "llmnr" "LLMNR" { Udp [5355] }
    Dhcp "dhcp" "DHCP" { Udp [67, 68, 4011] }
    Ntp "ntp" "NTP" { Tcp [123] Udp [123] }
    Ptp "ptp" "PTP" { Udp [319, 320] EtherType [0x88f7] }
    Snmp "snmp" "SNMP" { Tcp [161, 162] Udp [161, 162, 8161] }
    Syslog "syslog" "Syslog" { Udp [514] }
    Tftp "tftp" "TFTP" { Udp [69] }
    Ftp "ftp" "FTP" { Tcp [21] }
    FtpData "ftp-data" "FTP data" { Tcp [20] }
    Smtp "smtp" "SMTP" { Tcp [25, 587] }
    Pop "pop" "POP" { Tcp [110] }
    Imap "imap" "IMAP" { Tcp [143] }
    Nntp "nntp" "NNTP" { Tcp [119] }
    Telnet "telnet" "Telnet" { Tcp [23] }
    Ldap "ldap" "LDAP" { Tcp [389, 3268] }
    Cldap "cldap" "CLDAP" { Udp [389] }
    Kerberos "kerberos" "Kerberos" { Tcp [88] Udp [88] }
    Radius "radius" "RADIUS" { Udp [1645, 1646, 1700, 1812, 1813, 3799] }
    Diameter "diameter" "Diameter" { Tcp [3868] }
    Tacplus "tacplus" "TACACS+" { Tcp [49] }
    Nbss "nbss" "NetBIOS session service, SMB" { Tcp [139, 445] }
    Smb "smb" "SMB 1" {}
    Smb2 "smb2" "SMB 2 and 3" {}
    Nbns "nbns" "NetBIOS name service" { Udp [137] }
    Nbdgm "nbdgm" "NetBIOS datagram service" { Udp [138] }
    Rpc "rpc" "ONC RPC" { Tcp [111] Udp [111] }
    Tpkt "tpkt" "TPKT, RDP" { Tcp [102, 3389] }
    RdpUdp "rdpudp" "RDP over UDP" { Udp [3389] }
    Vnc "vnc" "VNC" { Tcp [5500, 5501, 5900, 5901] }
    X11 "x11" "X11" { Tcp [6000..=6063] }
    Sip "sip" "SIP" { Tcp [5060] Udp [5060] }
    Rtsp "rtsp" "RTSP" { Tcp [554, 7236, 8554] }
    Stun "stun" "STUN" { Tcp [3478] Udp [3478] }
    Mysql "mysql" "MySQL" { Tcp [3306] }
    Pgsql "pgsql" "PostgreSQL" { Tcp [5432] }
    Tds "tds" "SQL Server" { Tcp [1433, 2433] }
    Tns "tns" "Oracle" { Tcp [1521] }
    Resp "resp" "Redis" { Tcp [6379] }
    Memcache "memcache" "Memcache" { Tcp [11211] Udp [11211] }
    Elasticsearch "elasticsearch" "Elasticsearch" { Tcp [9300] Udp [54328] }
    Kafka "kafka" "Kafka" { Tcp [9092] }
    Amqp "amqp" "AMQP" { Tcp [5672] }
    Mqtt "mqtt" "MQTT" { Tcp [1883] }
    Coap "coap" "CoAP" { Tcp [5683] Udp [5683] }
    Xmpp "xmpp" "XMPP" { Tcp [5222] }
    Irc "irc" "IRC" { Tcp [6667, 57000] }
    Git "git" "Git" { Tcp [9418] }
    Rsync "rsync" "rsync" { Tcp [873] }
    Whois "whois" "Whois" { Tcp [43] }
    Finger "finger" "Finger" { Tcp [79] }
    Gopher "gopher" "Gopher" { Tcp [70] }
    Socks "socks" "SOCKS" { Tcp [1080] }
    Bgp "bgp" "BGP" { Tcp [179] }
    Rip "rip" "RIP" { Udp [520] }
    Ripng "ripng" "RIPng" { Udp [521] }
    Bfd "bfd" "BFD" { Udp [3784, 4784, 6784, 7784] }
    Hsrp "hsrp" "HSRP" { Udp [1985, 2029] }
    Glbp "glbp" "GLBP" { Udp [3222] }
    Ospf "ospf" "OSPF" { IpProtocol [89] }
    Eigrp "eigrp" "EIGRP" { IpProtocol [88] }
    Vrrp "vrrp" "VRRP" { IpProtocol [112] }
    Pim "pim" "PIM" { IpProtocol [103] }
    Rsvp "rsvp" "RSVP" { IpProtocol [46] }
    Isakmp "isakmp" "IKE" { Tcp [500] Udp [500] }
    Udpencap "udpencap" "ESP in UDP" { Udp [4500] }
    Openvpn "openvpn" "OpenVPN" { Tcp [1194] Udp [1194] }
    L2tp "l2tp" "L2TP" { Udp [1701] IpProtocol [115] }
    Pptp "pptp" "PPTP" { Tcp [1723] }
    Ssdp "ssdp" "SSDP" { Udp [1900] }
    Cflow "cflow" "NetFlow, IPFIX" { Tcp [4739] Udp [2055, 4739, 9996] }
    Sflow "sflow" "sFlow" { Udp [6343] }
    Lldp "lldp" "LLDP" { EtherType [0x88cc] }
    Eapol "eapol" "EAPOL" { EtherType [0x888e] }
    Macsec "macsec" "MACsec" { EtherType [0x88e5] }
    Slow "slow" "LACP and other slow protocols" { EtherType [0x8809] }
    Macc "macc" "MAC control, PAUSE" { EtherType [0x8808] }
    Cfm "cfm" "CFM" { EtherType [0x8902] }
    Wol "wol" "Wake on LAN" { EtherType [0x0842] }
}

/// The payload of a packet whose protocol a number tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payload<'a> {
    pub(crate) application: Application,
    pub(crate) bytes: &'a [u8],
    /// Whether TCP carries it.
    pub(crate) is_stream: bool,
    /// Whether it goes to the port that tells the protocol.
    pub(crate) is_to_server: bool,
}

impl<'a> Payload<'a> {
    /// Of a packet that has one: in a TCP segment with data, a UDP datagram, or what follows the
    /// innermost header of Ethernet or IP.
    pub(crate) fn of(view: &PacketView<'a>) -> Option<Self> {
        let place = match view.layers.transport() {
            Some(place) => place,
            None => innermost(view)?,
        };
        let (protocol, layer) = view.layers.get(place)?;
        let bytes = view.bytes(place, layer);
        let payload = bytes.get(layer.header_len as usize..).filter(|it| !it.is_empty())?;
        let number =
            |at: usize| bytes.get(at..)?.first_chunk::<2>().map(|bytes| u16::from_be_bytes(*bytes));
        let carrier = match protocol {
            // What is dissected has a layer of its own.
            Protocol::Tcp if is_last(view, place) => Carrier::Tcp,
            Protocol::Udp if is_last(view, place) => Carrier::Udp,
            Protocol::Ethernet => return Self::typed(Carrier::EtherType, number(12)?, payload),
            Protocol::Vlan => return Self::typed(Carrier::EtherType, number(2)?, payload),
            Protocol::Ipv4 | Protocol::Ipv6 if view.layers.is_fragment() => return None,
            Protocol::Ipv4 => {
                return Self::typed(Carrier::IpProtocol, (*bytes.get(9)?).into(), payload);
            }
            Protocol::Ipv6 => {
                return Self::typed(Carrier::IpProtocol, (*bytes.get(6)?).into(), payload);
            }
            _ => return None,
        };
        let (source, destination) = (number(0)?, number(2)?);
        // The lower port first, as Wireshark does.
        let ports = [source.min(destination), source.max(destination)];
        let mut each = ports.into_iter();
        let found = each.find_map(|port| Application::of(carrier, port).map(|it| (it, port)));
        let is_stream = carrier == Carrier::Tcp;
        let by_content = || (is_stream && is_tls(payload)).then_some((Application::Tls, 0));
        let (application, port) = found.or_else(by_content)?;
        let is_to_server = port == destination;
        Some(Payload { application, bytes: payload, is_stream, is_to_server })
    }

    fn typed(carrier: Carrier, number: u16, bytes: &'a [u8]) -> Option<Self> {
        let application = Application::of(carrier, number)?;
        Some(Payload { application, bytes, is_stream: false, is_to_server: false })
    }

    /// Whether `application` is its protocol, or is inside of it.
    pub(crate) fn is(&self, application: Application) -> bool {
        // Behind the header of the NetBIOS session service (MS-SMB2, 2.1).
        let inner = match (self.application, self.bytes.get(4..8)) {
            (Application::Nbss, Some(b"\xffSMB")) => Some(Application::Smb),
            (Application::Nbss, Some(b"\xfeSMB")) => Some(Application::Smb2),
            _ => None,
        };
        self.application == application || inner == Some(application)
    }

    /// Whether `application` is its protocol, or that of its fields: those of LLMNR are those of
    /// DNS.
    pub(crate) fn has_fields_of(&self, application: Application) -> bool {
        let is_dns = self.application == Application::Llmnr;
        self.application == application || (application == Application::Dns && is_dns)
    }
}

/// Place of the last header, if that of a link or of IP.
fn innermost(view: &PacketView<'_>) -> Option<usize> {
    let headers = view.layers.iter().enumerate();
    let headers = headers.filter(|(_, (protocol, _))| *protocol != Protocol::Data);
    headers.last().map(|(place, _)| place)
}

/// Whether no header follows.
fn is_last(view: &PacketView<'_>, place: usize) -> bool {
    view.layers.get(place + 1).is_none_or(|(protocol, _)| protocol == Protocol::Data)
}

/// Whether a payload begins with a record of TLS (RFC 8446, 5.1): its type, version 3.0 to 3.4, and
/// a length that a record can have.
fn is_tls(payload: &[u8]) -> bool {
    const MAX_RECORD: u16 = (1 << 14) + 2048;
    match *payload {
        [20..=23, 3, 0..=4, high, low, ..] => {
            (1..=MAX_RECORD).contains(&u16::from_be_bytes([high, low]))
        }
        _ => false,
    }
}
