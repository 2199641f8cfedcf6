//! The table of flows: from a key to a number, in the order of appearance.
//!
//! One lookup a packet, none for a packet of the same flow as the one before. Numbers
//! are places in a list, so other lists can be kept beside it.

use crate::dissect::FlowKey;
use crate::dissect::PacketDirection;
use crate::distinct::Distinct;
use crate::memory_budget::{ChunkedList, HashIndex, MemoryBudget};

/// A secret for hash functions. Take it from a random generator: with a known seed a
/// file can be made whose flows all collide.
#[derive(Debug, Clone, Copy)]
pub struct Seed(pub [u64; 2]);

/// Hashes words by multiplication with secret multipliers: the NH family (Black et al.,
/// UMAC, CRYPTO 1999), whose collisions cannot be computed without the seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hasher {
    secrets: [u64; 6],
}

impl Hasher {
    pub(crate) fn new(seed: Seed) -> Self {
        let [mut state, increment] = seed.0;
        // SplitMix64 (Steele et al., OOPSLA 2014); the increment has to be odd.
        let secrets = std::array::from_fn(|_| {
            state = state.wrapping_add(increment << 1 | 1).wrapping_add(0x9e37_79b9_7f4a_7c14);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Hasher { secrets }
    }

    #[inline]
    fn pair(&self, place: usize, a: u64, b: u64) -> u64 {
        let x = u128::from(a.wrapping_add(self.secrets[place]));
        let y = u128::from(b.wrapping_add(self.secrets[place + 1]));
        let product = x.wrapping_mul(y);
        (product >> 64) as u64 ^ product as u64
    }

    #[inline]
    pub(crate) fn two(&self, a: u64, b: u64) -> u64 {
        let mixed = self.pair(0, a, b);
        self.pair(4, mixed, mixed >> 32)
    }

    #[inline]
    fn five(&self, words: [u64; 4], last: u64) -> u64 {
        let [a, b, c, d] = words;
        let mixed = self.pair(0, a, b).wrapping_add(self.pair(2, c, d));
        self.pair(4, mixed, last)
    }
}

/// What identifies a flow of a layer.
pub(crate) trait Key: Copy + Eq {
    fn hash(&self, hasher: &Hasher) -> u64;
}

impl Key for FlowKey {
    #[inline]
    fn hash(&self, hasher: &Hasher) -> u64 {
        let (words, last) = self.words();
        hasher.five(words, last)
    }
}

/// Frames and bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Frames.
    pub frames: u64,
    /// Bytes of the frames, link layer included, as they were on the wire.
    pub bytes: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Counts) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// What a flow carried, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// From A to B, and from B to A.
    pub each: [Counts; 2],
    /// Time of the earliest frame in nanoseconds since 1970.
    pub first_ns: u64,
    /// Time of the latest frame.
    pub last_ns: u64,
}

impl Traffic {
    fn new(time_ns: u64) -> Self {
        Traffic { each: [Counts::default(); 2], first_ns: time_ns, last_ns: time_ns }
    }

    #[inline]
    pub(crate) fn add(&mut self, direction: PacketDirection, time_ns: u64, bytes: u32) {
        let counts = &mut self.each[direction.index()];
        counts.frames += 1;
        counts.bytes += u64::from(bytes);
        if time_ns > self.last_ns {
            self.last_ns = time_ns;
        } else if time_ns < self.first_ns {
            self.first_ns = time_ns;
        }
    }

    /// Adds another flow's traffic; `turned` says that its A is this one's B.
    pub(crate) fn merge(&mut self, other: &Traffic, turned: bool) {
        let [a, b] = other.each;
        let [to_a, to_b] = if turned { [b, a] } else { [a, b] };
        self.each[0].add(to_a);
        self.each[1].add(to_b);
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    /// Frames of both directions.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.each[0].frames + self.each[1].frames
    }

    /// Bytes of both directions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.each[0].bytes + self.each[1].bytes
    }

    /// From the earliest to the latest frame, in nanoseconds.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }

    /// Bit/s of a direction over the duration; `None` where that is 0.
    #[must_use]
    pub fn rate_bps(&self, direction: PacketDirection) -> Option<f64> {
        let seconds = self.duration_ns() as f64 / 1e9;
        let bits = self.each[direction.index()].bytes as f64 * 8.0;
        (seconds > 0.0).then(|| bits / seconds)
    }
}

/// A flow with its traffic.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<K> {
    /// Which flow.
    pub key: K,
    /// What it carried, from and to side A of the key.
    pub traffic: Traffic,
    /// Number of its first packet in the file.
    pub first_packet: u64,
    /// Who sent that packet.
    pub first: PacketDirection,
}

impl<K> Conversation<K> {
    /// The traffic with the sender of the first packet as side A, as Wireshark shows it;
    /// compare [`Conversation::first`] for the addresses.
    #[must_use]
    pub fn traffic_from_first(&self) -> Traffic {
        let [a, b] = self.traffic.each;
        let each = if self.first == PacketDirection::AToB { [a, b] } else { [b, a] };
        Traffic { each, ..self.traffic }
    }
}

/// When and by whom a packet of a flow was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) packet: u64,
    pub(crate) time_ns: u64,
    pub(crate) direction: PacketDirection,
}

impl Moment {
    fn begin<K>(self, key: K) -> Conversation<K> {
        let traffic = Traffic::new(self.time_ns);
        Conversation { key, traffic, first_packet: self.packet, first: self.direction }
    }
}

/// What a table has not, because its memory was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Flows by their keys, estimated to a few percent: TCP connections that reuse ports are one.
    pub flows: u64,
    /// Frames of them, and bytes of these.
    pub counts: Counts,
}

impl LeftOut {
    /// The sum of both.
    #[must_use]
    pub fn with(mut self, other: LeftOut) -> Self {
        self.flows += other.flows;
        self.counts.add(other.counts);
        self
    }
}

/// Flows by key, numbered in the order of appearance.
#[derive(Debug)]
pub(crate) struct Table<K> {
    flows: ChunkedList<Conversation<K>>,
    numbers: HashIndex,
    hasher: Hasher,
    last: u32,
    /// How many flows took the place of an older one, or ended one.
    pub(crate) renewed: u32,
    /// Whether no flow begins any more.
    pub(crate) is_closed: bool,
    further: Distinct,
    further_counts: Counts,
}

impl<K: Key> Table<K> {
    pub(crate) fn new(seed: Seed, budget: &MemoryBudget) -> Self {
        Table {
            flows: ChunkedList::new(budget),
            numbers: HashIndex::new(budget),
            hasher: Hasher::new(seed),
            last: 0,
            renewed: 0,
            is_closed: false,
            further: Distinct::default(),
            further_counts: Counts::default(),
        }
    }

    /// The number of the flow, which is made where it is new; `None` where the budget has no room
    /// for it.
    #[inline]
    pub(crate) fn number(&mut self, key: &K, moment: Moment) -> Option<u32> {
        if let Some(last) = self.flows.get(self.last as usize)
            && last.key == *key
        {
            return Some(self.last);
        }
        let number = self.look_up(key, moment)?;
        self.last = number;
        Some(number)
    }

    /// The number of a flow that is there; `u32::MAX` where it is not.
    #[inline]
    pub(crate) fn find(&self, key: &K) -> u32 {
        self.place(key.hash(&self.hasher), key).unwrap_or(u32::MAX)
    }

    #[inline]
    fn place(&self, hash: u64, key: &K) -> Option<u32> {
        let is_it = |it: &u32| self.flows.get(*it as usize).is_some_and(|flow| flow.key == *key);
        self.numbers.find(hash, is_it)
    }

    /// Tries `number` first in the next call of [`Table::number`].
    #[inline]
    pub(crate) fn expect(&mut self, number: u32) {
        self.last = number;
    }

    fn look_up(&mut self, key: &K, moment: Moment) -> Option<u32> {
        let hash = key.hash(&self.hasher);
        if let Some(number) = self.place(hash, key) {
            return Some(number);
        }
        let number = self.flows.len() as u32;
        let (flows, hasher) = (&self.flows, &self.hasher);
        let rehash = |it: &u32| flows.get(*it as usize).map_or(0, |flow| flow.key.hash(hasher));
        let begins = !self.is_closed && self.numbers.make_room(rehash);
        if !begins || !self.flows.push(moment.begin(*key)) {
            self.further.add(hash);
            return None;
        }
        let (flows, hasher) = (&self.flows, &self.hasher);
        let rehash = |it: &u32| flows.get(*it as usize).map_or(0, |flow| flow.key.hash(hasher));
        self.numbers.insert(hash, number, rehash);
        Some(number)
    }

    /// Makes a new flow of the key of `number`, which takes its place. Where the budget has no
    /// room for it, the old one ends all the same.
    pub(crate) fn renew(&mut self, number: u32, moment: Moment) -> Option<u32> {
        let key = self.flows.get(number as usize)?.key;
        let hash = key.hash(&self.hasher);
        self.renewed = self.renewed.wrapping_add(1);
        let new = self.flows.len() as u32;
        if self.is_closed || !self.flows.push(moment.begin(key)) {
            self.numbers.remove(hash, number);
            self.last = u32::MAX;
            self.further.add(hash);
            return None;
        }
        self.numbers.replace(hash, number, new);
        self.last = new;
        Some(new)
    }

    /// Counts a frame of a flow that has no number.
    #[cold]
    pub(crate) fn count_further(&mut self, bytes: u32) {
        self.further_counts.add(Counts { frames: 1, bytes: u64::from(bytes) });
    }

    /// Counts the traffic of a flow that has no number.
    pub(crate) fn leave_out(&mut self, traffic: &Traffic) {
        traffic.each.into_iter().for_each(|counts| self.further_counts.add(counts));
    }

    /// Counts a frame of the flow of `key`.
    #[inline]
    pub(crate) fn count(&mut self, key: &K, moment: Moment, bytes: u32) {
        let flow = self.number(key, moment).and_then(|number| self.flow(number));
        match flow {
            Some(flow) => flow.traffic.add(moment.direction, moment.time_ns, bytes),
            None => self.count_further(bytes),
        }
    }

    /// A flow by its number.
    #[inline]
    pub(crate) fn flow(&mut self, number: u32) -> Option<&mut Conversation<K>> {
        self.flows.get_mut(number as usize)
    }

    /// The flows in the order of their numbers.
    pub(crate) fn flows(&self) -> &ChunkedList<Conversation<K>> {
        &self.flows
    }

    pub(crate) fn into_flows(self) -> ChunkedList<Conversation<K>> {
        self.flows
    }

    /// The flows that have no number.
    pub(crate) fn left_out(&self) -> LeftOut {
        LeftOut { flows: self.further.count(), counts: self.further_counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: u64) -> Moment {
        Moment { packet: time_ns, time_ns, direction: PacketDirection::BToA }
    }

    fn key(port: u16) -> FlowKey {
        FlowKey::of(&[10, 0, 0, 1], &[10, 0, 0, 2], port, 80, 6).0
    }

    #[test]
    fn numbers_are_in_the_order_of_appearance() {
        let mut table = Table::new(Seed([1, 2]), &MemoryBudget::new(1 << 20));
        for round in 0..2 {
            for port in 0..500 {
                assert_eq!(table.number(&key(1000 + port), at(round)), Some(u32::from(port)));
            }
        }
        assert_eq!(table.flows().len(), 500);
    }

    #[test]
    fn a_renewed_flow_takes_the_place_of_the_old_one() {
        let mut table = Table::new(Seed([1, 2]), &MemoryBudget::new(1 << 20));
        assert_eq!(table.number(&key(1), at(0)), Some(0));
        assert_eq!(table.number(&key(2), at(0)), Some(1));
        assert_eq!(table.renew(0, at(5)), Some(2));
        assert_eq!(table.number(&key(2), at(0)), Some(1));
        assert_eq!(table.number(&key(1), at(9)), Some(2));
        assert_eq!(table.left_out(), LeftOut::default());
    }

    #[test]
    fn flows_beyond_the_budget_are_counted() {
        let mut table = Table::new(Seed([1, 2]), &MemoryBudget::new(400_000));
        for round in 0..2 {
            for port in 0..20_000 {
                table.count(&key(port), at(round), 100);
            }
        }
        let (flows, left_out) = (table.flows().len() as u64, table.left_out());
        assert!((1024..4000).contains(&flows), "{flows}");
        assert_eq!(left_out.counts.frames, 2 * (20_000 - flows));
        assert_eq!(left_out.counts.bytes, 200 * (20_000 - flows));
        assert!(left_out.flows.abs_diff(20_000 - flows) < 1000, "{left_out:?}");
        // A known flow that begins anew without room ends: what follows is not the old one's.
        let before = table.flow(0).unwrap().traffic;
        table.number(&key(0), at(3));
        assert_eq!(table.renew(0, at(4)), None);
        table.count(&key(0), at(5), 100);
        assert_eq!(table.flow(0).unwrap().traffic, before);
        assert_eq!(table.left_out().counts.frames, left_out.counts.frames + 1);
    }

    #[test]
    fn seeds_change_hashes() {
        let hashes = |seed| (0..4).map(|port| key(port).hash(&Hasher::new(seed))).collect();
        let (one, other): (Vec<u64>, Vec<u64>) = (hashes(Seed([1, 2])), hashes(Seed([1, 3])));
        assert!(one.iter().all(|hash| !other.contains(hash)));
    }
}
