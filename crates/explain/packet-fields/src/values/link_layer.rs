//! Ethernet, VLAN tags, Linux cooked, MPLS, ARP.

use super::{Emit, Header, bits, put, put_values};
use crate::field::Field;

/// The largest value of Ethernet's last field that is a length (IEEE 802.3, 3.2.6).
const LARGEST_LENGTH: i64 = 1500;

pub(super) fn values(header: Header<'_>, field: Field, emit: Emit<'_>) {
    let kind = |at| header.word(at).filter(|it| *it > LARGEST_LENGTH);
    // Version 2 of Linux cooked has 20 bytes, in another order.
    let is_cooked_v2 = header.layer.header_len == 20;
    match field {
        Field::EthDst => put_values([header.ethernet(0)], emit),
        Field::EthSrc => put_values([header.ethernet(6)], emit),
        Field::EthAddr => put_values([header.ethernet(0), header.ethernet(6)], emit),
        Field::EthType => put(kind(12), emit),
        Field::EthLen => put(header.word(12).filter(|it| *it <= LARGEST_LENGTH), emit),
        Field::EthDstIg => put(bits(header.byte(0), 0, 1), emit),
        Field::EthDstLg => put(bits(header.byte(0), 1, 1), emit),
        Field::EthSrcIg => put(bits(header.byte(6), 0, 1), emit),
        Field::EthSrcLg => put(bits(header.byte(6), 1, 1), emit),
        Field::EthIg | Field::EthLg => {
            let shift = u32::from(field == Field::EthLg);
            put(bits(header.byte(0), shift, 1), emit);
            put(bits(header.byte(6), shift, 1), emit);
        }
        Field::EthDstOui => put(bits(header.long(0), 8, 0xff_ffff), emit),
        Field::EthSrcOui => put(bits(header.long(6), 8, 0xff_ffff), emit),
        Field::SllPktType if is_cooked_v2 => put(header.byte(10), emit),
        Field::SllPktType => put(header.word(0), emit),
        Field::SllEthertype => put(kind(if is_cooked_v2 { 0 } else { 14 }), emit),
        Field::VlanPriority | Field::ServiceVlanPriority => {
            put(bits(header.word(0), 13, 7), emit);
        }
        Field::VlanDei | Field::ServiceVlanDei => put(bits(header.word(0), 12, 1), emit),
        Field::VlanId | Field::ServiceVlanId => put(bits(header.word(0), 0, 0xfff), emit),
        Field::VlanEtype => put(kind(2), emit),
        Field::MplsLabel => put(bits(header.long(0), 12, 0xf_ffff), emit),
        Field::MplsExp => put(bits(header.long(0), 9, 7), emit),
        Field::MplsBottom => put(bits(header.long(0), 8, 1), emit),
        Field::MplsTtl => put(header.byte(3), emit),
        Field::ArpHwType => put(header.word(0), emit),
        Field::ArpProtoType => put(header.word(2), emit),
        Field::ArpHwSize => put(header.byte(4), emit),
        Field::ArpProtoSize => put(header.byte(5), emit),
        Field::ArpIsGratuitous if is_ethernet_ipv4(header) => {
            // Wireshark has the field where it is true.
            put(header.long(14).filter(|it| header.long(24) == Some(*it)).map(|_| 1), emit);
        }
        Field::ArpOpcode => put(header.word(6), emit),
        // Addresses of Ethernet and IPv4 have 6 and 4 bytes.
        Field::ArpSrcHwMac if is_ethernet_ipv4(header) => put_values([header.ethernet(8)], emit),
        Field::ArpSrcProtoIpv4 if is_ethernet_ipv4(header) => put_values([header.ipv4(14)], emit),
        Field::ArpDstHwMac if is_ethernet_ipv4(header) => put_values([header.ethernet(18)], emit),
        Field::ArpDstProtoIpv4 if is_ethernet_ipv4(header) => put_values([header.ipv4(24)], emit),
        _ => {}
    }
}

fn is_ethernet_ipv4(header: Header<'_>) -> bool {
    header.word(4) == Some(0x0604)
}
