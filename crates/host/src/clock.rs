//! The one room with a clock.
//!
//! Everything that must be repeatable takes time as an argument; whoever runs
//! it on the wire asks here.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Now, on the clock that never goes back (`CLOCK_MONOTONIC`).
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one room with a clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970-01-01 UTC, for the date of a record, never for a
/// duration; zero where the system's date lies before that.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one room with a clock")]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The world's time: since 1970-01-01 UTC, for the stamps of a capture.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one room with a clock")]
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
