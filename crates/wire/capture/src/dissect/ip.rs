//! IPv4 (RFC 791), IPv6 with its extension headers (RFC 8200, jumbograms RFC 2675),
//! and the transport headers.

use super::key::{FlowKey, PacketDirection};
use super::not_understood::{NotUnderstood, hidden_in_udp};
use super::tcp::IpFields;
use super::{Next, Protocol, Unreadable, Walk, link_layer, tunnel};

/// IP protocol numbers (IANA).
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// UDP ports whose payload is a tunnel.
const VXLAN_PORT: u16 = 4789;
const GTP_U_PORT: u16 = 2152;
const GENEVE_PORT: u16 = 6081;
const TEREDO_PORT: u16 = 3544;

pub(super) fn by_version(walk: &mut Walk) -> Result<Next, Unreadable> {
    let [first] = walk.header::<1>()?;
    Ok(match first >> 4 {
        4 => Next::Ipv4,
        6 => Next::Ipv6,
        _ => Next::Data,
    })
}

#[inline]
pub(super) fn v4(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 20] = walk.header()?;
    let length = usize::from(header[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    walk.network = walk.out.count as u8;
    if header[0] >> 4 != 4 || length < 20 {
        walk.push(Protocol::Ipv4, 20);
        return Err(Unreadable::Malformed);
    }
    // Segmentation offload and BIG TCP leave 0: the frame's length is the packet's.
    walk.out.length_from_frame = total == 0;
    if total >= length {
        walk.bound(total);
    } else if total != 0 {
        walk.push(Protocol::Ipv4, length);
        return Err(Unreadable::Malformed);
    }
    let captured = walk.end <= walk.data.len();
    walk.push(Protocol::Ipv4, length);
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    walk.out.fragment = fragment & 0x3fff != 0;
    let is_first = fragment & 0x1fff == 0;
    Ok(inside(walk, header[9], is_first, captured))
}

/// What is inside of a packet or fragment. A whole fragment would be reassembled
/// before its payload is read; of one that was captured in part, the first one's
/// payload is read by itself.
#[inline]
fn inside(walk: &Walk, protocol: u8, is_first: bool, captured: bool) -> Next {
    if walk.out.fragment && (!is_first || captured) {
        return Next::Data;
    }
    Next::IpProtocol(protocol)
}

#[inline]
pub(super) fn v6(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 40] = walk.header()?;
    walk.network = walk.out.count as u8;
    if header[0] >> 4 != 6 {
        walk.push(Protocol::Ipv6, 40);
        return Err(Unreadable::Malformed);
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    walk.out.fragment = false;
    walk.out.length_from_frame = length == 0 && header[6] != 59;
    if !walk.out.length_from_frame {
        walk.bound(40 + length);
    }
    walk.push(Protocol::Ipv6, 40);
    Ok(Next::IpProtocol(header[6]))
}

/// A transport header, an extension header of IPv6, or a tunnel.
#[inline]
pub(super) fn protocol(walk: &mut Walk, number: u8) -> Result<Next, Unreadable> {
    match number {
        TCP => tcp(walk),
        UDP => udp(walk),
        0 | 43 | 60 => extension(walk),
        44 => fragment_header(walk),
        51 => authentication(walk),
        1 => terminal(walk, Protocol::Icmp, 4),
        58 => terminal(walk, Protocol::Icmpv6, 4),
        2 => terminal(walk, Protocol::Igmp, 8),
        50 => {
            walk.not_understood(NotUnderstood::Named("ESP (encrypted)"));
            terminal(walk, Protocol::Esp, 8)
        }
        132 => terminal(walk, Protocol::Sctp, 12),
        33 => terminal(walk, Protocol::Dccp, 12),
        136 => terminal(walk, Protocol::UdpLite, 8),
        4 => Ok(Next::Ipv4),
        41 => Ok(Next::Ipv6),
        47 => tunnel::gre(walk),
        97 => tunnel::ether_ip(walk),
        137 => link_layer::mpls(walk),
        // Ethernet, in segment routing (RFC 8986).
        143 => Ok(Next::Ethernet),
        // No next header.
        59 => Ok(Next::Data),
        _ => Ok(walk.not_understood(NotUnderstood::IpProtocol(number))),
    }
}

/// A protocol whose contents are not dissected: it has all that follows.
fn terminal(walk: &mut Walk, protocol: Protocol, smallest: usize) -> Result<Next, Unreadable> {
    let rest = walk.end.saturating_sub(walk.at);
    walk.last(protocol);
    if rest < smallest { Err(Unreadable::Malformed) } else { Ok(Next::Stop) }
}

#[inline]
fn tcp(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 20] = match walk.header() {
        Ok(header) => header,
        Err(error) => {
            walk.push(Protocol::Tcp, 20);
            return Err(error);
        }
    };
    let length = usize::from(header[12] >> 4) * 4;
    if length < 20 || walk.at + length > walk.end {
        walk.push(Protocol::Tcp, length);
        return Err(Unreadable::Malformed);
    }
    let place = walk.out.count as u8;
    walk.push(Protocol::Tcp, length);
    if walk.at > walk.data.len() {
        // The options were not captured.
        return Err(Unreadable::Truncated);
    }
    walk.out.transport = Some(place);
    Ok(Next::Data)
}

#[inline]
fn udp(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 8] = match walk.header() {
        Ok(header) => header,
        Err(error) => {
            walk.push(Protocol::Udp, 8);
            return Err(error);
        }
    };
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (source, destination, length) = (word(0), word(2), usize::from(word(4)));
    // 0 is a jumbogram (RFC 2675, section 4) or segmentation offload.
    if length >= 8 {
        walk.bound(length);
    }
    walk.out.transport = Some(walk.out.count as u8);
    walk.push(Protocol::Udp, 8);
    if (1..8).contains(&length) {
        return Err(Unreadable::Malformed);
    }
    if [source, destination].contains(&VXLAN_PORT) {
        return Ok(Next::Vxlan);
    }
    if [source, destination].contains(&GTP_U_PORT) {
        return Ok(Next::GtpU);
    }
    if [source, destination].contains(&GENEVE_PORT) {
        return Ok(Next::Geneve);
    }
    if [source, destination].contains(&TEREDO_PORT) {
        return Ok(Next::Teredo);
    }
    if let Some(name) = hidden_in_udp([source, destination], walk) {
        return Ok(walk.not_understood(NotUnderstood::Named(name)));
    }
    if walk.at == walk.end {
        return Ok(Next::Data);
    }
    if let Some(protocol) = told_by_port(source, destination) {
        return Ok(walk.last(protocol));
    }
    Ok(if tunnel::is_quic_long_header(walk) { walk.last(Protocol::Quic) } else { Next::Data })
}

/// The protocol of a port. The lower port decides, as in Wireshark, where another protocol may
/// have it.
fn told_by_port(source: u16, destination: u16) -> Option<Protocol> {
    const MDNS: u16 = 5353;
    const FIRST_UNPRIVILEGED: u16 = 1024;
    match (source.min(destination), source.max(destination)) {
        (546 | 547, _) => Some(Protocol::Dhcpv6),
        (MDNS, _) | (FIRST_UNPRIVILEGED.., MDNS) => Some(Protocol::Mdns),
        _ => None,
    }
}

/// Hop-by-hop options, routing, destination options: next header, length in units of 8
/// bytes without the first.
fn extension(walk: &mut Walk) -> Result<Next, Unreadable> {
    let [next, units] = walk.header()?;
    walk.extend(usize::from(units) * 8 + 8);
    Ok(Next::IpProtocol(next))
}

fn fragment_header(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 8] = walk.header()?;
    walk.extend(8);
    let field = u16::from_be_bytes([header[2], header[3]]);
    // Offset 0 without more fragments: whole (RFC 6946).
    walk.out.fragment = field & 0xfff9 != 0;
    Ok(if walk.out.fragment { Next::Data } else { Next::IpProtocol(header[0]) })
}

/// Length in units of 4 bytes, less two (RFC 4302, section 2.2).
fn authentication(walk: &mut Walk) -> Result<Next, Unreadable> {
    let [next, units] = walk.header()?;
    walk.push(Protocol::Authentication, usize::from(units) * 4 + 8);
    Ok(Next::IpProtocol(next))
}

/// What the IP header at the start of `header` says of a segment in it.
#[inline]
pub(super) fn fields(header: &[u8]) -> Option<IpFields> {
    let first: &[u8; 9] = header.first_chunk()?;
    Some(if first[0] >> 4 == 4 {
        let id = u16::from_be_bytes([first[4], first[5]]);
        IpFields { ttl: first[8], ecn: first[1] & 3, id, length_from_frame: false }
    } else {
        // The traffic class is the second nibble and the third.
        IpFields { ttl: first[7], ecn: first[1] >> 4 & 3, id: 0, length_from_frame: false }
    })
}

/// The flow of a packet whose IP header is at the start of `header`.
#[inline]
pub(super) fn flow_key(
    header: &[u8],
    source_port: u16,
    destination_port: u16,
    protocol: u8,
) -> Option<(FlowKey, PacketDirection)> {
    if header.first()? >> 4 == 4 {
        let source: &[u8; 4] = header.get(12..16)?.first_chunk()?;
        let destination: &[u8; 4] = header.get(16..20)?.first_chunk()?;
        return Some(FlowKey::of(source, destination, source_port, destination_port, protocol));
    }
    let source: &[u8; 16] = header.get(8..24)?.first_chunk()?;
    let destination: &[u8; 16] = header.get(24..40)?.first_chunk()?;
    Some(FlowKey::of(source, destination, source_port, destination_port, protocol))
}
