//! Waits for a busy server: an iperf3 server runs one test at a time.

use std::time::Duration;

/// The first wait, and the longest, up to which it doubles.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);

/// All waits of one test together.
const MAX: Duration = Duration::from_secs(60);

/// The waits before further attempts.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    waited: Duration,
}

impl Backoff {
    /// Before the first attempt.
    #[must_use]
    pub fn new() -> Self {
        Backoff { next: FIRST, waited: Duration::ZERO }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::new()
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    /// The next wait; `None` once they would exceed the bound.
    fn next(&mut self) -> Option<Duration> {
        let wait = self.next;
        let waited = self.waited + wait;
        if waited > MAX {
            return None;
        }
        self.waited = waited;
        self.next = (wait * 2).min(LONGEST);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_end_within_a_minute() {
        let waits: Vec<f64> = Backoff::new().map(|wait| wait.as_secs_f64()).collect();
        assert_eq!(waits[..6], [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]);
        let all: f64 = waits.iter().sum();
        assert!((52.0..=60.0).contains(&all), "{waits:?}");
    }
}
