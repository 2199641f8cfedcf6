//! Pauses of a host: a busy or virtual machine handles packets and timers late, in bursts.

use link::random;
use rand_core::SeedableRng;
use rand_pcg::Pcg64;
use std::time::Duration;
use units::{Nanos, nanos};

/// How often a host pauses, and for how long: both exponentially distributed around a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPauses {
    /// From the end of one pause to the next.
    pub every: Duration,
    /// How long one lasts, at most ten times this.
    pub length: Duration,
    /// Of the random numbers.
    pub seed: u64,
}

/// The most that a draw exceeds its mean.
const MAX: f64 = 10.0;

/// The pauses of one host, in the order of time; without any, it never pauses.
#[derive(Debug)]
pub(crate) struct Pauses {
    config: Option<HostPauses>,
    random: Pcg64,
    /// The current or the next one.
    from: Nanos,
    to: Nanos,
}

impl Pauses {
    pub(crate) fn new(config: Option<HostPauses>) -> Self {
        let random = Pcg64::seed_from_u64(config.map_or(0, |config| config.seed));
        Pauses { config, random, from: Nanos(0), to: Nanos(0) }
    }

    /// Time has passed; it never goes back.
    pub(crate) fn advance(&mut self, now: Nanos) {
        let Some(HostPauses { every, length, .. }) = self.config else { return };
        while now >= self.to {
            self.from = self.to.plus_nanos(self.around(every));
            self.to = self.from.plus_nanos(self.around(length));
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
        HostPauses { every, length, seed: 1 }
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
    fn without_pauses_nothing_is_late() {
        assert!(handled(None).iter().all(|(at, then)| at == then));
    }
}
