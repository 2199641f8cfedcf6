//! What a middlebox does to every packet of a flow: numbers that it adds to, fields that
//! it does not keep. Learned from packets that are unmistakable.

use crate::captured::CapturedPackets;
use crate::flow_pairs::FlowPair;
use crate::join;
use crate::packet::PacketIdentity;

/// Constants to add to a field of B for that of A, modulo 2^32, and the fields that identify
/// a packet, for each direction of A.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Translation {
    pub(crate) seq: [u32; 2],
    pub(crate) timestamp: [u32; 2],
    pub(crate) kept: [Kept; 2],
    is_tcp: bool,
}

/// The fields that the path leaves as they are, apart from a constant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) timestamps: bool,
    pub(crate) ip_id: bool,
    pub(crate) window: bool,
    pub(crate) options: bool,
    /// What of the payload both captures have.
    payload: Payload,
}

/// The digest of a payload that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    Whole,
    Prefix,
    Nothing,
}

/// Share of unmistakable packets in which a field is equal, from which it identifies
/// packets: less than a tenth of them may have bit errors.
const KEPT: f64 = 0.9;

/// The flow's packets of a direction of A, in both captures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Both<'a> {
    pub(crate) a: &'a [PacketIdentity],
    pub(crate) b: &'a [PacketIdentity],
    /// Where the slices begin in the captures.
    pub(crate) starts: [usize; 2],
    pub(crate) direction: usize,
}

impl<'a> Both<'a> {
    pub(crate) fn of(
        a: &'a CapturedPackets,
        b: &'a CapturedPackets,
        pair: FlowPair,
        direction: usize,
    ) -> Self {
        let (a_start, a) = a.of_flow(pair.a, direction);
        let (b_start, b) = b.of_flow(pair.b, pair.direction_in_b(direction));
        Both { a, b, starts: [a_start, b_start], direction }
    }
}

impl Translation {
    /// Learns from the packets of both directions; also the unmistakable pairs of each,
    /// as places in the slices.
    pub(crate) fn learn(both: [Both<'_>; 2], is_tcp: bool) -> (Self, [Vec<(u32, u32)>; 2]) {
        let kept = both.map(|both| Kept {
            timestamps: true,
            ip_id: true,
            window: true,
            options: true,
            payload: Payload::of(&both),
        });
        let mut it = Translation { seq: [0; 2], timestamp: [0; 2], kept, is_tcp };
        if is_tcp {
            it.seq = both.map(|both| sequence_offset(&both));
        }
        let pairs = both.map(|both| it.unmistakable(&both));
        for (both, pairs) in both.iter().zip(&pairs) {
            it.compare(both, pairs);
        }
        (it, pairs)
    }

    /// Pairs of packets that each capture has once by sequence number and length, or by
    /// payload.
    fn unmistakable(&self, both: &Both<'_>) -> Vec<(u32, u32)> {
        let key = |packet: &PacketIdentity, is_b: bool| {
            if !self.is_tcp {
                return [packet.payload_len, self.payload(packet, both.direction), 0, 0];
            }
            let pure_ack = packet.payload_len == 0;
            let ack = if pure_ack { self.ack(packet, is_b, both.direction) } else { 0 };
            let seq = self.seq(packet, is_b, both.direction);
            [seq, packet.payload_len, packet.control(), ack]
        };
        let keyed = |packets: &[PacketIdentity], is_b: bool| -> Vec<([u32; 4], u32)> {
            (0..).zip(packets).map(|(place, packet)| (key(packet, is_b), place)).collect()
        };
        join::unique(&mut keyed(both.a, false), &mut keyed(both.b, true))
    }

    /// Notes which fields are equal in pairs of the same packet.
    fn compare(&mut self, both: &Both<'_>, pairs: &[(u32, u32)]) {
        let all: Vec<(&PacketIdentity, &PacketIdentity)> = pairs
            .iter()
            .filter_map(|(a, b)| Some((both.a.get(*a as usize)?, both.b.get(*b as usize)?)))
            .collect();
        if all.is_empty() {
            return;
        }
        let least = (all.len() as f64 * KEPT).ceil() as usize;
        let kept = |same: &dyn Fn(&PacketIdentity, &PacketIdentity) -> bool| {
            all.iter().filter(|(a, b)| same(a, b)).count() >= least
        };
        let differences: Vec<u32> = all
            .iter()
            .filter(|(a, b)| a.has_timestamps() && b.has_timestamps())
            .map(|(a, b)| a.ts_val.wrapping_sub(b.ts_val))
            .collect();
        let mode = join::mode(differences);
        let without = all.iter().filter(|(a, b)| !a.has_timestamps() && !b.has_timestamps());
        let direction = both.direction;
        if let Some((offset, count)) = mode {
            self.timestamp[direction] = offset;
            self.kept[direction].timestamps = count + without.count() >= least;
        } else {
            self.kept[direction].timestamps = without.count() >= least;
        }
        let of = &mut self.kept[direction];
        of.ip_id = kept(&|a, b| a.ip_id == b.ip_id);
        of.window = kept(&|a, b| a.window == b.window);
        of.options = kept(&|a, b| a.options == b.options);
    }

    /// The sequence number of a packet as A has it.
    pub(crate) fn seq(&self, packet: &PacketIdentity, is_b: bool, direction: usize) -> u32 {
        packet.seq.wrapping_add(if is_b { self.seq[direction & 1] } else { 0 })
    }

    /// The acknowledgement number as A has it; 0 without one.
    pub(crate) fn ack(&self, packet: &PacketIdentity, is_b: bool, direction: usize) -> u32 {
        let offset = if is_b && packet.ack != 0 { self.seq[1 - (direction & 1)] } else { 0 };
        packet.ack.wrapping_add(offset)
    }

    /// Timestamp value and echo as A has them; zeros where the path does not keep them.
    pub(crate) fn timestamps(
        &self,
        packet: &PacketIdentity,
        is_b: bool,
        direction: usize,
    ) -> [u32; 2] {
        let (there, back) = (direction & 1, 1 - (direction & 1));
        if !packet.has_timestamps() || !self.kept[there].timestamps {
            return [0; 2];
        }
        let offset = |of: usize| if is_b { self.timestamp[of] } else { 0 };
        let echo = match packet.ts_ecr {
            _ if !self.kept[back].timestamps => 0,
            0 => 0,
            echo => echo.wrapping_add(offset(back)),
        };
        [packet.ts_val.wrapping_add(offset(there)), echo]
    }

    /// A digest of the payload, of what both captures have of it.
    pub(crate) fn payload(&self, packet: &PacketIdentity, direction: usize) -> u32 {
        match self.kept[direction & 1].payload {
            Payload::Whole => packet.whole,
            Payload::Prefix => packet.prefix,
            Payload::Nothing => 0,
        }
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.is_tcp
    }
}

impl Payload {
    fn of(both: &Both<'_>) -> Self {
        let all = |has: fn(&PacketIdentity) -> bool| both.a.iter().chain(both.b).all(has);
        if all(PacketIdentity::has_whole) {
            Payload::Whole
        } else if all(PacketIdentity::has_prefix) {
            Payload::Prefix
        } else {
            Payload::Nothing
        }
    }
}

/// What to add to B's sequence numbers for those of A: 0, unless a middlebox chooses
/// initial sequence numbers of its own.
fn sequence_offset(both: &Both<'_>) -> u32 {
    let starts = |packets: &[PacketIdentity]| -> Vec<u32> {
        let with_data = |packet: &&PacketIdentity| packet.payload_len > 0 || packet.is_syn();
        let any = packets.iter().any(|packet| with_data(&packet));
        let chosen = packets.iter().filter(|packet| !any || with_data(packet));
        let mut all: Vec<u32> = chosen.map(|packet| packet.seq).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (a, b) = (starts(both.a), starts(both.b));
    let score =
        |offset: u32| b.iter().filter(|seq| in_sorted(&a, seq.wrapping_add(offset))).count();
    let without = score(0);
    // With losses and super-segments most are still there.
    if without * 4 >= a.len().min(b.len()) {
        return 0;
    }
    let syn = |packets: &[PacketIdentity]| {
        packets.iter().find(|packet| packet.is_syn()).map(|packet| packet.seq)
    };
    let by_syn = syn(both.a).zip(syn(both.b)).map(|(a, b)| a.wrapping_sub(b));
    let of_payload = |packet: &PacketIdentity| {
        let length = (packet.payload_len >= 8).then_some(packet.payload_len)?;
        packet.has_prefix().then_some([1, length, packet.prefix])
    };
    let of_timestamps = |packet: &PacketIdentity| {
        packet.has_timestamps().then_some([packet.payload_len, packet.ts_val, packet.ts_ecr])
    };
    let candidates =
        [by_syn, usual_difference(both, of_payload), usual_difference(both, of_timestamps)];
    let best = candidates.into_iter().flatten().max_by_key(|offset| score(*offset));
    best.filter(|offset| score(*offset) > without).unwrap_or(0)
}

fn in_sorted(list: &[u32], value: u32) -> bool {
    list.binary_search(&value).is_ok()
}

/// The most frequent difference of sequence numbers between packets that are alike.
fn usual_difference(
    both: &Both<'_>,
    key: impl Fn(&PacketIdentity) -> Option<[u32; 3]>,
) -> Option<u32> {
    let keyed = |packets: &[PacketIdentity]| -> Vec<([u32; 3], u32)> {
        packets.iter().filter_map(|packet| Some((key(packet)?, packet.seq))).collect()
    };
    let pairs = join::unique(&mut keyed(both.a), &mut keyed(both.b));
    let differences = pairs.into_iter().map(|(a, b)| a.wrapping_sub(b)).collect();
    join::mode(differences).map(|(offset, _)| offset)
}
