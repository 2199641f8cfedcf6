//! What a connection shows: its figures, as the analysis of its packets left them.

use super::Connection;
use crate::ecn::{EcnCounts, EcnMode};
use crate::flags::FlagCounts;
use crate::retransmissions::Retransmissions;
use crate::side::{Side, WindowScale};
use crate::vantage::Vantage;
use capture::dissect::PacketDirection;
use std::num::NonZeroU64;

impl Connection {
    /// Bits of [`crate::completeness`].
    #[must_use]
    pub fn completeness(&self) -> u8 {
        self.completeness
    }

    /// From the SYN to the first ACK without SYN, in ns.
    #[must_use]
    pub fn initial_rtt_ns(&self) -> Option<u64> {
        self.initial_rtt_ns.map(NonZeroU64::get)
    }

    /// The direction that carried more payload.
    #[must_use]
    pub fn data_direction(&self) -> PacketDirection {
        if self.carried(PacketDirection::BToA) > self.carried(PacketDirection::AToB) {
            PacketDirection::BToA
        } else {
            PacketDirection::AToB
        }
    }

    /// Payload of a direction: as captured, or as acknowledged where no packet of it was.
    #[must_use]
    pub fn carried(&self, direction: PacketDirection) -> u64 {
        let (data, acks) = self.pair(direction);
        if data.packets == 0 { acks.acked_unseen } else { data.payload_bytes }
    }

    /// Whether the other direction has no packet, though it answered: an ACK number of the one
    /// that was captured says so. Without a packet that answers, a connection that never was
    /// looks the same.
    #[must_use]
    pub fn is_one_way(&self) -> bool {
        let is_alone = |one: &Side, other: &Side| one.packets > 0 && other.packets == 0;
        let [a, b] = &self.sides;
        (is_alone(a, b) || is_alone(b, a)) && self.has_acked
    }

    /// Whether the handshake of the side that sends in `direction` was not captured.
    #[must_use]
    pub fn lacks_syn(&self, direction: PacketDirection) -> bool {
        let side = &self.sides[direction.index()];
        side.packets > 0 && side.scale == WindowScale::Unknown
    }

    /// The least scale of the windows of the side that sends in `direction`, by the bytes that
    /// were in flight, where its SYN was not captured.
    #[must_use]
    pub fn proven_scale(&self, direction: PacketDirection) -> Option<u8> {
        self.sides[direction.index()].proven_scale().map(|scale| scale.shift)
    }

    /// The largest window of the side that sends in `direction`, in bytes, and whether that is a
    /// lower bound; `None` if nothing is known of its scale.
    #[must_use]
    pub fn largest_window(&self, direction: PacketDirection) -> Option<(u64, bool)> {
        let side = &self.sides[direction.index()];
        let is_bound = side.scale == WindowScale::Unknown;
        let proven = side.proven_scale().map(|scale| scale.shift);
        let shift = if is_bound { proven } else { side.shift() }?;
        (side.largest_window > 0).then(|| (u64::from(side.largest_window) << shift, is_bound))
    }

    /// The shift of the windows of the side that sends in `direction`: the least that is known,
    /// 0 if nothing is.
    #[must_use]
    pub fn window_shift(&self, direction: PacketDirection) -> u8 {
        self.sides[direction.index()].shift().unwrap_or(0)
    }

    /// The explicit congestion notification that was negotiated.
    #[must_use]
    pub fn ecn_mode(&self) -> EcnMode {
        self.ecn_mode
    }

    /// Packets with marks of the side that sends in `direction`.
    #[must_use]
    pub fn ecn_counts(&self, direction: PacketDirection) -> EcnCounts {
        let ecn = &self.sides[direction.index()].ecn;
        ecn.as_ref().map(|ecn| ecn.counts).unwrap_or_default()
    }

    /// The side that sent the SYN, if that is known.
    #[must_use]
    pub fn client(&self) -> Option<PacketDirection> {
        self.client
    }

    /// Where the capture was made, for the data of `direction`.
    #[must_use]
    pub fn vantage(&self, direction: PacketDirection) -> Vantage {
        let (sender, receiver) = self.pair(direction);
        Vantage::of(&sender.responses, &receiver.responses)
    }

    /// Flags of the packets of a direction.
    #[must_use]
    pub fn counts(&self, direction: PacketDirection) -> FlagCounts {
        self.sides[direction.index()].counts.as_deref().copied().unwrap_or_default()
    }

    /// Retransmissions of a direction.
    #[must_use]
    pub fn retransmissions(&self, direction: PacketDirection) -> Retransmissions {
        let recovery = &self.sides[direction.index()].recovery;
        recovery.as_ref().map(|recovery| recovery.counts).unwrap_or_default()
    }

    /// Packets, packets with data, and their payload in bytes, of a direction.
    #[must_use]
    pub fn traffic(&self, direction: PacketDirection) -> (u32, u32, u64) {
        let side = &self.sides[direction.index()];
        (side.packets, side.data_packets, side.payload_bytes)
    }

    /// Payload of a direction that was acknowledged, of at most 4 GiB beyond what was
    /// captured; `None` without an ACK.
    #[must_use]
    pub fn acknowledged(&self, direction: PacketDirection) -> Option<u64> {
        let (data, acks) = self.pair(direction);
        let base = data.base_seq.filter(|_| acks.packets > 0)?;
        if data.packets == 0 {
            return Some(acks.acked_unseen);
        }
        Some(data.unwrapped(acks.last_ack.wrapping_sub(base).wrapping_sub(1)))
    }

    /// Payload of a direction without retransmissions; of at most 4 GiB beyond what was
    /// captured.
    #[must_use]
    pub fn sent_once(&self, direction: PacketDirection) -> u64 {
        let (data, _) = self.pair(direction);
        let base = data.base_seq.unwrap_or(0);
        data.unwrapped(data.next_seq.wrapping_sub(base).wrapping_sub(1))
    }

    /// Smallest and smoothed RTT between this point and the receiver of a direction's data,
    /// in ns.
    #[must_use]
    pub fn rtt_ns(&self, direction: PacketDirection) -> Option<(u64, u64)> {
        let rtt = self.sides[direction.index()].rtt?;
        Some((rtt.least_ns.get(), rtt.smoothed_ns))
    }

    /// RTT of the path as far as it is known: the soonest answers of both sides, in ns.
    #[must_use]
    pub fn path_rtt_ns(&self) -> Option<u64> {
        let [a, b] = &self.sides;
        let answers = [a.responses.least_ns(), b.responses.least_ns()];
        answers.into_iter().flatten().reduce(|near, far| near + far).filter(|ns| *ns > 0)
    }

    /// Whether and how the windows of the side that sends in `direction` are scaled.
    #[must_use]
    pub fn window_scale(&self, direction: PacketDirection) -> WindowScale {
        self.sides[direction.index()].scale
    }

    /// The number of the SYN of the side that sends in `direction`, or the one before its
    /// first byte: where relative sequence numbers begin.
    #[must_use]
    pub fn first_sequence_number(&self, direction: PacketDirection) -> Option<u32> {
        self.sides[direction.index()].base_seq
    }

    /// From the first to the last packet, in ns.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}
