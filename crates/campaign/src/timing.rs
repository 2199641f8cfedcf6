//! How far a study is, and how long the rest takes.

use host::clock;
use std::time::{Duration, Instant};

/// How far a study is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Runs that are stored.
    pub done: usize,
    /// Runs in all.
    pub all: usize,
    /// About how long the others take.
    pub left: Duration,
}

/// Time beside a run's own until there is a measured one.
const OVERHEAD: Duration = Duration::from_millis(500);

/// What is done, and how long the rest takes.
#[derive(Debug)]
pub(crate) struct Timing {
    all: usize,
    done: usize,
    began: Instant,
    /// Time that the runs of this time sent, and those to come send.
    sent: Duration,
    to_send: Duration,
}

impl Timing {
    pub(crate) fn new(done: usize, queue: impl ExactSizeIterator<Item = Duration>) -> Self {
        Timing {
            all: done + queue.len(),
            done,
            began: clock::now(),
            sent: Duration::ZERO,
            to_send: queue.sum(),
        }
    }

    pub(crate) fn ended(&mut self, planned: Duration) {
        self.done += 1;
        self.sent += planned;
        self.to_send = self.to_send.saturating_sub(planned);
    }

    pub(crate) fn progress(&self) -> Progress {
        let left = if self.sent.is_zero() {
            let runs = u32::try_from(self.all - self.done).unwrap_or(u32::MAX);
            self.to_send + OVERHEAD * runs
        } else {
            // Overhead, repeated attempts and runs at once are as they were so far.
            let pace = self.began.elapsed().as_secs_f64() / self.sent.as_secs_f64();
            Duration::try_from_secs_f64(self.to_send.as_secs_f64() * pace).unwrap_or(Duration::MAX)
        };
        Progress { done: self.done, all: self.all, left }
    }
}
