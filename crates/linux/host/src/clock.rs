//! The system clock. No other module reads it: everything that must be
//! repeatable takes the time as an argument.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock (`CLOCK_MONOTONIC`).
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the only module that reads the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970-01-01 UTC, for dates only, never for durations; zero if
/// the system clock is set to an earlier date.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the only module that reads the clock")]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Wall-clock time since 1970-01-01 UTC, for the timestamps of a capture.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the only module that reads the clock")]
pub fn unix_time() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_back() {
        let first = now();
        assert!(now() >= first);
        assert!(unix_seconds() > 1_700_000_000);
    }
}
