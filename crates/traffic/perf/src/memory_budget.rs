//! A server's memory limit for messages: parameters and results of all sessions
//! while they are read, parsed and written. Those of one address get half of it.

use host::{address_key::AddressKey, clock, lock};
use std::{
    collections::HashMap,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};
use units::ByteCount;

/// One server's budget.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: u64,
    /// By address; only those that hold some.
    held: Mutex<HashMap<AddressKey, u64>>,
    freed: Condvar,
}

/// A part of the budget, released on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    key: AddressKey,
    bytes: u64,
}

impl MemoryBudget {
    pub(crate) fn new(limit: ByteCount) -> Arc<Self> {
        let (limit, held) = (limit.bytes(), Mutex::default());
        Arc::new(MemoryBudget { limit, held, freed: Condvar::new() })
    }

    /// Reserves `bytes` for an address, waiting at most `timeout` for others to release some;
    /// `None` after that. A single message always fits, even if it needs more than
    /// the share of an address.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        key: AddressKey,
        bytes: ByteCount,
        timeout: Duration,
    ) -> Option<Reservation> {
        let share = self.limit / 2;
        let bytes = bytes.bytes().min(share);
        let until = clock::now() + timeout;
        let mut held = self.held();
        loop {
            let own = held.get(&key).copied().unwrap_or(0);
            if own + bytes <= share && held.values().sum::<u64>() + bytes <= self.limit {
                held.insert(key, own + bytes);
                return Some(Reservation { budget: Arc::clone(self), key, bytes });
            }
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return None;
            }
            held = lock::wait_timeout(&self.freed, held, left);
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<AddressKey, u64>> {
        lock::lock(&self.held)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut held = self.budget.held();
        if let Some(own) = held.get_mut(&self.key) {
            *own -= self.bytes;
            if *own == 0 {
                held.remove(&self.key);
            }
        }
        drop(held);
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn key(last: u8) -> AddressKey {
        AddressKey::of([192, 0, 2, last].into())
    }

    #[test]
    fn reservations_never_exceed_the_limit_or_the_share_of_an_address() {
        let budget = MemoryBudget::new(ByteCount::from_bytes(100));
        let some = |address, bytes| {
            budget.reserve(key(address), ByteCount::from_bytes(bytes), Duration::ZERO)
        };
        let first = some(1, 30).unwrap();
        assert!(some(1, 21).is_none());
        let second = some(1, 20).unwrap();
        assert!(some(1, 1).is_none());
        let other = some(2, 50).unwrap();
        assert!(some(3, 1).is_none());
        drop((first, second));
        let whole = some(1, 1000).unwrap();
        assert!(some(1, 1).is_none(), "more than the share takes all of it");
        drop((whole, other));
        assert!(budget.held().is_empty());
    }

    #[test]
    fn a_waiter_gets_released_memory() {
        let budget = MemoryBudget::new(ByteCount::from_bytes(10));
        let first = budget.reserve(key(1), ByteCount::from_bytes(5), Duration::ZERO);
        let bytes = ByteCount::from_bytes(5);
        thread::scope(|scope| {
            let waits = scope.spawn(|| budget.reserve(key(1), bytes, Duration::from_secs(60)));
            drop(first.unwrap());
            assert!(waits.join().unwrap().is_some());
        });
    }
}
