//! Which flow of one capture is which of the other.
//!
//! Flows of equal addresses and ports belong together. Where a key has several flows
//! (reused ports), or none in the other capture (NAT), packets decide: by sequence
//! numbers, timestamps or payload.

use crate::captured::{CapturedFlow, CapturedPackets};
use crate::join;
use crate::packet::PacketIdentity;
use std::collections::{BTreeMap, BTreeSet};

/// A flow in both captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowPair {
    pub(crate) a: u32,
    pub(crate) b: u32,
    /// Whether the first direction in A is the second in B: the order of ports and
    /// addresses, which names directions, changes with their translation.
    pub(crate) is_swapped: bool,
}

impl FlowPair {
    /// The direction in B of a direction in A.
    pub(crate) fn direction_in_b(&self, direction: usize) -> usize {
        direction ^ usize::from(self.is_swapped)
    }
}

/// Packets of a flow that are looked up.
const SAMPLES: usize = 64;

/// Packets of the other capture that a lookup considers: of packets that are all the same,
/// more prove nothing.
const CANDIDATES: usize = 8;

/// Pairs of flows, each flow in at most one.
pub(crate) fn pair(a: &CapturedPackets, b: &CapturedPackets) -> Vec<FlowPair> {
    let mut a_left: BTreeSet<u32> = (0..a.flows.len() as u32).collect();
    let mut b_left: BTreeSet<u32> = (0..b.flows.len() as u32).collect();
    let mut pairs = Vec::new();
    let mut a_keys = keyed(&a.flows);
    let mut b_keys = keyed(&b.flows);
    join::equal(&mut a_keys, &mut b_keys, |of_a, of_b| {
        if let ([(_, a)], [(_, b)]) = (of_a, of_b) {
            a_left.remove(a);
            b_left.remove(b);
            pairs.push(FlowPair { a: *a, b: *b, is_swapped: false });
        }
    });
    if a_left.is_empty() || b_left.is_empty() {
        return pairs;
    }
    let index = Index::of(b, &b_left);
    // The surest first, so that a flow of one packet takes none from a large one; of equal
    // ones in their order.
    let mut found: Vec<(usize, FlowPair)> = Vec::new();
    for flow in &a_left {
        found.extend(index.find(a, b, *flow));
    }
    found.sort_by_key(|(votes, pair)| (std::cmp::Reverse(*votes), pair.a, pair.b));
    for (_, pair) in found {
        if a_left.contains(&pair.a) && b_left.remove(&pair.b) {
            a_left.remove(&pair.a);
            pairs.push(pair);
        }
    }
    pairs.sort_unstable_by_key(|pair| pair.a);
    pairs
}

/// Flows by their key and whether they are TCP.
fn keyed(flows: &[CapturedFlow]) -> Vec<((capture::dissect::FlowKey, bool), u32)> {
    (0..).zip(flows).map(|(number, flow)| ((flow.key, flow.is_tcp()), number)).collect()
}

/// The packets of some flows, by what translation of addresses leaves unchanged.
struct Index {
    /// Fingerprint, flow and direction, sequence number; sorted.
    entries: Vec<(u64, u32, u32)>,
}

impl Index {
    fn of(captured: &CapturedPackets, flows: &BTreeSet<u32>) -> Self {
        let mut entries = Vec::new();
        for number in flows {
            let Some(flow) = captured.flows.get(*number as usize) else { continue };
            for direction in 0..2 {
                let (_, packets) = captured.of_flow(*number, direction);
                let of = number << 1 | direction as u32;
                entries.extend(packets.iter().flat_map(|packet| {
                    fingerprints(packet, flow).map(move |it| (it, of, packet.seq))
                }));
            }
        }
        entries.sort_unstable();
        entries.dedup();
        Index { entries }
    }

    /// The flows of B that may have the packets of a flow of A, with how many samples say
    /// so; equal addresses count as one more.
    fn find(
        &self,
        a: &CapturedPackets,
        b: &CapturedPackets,
        number: u32,
    ) -> Vec<(usize, FlowPair)> {
        let Some(flow) = a.flows.get(number as usize) else { return Vec::new() };
        // A middlebox may add to sequence numbers, and adds the same to all of a direction.
        let mut votes: BTreeMap<(u32, bool), [BTreeMap<u32, usize>; 2]> = BTreeMap::new();
        let mut samples = 0;
        for direction in 0..2 {
            let (_, packets) = a.of_flow(number, direction);
            for packet in packets.iter().step_by(packets.len().div_ceil(SAMPLES / 2).max(1)) {
                samples += 1;
                let mut of_packet = BTreeSet::new();
                for fingerprint in fingerprints(packet, flow) {
                    let from = self.entries.partition_point(|it| it.0 < fingerprint);
                    let equal = self.entries.iter().skip(from).take(CANDIDATES);
                    for (_, other, seq) in equal.take_while(|it| it.0 == fingerprint) {
                        let is_swapped = (other & 1) as usize != direction;
                        let offset = packet.seq.wrapping_sub(*seq);
                        of_packet.insert((other >> 1, is_swapped, offset));
                    }
                }
                for (other, is_swapped, offset) in of_packet {
                    let of_flow = votes.entry((other, is_swapped)).or_default();
                    *of_flow[direction].entry(offset).or_default() += 1;
                }
            }
        }
        let same_key = |(other, is_swapped): &(u32, bool)| {
            let its = b.flows.get(*other as usize).map(|flow| flow.key);
            its == Some(flow.key) && !is_swapped
        };
        // Retransmissions and losses leave most samples; a capture that begins later, few.
        let enough = |candidate: &(u32, bool), count: usize| {
            count >= samples / 8 && (count > 1 || samples < 4 || same_key(candidate))
        };
        let mut found: Vec<(usize, FlowPair)> = votes
            .into_iter()
            .map(|(candidate, offsets)| {
                // Several packets that are alike may all be found in one of the other flow.
                let usual = [0, 1].map(|direction: usize| {
                    let count = offsets[direction].values().max().copied().unwrap_or(0);
                    let its = direction ^ usize::from(candidate.1);
                    count.min(b.of_flow(candidate.0, its).1.len())
                });
                (candidate, usual[0] + usual[1])
            })
            .filter(|(candidate, count)| enough(candidate, *count))
            .map(|(candidate, count)| {
                let (b, is_swapped) = candidate;
                let votes = count * 2 + usize::from(same_key(&candidate));
                (votes, FlowPair { a: number, b, is_swapped })
            })
            .collect();
        found.sort_by_key(|(votes, pair)| (std::cmp::Reverse(*votes), pair.b));
        found.truncate(CANDIDATES);
        found
    }
}

/// What identifies a packet whatever its addresses and ports are, in up to four ways. The
/// payload of TCP counts together with the IP ID: the same file, transferred once more, is
/// another flow.
fn fingerprints(packet: &PacketIdentity, flow: &CapturedFlow) -> impl Iterator<Item = u64> + use<> {
    let mix = |kind: u64, a: u32, b: u32, c: u32| {
        let words = u128::from(u64::from(a) << 32 | u64::from(b)) ^ u128::from(kind) << 64;
        let product =
            (words ^ u128::from(c) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (product >> 64) as u64 ^ product as u64
    };
    let length = packet.payload_len;
    let is_tcp = flow.is_tcp();
    let id = if is_tcp { u32::from(packet.ip_id) } else { 0 };
    let numbers = is_tcp.then(|| mix(1, packet.seq, packet.ack, length << 3 | packet.control()));
    let timestamps = (is_tcp && packet.has_timestamps())
        .then(|| mix(2, packet.ts_val, packet.ts_ecr, length << 3 | packet.control()));
    let payload = (length >= 8).then(|| match (packet.has_whole(), packet.has_prefix()) {
        (true, _) => Some(mix(3, packet.whole, length, id)),
        (false, true) => Some(mix(4, packet.prefix, length, id)),
        (false, false) => None,
    });
    // Of a whole payload the beginning, too: the other capture may have no more.
    let beginning = (length >= 8 && packet.has_whole()).then(|| mix(4, packet.prefix, length, id));
    [numbers, timestamps, payload.flatten(), beginning].into_iter().flatten()
}
