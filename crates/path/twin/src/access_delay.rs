//! Acknowledgements on the way over a connection's own access link, which has a delay but no
//! queue: what makes round trips of connections over one bottleneck differ.

use crate::backward::Backward;
use std::collections::BTreeMap;
use units::Nanos;

/// Acknowledgements by the time at which they arrive, then in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct AccessDelay {
    waiting: BTreeMap<(Nanos, u64), Backward>,
    count: u64,
}

impl AccessDelay {
    pub(crate) fn push(&mut self, arrives: Nanos, acknowledgement: Backward) {
        self.count += 1;
        self.waiting.insert((arrives, self.count), acknowledgement);
    }

    /// When the first one arrives.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.waiting.first_key_value().map(|((arrives, _), _)| *arrives)
    }

    /// The first one that has arrived by `now`.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<Backward> {
        let first = self.waiting.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}
