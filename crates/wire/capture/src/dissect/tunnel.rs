//! Tunnels: GRE (RFC 2784, 2890; version 1, RFC 2637) with ERSPAN in it
//! (draft-foschiano-erspan), VXLAN (RFC 7348), Geneve (RFC 8926), GTP-U (3GPP TS 29.281), Teredo
//! (RFC 4380), EtherIP (RFC 3378); and QUIC's long header (RFC 8999, section 5.1).

use super::not_understood::NotUnderstood;
use super::{Next, Protocol, Unreadable, Walk};

/// Protocol types of GRE beside EtherTypes.
const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;
const WCCP: u16 = 0x883e;

pub(super) fn gre(walk: &mut Walk) -> Result<Next, Unreadable> {
    let [first, second, high, low] = walk.header()?;
    let field = |bit: u8, from: u8| if from & bit != 0 { 4 } else { 0 };
    // Checksum or routing, key, sequence number; in version 1 acknowledgement.
    let optional = if first & 0xc0 != 0 { 4 } else { 0 };
    let length = 4 + optional + field(0x20, first) + field(0x10, first) + field(0x80, second);
    walk.push(Protocol::Gre, length);
    // A source route would follow, which nothing sends (RFC 1701).
    if first & 0x40 != 0 {
        return Ok(walk.not_understood(NotUnderstood::Named("GRE with a source route")));
    }
    match u16::from_be_bytes([high, low]) {
        // Without a sequence number, it is of type I, which has no header.
        ERSPAN if first & 0x10 == 0 => {
            walk.push(Protocol::Erspan, 0);
            Ok(Next::Ethernet)
        }
        ERSPAN => {
            let _: [u8; 8] = walk.header()?;
            walk.push(Protocol::Erspan, 8);
            Ok(Next::Ethernet)
        }
        ERSPAN_3 => erspan_3(walk),
        WCCP => {
            // Version 2 puts a header before the packet.
            let [version] = walk.header::<1>()?;
            if version >> 4 != 4 {
                walk.extend(4);
            }
            Ok(Next::Ipv4)
        }
        // Keepalives.
        0 => Ok(Next::Data),
        number => Ok(Next::EtherType(number)),
    }
}

/// Type III: 12 bytes, and 8 more by the last bit.
fn erspan_3(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 12] = walk.header()?;
    let optional = if header[11] & 1 != 0 { 8 } else { 0 };
    walk.push(Protocol::Erspan, 12 + optional);
    Ok(match header[10] >> 2 & 0x1f {
        0 => Next::Ethernet,
        2 => Next::Ip,
        _ => walk.not_understood(NotUnderstood::Named("ERSPAN of another frame type")),
    })
}

/// Options in units of 4 bytes, then what the protocol type says.
pub(super) fn geneve(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 8] = walk.header()?;
    if header[0] >> 6 != 0 {
        return Ok(walk.not_understood(NotUnderstood::Named("Geneve of another version")));
    }
    let length = 8 + usize::from(header[0] & 0x3f) * 4;
    if walk.at + length > walk.end {
        return Err(Unreadable::Malformed);
    }
    walk.push(Protocol::Geneve, length);
    Ok(Next::EtherType(u16::from_be_bytes([header[2], header[3]])))
}

/// An authentication and an origin may come before the packet.
pub(super) fn teredo(walk: &mut Walk) -> Result<Next, Unreadable> {
    let mut length = 0;
    if let Ok([0, 1, id, value]) = walk.header::<4>() {
        // Nonce and confirmation follow.
        length += 4 + usize::from(id) + usize::from(value) + 9;
    }
    let origin = walk.data.get(walk.at + length..).and_then(<[u8]>::first_chunk);
    if origin == Some(&[0, 0]) {
        length += 8;
    }
    let inside = walk.data.get(walk.at + length).copied().ok_or(Unreadable::Truncated)?;
    if inside >> 4 != 6 {
        return Ok(Next::Data);
    }
    walk.push(Protocol::Teredo, length);
    Ok(Next::Ipv6)
}

pub(super) fn ether_ip(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 2] = walk.header()?;
    if header[0] >> 4 != 3 {
        return Ok(walk.not_understood(NotUnderstood::Named("EtherIP of another version")));
    }
    walk.push(Protocol::EtherIp, 2);
    Ok(Next::Ethernet)
}

pub(super) fn vxlan(walk: &mut Walk) -> Result<Next, Unreadable> {
    let _: [u8; 8] = walk.header()?;
    walk.push(Protocol::Vxlan, 8);
    Ok(Next::Ethernet)
}

/// A user's packet (message type 255) has an IP packet inside; other messages have
/// information elements.
pub(super) fn gtp_u(walk: &mut Walk) -> Result<Next, Unreadable> {
    const PACKET: u8 = 255;
    let header: [u8; 8] = walk.header()?;
    // Version 1, protocol type GTP.
    if header[0] >> 4 != 3 {
        return Ok(Next::Data);
    }
    if header[1] != PACKET {
        let rest = walk.end.saturating_sub(walk.at);
        walk.push(Protocol::GtpU, rest);
        return Ok(Next::Stop);
    }
    let mut length = 8;
    if header[0] & 7 != 0 {
        let with_options: [u8; 12] = walk.header()?;
        length = 12;
        let mut next = with_options[11];
        // Extension headers: length in units of 4 bytes, contents, next type. Each
        // takes bytes, so the packet's end is the loop's.
        while header[0] & 4 != 0 && next != 0 {
            let at = walk.at + length;
            let units = walk.data.get(at).copied().ok_or(Unreadable::Truncated)?;
            let end = at + usize::from(units) * 4;
            if units == 0 || end > walk.end {
                return Err(Unreadable::Malformed);
            }
            next = walk.data.get(end - 1).copied().ok_or(Unreadable::Truncated)?;
            length = end - walk.at;
        }
    }
    walk.push(Protocol::GtpU, length);
    Ok(Next::Ip)
}

/// Whether the payload begins with a long header of a QUIC version that exists: 1, 2,
/// a draft of version 1, or the version negotiation of a server.
#[inline]
pub(super) fn is_quic_long_header(walk: &Walk) -> bool {
    let Ok([first, a, b, c, d, id_length]) = walk.header() else { return false };
    if first & 0x80 == 0 || id_length > 20 {
        return false;
    }
    match u32::from_be_bytes([a, b, c, d]) {
        // The fixed bit is 1 in both versions.
        1 | 0x6b33_43cf => first & 0x40 != 0,
        version => version & 0xffff_ff00 == 0xff00_0000 && first & 0x40 != 0,
    }
}
