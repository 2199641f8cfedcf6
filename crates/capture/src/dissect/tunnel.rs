//! Tunnels: GRE (RFC 2784, 2890; version 1, RFC 2637), VXLAN (RFC 7348), GTP-U
//! (3GPP TS 29.281); and QUIC's long header (RFC 8999, section 5.1).

use super::{Next, Protocol, Unreadable, Walk};

pub(super) fn gre(walk: &mut Walk) -> Result<Next, Unreadable> {
    let [first, second, high, low] = walk.header()?;
    let field = |bit: u8, from: u8| if from & bit != 0 { 4 } else { 0 };
    // Checksum or routing, key, sequence number; in version 1 acknowledgement.
    let optional = if first & 0xc0 != 0 { 4 } else { 0 };
    let length = 4 + optional + field(0x20, first) + field(0x10, first) + field(0x80, second);
    walk.push(Protocol::Gre, length);
    // A source route would follow, which nothing sends (RFC 1701).
    Ok(if first & 0x40 != 0 {
        Next::Data
    } else {
        Next::EtherType(u16::from_be_bytes([high, low]))
    })
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
