//! The table of flows: from a key to a number, in the order of appearance.
//!
//! One lookup a packet, none for a packet of the same flow as the one before. Numbers
//! are places in a list, so other lists can be kept beside it.

use crate::dissect::Direction;
use crate::dissect::FlowKey;
use hashbrown::HashTable;

/// A secret for hash functions. Take it from a random generator: with a known seed a
/// file can be made whose flows all collide.
#[derive(Debug, Clone, Copy)]
pub struct Seed(pub [u64; 2]);

/// Flows of a table, beyond which packets of further ones are only counted: 4 million,
/// half a gigabyte.
pub const MAX_FLOWS: usize = 1 << 22;

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
    pub(crate) fn add(&mut self, direction: Direction, time_ns: u64, bytes: u32) {
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
    pub fn rate_bps(&self, direction: Direction) -> Option<f64> {
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
    pub first: Direction,
}

impl<K> Conversation<K> {
    /// The traffic with the sender of the first packet as side A, as Wireshark shows it;
    /// compare [`Conversation::first`] for the addresses.
    #[must_use]
    pub fn traffic_from_first(&self) -> Traffic {
        let [a, b] = self.traffic.each;
        let each = if self.first == Direction::AToB { [a, b] } else { [b, a] };
        Traffic { each, ..self.traffic }
    }
}

/// When and by whom a packet of a flow was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) packet: u64,
    pub(crate) time_ns: u64,
    pub(crate) direction: Direction,
}

impl Moment {
    fn begin<K>(self, key: K) -> Conversation<K> {
        let traffic = Traffic::new(self.time_ns);
        Conversation { key, traffic, first_packet: self.packet, first: self.direction }
    }
}

/// Flows by key, numbered in the order of appearance.
#[derive(Debug)]
pub(crate) struct Table<K> {
    flows: Vec<Conversation<K>>,
    numbers: HashTable<u32>,
    hasher: Hasher,
    last: u32,
    most: usize,
    /// How many flows took the place of an older one.
    pub(crate) renewed: u32,
    /// Packets of flows beyond `most`.
    pub(crate) not_counted: u64,
}

impl<K: Key> Table<K> {
    pub(crate) fn new(seed: Seed, most: usize) -> Self {
        Table {
            flows: Vec::new(),
            numbers: HashTable::new(),
            hasher: Hasher::new(seed),
            last: 0,
            most,
            renewed: 0,
            not_counted: 0,
        }
    }

    /// The number of the flow, which is made where it is new; `None` beyond the most.
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
        let hash = key.hash(&self.hasher);
        let found = self.numbers.find(hash, |it| self.flows[*it as usize].key == *key);
        found.copied().unwrap_or(u32::MAX)
    }

    /// Tries `number` first in the next call of [`Table::number`].
    #[inline]
    pub(crate) fn expect(&mut self, number: u32) {
        self.last = number;
    }

    fn look_up(&mut self, key: &K, moment: Moment) -> Option<u32> {
        let hash = key.hash(&self.hasher);
        let flows = &self.flows;
        let found = self.numbers.find(hash, |number| flows[*number as usize].key == *key);
        if let Some(number) = found {
            return Some(*number);
        }
        if self.flows.len() >= self.most {
            self.not_counted += 1;
            return None;
        }
        let number = self.flows.len() as u32;
        self.flows.push(moment.begin(*key));
        let (flows, hasher) = (&self.flows, &self.hasher);
        self.numbers.insert_unique(hash, number, |it| flows[*it as usize].key.hash(hasher));
        Some(number)
    }

    /// Makes a new flow of the key of `number`, which takes its place.
    pub(crate) fn renew(&mut self, number: u32, moment: Moment) -> Option<u32> {
        let key = self.flows.get(number as usize)?.key;
        if self.flows.len() >= self.most {
            self.not_counted += 1;
            return None;
        }
        let hash = key.hash(&self.hasher);
        let new = self.flows.len() as u32;
        let place = self.numbers.find_mut(hash, |it| *it == number)?;
        *place = new;
        self.renewed = self.renewed.wrapping_add(1);
        self.flows.push(moment.begin(key));
        self.last = new;
        Some(new)
    }

    /// A flow by its number.
    #[inline]
    pub(crate) fn flow(&mut self, number: u32) -> Option<&mut Conversation<K>> {
        self.flows.get_mut(number as usize)
    }

    pub(crate) fn into_flows(self) -> Vec<Conversation<K>> {
        self.flows
    }

    /// The flows in the order of their numbers.
    pub(crate) fn flows(&self) -> &[Conversation<K>] {
        &self.flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: u64) -> Moment {
        Moment { packet: time_ns, time_ns, direction: Direction::BToA }
    }

    fn key(port: u16) -> FlowKey {
        FlowKey::of(&[10, 0, 0, 1], &[10, 0, 0, 2], port, 80, 6).0
    }

    #[test]
    fn numbers_are_in_the_order_of_appearance() {
        let mut table = Table::new(Seed([1, 2]), 1000);
        for round in 0..2 {
            for port in 0..500 {
                assert_eq!(table.number(&key(1000 + port), at(round)), Some(u32::from(port)));
            }
        }
        assert_eq!(table.flows().len(), 500);
    }

    #[test]
    fn a_renewed_flow_takes_the_place_of_the_old_one() {
        let mut table = Table::new(Seed([1, 2]), 3);
        assert_eq!(table.number(&key(1), at(0)), Some(0));
        assert_eq!(table.number(&key(2), at(0)), Some(1));
        assert_eq!(table.renew(0, at(5)), Some(2));
        assert_eq!(table.number(&key(2), at(0)), Some(1));
        assert_eq!(table.number(&key(1), at(9)), Some(2));
        assert_eq!((table.renew(1, at(5)), table.number(&key(3), at(0))), (None, None));
        assert_eq!(table.not_counted, 2);
    }

    #[test]
    fn seeds_change_hashes() {
        let hashes = |seed| (0..4).map(|port| key(port).hash(&Hasher::new(seed))).collect();
        let (one, other): (Vec<u64>, Vec<u64>) = (hashes(Seed([1, 2])), hashes(Seed([1, 3])));
        assert!(one.iter().all(|hash| !other.contains(hash)));
    }
}
