//! A server's memory limit for messages: parameters and results of all sessions
//! while they are read, parsed and written.

use host::{clock, lock};
use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};
use units::ByteCount;

/// One server's budget.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: u64,
    held: Mutex<u64>,
    freed: Condvar,
}

/// A part of the budget, released on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl MemoryBudget {
    pub(crate) fn new(limit: ByteCount) -> Arc<Self> {
        Arc::new(MemoryBudget { limit: limit.bytes(), held: Mutex::new(0), freed: Condvar::new() })
    }

    /// Reserves `bytes`, waiting at most `timeout` for others to release some;
    /// `None` after that. A single message always fits, even if it needs more than
    /// the whole budget.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        bytes: ByteCount,
        timeout: Duration,
    ) -> Option<Reservation> {
        let bytes = bytes.bytes().min(self.limit);
        let until = clock::now() + timeout;
        let mut held = self.held();
        while self.limit - *held < bytes {
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return None;
            }
            held = lock::wait_timeout(&self.freed, held, left);
        }
        *held += bytes;
        Some(Reservation { budget: Arc::clone(self), bytes })
    }

    fn held(&self) -> MutexGuard<'_, u64> {
        lock::lock(&self.held)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *self.budget.held() -= self.bytes;
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn reservations_never_exceed_the_limit() {
        let budget = MemoryBudget::new(ByteCount::from_bytes(100));
        let some = |bytes| budget.reserve(ByteCount::from_bytes(bytes), Duration::ZERO);
        let first = some(60).unwrap();
        assert!(some(41).is_none());
        let second = some(40).unwrap();
        assert!(some(1).is_none());
        drop((first, second));
        let whole = some(1000).unwrap();
        assert!(some(1).is_none(), "more than the limit takes all of it");
        drop(whole);
        assert_eq!(*budget.held(), 0);
    }

    #[test]
    fn a_waiter_gets_released_memory() {
        let budget = MemoryBudget::new(ByteCount::from_bytes(10));
        let first = budget.reserve(ByteCount::from_bytes(10), Duration::ZERO).unwrap();
        thread::scope(|scope| {
            let waits =
                scope.spawn(|| budget.reserve(ByteCount::from_bytes(5), Duration::from_secs(60)));
            drop(first);
            assert!(waits.join().unwrap().is_some());
        });
    }
}
