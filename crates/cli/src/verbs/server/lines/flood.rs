//! Lines about connections that came to nothing, held to a number a second:
//! who connects ten thousand times a second shall not fill a disk.

use std::time::{Duration, Instant};

/// Lines a second.
const MOST: u32 = 20;
const SPAN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Flood {
    since: Instant,
    told: u32,
    held: u64,
}

impl Flood {
    pub(super) fn new(now: Instant) -> Self {
        Flood { since: now, told: 0, held: 0 }
    }

    /// Whether one more may be told now.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        if self.is_over(now) {
            (self.since, self.told) = (now, 0);
        }
        self.told += 1;
        if self.told > MOST {
            self.told = MOST;
            self.held += 1;
            return false;
        }
        true
    }

    /// How many were held back, once their second is over.
    pub(super) fn held(&mut self, now: Instant, at_end: bool) -> Option<u64> {
        if self.held == 0 || !(at_end || self.is_over(now)) {
            return None;
        }
        Some(std::mem::take(&mut self.held))
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= SPAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_number() {
        let start = host::clock::now();
        let mut flood = Flood::new(start);
        let told = (0..1000).filter(|_| flood.admits(start)).count();
        assert_eq!(told, 20);
        assert_eq!(flood.held(start, false), None);
        let later = start + SPAN;
        assert_eq!(flood.held(later, false), Some(980));
        assert_eq!(flood.held(later, true), None);
        assert!(flood.admits(later));
    }
}
