//! Serialisation time of packets at the bottleneck.

use crate::Rate;
use crate::trace::Cursor;
use units::{BitRate, ByteCount, Nanos};

/// A token bucket: `rate` on average, bursts up to `burst`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// Rate of tokens, bit/s.
    pub rate: BitRate,
    /// Capacity of the bucket.
    pub burst: ByteCount,
}

/// The sender of the bottleneck.
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
        /// Remainder of the previous packets' serialisation times, in bits times 10^9, so
        /// that rounding errors do not accumulate over a busy period.
        carry: u64,
        /// The latest size with its serialisation time in ns and the remainder: most packets
        /// have the same size, and the division is a third of the cost of a packet.
        latest: (u64, u64, u64),
    },
    TokenBucket(Tokens),
    Trace(Cursor),
}

impl Shaper {
    pub(crate) fn new(rate: Rate, now: Nanos) -> Self {
        let state = match &rate {
            Rate::Unlimited => State::Unlimited,
            Rate::Constant(rate) => {
                State::Constant { bps: rate.bps().max(1), carry: 0, latest: (0, 0, 0) }
            }
            Rate::TokenBucket(bucket) => State::TokenBucket(Tokens::full(*bucket, now)),
            Rate::Trace(_) => State::Trace(Cursor::default()),
        };
        Shaper { rate, state }
    }

    /// A new busy period begins: drops the remainder.
    pub(crate) fn start_busy_period(&mut self) {
        if let State::Constant { carry, .. } = &mut self.state {
            *carry = 0;
        }
    }

    /// Sends `size` bytes from `start` on; returns when the last of them has left.
    pub(crate) fn serve(&mut self, start: Nanos, size: u64) -> Nanos {
        match (&mut self.state, &self.rate) {
            (State::Constant { bps, carry, latest }, _) => {
                if latest.0 != size {
                    // At most 65 535 plus framing bytes: 5.3e5 bits * 1e9 is far below 2^64.
                    let work = size * 8 * 1_000_000_000;
                    *latest = (size, work / *bps, work % *bps);
                }
                let (_, mut time, left) = *latest;
                // Both are less than `bps`: their sum overflows it at most once.
                *carry += left;
                if *carry >= *bps {
                    *carry -= *bps;
                    time += 1;
                }
                Nanos(start.0 + time)
            }
            (State::TokenBucket(tokens), _) => tokens.wait_for(start, size),
            (State::Trace(cursor), Rate::Trace(trace)) => cursor.serve(trace, start, size),
            _ => start,
        }
    }
}

/// State of a token bucket. Tokens are in bits times 10^9: no rounding.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) bucket: TokenBucket,
    tokens: i128,
    at: Nanos,
}

const UNIT: i128 = 8 * 1_000_000_000;

impl Tokens {
    pub(crate) fn full(bucket: TokenBucket, now: Nanos) -> Self {
        Tokens { bucket, tokens: i128::from(bucket.burst.bytes()) * UNIT, at: now }
    }

    fn refill(&mut self, now: Nanos) {
        let added = i128::from(self.bucket.rate.bps()) * i128::from(now.nanos_since(self.at));
        self.tokens = (self.tokens + added).min(i128::from(self.bucket.burst.bytes()) * UNIT);
        self.at = self.at.max(now);
    }

    /// Takes `size` bytes if available; returns whether they were.
    pub(crate) fn take(&mut self, now: Nanos, size: u64) -> bool {
        self.refill(now);
        let fits = i128::from(size) * UNIT <= self.tokens;
        if fits {
            self.tokens -= i128::from(size) * UNIT;
        }
        fits
    }

    /// Takes `size` bytes as soon as available; returns when. A packet larger than the
    /// bucket waits until that many tokens have been generated.
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

    const BUCKET: TokenBucket =
        TokenBucket { rate: BitRate::from_bps(8_000), burst: ByteCount::from_bytes(3_000) };

    #[test]
    fn a_bucket_gives_its_burst_then_its_rate() {
        // 8000 bit/s: 1000 bytes take 1 s.
        let mut shaper = Shaper::new(Rate::TokenBucket(BUCKET), Nanos(0));
        let mut now = Nanos(0);
        let mut ends = Vec::new();
        for _ in 0..5 {
            now = shaper.serve(now, 1_000);
            ends.push(now.0 / 1_000_000_000);
        }
        assert_eq!(ends, [0, 0, 0, 1, 2]);
        // Ten seconds of idle time refill it up to its capacity.
        let start = Nanos(12_000_000_000);
        assert_eq!(shaper.serve(start, 3_000), start);
        assert_eq!(shaper.serve(start, 5_000), Nanos(17_000_000_000));
    }

    #[test]
    fn a_bucket_has_no_drift() {
        let bucket =
            TokenBucket { rate: BitRate::from_bps(7_000_000), burst: ByteCount::from_bytes(1_500) };
        let mut shaper = Shaper::new(Rate::TokenBucket(bucket), Nanos(0));
        let mut now = Nanos(0);
        for _ in 0..7_001 {
            now = shaper.serve(now, 1_500);
        }
        assert!(now.0.abs_diff(12_000_000_000) <= 1, "{now:?}");
    }

    #[test]
    fn nonconforming_packets_take_no_tokens() {
        let mut tokens = Tokens::full(BUCKET, Nanos(0));
        assert!(tokens.take(Nanos(0), 2_000) && !tokens.take(Nanos(0), 1_001));
        assert!(tokens.take(Nanos(0), 1_000) && !tokens.take(Nanos(999_999_999), 1_000));
        assert!(tokens.take(Nanos(1_000_000_000), 1_000));
    }
}
