//! A rate limit for log lines that clients cause: a client that connects ten
//! thousand times a second must not fill the disk.

use std::time::{Duration, Instant};

/// Period over which lines are counted.
const SPAN: Duration = Duration::from_secs(1);

/// A maximum number of lines per second; suppressed events are counted.
#[derive(Debug)]
pub struct LogLimit {
    per_second: u32,
    since: Instant,
    used: u32,
    suppressed: u64,
}

impl LogLimit {
    /// A limit of so many lines, with all of the first second's left.
    #[must_use]
    pub const fn new(per_second: u32, now: Instant) -> Self {
        LogLimit { per_second, since: now, used: 0, suppressed: 0 }
    }

    /// Whether an event of this many lines may be logged now. At least one event
    /// is admitted in every second, however many lines it takes.
    pub fn admits(&mut self, now: Instant, lines: u32) -> bool {
        let admitted = self.has_room(now, lines);
        if !admitted {
            self.suppress();
        }
        admitted
    }

    /// The same for an event that may still be logged later: nothing is counted as suppressed.
    pub fn has_room(&mut self, now: Instant, lines: u32) -> bool {
        if self.is_over(now) {
            (self.since, self.used) = (now, 0);
        }
        let has_room = self.used < self.per_second;
        if has_room {
            self.used = self.used.saturating_add(lines);
        }
        has_room
    }

    /// Counts an event that is not logged.
    pub fn suppress(&mut self) {
        self.suppressed = self.suppressed.saturating_add(1);
    }

    /// Number of suppressed events, once their second is over, or at the end of
    /// the log.
    pub fn suppressed(&mut self, now: Instant, at_end: bool) -> u64 {
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
        let start = crate::clock::now();
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
        let start = crate::clock::now();
        let mut limit = LogLimit::new(20, start);
        assert!(limit.admits(start, 500));
        assert!(!limit.admits(start, 1));
        assert_eq!(limit.suppressed(start, true), 1);
        assert!(limit.admits(start + SPAN, 500));
    }
}
