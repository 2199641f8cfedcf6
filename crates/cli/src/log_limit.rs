//! A rate limit for log lines that clients cause: a client that connects ten
//! thousand times a second must not fill the disk.

use std::time::{Duration, Instant};

/// Period over which lines are counted.
const SPAN: Duration = Duration::from_secs(1);

/// A maximum number of lines per second; suppressed events are counted.
#[derive(Debug)]
pub(crate) struct LogLimit {
    per_second: u32,
    since: Instant,
    used: u32,
    suppressed: u64,
}

impl LogLimit {
    pub(crate) const fn new(per_second: u32, now: Instant) -> Self {
        LogLimit { per_second, since: now, used: 0, suppressed: 0 }
    }

    /// Whether an event of this many lines may be logged now. At least one event
    /// is admitted in every second, however many lines it takes.
    pub(crate) fn admits(&mut self, now: Instant, lines: u32) -> bool {
        if self.is_over(now) {
            (self.since, self.used) = (now, 0);
        }
        if self.used >= self.per_second {
            self.suppressed += 1;
            return false;
        }
        self.used = self.used.saturating_add(lines);
        true
    }

    /// Number of suppressed events, once their second is over, or at the end of
    /// the log.
    pub(crate) fn suppressed(&mut self, now: Instant, at_end: bool) -> u64 {
        if at_end || self.is_over(now) { std::mem::take(&mut self.suppressed) } else { 0 }
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
        let mut limit = LogLimit::new(20, start);
        let admitted = (0..1000).filter(|_| limit.admits(start, 1)).count();
        assert_eq!(admitted, 20);
        assert_eq!(limit.suppressed(start, false), 0);
        let later = start + SPAN;
        assert_eq!(limit.suppressed(later, false), 980);
        assert_eq!(limit.suppressed(later, true), 0);
        assert!(limit.admits(later, 1));
    }

    #[test]
    fn a_long_event_takes_the_rest_of_its_second() {
        let start = host::clock::now();
        let mut limit = LogLimit::new(20, start);
        assert!(limit.admits(start, 500));
        assert!(!limit.admits(start, 1));
        assert_eq!(limit.suppressed(start, true), 1);
        assert!(limit.admits(start + SPAN, 500));
    }
}
