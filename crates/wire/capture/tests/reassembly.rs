//! Fragments of IP packets: in any order they make the packet again, and hostile ones cost
//! no more than the budget.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use capture::dissect::{Layers, Protocol, dissect};
use capture::reassembly::{MAX_BYTES, MAX_PARTIAL, Reassembler};
use capture::{LinkType, Seed};
use proptest::prelude::*;

/// A datagram of `length` bytes whose payload counts.
fn datagram(length: usize) -> Vec<u8> {
    let mut bytes = vec![0x9c, 0x40, 0xc3, 0x53];
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend((8..length).map(|at| (at / 8 + at) as u8));
    bytes
}

fn ipv4(id: u16, data: &[u8], from: usize, to: usize) -> Vec<u8> {
    let more = if to < data.len() { 0x2000 } else { 0 };
    let mut packet = vec![0x45, 0];
    packet.extend(((20 + to - from) as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend((more | (from / 8) as u16).to_be_bytes());
    packet.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(&data[from..to]);
    packet
}

fn ipv6(id: u32, data: &[u8], from: usize, to: usize) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(((8 + to - from) as u16).to_be_bytes());
    packet.extend([44, 64]);
    packet.extend([[0xfd; 16], [0xfe; 16]].concat());
    packet.extend([17, 0]);
    packet.extend((from as u16 | u16::from(to < data.len())).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend(&data[from..to]);
    packet
}

/// Adds a packet; its payload inside of UDP, if it completes a datagram.
fn add(reassembler: &mut Reassembler, packet: &[u8]) -> Option<Vec<u8>> {
    let mut layers = Layers::new();
    dissect(LinkType::RAW, packet, packet.len() as u32, &mut layers);
    assert!(layers.is_fragment());
    let whole = reassembler.add(packet, &mut layers)?;
    assert!(!layers.is_fragment());
    let (protocol, layer) = layers.get(layers.transport().unwrap()).unwrap();
    assert_eq!(protocol, Protocol::Udp);
    let start = layer.start as usize;
    Some(whole[start..start + (layer.header_len + layer.payload_len) as usize].to_vec())
}

/// Where to cut a datagram: places that are multiples of 8 bytes.
fn cuts(length: usize, places: &[usize]) -> Vec<(usize, usize)> {
    let mut edges: Vec<usize> = places.iter().map(|at| at % (length / 8) * 8).collect();
    edges.extend([0, length]);
    edges.sort_unstable();
    edges.dedup();
    edges.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

proptest! {
    #[test]
    fn fragments_in_any_order_make_the_packet(
        length in 64_usize..4000,
        places in prop::collection::vec(0_usize..1000, 1..12),
        order in prop::collection::vec(any::<u32>(), 24),
        is_v6: bool,
        doubled: bool,
    ) {
        let data = datagram(length);
        let ranges = cuts(length, &places);
        prop_assume!(ranges.len() > 1);
        let mut fragments: Vec<(u32, (usize, usize))> = order.iter().copied().zip(ranges).collect();
        fragments.sort_unstable();
        let mut reassembler = Reassembler::new(Seed([1, 2]));
        let count = fragments.len();
        for (place, (_, (from, to))) in fragments.into_iter().enumerate() {
            let packet = if is_v6 { ipv6(7, &data, from, to) } else { ipv4(7, &data, from, to) };
            let mut found = add(&mut reassembler, &packet);
            if doubled && place + 1 < count {
                prop_assert!(found.is_none());
                found = add(&mut reassembler, &packet);
            }
            prop_assert_eq!(found.as_deref(), (place + 1 == count).then_some(&data[..]));
        }
    }

    #[test]
    fn any_fragments_stay_within_the_packet(
        parts in prop::collection::vec((0_usize..8190, 0_usize..60, any::<bool>(), 0_u16..3), 1..60)
    ) {
        let mut reassembler = Reassembler::new(Seed([1, 2]));
        for (offset, units, is_last, id) in parts {
            let mut packet = ipv4(id, &vec![5; units * 8], 0, units * 8);
            let field = offset as u16 | if is_last { 0 } else { 0x2000 };
            packet[6..8].copy_from_slice(&field.to_be_bytes());
            let mut layers = Layers::new();
            dissect(LinkType::RAW, &packet, packet.len() as u32, &mut layers);
            if layers.is_fragment()
                && let Some(whole) = reassembler.add(&packet, &mut layers)
            {
                prop_assert!(whole.len() <= 65_535);
            }
        }
    }
}

#[test]
fn the_first_fragment_to_bring_a_byte_decides() {
    let data = datagram(64);
    let mut other = data.clone();
    other[16..].fill(0xee);
    let mut reassembler = Reassembler::new(Seed([1, 2]));
    assert!(add(&mut reassembler, &ipv4(1, &data, 0, 32)).is_none());
    let found = add(&mut reassembler, &ipv4(1, &other, 16, 64)).unwrap();
    assert_eq!(found[..32], data[..32]);
    assert_eq!(found[32..], other[32..]);
}

/// More incomplete packets than are kept: the oldest is given up, the latest is not.
#[test]
fn incomplete_packets_are_bounded_in_number() {
    let data = datagram(64);
    let mut reassembler = Reassembler::new(Seed([1, 2]));
    for id in 0..=MAX_PARTIAL as u32 {
        assert!(add(&mut reassembler, &ipv6(id, &data, 0, 32)).is_none());
    }
    assert!(add(&mut reassembler, &ipv6(0, &data, 32, 64)).is_none());
    let last = MAX_PARTIAL as u32;
    assert_eq!(add(&mut reassembler, &ipv6(last, &data, 32, 64)).as_deref(), Some(&data[..]));
}

/// Last fragments of the largest packets claim 64 KiB each.
#[test]
fn incomplete_packets_are_bounded_in_bytes() {
    let data = datagram(65_000);
    let mut reassembler = Reassembler::new(Seed([1, 2]));
    let most = (MAX_BYTES / data.len()) as u32;
    for id in 0..=most {
        assert!(add(&mut reassembler, &ipv6(id, &data, 64_992, 65_000)).is_none());
    }
    assert!(add(&mut reassembler, &ipv6(0, &data, 0, 64_992)).is_none());
    let found = add(&mut reassembler, &ipv6(most, &data, 0, 64_992));
    assert_eq!(found.as_deref(), Some(&data[..]));
}

/// A packet that was captured in part stays a fragment.
#[test]
fn fragments_that_were_cut_off_are_not_reassembled() {
    let data = datagram(64);
    let mut reassembler = Reassembler::new(Seed([1, 2]));
    assert!(add(&mut reassembler, &ipv4(1, &data, 32, 64)).is_none());
    let packet = ipv4(1, &data, 0, 32);
    let mut layers = Layers::new();
    dissect(LinkType::RAW, &packet[..40], packet.len() as u32, &mut layers);
    assert!(reassembler.add(&packet[..40], &mut layers).is_none());
}
