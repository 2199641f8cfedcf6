//! IPv4, IPv6 with its fragment header, ICMP.

use super::{Emit, Header, bits, checksum, put, put_values};
use crate::field::Field;
use crate::value::{FieldKind, Value};
use crate::view::PacketView;

/// Bytes of a reassembled packet's payload, in the frame that completed it.
fn reassembled(view: &PacketView<'_>, header: Header<'_>, place: usize) -> Option<i64> {
    (view.reassembled_at() == Some(place)).then(|| {
        let start = header.layer.start as usize + header.layer.header_len as usize;
        view.packet.data.len().saturating_sub(start) as i64
    })
}

pub(super) fn v4(
    view: &PacketView<'_>,
    header: Header<'_>,
    place: usize,
    field: Field,
    emit: Emit<'_>,
) {
    let number = match field {
        Field::IpVersion => bits(header.byte(0), 4, 15),
        Field::IpHdrLen => bits(header.byte(0), 0, 15).map(|words| words * 4),
        Field::IpDsfield => header.byte(1),
        Field::IpDscp => bits(header.byte(1), 2, 63),
        Field::IpEcn => bits(header.byte(1), 0, 3),
        Field::IpLen => header.word(2),
        Field::IpId => header.word(4),
        Field::IpFlags => bits(header.byte(6), 5, 7),
        Field::IpFlagsRb => bits(header.byte(6), 7, 1),
        Field::IpFlagsDf => bits(header.byte(6), 6, 1),
        Field::IpFlagsMf => bits(header.byte(6), 5, 1),
        Field::IpFragOffset => bits(header.word(6), 0, 0x1fff),
        Field::IpTtl => header.byte(8),
        Field::IpProto => header.byte(9),
        Field::IpChecksum => header.word(10),
        Field::IpChecksumStatus => {
            header.bytes.get(..header.layer.header_len as usize).map(checksum::ipv4)
        }
        Field::IpReassembledLength => reassembled(view, header, place),
        Field::IpSrc => return put_values([header.ipv4(12)], emit),
        Field::IpDst => return put_values([header.ipv4(16)], emit),
        Field::IpAddr => return put_values([header.ipv4(12), header.ipv4(16)], emit),
        Field::IpSrcHost => return put_hosts([header.ipv4(12)], emit),
        Field::IpDstHost => return put_hosts([header.ipv4(16)], emit),
        Field::IpHost => return put_hosts([header.ipv4(12), header.ipv4(16)], emit),
        _ => None,
    };
    put(number, emit);
}

pub(super) fn v6(
    _view: &PacketView<'_>,
    header: Header<'_>,
    _place: usize,
    field: Field,
    emit: Emit<'_>,
) {
    let number = match field {
        Field::IpVersion | Field::Ipv6Version => bits(header.byte(0), 4, 15),
        Field::Ipv6Tclass => bits(header.long(0), 20, 255),
        Field::Ipv6Dscp => bits(header.long(0), 22, 63),
        Field::Ipv6Ecn => bits(header.long(0), 20, 3),
        Field::Ipv6Flow => bits(header.long(0), 0, 0xf_ffff),
        Field::Ipv6Plen => header.word(4),
        Field::Ipv6Nxt => header.byte(6),
        Field::Ipv6Hlim => header.byte(7),
        Field::Ipv6Src => return put_values([header.ipv6(8)], emit),
        Field::Ipv6Dst => return put_values([header.ipv6(24)], emit),
        Field::Ipv6Addr => return put_values([header.ipv6(8), header.ipv6(24)], emit),
        Field::Ipv6SrcHost => return put_hosts([header.ipv6(8)], emit),
        Field::Ipv6DstHost => return put_hosts([header.ipv6(24)], emit),
        Field::Ipv6Host => return put_hosts([header.ipv6(8), header.ipv6(24)], emit),
        Field::Ipv6FragOffset => {
            fragment_header(header).and_then(|at| bits(header.word(at + 2), 3, 0x1fff))
        }
        Field::Ipv6FragMore => {
            fragment_header(header).and_then(|at| bits(header.word(at + 2), 0, 1))
        }
        Field::Ipv6FragIdent => fragment_header(header).and_then(|at| header.long(at + 4)),
        _ => None,
    };
    put(number, emit);
}

/// Where the fragment header begins, after the other extension headers.
fn fragment_header(header: Header<'_>) -> Option<usize> {
    let (mut next, mut at) = (header.byte(6)?, 40);
    // Each extension header has 8 bytes or more, so the header's length is the loop's end.
    while at < header.layer.header_len as usize {
        match next {
            44 => return Some(at),
            0 | 43 | 60 => {
                next = header.byte(at)?;
                at += usize::try_from(header.byte(at + 1)?).ok()? * 8 + 8;
            }
            _ => return None,
        }
    }
    None
}

/// Hands over addresses as texts.
fn put_hosts<const N: usize>(addresses: [Option<Value<'_>>; N], emit: Emit<'_>) {
    for address in addresses.into_iter().flatten() {
        let mut text = String::new();
        // Formatting into a string cannot fail.
        let _ = address.write(FieldKind::Text, &mut text);
        emit(Value::Text(&text));
    }
}

pub(super) fn icmp(view: &PacketView<'_>, header: Header<'_>, field: Field, emit: Emit<'_>) {
    // Echo request and reply: 8 and 0 (RFC 792), 128 and 129 (RFC 4443).
    let is_echo = |types: [i64; 2]| header.byte(0).is_some_and(|kind| types.contains(&kind));
    let number = match field {
        Field::IcmpType | Field::Icmpv6Type => header.byte(0),
        Field::IcmpCode | Field::Icmpv6Code => header.byte(1),
        Field::IcmpChecksum | Field::Icmpv6Checksum => header.word(2),
        Field::IcmpChecksumStatus if !view.layers.is_fragment() || view.is_reassembled() => {
            let length = header.layer.header_len + header.layer.payload_len;
            Some(checksum::icmp(header.bytes, length as usize))
        }
        Field::IcmpIdent if is_echo([0, 8]) => header.word(4),
        Field::IcmpSeq if is_echo([0, 8]) => header.word(6),
        Field::Icmpv6Ident if is_echo([128, 129]) => header.word(4),
        Field::Icmpv6Seq if is_echo([128, 129]) => header.word(6),
        _ => None,
    };
    put(number, emit);
}
