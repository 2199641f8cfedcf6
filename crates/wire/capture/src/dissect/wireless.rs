//! IEEE 802.11 frames (IEEE 802.11-2020, 9.2 and 9.3), and the headers that drivers put before
//! them: radiotap (<https://www.radiotap.org>), Prism, AVS, and PPI.

use super::not_understood::NotUnderstood;
use super::{Next, Protocol, Unreadable, Walk};
use crate::link_type::LinkType;

/// Bits of the second byte of the frame control.
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const MORE_FRAGMENTS: u8 = 0x04;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;

/// A frame: of data frames, LLC is inside; others have no packets.
pub(super) fn frame(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 2] = walk.header()?;
    let (kind, subtype, flags) = (header[0] >> 2 & 3, header[0] >> 4, header[1]);
    // Of data frames, subtypes with bit 2 have no data.
    if kind != 2 || subtype & 4 != 0 {
        let rest = walk.end.saturating_sub(walk.at);
        walk.push(Protocol::Wlan, rest);
        return Ok(Next::Stop);
    }
    let header: [u8; 24] = walk.header()?;
    let four_addresses = flags & (TO_DS | FROM_DS) == TO_DS | FROM_DS;
    let mut length = if four_addresses { 30 } else { 24 };
    let mut aggregates = false;
    if subtype & 8 != 0 {
        let at = walk.at + length;
        let control = walk.data.get(at).copied().ok_or(Unreadable::Truncated)?;
        aggregates = control & 0x80 != 0;
        length += if flags & ORDER != 0 { 6 } else { 2 };
    }
    let is_fragment = flags & MORE_FRAGMENTS != 0 || header[22] & 0x0f != 0;
    if walk.at + length > walk.end {
        return Err(Unreadable::Malformed);
    }
    // Some cards align what follows to four bytes.
    let padded = if walk.pads_wlan { length.next_multiple_of(4) } else { length };
    walk.push(Protocol::Wlan, padded);
    let hidden = if flags & PROTECTED != 0 {
        "802.11 (encrypted)"
    } else if aggregates {
        "802.11 A-MSDU"
    } else if is_fragment {
        "802.11 fragments"
    } else {
        return Ok(Next::Llc);
    };
    Ok(walk.not_understood(NotUnderstood::Named(hidden)))
}

/// A header of the driver's, of `length` bytes, before a frame.
fn before_frame(walk: &mut Walk, protocol: Protocol, length: usize) -> Result<Next, Unreadable> {
    if walk.at + length > walk.end {
        return Err(Unreadable::Malformed);
    }
    walk.push(protocol, length);
    walk.push(Protocol::WlanRadio, 0);
    Ok(Next::Wlan)
}

pub(super) fn radiotap(walk: &mut Walk) -> Result<Next, Unreadable> {
    const TIME: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    const MORE: u32 = 1 << 31;
    const HAS_FCS: u8 = 0x10;
    const PADDED: u8 = 0x20;
    let header: [u8; 8] = walk.header()?;
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    if header[0] != 0 || length < 8 {
        return Err(Unreadable::Malformed);
    }
    let present = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    if present & FLAGS != 0 {
        // Further words say what else is present, then come the values.
        let (mut at, mut word) = (8, present);
        while word & MORE != 0 && at < length {
            let next = walk.data.get(walk.at + at..).and_then(<[u8]>::first_chunk);
            word = u32::from_le_bytes(*next.ok_or(Unreadable::Truncated)?);
            at += 4;
        }
        if present & TIME != 0 {
            at = at.next_multiple_of(8) + 8;
        }
        let flags = walk.data.get(walk.at + at).copied().filter(|_| at < length).unwrap_or(0);
        walk.pads_wlan = flags & PADDED != 0;
        if flags & HAS_FCS != 0 && walk.end >= walk.at + length + 4 {
            walk.end -= 4;
        }
    }
    before_frame(walk, Protocol::Radiotap, length)
}

/// The header of the Prism driver, in the byte order of the host, or that of AVS.
pub(super) fn prism(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 8] = walk.header()?;
    if header[..3] == [0x80, 0x21, 0x10] {
        return avs(walk);
    }
    let length = [header[4], header[5], header[6], header[7]];
    let little = u32::from_le_bytes(length);
    let length = if little > 0xffff { u32::from_be_bytes(length) } else { little };
    before_frame(walk, Protocol::Prism, length.max(8) as usize)
}

pub(super) fn avs(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 8] = walk.header()?;
    let length = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    before_frame(walk, Protocol::Avs, length.max(8) as usize)
}

/// Per-packet information: a length, and the link type of what follows.
pub(super) fn ppi(walk: &mut Walk) -> Result<Next, Unreadable> {
    let header: [u8; 8] = walk.header()?;
    let length = usize::from(u16::from_le_bytes([header[2], header[3]])).max(8);
    let link = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    let link = LinkType(u16::try_from(link).unwrap_or(u16::MAX));
    if link == LinkType::IEEE802_11 {
        return before_frame(walk, Protocol::Ppi, length);
    }
    walk.push(Protocol::Ppi, length);
    Ok(match link {
        LinkType::ETHERNET => Next::Ethernet,
        LinkType::PPP => Next::Ppp,
        LinkType::RAW => Next::Ip,
        _ => walk.not_understood(NotUnderstood::Link(link)),
    })
}
