//! Slots for threads that serve clients before these are admitted.

use host::address_key::AddressKey;
use host::lock::lock;
use std::collections::HashMap;
use std::sync::Mutex;

/// A number of slots. The first half is for every address, at most half of it for one; the
/// second half is for addresses that have none. So an address always finds one, unless more
/// other addresses than that have one each.
#[derive(Debug)]
pub struct ThreadSlots {
    most: usize,
    taken: Mutex<HashMap<AddressKey, usize>>,
}

/// A slot, freed on drop.
#[derive(Debug)]
pub struct ThreadSlot<'a> {
    slots: &'a ThreadSlots,
    key: AddressKey,
}

impl ThreadSlots {
    /// `most` slots, at least two.
    #[must_use]
    pub fn new(most: usize) -> Self {
        ThreadSlots { most: most.max(2), taken: Mutex::default() }
    }

    /// Takes a slot for a client at `key`; `None` where it has to wait.
    pub fn take(&self, key: AddressKey) -> Option<ThreadSlot<'_>> {
        let mut taken = lock(&self.taken);
        let all: usize = taken.values().sum();
        let own = taken.get(&key).copied().unwrap_or(0);
        let is_free = match own {
            0 => all < self.most,
            _ => all < self.most / 2 && own < self.most / 4,
        };
        is_free.then(|| {
            taken.insert(key, own + 1);
            ThreadSlot { slots: self, key }
        })
    }
}

impl Drop for ThreadSlot<'_> {
    fn drop(&mut self) {
        let mut taken = lock(&self.slots.taken);
        match taken.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(last: u8) -> AddressKey {
        AddressKey::of([192, 0, 2, last].into())
    }

    #[test]
    fn an_address_without_a_slot_finds_one_beside_64_others() {
        let slots = ThreadSlots::new(128);
        let mut held = Vec::new();
        for address in 1..=64 {
            while let Some(slot) = slots.take(key(address)) {
                held.push(slot);
            }
        }
        // Two have a quarter each; the others have one each.
        assert_eq!(held.len(), 32 + 32 + 62);
        assert!(slots.take(key(65)).is_some());
    }

    #[test]
    fn slots_are_bounded_and_freed() {
        let slots = ThreadSlots::new(4);
        let first = slots.take(key(1)).unwrap();
        assert!(slots.take(key(1)).is_none(), "a quarter of four");
        let others = [2, 3, 4].map(|address| slots.take(key(address)).unwrap());
        assert!(slots.take(key(5)).is_none());
        drop(first);
        assert!(slots.take(key(5)).is_some());
        drop(others);
        assert!(lock(&slots.taken).is_empty());
    }
}
