//! Pauses of a host: a busy or virtual machine handles packets and timers late, in bursts.

use link::random;
use rand_core::SeedableRng;
use rand_pcg::Pcg64;
use std::sync::Arc;
use std::time::Duration;
use units::{Nanos, nanos};

/// When a host pauses, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPauses {
    /// At random: both exponentially distributed around a mean.
    Random {
        /// From the end of one pause to the next.
        every: Duration,
        /// How long one lasts, at most ten times this.
        length: Duration,
        /// Of the random numbers.
        seed: u64,
    },
    /// At these times, in order, as measured on a real host.
    Listed(Arc<[Pause]>),
}

/// One pause of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// When it begins, from the first packet on.
    pub from: Nanos,
    /// When the host goes on.
    pub to: Nanos,
}

/// The most that a draw exceeds its mean.
const MAX: f64 = 10.0;

/// The pauses of one host, in the order of time; without any, it never pauses.
#[derive(Debug)]
pub(crate) struct Pauses {
    config: Option<HostPauses>,
    random: Pcg64,
    /// The index of the next one, of a list.
    next: usize,
    /// The current or the next one.
    from: Nanos,
    to: Nanos,
}

impl Pauses {
    pub(crate) fn new(config: Option<HostPauses>) -> Self {
        let seed = match config {
            Some(HostPauses::Random { seed, .. }) => seed,
            Some(HostPauses::Listed(_)) | None => 0,
        };
        let random = Pcg64::seed_from_u64(seed);
        Pauses { config, random, next: 0, from: Nanos(0), to: Nanos(0) }
    }

    /// Time has passed; it never goes back.
    pub(crate) fn advance(&mut self, now: Nanos) {
        while now >= self.to {
            let Some(Pause { from, to }) = self.following() else { return };
            (self.from, self.to) = (from, to);
        }
    }

    /// The one after the current one.
    fn following(&mut self) -> Option<Pause> {
        match &self.config {
            None => None,
            Some(HostPauses::Listed(all)) => {
                let pause = all.get(self.next).copied();
                self.next += 1;
                pause
            }
            Some(HostPauses::Random { every, length, .. }) => {
                let (every, length) = (*every, *length);
                let from = self.to.plus_nanos(self.around(every));
                Some(Pause { from, to: from.plus_nanos(self.around(length)) })
            }
        }
    }

    /// When the host handles what is due at `at`, as far as the current or next pause tells.
    pub(crate) fn handled(&self, at: Nanos) -> Nanos {
        if (self.from..self.to).contains(&at) { self.to } else { at }
    }

    /// Nanoseconds, at least one.
    fn around(&mut self, mean: Duration) -> u64 {
        let times = random::exponential(&mut self.random).min(MAX);
        ((nanos(mean) as f64 * times) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> HostPauses {
        let (every, length) = (Duration::from_millis(20), Duration::from_millis(2));
        HostPauses::Random { every, length, seed: 1 }
    }

    /// When what is due every 100 us for 20 s is handled.
    fn handled(config: Option<HostPauses>) -> Vec<(Nanos, Nanos)> {
        let mut pauses = Pauses::new(config);
        let moments = (0..200_000).map(|step| Nanos(step * 100_000));
        let handled = |at| {
            pauses.advance(at);
            (at, pauses.handled(at))
        };
        moments.map(handled).collect()
    }

    #[test]
    fn a_host_is_paused_for_the_share_that_its_means_give() {
        let all = handled(Some(config()));
        let paused = all.iter().filter(|(at, then)| then > at).count();
        let share = paused as f64 / all.len() as f64;
        assert!((share - 2.0 / 22.0).abs() < 0.02, "{share}");
        assert!(all.iter().all(|(at, then)| then.0 - at.0 <= 20_000_000), "they end");
        assert_eq!(all, handled(Some(config())), "reproducible");
    }

    #[test]
    fn listed_pauses_are_where_the_list_has_them() {
        let pause = |from, to| Pause { from: Nanos(from), to: Nanos(to) };
        let listed =
            HostPauses::Listed([pause(1_000_000, 3_500_000), pause(9_000_000, 9_100_000)].into());
        let late = |(at, then): &(Nanos, Nanos)| then > at;
        let late: Vec<_> = handled(Some(listed)).into_iter().filter(late).collect();
        assert_eq!(late.len(), 26);
        assert_eq!(late[0], (Nanos(1_000_000), Nanos(3_500_000)));
        assert_eq!(late[25], (Nanos(9_000_000), Nanos(9_100_000)));
    }

    #[test]
    fn without_pauses_nothing_is_late() {
        assert!(handled(None).iter().all(|(at, then)| at == then));
    }
}
