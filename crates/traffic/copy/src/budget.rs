//! What a copy or a server may hold at most: bytes, or descriptors.

use host::clock;
use host::lock::{self, lock};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// An amount that is shared out.
#[derive(Debug)]
pub(crate) struct Budget {
    state: Mutex<State>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct State {
    held: usize,
    peak: usize,
}

impl Budget {
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Budget { state: Mutex::default(), changed: Condvar::new(), capacity })
    }

    /// Takes a share, if so much is left.
    pub(crate) fn take(self: &Arc<Self>, amount: usize) -> Option<Share> {
        let mut share = Share { budget: Arc::clone(self), amount: 0 };
        share.resize(amount).then_some(share)
    }

    /// Takes a share, if so much is left within that time.
    pub(crate) fn take_within(self: &Arc<Self>, amount: usize, time: Duration) -> Option<Share> {
        let until = clock::now() + time;
        loop {
            if let Some(share) = self.take(amount) {
                return Some(share);
            }
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return None;
            }
            let state = lock(&self.state);
            if state.held.saturating_add(amount) > self.capacity {
                drop(lock::wait_timeout(&self.changed, state, left));
            }
        }
    }

    /// The most that was held at a time.
    pub(crate) fn peak(&self) -> usize {
        lock(&self.state).peak
    }

    /// Replaces `old` by `new`, if no more than `most` is held then.
    fn exchange(&self, old: usize, new: usize, most: usize) -> bool {
        let mut state = lock(&self.state);
        let others = state.held - old;
        if new > old && others.saturating_add(new) > most {
            return false;
        }
        state.held = others + new;
        state.peak = state.peak.max(state.held);
        drop(state);
        if new < old {
            self.changed.notify_all();
        }
        true
    }
}

/// A part of a budget, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    amount: usize,
}

impl Share {
    /// Makes it larger or smaller. False, and nothing is changed, where so much is not left.
    pub(crate) fn resize(&mut self, amount: usize) -> bool {
        self.resize_within(amount, self.budget.capacity)
    }

    /// Adds to it, unless more than `most` of the budget were held then.
    pub(crate) fn add_within(&mut self, amount: usize, most: usize) -> bool {
        self.resize_within(self.amount.saturating_add(amount), most.min(self.budget.capacity))
    }

    fn resize_within(&mut self, amount: usize, most: usize) -> bool {
        let is_done = amount == self.amount || self.budget.exchange(self.amount, amount, most);
        if is_done {
            self.amount = amount;
        }
        is_done
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.exchange(self.amount, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_there_is() {
        let budget = Budget::new(10);
        let mut first = budget.take(6).unwrap();
        assert!(budget.take(5).is_none());
        let second = budget.take(4).unwrap();
        assert!(!first.resize(7) && first.resize(2));
        assert!(budget.take(5).is_none());
        drop(second);
        assert!(!first.add_within(4, 5) && first.add_within(3, 5));
        assert!(budget.take(usize::MAX).is_none());
        drop(first);
        assert!(budget.take(10).is_some());
        assert_eq!(budget.peak(), 10);
    }

    #[test]
    fn a_share_that_is_returned_wakes_who_waits() {
        let budget = Budget::new(1);
        let held = budget.take(1).unwrap();
        assert!(budget.take_within(1, Duration::from_millis(1)).is_none());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.take_within(1, Duration::from_secs(60)));
            drop(held);
            assert!(waiting.join().unwrap().is_some());
        });
    }
}
