//! The limits of what peers can make a server report: sources can be forged, and a connection
//! costs nothing.
//!
//! * **At once**: a stream is reported from its start if the second's share is left. So are, in
//!   their numbers, interval reports and errors.
//! * **As earned**: a stream that has lasted [`PROVEN_AFTER`] and carried [`PROVEN_BYTES`] is
//!   reported in any case, from then on, so no flood of short streams hides it. The slots of
//!   streams limit how many there are.
//! * Everything else is counted, and the count is reported once a second.

use crate::event::Event;
use host::clock;
use host::lock::lock;
use host::log_limit::LogLimit;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Streams per second whose start is reported at once.
const MAX_STREAMS: u32 = 20;

/// Interval reports per second of streams that carried [`ROW_BYTES`] in the interval.
const MAX_INTERVAL_REPORTS: u32 = 200;

/// Interval reports per second of other streams.
const MAX_IDLE_INTERVAL_REPORTS: u32 = 20;

/// Errors of peers per second.
const MAX_ERRORS: u32 = 20;

/// The least that a stream carried in an interval to be told from an idle one.
const ROW_BYTES: u64 = 8 * 1024;

/// How often the numbers of suppressed reports are reported.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// How long a stream must have lasted to be reported in any case.
const PROVEN_AFTER: Duration = Duration::from_secs(1);

/// Bytes that it must have carried: the lines about it are less than a hundredth of that.
const PROVEN_BYTES: u64 = 64 * 1024;

/// Whether a stream is reported in any case.
pub(crate) fn is_proven(lasted: Duration, bytes: u64) -> bool {
    lasted >= PROVEN_AFTER && bytes >= PROVEN_BYTES
}

pub(crate) struct ReportLimit(Mutex<Limits>);

struct Limits {
    streams: LogLimit,
    intervals: LogLimit,
    idle_intervals: LogLimit,
    errors: LogLimit,
    /// When the numbers of suppressed reports were reported last.
    counted: Instant,
}

impl ReportLimit {
    pub(crate) fn new() -> Self {
        let now = clock::now();
        let limit = |per_second| LogLimit::new(per_second, now);
        ReportLimit(Mutex::new(Limits {
            streams: limit(MAX_STREAMS),
            intervals: limit(MAX_INTERVAL_REPORTS),
            idle_intervals: limit(MAX_IDLE_INTERVAL_REPORTS),
            errors: limit(MAX_ERRORS),
            counted: now,
        }))
    }

    /// Whether a stream is reported from its start.
    pub(crate) fn admits_stream(&self, now: Instant) -> bool {
        lock(&self.0).streams.has_room(now, 1)
    }

    /// Counts a stream that ended without having been reported.
    pub(crate) fn suppress_stream(&self) {
        lock(&self.0).streams.suppress();
    }

    /// Whether an interval report of so many bytes is reported.
    pub(crate) fn admits_interval(&self, now: Instant, bytes: u64) -> bool {
        let mut limits = lock(&self.0);
        let limit = match bytes {
            ROW_BYTES.. => &mut limits.intervals,
            _ => &mut limits.idle_intervals,
        };
        limit.admits(now, 1)
    }

    /// Whether an error of a peer is reported.
    pub(crate) fn admits_error(&self, now: Instant) -> bool {
        lock(&self.0).errors.admits(now, 1)
    }

    /// What was suppressed since the last time, at most once a second, and at the end.
    pub(crate) fn suppressed(&self, now: Instant, at_end: bool) -> Option<Event> {
        let mut limits = lock(&self.0);
        if !at_end && now.saturating_duration_since(limits.counted) < COUNT_EVERY {
            return None;
        }
        limits.counted = now;
        let streams = limits.streams.suppressed(now, true);
        let intervals =
            limits.intervals.suppressed(now, true) + limits.idle_intervals.suppressed(now, true);
        let errors = limits.errors.suppressed(now, true);
        let any = streams + intervals + errors > 0;
        any.then_some(Event::Suppressed { streams, intervals, errors })
    }
}
