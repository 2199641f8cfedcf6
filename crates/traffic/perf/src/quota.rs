//! A test's quota: a token bucket for its rate and a limit on its bytes, over both
//! directions, from the first byte to the last.
//!
//! Sending threads wait for tokens; a peer that sends more than allowed has
//! exceeded its quota, and nothing more is read from it.

use host::lock::lock;
use std::{
    fmt,
    sync::{Mutex, OnceLock},
    time::{Duration, Instant},
};
use units::{BitRate, ByteCount};

/// The bucket fills faster than the rate by this factor: data paced by the
/// sender's clock arrives unevenly.
const SLACK: f64 = 1.05;

/// Bucket depth as time at the rate: lets a sender catch up after a retransmission
/// timeout; iperf3 averages over the same time.
const DEPTH: Duration = Duration::from_secs(5);

/// Tokens at the start of a test, as time at the rate.
const INITIAL_TOKENS: Duration = Duration::from_millis(250);

/// Maximum added for the first blocks, one per stream.
const FIRST_BLOCKS: Duration = Duration::from_secs(1);

/// Minimum tokens at the start: a block of iperf3's default length.
const MIN_INITIAL_TOKENS: ByteCount = ByteCount::from_bytes(128 * 1024);

/// How long a sender that may send no more waits for the end of the test, while nothing is received
/// either: a client that has all that it asked for ends it, after what is in the socket's buffer (at
/// 7 Mbit/s 4 MiB) and an RTT.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// How often it looks whether the test has ended.
const END_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The limit that a test exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exceeded {
    Rate(BitRate),
    Bytes(ByteCount),
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exceeded::Rate(limit) => write!(f, "a rate above {limit}"),
            Exceeded::Bytes(limit) => write!(f, "more than {limit} in one test"),
        }
    }
}

/// One test's quota.
#[derive(Debug)]
pub(crate) struct Quota {
    rate: Option<BitRate>,
    bytes: Option<ByteCount>,
    /// Of those, what is received may take so many.
    reserved: ByteCount,
    bucket: Mutex<TokenBucket>,
    exceeded: OnceLock<Exceeded>,
}

#[derive(Debug)]
struct TokenBucket {
    /// Tokens available, in bytes.
    tokens: f64,
    /// Maximum of tokens.
    depth: f64,
    filled: Instant,
    /// Bytes counted so far, and those of them that were sent.
    passed: u64,
    sent: u64,
    /// Since when no more may be sent.
    spent: Option<Instant>,
}

/// Whether a sender may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// So many bytes.
    Now(usize),
    /// Retry after this time.
    After(Duration),
    Never,
}

impl Quota {
    /// The quota of a test that begins `now` and whose streams write
    /// `first_blocks` at once; `None` where nothing is limited.
    pub(crate) fn new(
        rate: Option<BitRate>,
        bytes: Option<ByteCount>,
        first_blocks: ByteCount,
        now: Instant,
    ) -> Option<Self> {
        if rate.is_none() && bytes.is_none() {
            return None;
        }
        let over = |time| rate.map_or(0, |rate| rate.bytes_in(time).bytes());
        let blocks = first_blocks.bytes().min(over(FIRST_BLOCKS));
        let initial = (over(INITIAL_TOKENS) + blocks).max(MIN_INITIAL_TOKENS.bytes());
        let bucket = TokenBucket {
            tokens: initial as f64,
            depth: over(DEPTH).max(initial) as f64,
            filled: now,
            passed: 0,
            sent: 0,
            spent: None,
        };
        Some(Quota {
            rate,
            bytes,
            reserved: ByteCount::ZERO,
            bucket: Mutex::new(bucket),
            exceeded: OnceLock::new(),
        })
    }

    /// The same quota, of whose bytes so many are kept for what is received: a sender does not know
    /// when the other end has enough.
    pub(crate) fn reserving(self, reserved: ByteCount) -> Self {
        Quota { reserved, ..self }
    }

    /// The limit that the test has exceeded, if any.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded.get().copied()
    }

    /// Counts received bytes; false if the test must end.
    pub(crate) fn charge(&self, bytes: usize, now: Instant) -> bool {
        let mut bucket = lock(&self.bucket);
        bucket.fill(self.rate, now);
        bucket.pass(bytes);
        // The other direction goes on: the test is not about to end.
        bucket.spent = None;
        let exceeded = match (self.rate, self.bytes) {
            (_, Some(limit)) if bucket.passed > limit.bytes() => Exceeded::Bytes(limit),
            (Some(limit), _) if bucket.tokens < 0.0 => Exceeded::Rate(limit),
            _ => return self.exceeded.get().is_none(),
        };
        drop(bucket);
        let _ = self.exceeded.set(exceeded);
        false
    }

    /// Takes the tokens for bytes to be sent, once there are enough: for all of them, or for as many
    /// of their parts of `part` bytes as the limit of bytes leaves.
    pub(crate) fn take(&self, bytes: usize, part: usize, now: Instant) -> Grant {
        if self.exceeded.get().is_some() {
            return Grant::Never;
        }
        let (mut bucket, mut bytes) = (lock(&self.bucket), bytes);
        if let Some(limit) = self.bytes {
            let for_sending = limit.bytes().saturating_sub(self.reserved.bytes());
            let left = limit.bytes().saturating_sub(bucket.passed);
            let left = left.min(for_sending.saturating_sub(bucket.sent));
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            if bytes > left {
                bytes = left - left % part.max(1);
            }
            if bytes == 0 {
                let spent = *bucket.spent.get_or_insert(now);
                if now.saturating_duration_since(spent) < END_TIMEOUT {
                    return Grant::After(END_POLL_INTERVAL);
                }
                drop(bucket);
                let _ = self.exceeded.set(Exceeded::Bytes(limit));
                return Grant::Never;
            }
        }
        bucket.fill(self.rate, now);
        if let Some(rate) = self.rate {
            // A write larger than the bucket waits until it is full.
            let missing = (bytes as f64).min(bucket.depth) - bucket.tokens;
            if missing > 0.0 {
                let seconds = missing * 8.0 / (rate.bps().max(1) as f64 * SLACK);
                let after = Duration::try_from_secs_f64(seconds).unwrap_or(DEPTH);
                return Grant::After(after.clamp(Duration::from_micros(100), DEPTH));
            }
        }
        bucket.pass(bytes);
        bucket.sent = bucket.sent.saturating_add(bytes as u64);
        bucket.spent = None;
        Grant::Now(bytes)
    }

    /// Returns what was taken for bytes that were not sent.
    pub(crate) fn give_back(&self, bytes: usize) {
        let mut bucket = lock(&self.bucket);
        bucket.tokens = (bucket.tokens + bytes as f64).min(bucket.depth);
        bucket.passed = bucket.passed.saturating_sub(bytes as u64);
        bucket.sent = bucket.sent.saturating_sub(bytes as u64);
    }
}

impl TokenBucket {
    fn fill(&mut self, rate: Option<BitRate>, now: Instant) {
        let Some(rate) = rate else { return };
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        self.tokens = (self.tokens + seconds * rate.bps() as f64 * SLACK / 8.0).min(self.depth);
    }

    fn pass(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
        self.passed = self.passed.saturating_add(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: usize = 1_000_000;

    fn quota(rate_bps: u64, now: Instant) -> Quota {
        Quota::new(Some(BitRate::from_bps(rate_bps)), None, ByteCount::ZERO, now).unwrap()
    }

    /// Bytes that pass within `seconds` where a peer sends `rate_bps`, in pieces
    /// of a millisecond.
    fn passes(quota: &Quota, start: Instant, rate_bps: u64, seconds: u64) -> u64 {
        let piece = usize::try_from(rate_bps / 8000).unwrap();
        let mut passed = 0;
        for ms in 0..seconds * 1000 {
            if !quota.charge(piece, start + Duration::from_millis(ms)) {
                break;
            }
            passed += piece as u64;
        }
        passed
    }

    #[test]
    fn a_peer_within_its_rate_is_never_stopped() {
        let start = host::clock::now();
        let quota = quota(80_000_000, start);
        assert_eq!(passes(&quota, start, 80_000_000, 60), 60 * 10 * MEGABYTE as u64);
        assert_eq!(quota.exceeded(), None);
    }

    #[test]
    fn a_short_test_respects_the_rate_limit() {
        for (seconds, faster) in [(1, 2), (1, 100), (4, 2), (60, 2)] {
            let start = host::clock::now();
            let quota = quota(80_000_000, start);
            let passed = passes(&quota, start, faster * 80_000_000, seconds);
            // A quarter of a second at once, then the rate.
            assert!(passed <= 10 * MEGABYTE as u64 * (seconds + 1), "{passed} in {seconds} s");
            assert!(matches!(quota.exceeded(), Some(Exceeded::Rate(_))), "{seconds} s");
            assert!(!quota.charge(0, start), "it stays exceeded");
        }
    }

    #[test]
    fn unused_rate_is_kept_for_five_seconds() {
        let start = host::clock::now();
        let after = |ms| start + Duration::from_millis(ms);
        let kept = quota(8_000_000, start);
        assert!(kept.charge(5 * MEGABYTE, after(60_000)));
        let over = quota(8_000_000, start);
        assert!(!over.charge(5 * MEGABYTE + 1, after(60_000)));
    }

    #[test]
    fn a_sender_waits_for_its_tokens() {
        let start = host::clock::now();
        let quota = quota(8_000_000, start);
        let mut now = start;
        let mut sent = 0;
        while sent < 10 * MEGABYTE {
            match quota.take(100_000, 100_000, now) {
                Grant::Now(_) => sent += 100_000,
                Grant::After(wait) => now += wait,
                Grant::Never => panic!("a sender does not exceed its rate"),
            }
        }
        let seconds = (now - start).as_secs_f64();
        assert!((9.0..10.0).contains(&seconds), "10 MB at 1 MB/s and 5 %: {seconds}");
    }

    #[test]
    fn bytes_are_counted_over_both_directions() {
        let start = host::clock::now();
        let limit = Some(ByteCount::from_bytes(1000));
        let quota = Quota::new(None, limit, ByteCount::ZERO, start).unwrap();
        assert_eq!(quota.take(500, 500, start), Grant::Now(500));
        assert!(quota.charge(500, start));
        let full = Grant::After(END_POLL_INTERVAL);
        assert_eq!(quota.take(1, 1, start), full, "the test may be about to end");
        quota.give_back(1);
        assert_eq!(quota.take(1, 1, start), Grant::Now(1), "what was not sent is not counted");
        assert_eq!(quota.take(1, 1, start + END_TIMEOUT / 2), full);
        assert_eq!(quota.exceeded(), None);
        assert!(!quota.charge(1, start));
        assert_eq!(quota.take(1, 1, start), Grant::Never);
        assert_eq!(quota.exceeded().unwrap().to_string(), "more than 1 kB in one test");
    }

    #[test]
    fn a_sender_leaves_the_receiver_its_bytes_and_waits_for_the_end() {
        let start = host::clock::now();
        let limit = ByteCount::from_bytes(1000);
        let quota = Quota::new(None, Some(limit), ByteCount::ZERO, start).unwrap();
        let quota = quota.reserving(ByteCount::from_bytes(400));
        assert_eq!(quota.take(900, 100, start), Grant::Now(600));
        let full = Grant::After(END_POLL_INTERVAL);
        assert_eq!(quota.take(1, 1, start), full);
        let later = start + END_TIMEOUT;
        assert!(quota.charge(400, later));
        assert_eq!(quota.take(1, 1, later), full, "it still received");
        assert_eq!(quota.take(1, 1, later + END_TIMEOUT), Grant::Never, "it never ended");
        assert_eq!(quota.exceeded(), Some(Exceeded::Bytes(limit)));
    }
}
