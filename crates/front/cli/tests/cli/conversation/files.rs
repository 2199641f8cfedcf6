//! The packets of a conversation as capture files, with the faults of captures.

use super::Packet;

/// Each packet once more, after so many µs, where `of` says so.
pub(crate) fn mirrored(
    packets: &[Packet],
    after_us: u64,
    of: impl Fn(&Packet) -> bool,
) -> Vec<Packet> {
    let copies = packets.iter().filter(|packet| of(packet)).map(|packet| {
        let mut copy = packet.clone();
        copy.time_ns += after_us * 1000;
        copy.bytes[8] -= 1;
        copy
    });
    let mut all: Vec<Packet> = packets.iter().cloned().chain(copies).collect();
    all.sort_by_key(|packet| packet.time_ns);
    all
}

/// Each packet once more, after so many µs for its number.
pub(crate) fn mirrored_at(packets: &[Packet], after_us: impl Fn(u64) -> u64) -> Vec<Packet> {
    let mut all = packets.to_vec();
    for (number, packet) in (0..).zip(packets) {
        let mut copy = packet.clone();
        copy.time_ns += after_us(number) * 1000;
        copy.bytes[8] -= 1;
        all.push(copy);
    }
    all.sort_by_key(|packet| packet.time_ns);
    all
}

/// The clock is set by so many ms at a packet.
pub(crate) fn stepped(packets: &[Packet], at: usize, by_ms: i64) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    for packet in &mut packets[at..] {
        packet.time_ns = packet.time_ns.saturating_add_signed(by_ms * 1_000_000);
    }
    packets
}

/// A pcap file of raw IP packets, with times in ns.
pub(crate) fn file(packets: &[Packet]) -> Vec<u8> {
    snapped(packets, usize::MAX)
}

/// The same with the first bytes of each packet alone.
pub(crate) fn snapped(packets: &[Packet], most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 101] {
        bytes.extend(word.to_le_bytes());
    }
    for packet in packets {
        let (seconds, rest) = (packet.time_ns / 1_000_000_000, packet.time_ns % 1_000_000_000);
        let kept = &packet.bytes[..packet.bytes.len().min(most)];
        for word in [seconds as u32, rest as u32, kept.len() as u32, packet.bytes.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(kept);
    }
    bytes
}
