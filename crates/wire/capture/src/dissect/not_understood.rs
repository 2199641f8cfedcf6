//! Headers at which the dissection ends although a packet may follow: link types, encapsulations
//! and tunnels that are not dissected, and encrypted ones.
//!
//! Protocols of which it is known that no packet is in them (LLDP, OSPF, keepalives) are none of
//! these.

use super::Walk;
use crate::link_type::LinkType;
use std::fmt;

/// What is not understood of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotUnderstood {
    /// A link type.
    Link(LinkType),
    /// An EtherType, or a protocol type of GRE.
    EtherType(u16),
    /// An IP protocol number.
    IpProtocol(u8),
    /// A protocol number of PPP.
    Ppp(u16),
    /// By its name.
    Named(&'static str),
}

/// Link types with packets in them, or which people take for such (tcpdump's list).
const LINKS: [(u16, &str); 14] = [
    (6, "Token Ring"),
    (8, "SLIP"),
    (100, "ATM"),
    (107, "Frame Relay"),
    (109, "OpenBSD encapsulation"),
    (117, "pf log"),
    (123, "ATM of SunATM"),
    (187, "Bluetooth"),
    (189, "USB"),
    (195, "802.15.4"),
    (220, "USB"),
    (239, "NFLOG"),
    (249, "USBPcap"),
    (253, "netlink"),
];

const ETHER_TYPES: [(u16, &str); 11] = [
    (0x22f3, "TRILL"),
    (0x876b, "Van Jacobson's compression"),
    (0x8926, "VN-Tag"),
    (0x88e5, "MACsec"),
    (0x88e7, "802.1ah"),
    (0x8903, "FabricPath"),
    (0x893f, "802.1BR"),
    (0x894f, "NSH"),
    (0x8935, "802.1Qbg"),
    (0xf1c1, "802.1CB"),
    (0x4305, "B.A.T.M.A.N."),
];

/// EtherTypes without packets in them.
const WITHOUT_PACKETS: [u16; 44] = [
    0x0842, 0x2000, 0x2003, 0x2004, 0x22ea, 0x22f0, 0x22f4, 0x6001, 0x6002, 0x6003, 0x6004, 0x6007,
    0x8035, 0x809b, 0x80f3, 0x8100, 0x8137, 0x8138, 0x8808, 0x8809, 0x886f, 0x8870, 0x887b, 0x888e,
    0x8892, 0x8899, 0x88a2, 0x88a4, 0x88b8, 0x88ba, 0x88cc, 0x88d9, 0x88e1, 0x88e3, 0x88f5, 0x88f6,
    0x88f7, 0x88fb, 0x8902, 0x8906, 0x8912, 0x8914, 0x893a, 0x9000,
];

const IP_PROTOCOLS: [(u8, &str); 9] = [
    (55, "minimal encapsulation"),
    (94, "IPIP of KA9Q"),
    (98, "ENCAP"),
    (99, "private encryption"),
    (108, "IPComp"),
    (115, "L2TPv3"),
    (135, "mobility header"),
    (142, "ROHC"),
    (144, "AGGFRAG"),
];

/// Routing and management protocols of IP without packets in them.
const ROUTING: [u8; 16] = [3, 8, 9, 46, 59, 88, 89, 103, 104, 112, 113, 124, 134, 139, 140, 240];

const PPP_PROTOCOLS: [(u16, &str); 7] = [
    (0x002d, "compressed TCP/IP"),
    (0x002f, "uncompressed TCP/IP"),
    (0x0031, "bridged frames"),
    (0x003d, "multilink"),
    (0x0053, "encrypted"),
    (0x00fb, "compressed"),
    (0x00fd, "compressed"),
];

impl NotUnderstood {
    /// Whether a packet may be in it.
    pub(super) fn may_hide_packets(self) -> bool {
        match self {
            NotUnderstood::EtherType(number) => !WITHOUT_PACKETS.contains(&number),
            NotUnderstood::IpProtocol(number) => !ROUTING.contains(&number),
            NotUnderstood::Link(_) | NotUnderstood::Ppp(_) | NotUnderstood::Named(_) => true,
        }
    }
}

impl fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn named<T: PartialEq>(list: &[(T, &'static str)], number: &T) -> Option<&'static str> {
            list.iter().find(|(its, _)| its == number).map(|(_, name)| *name)
        }
        let name = match self {
            NotUnderstood::Link(link) => {
                write!(f, "link type {}", link.0)?;
                named(&LINKS, &link.0)
            }
            NotUnderstood::EtherType(number) => {
                write!(f, "EtherType 0x{number:04x}")?;
                named(&ETHER_TYPES, number)
            }
            NotUnderstood::IpProtocol(number) => {
                write!(f, "IP protocol {number}")?;
                named(&IP_PROTOCOLS, number)
            }
            NotUnderstood::Ppp(number) => {
                write!(f, "PPP protocol 0x{number:04x}")?;
                named(&PPP_PROTOCOLS, number)
            }
            NotUnderstood::Named(name) => return f.write_str(name),
        };
        name.map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}

/// The name of a tunnel over UDP that is not dissected, by its port and the first bytes.
#[inline]
pub(super) fn hidden_in_udp(ports: [u16; 2], walk: &Walk) -> Option<&'static str> {
    let tunnel = ports.into_iter().find_map(|port| match port {
        1194 => Some("OpenVPN (encrypted)"),
        1701 => Some("L2TP"),
        4341 => Some("LISP"),
        4500 => Some("ESP in UDP (encrypted)"),
        4790 => Some("VXLAN-GPE"),
        5247 => Some("CAPWAP"),
        6080 => Some("GUE"),
        6635 => Some("MPLS in UDP"),
        37008 => Some("TZSP"),
        51820 => Some("WireGuard (encrypted)"),
        _ => None,
    })?;
    let first: [u8; 4] = walk.header().ok()?;
    let fits = match tunnel {
        // Data, not control or handshakes.
        "OpenVPN (encrypted)" => matches!(first[0] >> 3, 6 | 9),
        "L2TP" => first[0] & 0x80 == 0 && first[1] & 0x0f == 2,
        "ESP in UDP (encrypted)" => first != [0; 4],
        "WireGuard (encrypted)" => first == [4, 0, 0, 0],
        "TZSP" => first[0] == 1,
        _ => true,
    };
    fits.then_some(tunnel)
}

/// Kinds that are counted one by one; packets of others are counted together.
const MAX_KINDS: usize = 16;

/// Packets that were not understood, by kind.
#[derive(Debug, Clone, Default)]
pub struct NotUnderstoodCounts {
    kinds: Vec<(NotUnderstood, u64)>,
    others: u64,
}

impl NotUnderstoodCounts {
    /// Counts a packet, if it was not understood.
    #[inline]
    pub fn add(&mut self, what: Option<NotUnderstood>) {
        if let Some(what) = what {
            self.count(what);
        }
    }

    fn count(&mut self, what: NotUnderstood) {
        if let Some((_, count)) = self.kinds.iter_mut().find(|(its, _)| *its == what) {
            *count += 1;
        } else if self.kinds.len() < MAX_KINDS {
            self.kinds.push((what, 1));
        } else {
            self.others += 1;
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.kinds.iter().map(|(_, count)| count).sum::<u64>() + self.others
    }

    /// The kinds by packets, the most first.
    #[must_use]
    pub fn kinds(&self) -> Vec<(NotUnderstood, u64)> {
        let mut kinds = self.kinds.clone();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        kinds
    }
}
