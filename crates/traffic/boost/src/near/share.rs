//! How flows are shared out among the threads of near.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// A free lane that has carried a flow is worth so many more flows on its thread: its congestion
/// window is larger than that of a new one, and no handshake is needed.
const WARM_LANE: usize = 4;

/// What a thread has.
#[derive(Debug, Default)]
pub(super) struct Share {
    flows: AtomicUsize,
    warm: AtomicUsize,
    /// Grows with each lane that becomes free, over all threads.
    freed: AtomicU64,
}

/// The threads.
#[derive(Debug)]
pub(super) struct Shares {
    threads: Vec<Share>,
    freed: AtomicU64,
    reach: AtomicU8,
}

/// States of `Shares::reach`: nothing is known, or far was reached or not.
const UNKNOWN: u8 = 0;
const REACHED: u8 = 1;
const UNREACHED: u8 = 2;

impl Shares {
    pub(super) fn new(threads: usize) -> Self {
        let threads = std::iter::repeat_with(Share::default).take(threads).collect();
        Shares { threads, freed: AtomicU64::new(0), reach: AtomicU8::new(UNKNOWN) }
    }

    /// The thread that the next flow goes to, of those that `runs` is true for; it counts there. `None`
    /// without any.
    pub(super) fn choose(&self, runs: impl Fn(usize) -> bool) -> Option<usize> {
        let cost = |share: &Share| {
            let is_warm = share.warm.load(Ordering::Relaxed) > 0;
            let flows = share.flows.load(Ordering::Relaxed);
            flows + if is_warm { 0 } else { WARM_LANE }
        };
        let latest = |share: &Share| std::cmp::Reverse(share.freed.load(Ordering::Relaxed));
        let running = self.threads.iter().enumerate().filter(|(thread, _)| runs(*thread));
        let (thread, share) = running.min_by_key(|(_, one)| (cost(one), latest(one)))?;
        share.flows.fetch_add(1, Ordering::Relaxed);
        Some(thread)
    }

    /// Whether far was reached, as one thread has found; true if that is news.
    pub(super) fn note_reach(&self, is_reached: bool) -> bool {
        let found = if is_reached { REACHED } else { UNREACHED };
        self.reach.swap(found, Ordering::Relaxed) != found
    }

    pub(super) fn flow_ended(&self, thread: usize) {
        if let Some(share) = self.threads.get(thread) {
            share.flows.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(super) fn lane_freed(&self, thread: usize) {
        if let Some(share) = self.threads.get(thread) {
            share.warm.fetch_add(1, Ordering::Relaxed);
            share.freed.store(self.freed.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    pub(super) fn lane_taken(&self, thread: usize) {
        if let Some(share) = self.threads.get(thread) {
            share.warm.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_go_where_a_lane_is_warm_and_else_where_few_are() {
        let shares = Shares::new(2);
        let choose = || shares.choose(|_| true).unwrap();
        assert_eq!([choose(), choose(), choose()], [0, 1, 0]);
        (0..3).for_each(|flow| shares.flow_ended(flow % 2));
        shares.lane_freed(0);
        shares.lane_freed(1);
        assert_eq!(choose(), 1, "the last one that was freed");
        shares.lane_taken(1);
        assert_eq!([(); 5].map(|()| choose()), [0; 5], "until it has many");
        assert_eq!(choose(), 1);
        assert_eq!(shares.choose(|thread| thread == 0), Some(0));
        assert_eq!(shares.choose(|_| false), None);
    }
}
