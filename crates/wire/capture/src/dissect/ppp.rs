//! PPP (RFC 1661) and what frames it, and Cisco's HDLC.

use super::not_understood::NotUnderstood;
use super::{Next, Protocol, Unreadable, Walk};

/// EtherType of MPLS.
const MPLS: u16 = 0x8847;

/// PPP: address and control where they are there, a protocol of one or two bytes.
pub(super) fn ppp(walk: &mut Walk) -> Result<Next, Unreadable> {
    let hdlc = matches!(walk.header::<2>(), Ok([0xff, 0x03]));
    from(walk, if hdlc { 2 } else { 0 })
}

/// PPP whose first byte, or whose first byte in place of the address, is the direction.
pub(super) fn with_direction(walk: &mut Walk) -> Result<Next, Unreadable> {
    Ok(match walk.header::<3>()? {
        [_, 0xff, 0x03] => from(walk, 3)?,
        [_, 0x03, _] => from(walk, 2)?,
        _ => from(walk, 1)?,
    })
}

/// PPP from its protocol on, which is after `skip` bytes.
fn from(walk: &mut Walk, skip: usize) -> Result<Next, Unreadable> {
    let bytes: [u8; 5] = match walk.header() {
        Ok(bytes) => bytes,
        // A header alone may be shorter.
        Err(_) => {
            let mut bytes = [0; 5];
            let end = walk.end.min(walk.data.len());
            let rest = walk.data.get(walk.at..end).unwrap_or_default();
            rest.iter().zip(&mut bytes).for_each(|(byte, slot)| *slot = *byte);
            bytes
        }
    };
    let first = bytes[skip];
    // An odd first byte is the whole number (RFC 1661, section 2).
    let (number, length) = if first & 1 == 1 {
        (u16::from(first), skip + 1)
    } else {
        (u16::from_be_bytes([first, bytes[skip + 1]]), skip + 2)
    };
    if walk.at + length > walk.end {
        return Err(Unreadable::Malformed);
    }
    if walk.at + length > walk.data.len() {
        return Err(Unreadable::Truncated);
    }
    walk.push(Protocol::Ppp, length);
    Ok(match number {
        0x0021 => Next::Ipv4,
        0x0057 => Next::Ipv6,
        0x0281 => Next::EtherType(MPLS),
        // Control protocols have no packets in them.
        0x8000.. => Next::Data,
        _ => walk.not_understood(NotUnderstood::Ppp(number)),
    })
}

/// Either of the two, by the address.
pub(super) fn either_hdlc(walk: &mut Walk) -> Result<Next, Unreadable> {
    match walk.header::<1>()? {
        [0x0f | 0x8f] => cisco_hdlc(walk),
        _ => Ok(Next::Ppp),
    }
}

/// Address, control and an EtherType.
pub(super) fn cisco_hdlc(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 4] = walk.header()?;
    if header[..2] == [0xff, 0x03] {
        return Ok(Next::Ppp);
    }
    walk.push(Protocol::CiscoHdlc, 4);
    Ok(match u16::from_be_bytes([header[2], header[3]]) {
        // SLARP, and the protocols of the ISO.
        0x8035 | 0xfefe => Next::Data,
        number => Next::EtherType(number),
    })
}
