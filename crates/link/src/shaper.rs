//! How long the bottleneck takes for a packet.

use crate::trace::Cursor;
use crate::{Nanos, Rate};
use units::{BitRate, ByteCount};

/// A token bucket: `rate` in the long run, `burst` at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Tokens a second, as bits.
    pub rate: BitRate,
    /// Tokens that a full bucket holds.
    pub burst: ByteCount,
}

/// The bottleneck's sender.
#[derive(Debug)]
pub(crate) struct Shaper {
    pub(crate) rate: Rate,
    state: State,
}

#[derive(Debug)]
enum State {
    Unlimited,
    Constant {
        bps: u64,
        /// Bits times 10^9 that did not fill a whole nanosecond yet, so that
        /// the rate has no rounding error however long a busy period lasts.
        carry: u64,
        /// The latest size, and its work in whole nanoseconds and what is
        /// left of it: most packets are of one size, and a division is a
        /// third of what a packet costs.
        latest: (u64, u64, u64),
    },
    Bucket(Tokens),
    Trace(Cursor),
}

impl Shaper {
    pub(crate) fn new(rate: Rate, now: Nanos) -> Self {
        let state = match &rate {
            Rate::Unlimited => State::Unlimited,
            Rate::Constant(rate) => {
                State::Constant { bps: rate.bps().max(1), carry: 0, latest: (0, 0, 0) }
            }
            Rate::Bucket(bucket) => State::Bucket(Tokens::full(*bucket, now)),
            Rate::Trace(_) => State::Trace(Cursor::default()),
        };
        Shaper { rate, state }
    }

    /// A new busy period begins: nothing is carried over.
    pub(crate) fn wake(&mut self) {
        if let State::Constant { carry, .. } = &mut self.state {
            *carry = 0;
        }
    }

    /// Sends `size` bytes from `start` on; tells when the last of them leaves.
    pub(crate) fn serve(&mut self, start: Nanos, size: u64) -> Nanos {
        match (&mut self.state, &self.rate) {
            (State::Constant { bps, carry, latest }, _) => {
                if latest.0 != size {
                    // At most 65 535 + framing bytes: 5.3e5 bits * 1e9 stays far below 2^64.
                    let work = size * 8 * 1_000_000_000;
                    *latest = (size, work / *bps, work % *bps);
                }
                let (_, mut time, left) = *latest;
                // Both are less than `bps`: together they make one more at most.
                *carry += left;
                if *carry >= *bps {
                    *carry -= *bps;
                    time += 1;
                }
                Nanos(start.0 + time)
            }
            (State::Bucket(tokens), _) => tokens.wait_for(start, size),
            (State::Trace(cursor), Rate::Trace(trace)) => cursor.serve(trace, start, size),
            _ => start,
        }
    }
}

/// A token bucket at work. Tokens are bits times 10^9: nothing is rounded.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) bucket: Bucket,
    tokens: i128,
    at: Nanos,
}

const UNIT: i128 = 8 * 1_000_000_000;

impl Tokens {
    pub(crate) fn full(bucket: Bucket, now: Nanos) -> Self {
        Tokens { bucket, tokens: i128::from(bucket.burst.bytes()) * UNIT, at: now }
    }

    fn refill(&mut self, now: Nanos) {
        let came = i128::from(self.bucket.rate.bps()) * i128::from(now.since(self.at));
        self.tokens = (self.tokens + came).min(i128::from(self.bucket.burst.bytes()) * UNIT);
        self.at = self.at.max(now);
    }

    /// Takes `size` bytes if there are as many.
    pub(crate) fn take(&mut self, now: Nanos, size: u64) -> bool {
        self.refill(now);
        let fits = i128::from(size) * UNIT <= self.tokens;
        if fits {
            self.tokens -= i128::from(size) * UNIT;
        }
        fits
    }

    /// Takes `size` bytes as soon as there are as many; tells when. What is
    /// larger than the bucket waits for as long as its tokens take to come.
    fn wait_for(&mut self, now: Nanos, size: u64) -> Nanos {
        self.refill(now);
        self.tokens -= i128::from(size) * UNIT;
        let rate = i128::from(self.bucket.rate.bps().max(1));
        let wait = if self.tokens < 0 { (-self.tokens + rate - 1) / rate } else { 0 };
        Nanos(now.0.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX / 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKET: Bucket =
        Bucket { rate: BitRate::from_bps(8_000), burst: ByteCount::from_bytes(3_000) };

    #[test]
    fn a_bucket_gives_its_burst_then_its_rate() {
        // 8000 bit/s: 1000 bytes take 1 s.
        let mut shaper = Shaper::new(Rate::Bucket(BUCKET), Nanos(0));
        let mut now = Nanos(0);
        let mut ends = Vec::new();
        for _ in 0..5 {
            now = shaper.serve(now, 1_000);
            ends.push(now.0 / 1_000_000_000);
        }
        assert_eq!(ends, [0, 0, 0, 1, 2]);
        // Ten seconds of rest fill it again, and no more than fill it.
        let start = Nanos(12_000_000_000);
        assert_eq!(shaper.serve(start, 3_000), start);
        assert_eq!(shaper.serve(start, 5_000), Nanos(17_000_000_000));
    }

    #[test]
    fn a_bucket_has_no_drift() {
        let bucket =
            Bucket { rate: BitRate::from_bps(7_000_000), burst: ByteCount::from_bytes(1_500) };
        let mut shaper = Shaper::new(Rate::Bucket(bucket), Nanos(0));
        let mut now = Nanos(0);
        for _ in 0..7_001 {
            now = shaper.serve(now, 1_500);
        }
        assert!(now.0.abs_diff(12_000_000_000) <= 1, "{now:?}");
    }

    #[test]
    fn what_does_not_conform_takes_no_tokens() {
        let mut tokens = Tokens::full(BUCKET, Nanos(0));
        assert!(tokens.take(Nanos(0), 2_000) && !tokens.take(Nanos(0), 1_001));
        assert!(tokens.take(Nanos(0), 1_000) && !tokens.take(Nanos(999_999_999), 1_000));
        assert!(tokens.take(Nanos(1_000_000_000), 1_000));
    }
}
