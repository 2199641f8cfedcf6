//! The memory of the tables of a reading.
//!
//! A capture decides how many flows there are, and a compressed one of some megabytes has
//! millions of them. So every table that grows with flows takes the bytes that it really costs
//! out of one budget: lists by chunks, which never move, and hash tables with the old table that is
//! there while the new one is filled.

use hashbrown::HashTable;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of all tables of a reading, those of its output included: half a gigabyte.
pub const TABLE_BYTES: usize = 512 << 20;

/// Bytes that tables may still take. Clones share them.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    left: Arc<AtomicUsize>,
    most: usize,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        MemoryBudget { left: Arc::new(AtomicUsize::new(bytes)), most: bytes }
    }

    /// Takes bytes out of the budget, or none if that has less.
    #[must_use]
    pub fn take(&self, bytes: usize) -> bool {
        let order = Ordering::Relaxed;
        self.left.fetch_update(order, order, |left| left.checked_sub(bytes)).is_ok()
    }

    /// Returns bytes that were taken.
    pub fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Bytes of the whole budget.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }
}

/// Elements of a chunk.
const CHUNK: usize = 1024;

/// A list in chunks: it grows without a copy, so it never takes more than its elements and the
/// rest of one chunk.
#[derive(Debug)]
pub struct ChunkedList<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
    budget: MemoryBudget,
}

impl<T> ChunkedList<T> {
    /// A chunk, its place in the list of chunks while that doubles, and what the allocator adds.
    const CHUNK_BYTES: usize = CHUNK * size_of::<T>() + 4 * size_of::<Vec<T>>() + 32;

    /// No elements; its chunks are taken out of the budget.
    #[must_use]
    pub fn new(budget: &MemoryBudget) -> Self {
        ChunkedList { chunks: Vec::new(), len: 0, budget: budget.clone() }
    }

    /// Whether there is room for another element, for which the budget may have to give a chunk.
    #[must_use]
    #[inline]
    pub fn make_room(&mut self) -> bool {
        self.len < self.chunks.len() * CHUNK || self.add_chunk()
    }

    #[cold]
    fn add_chunk(&mut self) -> bool {
        // Numbers are 32 bits, of which the last one stands for none.
        let fits = self.len < u32::MAX as usize - CHUNK && self.budget.take(Self::CHUNK_BYTES);
        if fits {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        fits
    }

    /// Appends an element; false where the budget has no room for it.
    #[inline]
    pub fn push(&mut self, element: T) -> bool {
        if !self.make_room() {
            return false;
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(element);
            self.len += 1;
        }
        true
    }

    /// How many elements there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at a place.
    #[must_use]
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)
    }

    /// The element at a place.
    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.chunks.get_mut(place / CHUNK)?.get_mut(place % CHUNK)
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.chunks.iter().flatten()
    }
}

impl<T> Drop for ChunkedList<T> {
    fn drop(&mut self) {
        self.budget.give_back(self.chunks.len() * Self::CHUNK_BYTES);
    }
}

/// The places of elements of a list, by their hashes.
#[derive(Debug)]
pub(crate) struct HashIndex {
    table: HashTable<u32>,
    budget: MemoryBudget,
    taken: usize,
}

impl HashIndex {
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        HashIndex { table: HashTable::new(), budget: budget.clone(), taken: 0 }
    }

    /// Whether there is room for another place; `hash` is that of an element.
    #[must_use]
    #[inline]
    pub(crate) fn make_room(&mut self, hash: impl Fn(&u32) -> u64) -> bool {
        self.table.len() < self.table.capacity() || self.grow(hash)
    }

    #[cold]
    fn grow(&mut self, hash: impl Fn(&u32) -> u64) -> bool {
        // Twice the buckets, each of a number and a byte of control, and the group behind them.
        let most = self.table.allocation_size() * 2 + 128;
        if !self.budget.take(most) {
            return false;
        }
        self.table.reserve(1, hash);
        let now = self.table.allocation_size();
        self.budget.give_back((most + self.taken).saturating_sub(now));
        self.taken = now;
        true
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl FnMut(&u32) -> bool) -> Option<u32> {
        self.table.find(hash, is_it).copied()
    }

    /// Adds a place for which [`HashIndex::make_room`] found room.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, place: u32, rehash: impl Fn(&u32) -> u64) {
        self.table.insert_unique(hash, place, rehash);
    }

    pub(crate) fn replace(&mut self, hash: u64, old: u32, new: u32) {
        if let Some(place) = self.table.find_mut(hash, |it| *it == old) {
            *place = new;
        }
    }

    pub(crate) fn remove(&mut self, hash: u64, place: u32) {
        if let Ok(entry) = self.table.find_entry(hash, |it| *it == place) {
            entry.remove();
        }
    }
}

impl Drop for HashIndex {
    fn drop(&mut self) {
        self.budget.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_where_its_budget_does() {
        let chunk = ChunkedList::<u64>::CHUNK_BYTES;
        for (bytes, most) in [(3 * chunk, 3 * CHUNK), (3 * chunk - 1, 2 * CHUNK), (0, 0)] {
            let budget = MemoryBudget::new(bytes);
            let mut list = ChunkedList::new(&budget);
            let pushed = (0..10 * CHUNK as u64).take_while(|number| list.push(*number)).count();
            assert_eq!((pushed, list.len()), (most, most));
            assert!(list.iter().copied().eq(0..most as u64));
            assert_eq!((list.get(most), list.get(0).copied()), (None, (most > 0).then_some(0)));
            drop(list);
            assert_eq!(budget.left(), bytes);
        }
    }

    #[test]
    fn a_table_of_places_has_room_for_both_while_it_grows() {
        let budget = MemoryBudget::new(1 << 16);
        let mut places = HashIndex::new(&budget);
        let hash = |place: &u32| u64::from(*place) << 32 | u64::from(*place);
        let mut least = budget.left();
        let mut count = 0;
        while places.make_room(hash) {
            places.insert(hash(&count), count, hash);
            least = least.min(budget.left());
            assert_eq!(budget.left() + places.table.allocation_size(), 1 << 16);
            count += 1;
        }
        // The next table would fit alone, and not beside this one.
        assert!(places.table.allocation_size() * 3 > 1 << 16 && count > 1000);
        drop(places);
        assert_eq!(budget.left(), 1 << 16);
    }
}
