//! Internet checksums (RFC 1071): whether they are right.

use crate::view::PacketView;
use capture::dissect::Protocol;

const BAD: i64 = 0;
const GOOD: i64 = 1;
const UNVERIFIED: i64 = 2;
const NOT_PRESENT: i64 = 3;

/// The ones' complement sum of the parts, each of which begins at an even place.
fn sum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let total: u64 = words
        .map(|word| match *word {
            [high, low] => u64::from(u16::from_be_bytes([high, low])),
            [high] => u64::from(high) << 8,
            _ => 0,
        })
        .sum();
    let mut total = total;
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    // Folded to 16 bits.
    total as u16
}

const fn verdict(is_good: bool) -> i64 {
    if is_good { GOOD } else { BAD }
}

/// Of an IPv4 header; one of 0 is left to the network adapter.
pub(super) fn ipv4(header: &[u8]) -> i64 {
    match header.get(10..12) {
        None | Some([0, 0]) => UNVERIFIED,
        Some(_) => verdict(sum(&[header]) == 0xffff),
    }
}

/// Of ICMP, without a pseudo-header.
pub(super) fn icmp(message: &[u8], length: usize) -> i64 {
    if message.len() < length { UNVERIFIED } else { verdict(sum(&[message]) == 0xffff) }
}

/// Of a segment or datagram whose header is at `place`, over its pseudo-header (RFC 9293, 3.1;
/// RFC 8200, 8.1). Unverified where bytes are missing, and where the sum is that of the
/// pseudo-header alone, which a network adapter completes.
pub(super) fn transport(view: &PacketView<'_>, place: usize, at: usize, number: u8) -> i64 {
    let Some((protocol, layer)) = view.layers.get(place) else { return UNVERIFIED };
    let Some((ip, network)) = place.checked_sub(1).and_then(|it| view.layers.get(it)) else {
        return UNVERIFIED;
    };
    let bytes = view.bytes(place, layer);
    let length = layer.header_len + layer.payload_len;
    let is_fragment = view.layers.is_fragment() && !view.is_reassembled();
    let header = view.bytes(place - 1, network);
    let addresses = match ip {
        Protocol::Ipv4 => header.get(12..20),
        Protocol::Ipv6 => header.get(8..40),
        _ => None,
    };
    let (Some(addresses), Some(checksum)) = (addresses, bytes.get(at..at + 2)) else {
        return UNVERIFIED;
    };
    if protocol == Protocol::Udp && checksum == [0, 0] {
        return if ip == Protocol::Ipv4 { NOT_PRESENT } else { BAD };
    }
    if bytes.len() < length as usize || is_fragment {
        return UNVERIFIED;
    }
    let pseudo = [addresses, &length.to_be_bytes(), &[0, 0, 0, number]];
    let [addresses, size, last] = pseudo;
    if sum(&[addresses, size, last, bytes]) == 0xffff {
        return GOOD;
    }
    let is_partial = sum(&[addresses, size, last]).to_be_bytes() == *checksum;
    if is_partial { UNVERIFIED } else { BAD }
}
