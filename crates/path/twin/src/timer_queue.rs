//! Timers of the two ends of each connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// The earliest expiry of each of a number of timers. A timer that moves to a later time
/// leaves its entry, which is checked when it comes up: acknowledgements postpone the
/// retransmission timer far more often than it expires.
#[derive(Debug)]
pub(crate) struct TimerQueue {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The earliest entry of each timer that is still to come.
    entries: Vec<Option<Nanos>>,
}

impl TimerQueue {
    pub(crate) fn new(timers: usize) -> Self {
        TimerQueue { heap: BinaryHeap::new(), entries: vec![None; timers] }
    }

    /// The timer expires at `at`, or later.
    pub(crate) fn set(&mut self, timer: u32, at: Nanos) {
        let entry = &mut self.entries[timer as usize];
        if entry.is_none_or(|earlier| at < earlier) {
            *entry = Some(at);
            self.heap.push(Reverse((at, timer)));
        }
    }

    /// When the first entry comes up.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// A timer whose entry has come up: to be checked, and set again.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<u32> {
        while let Some(Reverse((at, timer))) = self.heap.peek().copied() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let entry = &mut self.entries[timer as usize];
            if *entry == Some(at) {
                *entry = None;
                return Some(timer);
            }
        }
        None
    }
}
