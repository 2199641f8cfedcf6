//! Payloads of consecutive packets, in blocks of 64: blocks are allocated when a packet of
//! theirs is stored and reused after the last of them is released.

use std::collections::VecDeque;
use std::ops::Range;

/// Packets of a block, one bit each in its sets.
const BLOCK: u64 = 64;
/// Released blocks that are kept for reuse.
const MAX_SPARE: usize = 64;

/// A set of packets that every block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    /// Receiver: the packet has arrived. Sender: it is lost and not yet retransmitted.
    Marked = 0,
    /// Sender: it was lost and is not yet acknowledged.
    Missing = 1,
}

#[derive(Debug)]
struct Block {
    payload: Box<[u8]>,
    lengths: [u16; BLOCK as usize],
    /// The second word of each packet's header.
    parts: [u32; BLOCK as usize],
    sets: [u64; 2],
}

/// The payloads of a range of packets.
#[derive(Debug)]
pub(crate) struct PacketStore {
    /// Longest payload, bytes.
    stride: usize,
    /// Number of the first block.
    first: u64,
    blocks: VecDeque<Option<Block>>,
    spare: Vec<Block>,
}

const fn bit(packet: u64) -> u64 {
    1 << (packet % BLOCK)
}

impl PacketStore {
    pub(crate) fn new(stride: usize) -> Self {
        PacketStore { stride, first: 0, blocks: VecDeque::new(), spare: Vec::new() }
    }

    pub(crate) const fn stride(&self) -> usize {
        self.stride
    }

    fn block(&self, packet: u64) -> Option<&Block> {
        let index = (packet / BLOCK).checked_sub(self.first)?;
        self.blocks.get(index as usize)?.as_ref()
    }

    fn existing(&mut self, packet: u64) -> Option<&mut Block> {
        let index = (packet / BLOCK).checked_sub(self.first)?;
        self.blocks.get_mut(index as usize)?.as_mut()
    }

    /// Stores a packet that was not released, nor any after it.
    pub(crate) fn put(&mut self, packet: u64, part: u32, payload: &[u8]) {
        let Some(index) = (packet / BLOCK).checked_sub(self.first) else { return };
        let index = index as usize;
        if index >= self.blocks.len() {
            self.blocks.resize_with(index + 1, || None);
        }
        let (stride, spare) = (self.stride, &mut self.spare);
        let block = self.blocks[index].get_or_insert_with(|| {
            spare.pop().unwrap_or_else(|| Block {
                payload: vec![0; stride * BLOCK as usize].into_boxed_slice(),
                lengths: [0; BLOCK as usize],
                parts: [0; BLOCK as usize],
                sets: [0; 2],
            })
        });
        let slot = (packet % BLOCK) as usize;
        let length = payload.len().min(stride);
        block.payload[slot * stride..][..length].copy_from_slice(&payload[..length]);
        block.lengths[slot] = length as u16;
        block.parts[slot] = part;
    }

    /// Appends to a stored packet as much as it has room for, and gives that number of
    /// bytes.
    pub(crate) fn extend(&mut self, packet: u64, more: &[u8]) -> usize {
        let stride = self.stride;
        let Some(block) = self.existing(packet) else { return 0 };
        let slot = (packet % BLOCK) as usize;
        let length = usize::from(block.lengths[slot]);
        let added = more.len().min(stride - length);
        block.payload[slot * stride + length..][..added].copy_from_slice(&more[..added]);
        block.lengths[slot] = (length + added) as u16;
        added
    }

    pub(crate) fn payload(&self, packet: u64) -> &[u8] {
        let Some(block) = self.block(packet) else { return &[] };
        let slot = (packet % BLOCK) as usize;
        &block.payload[slot * self.stride..][..usize::from(block.lengths[slot])]
    }

    /// Copies the payloads of `packets` from byte `skip` of the first on. Returns the bytes
    /// copied, the next packet to read, and the bytes of it that are read.
    pub(crate) fn read(
        &self,
        packets: Range<u64>,
        mut skip: usize,
        mut into: &mut [u8],
    ) -> (usize, u64, usize) {
        let (mut bytes, mut next) = (0, packets.start);
        while next < packets.end && !into.is_empty() {
            let rest = &self.payload(next)[skip..];
            let part = rest.len().min(into.len());
            let (now, later) = into.split_at_mut(part);
            now.copy_from_slice(&rest[..part]);
            into = later;
            bytes += part;
            (next, skip) = if part == rest.len() { (next + 1, 0) } else { (next, skip + part) };
        }
        (bytes, next, skip)
    }

    /// The bytes of the payloads of `packets`.
    pub(crate) fn bytes_of(&self, packets: Range<u64>) -> u64 {
        packets.map(|packet| self.payload(packet).len() as u64).sum()
    }

    /// The second word of its header.
    pub(crate) fn part(&self, packet: u64) -> u32 {
        self.block(packet).map_or(0, |block| block.parts[(packet % BLOCK) as usize])
    }

    pub(crate) fn contains(&self, set: Set, packet: u64) -> bool {
        self.block(packet).is_some_and(|block| block.sets[set as usize] & bit(packet) != 0)
    }

    /// Adds a stored packet to a set, and says whether it was not in it.
    pub(crate) fn insert(&mut self, set: Set, packet: u64) -> bool {
        let Some(block) = self.existing(packet) else { return false };
        let before = block.sets[set as usize];
        block.sets[set as usize] |= bit(packet);
        before & bit(packet) == 0
    }

    pub(crate) fn remove(&mut self, set: Set, packet: u64) -> bool {
        let Some(block) = self.existing(packet) else { return false };
        let before = block.sets[set as usize];
        block.sets[set as usize] &= !bit(packet);
        before & bit(packet) != 0
    }

    /// The first packet of a range that is in a set.
    pub(crate) fn first_in(&self, set: Set, range: Range<u64>) -> Option<u64> {
        self.search(range, |block| block.map_or(0, |block| block.sets[set as usize]))
    }

    /// The first packet of a range that is not in a set.
    pub(crate) fn first_not_in(&self, set: Set, range: Range<u64>) -> Option<u64> {
        self.search(range, |block| block.map_or(u64::MAX, |block| !block.sets[set as usize]))
    }

    fn search(&self, range: Range<u64>, bits: impl Fn(Option<&Block>) -> u64) -> Option<u64> {
        let mut packet = range.start;
        while packet < range.end {
            let found = bits(self.block(packet)) & !(bit(packet) - 1);
            let start = packet / BLOCK * BLOCK;
            if found != 0 {
                let found = start + u64::from(found.trailing_zeros());
                return (found < range.end).then_some(found);
            }
            packet = start + BLOCK;
        }
        None
    }

    /// Packets of a range that are in a set.
    pub(crate) fn count(&self, set: Set, range: Range<u64>) -> u64 {
        let (mut packet, mut count) = (range.start, 0);
        while packet < range.end {
            let end = ((packet / BLOCK + 1) * BLOCK).min(range.end);
            if let Some(block) = self.block(packet) {
                let bits = block.sets[set as usize] >> (packet % BLOCK);
                let width = end - packet;
                let mask = if width == BLOCK { u64::MAX } else { (1 << width) - 1 };
                count += u64::from((bits & mask).count_ones());
            }
            packet = end;
        }
        count
    }

    /// Releases the packets before this one.
    pub(crate) fn release_before(&mut self, packet: u64) {
        while self.first < packet / BLOCK {
            self.first += 1;
            let Some(released) = self.blocks.pop_front() else {
                self.first = packet / BLOCK;
                return;
            };
            if let Some(mut block) = released
                && self.spare.len() < MAX_SPARE
            {
                block.sets = [0; 2];
                self.spare.push(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn payloads_are_kept_until_released() {
        let mut store = PacketStore::new(4);
        store.put(70, 9, b"ab");
        store.put(200, 0, b"longer than four");
        assert_eq!((store.payload(70), store.part(70)), (&b"ab"[..], 9));
        assert_eq!(store.extend(70, b"cdefg"), 2);
        assert_eq!((store.payload(70), store.payload(200)), (&b"abcd"[..], &b"long"[..]));
        assert_eq!(store.payload(1000), b"");
        store.release_before(200);
        assert_eq!((store.payload(70), store.payload(200)), (&b""[..], &b"long"[..]));
        store.put(70, 0, b"late");
        assert_eq!(store.payload(70), b"");
    }

    proptest! {
        #[test]
        fn sets_are_searched_and_counted(
            members in prop::collection::btree_set(0_u64..500, 0..200),
            (from, to) in (0_u64..500, 0_u64..600),
            released in 0_u64..500,
        ) {
            let mut store = PacketStore::new(1);
            let mut model = BTreeMap::new();
            for packet in 0..500 {
                // Every third block is never allocated.
                if packet / BLOCK % 3 != 2 {
                    store.put(packet, 0, &[1]);
                    if members.contains(&packet) {
                        prop_assert!(store.insert(Set::Marked, packet));
                        model.insert(packet, ());
                    }
                }
            }
            store.release_before(released);
            let released = released / BLOCK * BLOCK;
            let from = from.max(released);
            let is_in = |packet: &u64| model.contains_key(packet);
            prop_assert_eq!(store.first_in(Set::Marked, from..to), (from..to).find(is_in));
            let missing = (from..to).find(|packet| !is_in(packet));
            prop_assert_eq!(store.first_not_in(Set::Marked, from..to), missing);
            let count = (from..to).filter(is_in).count() as u64;
            prop_assert_eq!(store.count(Set::Marked, from..to), count);
        }
    }
}
