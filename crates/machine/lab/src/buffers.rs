//! Buffers for packets in flight.

use host::memory::Region;
use host::tun::MAX_READ;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use units::ByteCount;

/// Bytes of one slot: the longest read, cache-line aligned.
const SLOT: usize = MAX_READ.next_multiple_of(64);

/// Bytes allocated at a time: 63 slots.
const CHUNK: usize = 4 << 20;
const SLOTS: usize = CHUNK / SLOT;

/// Most that is allocated in advance; a larger path allocates the rest as it
/// fills.
const MAX_RESERVED: u64 = 1 << 30;

/// Allocates and touches the memory for a path of so many bytes in advance: page
/// faults while it fills would delay packets.
pub(crate) fn reserve(bytes: ByteCount) -> io::Result<Vec<Region>> {
    let chunks = bytes.bytes().min(MAX_RESERVED).div_ceil(CHUNK as u64);
    (0..chunks)
        .map(|_| {
            let region = Region::new(CHUNK)?;
            region.touch();
            Ok(region)
        })
        .collect()
}

/// Slots for trains, reused last in first out while they are in the cache.
/// Memory is never returned: a path that was full will be full again.
#[derive(Debug)]
pub(crate) struct Pool {
    chunks: Vec<Region>,
    free: Rc<RefCell<Vec<BufferSlot>>>,
}

/// One slot, freed on drop.
#[derive(Debug)]
pub(crate) struct Slot {
    place: BufferSlot,
    free: Rc<RefCell<Vec<BufferSlot>>>,
}

#[derive(Debug, Clone, Copy)]
struct BufferSlot {
    chunk: usize,
    offset: usize,
}

impl Pool {
    /// Slots in `chunks` first.
    pub(crate) fn new(chunks: Vec<Region>) -> Self {
        let free = (0..chunks.len()).rev().flat_map(Self::slots_of).collect();
        Pool { chunks, free: Rc::new(RefCell::new(free)) }
    }

    /// The slots of a chunk, the first one last.
    fn slots_of(chunk: usize) -> impl Iterator<Item = BufferSlot> {
        (0..SLOTS).rev().map(move |n| BufferSlot { chunk, offset: n * SLOT })
    }

    /// A free slot.
    pub(crate) fn take(&mut self) -> io::Result<Slot> {
        let mut free = self.free.borrow_mut();
        if free.is_empty() {
            let chunk = self.chunks.len();
            self.chunks.push(Region::new(CHUNK)?);
            free.extend(Self::slots_of(chunk));
        }
        let place = free.pop().ok_or_else(|| io::Error::other("no free slot in a new chunk"))?;
        Ok(Slot { place, free: Rc::clone(&self.free) })
    }

    pub(crate) fn bytes(&self, slot: &Slot) -> &[u8] {
        let BufferSlot { chunk, offset } = slot.place;
        &self.chunks[chunk][offset..offset + MAX_READ]
    }

    pub(crate) fn bytes_mut(&mut self, slot: &mut Slot) -> &mut [u8] {
        let BufferSlot { chunk, offset } = slot.place;
        &mut self.chunks[chunk][offset..offset + MAX_READ]
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.free.borrow_mut().push(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_lie_apart_and_come_back() {
        let mut pool = Pool::new(reserve(ByteCount::from_bytes(1)).unwrap());
        let mut slots: Vec<Slot> = (0..SLOTS + 1).map(|_| pool.take().unwrap()).collect();
        for (n, slot) in slots.iter_mut().enumerate() {
            pool.bytes_mut(slot).fill(n as u8);
        }
        for (n, slot) in slots.iter().enumerate() {
            assert!(pool.bytes(slot).iter().all(|byte| *byte == n as u8), "slot {n}");
        }
        slots.clear();
        let again: Vec<Slot> = (0..SLOTS + 1).map(|_| pool.take().unwrap()).collect();
        assert_eq!((again.len(), pool.chunks.len()), (SLOTS + 1, 2), "nothing new was taken");
    }
}
