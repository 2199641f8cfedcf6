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
    /// What all of them were expected to take, and how many have ended.
    expected: Duration,
    ended: usize,
}

/// Runs that have to end before they say how long the others take: two run at once.
const ENOUGH: usize = 4;

impl Timing {
    /// Of `queue`, the time that each run sends and how many of its kind run at once.
    pub(crate) fn new(done: usize, queue: impl ExactSizeIterator<Item = (Duration, u32)>) -> Self {
        let (all, mut to_send, mut expected) = (done + queue.len(), Duration::ZERO, Duration::ZERO);
        for (planned, at_once) in queue {
            to_send += planned;
            expected += (planned + OVERHEAD) / at_once.max(1);
        }
        let (began, sent) = (clock::now(), Duration::ZERO);
        Timing { all, done, began, sent, to_send, expected, ended: 0 }
    }

    pub(crate) fn ended(&mut self, planned: Duration) {
        self.done += 1;
        self.ended += 1;
        self.sent += planned;
        self.to_send = self.to_send.saturating_sub(planned);
    }

    pub(crate) fn progress(&self) -> Progress {
        let left = if self.ended < ENOUGH || self.sent.is_zero() {
            self.expected.saturating_sub(self.began.elapsed())
        } else {
            // Overhead, repeated attempts and runs at once are as they were so far.
            let pace = self.began.elapsed().as_secs_f64() / self.sent.as_secs_f64();
            Duration::try_from_secs_f64(self.to_send.as_secs_f64() * pace).unwrap_or(Duration::MAX)
        };
        Progress { done: self.done, all: self.all, left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_light_runs_at_once_take_half_the_time_from_the_beginning_on() {
        let seconds = Duration::from_secs;
        let mut timing = Timing::new(4, [(seconds(5), 2); 36].into_iter());
        let first = timing.progress();
        assert_eq!((first.done, first.all), (4, 40));
        // 36 x 5.5 s / 2.
        assert!(first.left <= seconds(99) && first.left > seconds(60), "{first:?}");
        timing.ended(seconds(5));
        assert!(timing.progress().left <= seconds(99), "the other one runs still");
        let alone = Timing::new(0, [(seconds(5), 1); 36].into_iter()).progress();
        assert!(alone.left > seconds(190), "{alone:?}");
    }
}
