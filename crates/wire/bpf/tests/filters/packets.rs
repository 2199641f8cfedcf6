//! Random packets of the protocols that filters know, whole, with few addresses and ports.

use rand_core::Rng;

/// A number below `below`.
pub(crate) fn below(random: &mut impl Rng, below: u32) -> u32 {
    random.next_u32() % below
}

pub(crate) fn one_of<T: Copy>(random: &mut impl Rng, all: &[T]) -> T {
    all[below(random, all.len() as u32) as usize]
}

pub(crate) const PORTS: [u16; 5] = [53, 80, 443, 5201, 5210];
pub(crate) const V4: [[u8; 4]; 4] = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 1, 0, 1], [192, 0, 2, 7]];
/// The last bytes of addresses that begin with 2001:db8.
pub(crate) const V6: [[u8; 2]; 3] = [[0, 1], [0, 2], [1, 1]];

/// An Ethernet frame.
pub(crate) fn frame(random: &mut impl Rng) -> Vec<u8> {
    let (ether_type, packet) = match below(random, 10) {
        0 => (0x0806, arp(random)),
        1 => (0x8035, arp(random)),
        2 => (0x88cc, vec![0; 46]),
        3..=6 => (0x0800, ipv4(random)),
        _ => (0x86dd, ipv6(random)),
    };
    let mut frame = vec![2; 12];
    frame.extend(u16::to_be_bytes(ether_type));
    frame.extend(packet);
    frame
}

fn arp(random: &mut impl Rng) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 1];
    for _ in 0..2 {
        packet.extend([2; 6]);
        packet.extend(one_of(random, &V4));
    }
    packet
}

/// A transport header and some payload.
fn transport(random: &mut impl Rng, protocol: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..2 {
        bytes.extend(one_of(random, &PORTS).to_be_bytes());
    }
    let payload = below(random, 100) as usize;
    match protocol {
        6 => {
            bytes.extend([0; 8]);
            bytes.extend([0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        }
        17 => {
            bytes.extend((8 + payload as u16).to_be_bytes());
            bytes.extend([0; 2]);
        }
        _ => bytes.extend([0; 8]),
    }
    bytes.resize(bytes.len() + payload, 0);
    bytes
}

/// TCP, UDP, SCTP and, last, that version's ICMP.
const OVER_V4: [u8; 6] = [6, 6, 17, 17, 132, 1];
const OVER_V6: [u8; 6] = [6, 6, 17, 17, 132, 58];

fn ipv4(random: &mut impl Rng) -> Vec<u8> {
    let protocol = one_of(random, &OVER_V4);
    let words = 5 + below(random, 3) as u8;
    let payload = transport(random, protocol);
    let length = 4 * u16::from(words) + payload.len() as u16;
    // A first, middle or last fragment now and then.
    let fragment: u16 = one_of(random, &[0, 0, 0, 0, 0x2000, 0x2003, 0x0003, 0x4000]);
    let mut packet = vec![0x40 | words, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0; 2]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    for _ in 0..2 {
        packet.extend(one_of(random, &V4));
    }
    // Options: no operation.
    packet.resize(4 * usize::from(words), 1);
    packet.extend(payload);
    packet
}

fn ipv6(random: &mut impl Rng) -> Vec<u8> {
    let protocol = one_of(random, &OVER_V6);
    let payload = transport(random, protocol);
    let is_fragment = below(random, 6) == 0;
    let length = payload.len() as u16 + if is_fragment { 8 } else { 0 };
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([if is_fragment { 44 } else { protocol }, 64]);
    for _ in 0..2 {
        packet.extend([0x20, 1, 0x0d, 0xb8]);
        packet.extend([0; 10]);
        packet.extend(one_of(random, &V6));
    }
    if is_fragment {
        packet.extend([protocol, 0, 0, 1, 0, 0, 0, 9]);
    }
    packet.extend(payload);
    packet
}
