//! Whether a running test keeps to the server's limits.

use super::Limits;
use host::clock;
use std::time::Instant;
use units::{BitRate, ByteCount};

/// Over a rate by so much is over it: what this end sends is held to the
/// limit, and may be a burst ahead.
const SLACK: f64 = 1.05;

/// One test's bytes against the limits.
pub(super) struct Meter {
    rate: Option<BitRate>,
    bytes: Option<ByteCount>,
    /// Start of the span that is being measured, and the bytes before it.
    since: Instant,
    before: u64,
}

impl Meter {
    pub(super) fn begin(limits: &Limits) -> Self {
        Meter { rate: limits.rate, bytes: limits.bytes, since: clock::now(), before: 0 }
    }

    /// What the test is over, in words, where `bytes` have passed in all.
    pub(super) fn over(&mut self, bytes: u64, now: Instant) -> Option<String> {
        if let Some(limit) = self.bytes.filter(|limit| bytes > limit.bytes()) {
            return Some(format!("more than {limit} of one test"));
        }
        let limit = self.rate?;
        let span = now.saturating_duration_since(self.since);
        if span < Limits::RATE_SPAN {
            return None;
        }
        let rate = BitRate::of(ByteCount::from_bytes(bytes - self.before), span);
        (self.since, self.before) = (now, bytes);
        (rate > limit.scaled(SLACK)).then(|| format!("{rate} where {limit} is allowed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_rate_is_judged_over_its_span() {
        let limits = Limits { rate: Some(BitRate::from_bps(8_000)), ..Limits::default() };
        let mut meter = Meter::begin(&limits);
        let start = clock::now();
        meter.since = start;
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(meter.over(1_000_000, after(4)), None, "too early to tell");
        assert_eq!(meter.over(5_200, after(5)), None, "within the slack");
        assert_eq!(meter.over(11_000, after(10)).unwrap(), "9.28 kbit/s where 8 kbit/s is allowed");
    }

    #[test]
    fn bytes_are_judged_at_once() {
        let bytes = Some(ByteCount::from_bytes(1000));
        let mut meter = Meter::begin(&Limits { bytes, ..Limits::default() });
        assert_eq!(meter.over(1000, clock::now()), None);
        assert!(meter.over(1001, clock::now()).is_some());
    }
}
