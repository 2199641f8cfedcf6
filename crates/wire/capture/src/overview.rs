//! Totals of a capture.

use crate::dissect::{Layers, Protocol};
use crate::file::Packet;

/// Totals of the packets that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overview {
    /// Packets.
    pub packets: u64,
    /// Bytes of the packets on the wire.
    pub bytes: u64,
    /// Bytes of the packets that the file has.
    pub captured_bytes: u64,
    /// Packets that the file has in part.
    pub cut_off: u64,
    /// Longest captured part of these, in bytes: the snaplen in effect.
    pub longest_cut_off: u32,
    /// Earliest time in nanoseconds since 1970.
    pub first_ns: u64,
    /// Latest time.
    pub last_ns: u64,
    /// IP fragments.
    pub fragments: u64,
    /// IP packets longer than their length field can say, or without one: made by
    /// segmentation offload or BIG TCP.
    pub without_length: u64,
    /// IP packets of more than 9000 bytes, which no Ethernet carries: super-segments of
    /// GSO or GRO.
    pub super_segments: u64,
    /// Packets of a link type that is not dissected.
    pub not_dissected: u64,
}

/// Largest frame that is taken for one that was on a wire: an MTU of 9000 bytes, with
/// Ethernet, two VLAN tags and an FCS.
const LONGEST_FRAME: u32 = 9000 + 14 + 8 + 4;

impl Overview {
    /// Counts a packet.
    #[inline]
    pub fn add(&mut self, packet: &Packet<'_>, layers: &Layers) {
        if self.packets == 0 {
            self.first_ns = packet.time_ns;
        }
        self.packets += 1;
        self.bytes += u64::from(packet.original_len);
        // A packet has at most a mebibyte.
        let captured = packet.frame.len() as u32;
        self.captured_bytes += u64::from(captured);
        self.first_ns = self.first_ns.min(packet.time_ns);
        self.last_ns = self.last_ns.max(packet.time_ns);
        if captured < packet.original_len {
            self.cut_off += 1;
            self.longest_cut_off = self.longest_cut_off.max(captured);
        }
        self.fragments += u64::from(layers.is_fragment());
        self.without_length += u64::from(layers.is_length_from_frame());
        self.super_segments += u64::from(packet.original_len > LONGEST_FRAME);
        let first = layers.number(0);
        self.not_dissected += u64::from(first == Protocol::Data as u8);
    }

    /// From the earliest to the latest packet, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (self.last_ns - self.first_ns) as f64 / 1e9
    }

    /// Bit/s on the wire over the duration; `None` where that is 0.
    #[must_use]
    pub fn rate_bps(&self) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| self.bytes as f64 * 8.0 / seconds)
    }
}
