//! Link layers, and what is between them and IP: Ethernet, VLAN tags, LLC, MPLS, PPPoE,
//! FDDI, Linux cooked, loopback, ARP.

use super::not_understood::NotUnderstood;
use super::{Next, Protocol, Unreadable, Walk, ppp, wireless};
use crate::link_type::LinkType;

/// EtherTypes (IEEE 802 registry).
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const BRIDGED: u16 = 0x6558;
const VLAN: u16 = 0x8100;
const IPV6: u16 = 0x86dd;
const MPLS: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
const PPPOE_DISCOVERY: u16 = 0x8863;
const PPPOE_SESSION: u16 = 0x8864;
const SERVICE_VLAN: u16 = 0x88a8;
const PPP: u16 = 0x880b;
/// QinQ before it was standardised.
const VLAN_9100: u16 = 0x9100;

/// The service access point of the spanning tree protocols (IEEE 802.1Q, 8.13.3).
const SPANNING_TREE: u8 = 0x42;
/// Cisco's organisation code, and its type of per-VLAN spanning tree.
const CISCO: [u8; 3] = [0, 0, 12];
const PVST: u16 = 0x010b;

/// Largest value of the field that is a length (IEEE 802.3, 3.2.6).
const LARGEST_LENGTH: u16 = 1500;

/// The outermost layer.
#[inline]
pub(super) fn first(link: LinkType, walk: &mut Walk) -> Result<Next, Unreadable> {
    match link {
        LinkType::ETHERNET => Ok(Next::Ethernet),
        LinkType::RAW | LinkType(12 | 14) => {
            walk.push(Protocol::Raw, 0);
            Ok(Next::Ip)
        }
        LinkType::IPV4 => Ok(Next::Ipv4),
        LinkType::IPV6 => Ok(Next::Ipv6),
        LinkType::LINUX_SLL => cooked(walk),
        LinkType::LINUX_SLL2 => cooked_v2(walk),
        LinkType::NULL | LinkType::LOOP => loopback(walk),
        LinkType::PPP => Ok(Next::Ppp),
        LinkType::PPP_HDLC => ppp::either_hdlc(walk),
        LinkType::PPP_ETHER => pppoe_session(walk),
        LinkType::PPP_PPPD | LinkType::PPP_WITH_DIRECTION => ppp::with_direction(walk),
        LinkType::CISCO_HDLC => ppp::cisco_hdlc(walk),
        LinkType::FDDI => fddi(walk),
        LinkType::IEEE802_11 => Ok(Next::Wlan),
        LinkType::PRISM => wireless::prism(walk),
        LinkType::RADIOTAP => wireless::radiotap(walk),
        LinkType::AVS => wireless::avs(walk),
        LinkType::PPI => wireless::ppi(walk),
        _ => Ok(walk.not_understood(NotUnderstood::Link(link))),
    }
}

#[inline]
pub(super) fn ethernet(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 14] = walk.header()?;
    walk.push(Protocol::Ethernet, 14);
    Ok(type_or_length(walk, u16::from_be_bytes([header[12], header[13]])))
}

/// The field of Ethernet that is a type, or the length of an LLC packet.
fn type_or_length(walk: &mut Walk, field: u16) -> Next {
    if field > LARGEST_LENGTH {
        return Next::EtherType(field);
    }
    walk.bound(usize::from(field));
    Next::Llc
}

#[inline]
pub(super) fn ether_type(walk: &mut Walk, number: u16) -> Result<Next, Unreadable> {
    Ok(match number {
        IPV4 => Next::Ipv4,
        IPV6 => Next::Ipv6,
        VLAN | VLAN_9100 => tag(walk, Protocol::Vlan)?,
        SERVICE_VLAN => tag(walk, Protocol::ServiceVlan)?,
        ARP => {
            let header: [u8; 8] = walk.header()?;
            let addresses = 2 * (usize::from(header[4]) + usize::from(header[5]));
            walk.push(Protocol::Arp, 8 + addresses);
            Next::Stop
        }
        MPLS | MPLS_MULTICAST => mpls(walk)?,
        PPPOE_DISCOVERY => {
            let header: [u8; 6] = walk.header()?;
            let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
            walk.push(Protocol::PppoeDiscovery, 6 + length);
            Next::Stop
        }
        PPPOE_SESSION => pppoe_session(walk)?,
        BRIDGED => Next::Ethernet,
        PPP => Next::Ppp,
        _ => walk.not_understood(NotUnderstood::EtherType(number)),
    })
}

fn pppoe_session(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 6] = walk.header()?;
    walk.push(Protocol::PppoeSession, 6);
    walk.bound(usize::from(u16::from_be_bytes([header[4], header[5]])));
    Ok(Next::Ppp)
}

/// FDDI: frame control and two addresses; frames of class LLC have packets.
fn fddi(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 13] = walk.header()?;
    walk.push(Protocol::Fddi, 13);
    Ok(if header[0] & 0x70 == 0x50 { Next::Llc } else { Next::Data })
}

fn tag(walk: &mut Walk, protocol: Protocol) -> Result<Next, Unreadable> {
    let header: [u8; 4] = walk.header()?;
    walk.push(protocol, 4);
    Ok(type_or_length(walk, u16::from_be_bytes([header[2], header[3]])))
}

/// One label, and by the bottom-of-stack bit the next one or what is inside, whose
/// kind only its first nibble says (RFC 4928).
pub(super) fn mpls(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 4] = walk.header()?;
    walk.push(Protocol::Mpls, 4);
    if header[2] & 1 == 0 {
        return Ok(Next::EtherType(MPLS));
    }
    let Ok([first]) = walk.header::<1>() else { return Ok(Next::Data) };
    Ok(match first >> 4 {
        4 => Next::Ipv4,
        6 => Next::Ipv6,
        _ => walk.not_understood(NotUnderstood::Named("pseudowire of MPLS")),
    })
}

/// LLC, with SNAP where both service access points say so.
pub(super) fn llc(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 3] = walk.header()?;
    if header[..2] != [0xaa, 0xaa] {
        // An information frame has a control field of two bytes.
        walk.push(Protocol::Llc, if header[2] & 3 == 3 { 3 } else { 4 });
        return Ok(if header == [SPANNING_TREE, SPANNING_TREE, 3] {
            bpdu(walk)
        } else {
            Next::Data
        });
    }
    let snap: [u8; 8] = walk.header()?;
    walk.push(Protocol::Llc, 8);
    let number = u16::from_be_bytes([snap[6], snap[7]]);
    Ok(match [snap[3], snap[4], snap[5]] {
        // EtherTypes.
        [0, 0, 0] => Next::EtherType(number),
        CISCO if number == PVST => bpdu(walk),
        _ => Next::Data,
    })
}

/// A BPDU (IEEE 802.1Q, 14), by its protocol identifier; GARP has another one.
fn bpdu(walk: &mut Walk) -> Next {
    match walk.header() {
        Ok([0, 0]) => walk.last(Protocol::Stp),
        _ => Next::Data,
    }
}

fn cooked(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 16] = walk.header()?;
    walk.push(Protocol::LinuxCooked, 16);
    Ok(cooked_type(u16::from_be_bytes([header[14], header[15]])))
}

fn cooked_v2(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 20] = walk.header()?;
    walk.push(Protocol::LinuxCooked, 20);
    Ok(cooked_type(u16::from_be_bytes([header[0], header[1]])))
}

fn cooked_type(number: u16) -> Next {
    match number {
        // LINUX_SLL_P_802_2
        4 => Next::Llc,
        number if number > LARGEST_LENGTH => Next::EtherType(number),
        _ => Next::Data,
    }
}

/// An address family, in either byte order. Those of IPv6 differ between systems.
fn loopback(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 4] = walk.header()?;
    walk.push(Protocol::Null, 4);
    let number = u32::from_le_bytes(header);
    let family = if number > u32::from(u16::MAX) { number.swap_bytes() } else { number };
    Ok(match family {
        2 => Next::Ipv4,
        10 | 24 | 28 | 30 => Next::Ipv6,
        _ => walk.not_understood(NotUnderstood::Named("unknown address family")),
    })
}
