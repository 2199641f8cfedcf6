//! Holding a stream to a rate.
//!
//! As iperf3 does it: a block may go while the average since the start is
//! below the rate. After a stall the stream therefore catches up.

use host::clock;
use std::{
    thread,
    time::{Duration, Instant},
};
use units::{BitRate, ByteCount};

/// Longest time that one train of datagrams stands for where their times
/// matter: each is then due within it.
const PRECISE_TRAIN: Duration = Duration::from_micros(40);
/// The same where a sender has no core of its own, and sleeps between trains.
const EASY_TRAIN: Duration = Duration::from_micros(500);
/// A sender that is so late has been stalled.
pub(crate) const STALL: Duration = Duration::from_micros(500);
/// Waited with open eyes before the moment: a sleep ends about so much late.
const OPEN_EYES: Duration = Duration::from_micros(120);
/// Longest sleep without looking for the end.
const LONGEST_NAP: Duration = Duration::from_millis(20);

/// Datagrams to send at once, at this time between them.
pub(crate) fn train(spacing: Duration, precise: bool) -> usize {
    let span = if precise { PRECISE_TRAIN } else { EASY_TRAIN };
    let fits = span.as_nanos() / spacing.as_nanos().max(1);
    usize::try_from(fits).unwrap_or(usize::MAX).max(1)
}

/// Waits until `due`; false where `ended` says so first.
pub(crate) fn sleep_until(due: Instant, precise: bool, ended: impl Fn() -> bool) -> bool {
    let awake = if precise { OPEN_EYES } else { Duration::ZERO };
    loop {
        let left = due.saturating_duration_since(clock::now());
        if left.is_zero() {
            return true;
        }
        if ended() {
            return false;
        }
        match left.checked_sub(awake) {
            Some(nap) if !nap.is_zero() => thread::sleep(nap.min(LONGEST_NAP)),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Longest time one write should stand for, so that a low rate is not sent as
/// a few large bursts; a quarter of a usual round trip on a long path.
const BURST: Duration = Duration::from_millis(10);

/// Smallest write worth its system call: about one segment.
const LEAST_BLOCK: usize = 1448;

/// One stream's rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pacer {
    rate: BitRate,
    start: Instant,
}

impl Pacer {
    pub(crate) fn new(rate: BitRate, start: Instant) -> Self {
        Pacer { rate, start }
    }

    /// How long to wait at `now`, having sent so much; zero to send at once.
    pub(crate) fn wait(&self, sent: u64, now: Instant) -> Duration {
        let due = self.start + self.rate.time_for(ByteCount::from_bytes(sent));
        due.saturating_duration_since(now)
    }

    /// Bytes to write at a time, at most `block`.
    pub(crate) fn block(&self, block: usize) -> usize {
        let smooth = usize::try_from(self.rate.bytes_in(BURST).bytes()).unwrap_or(block);
        smooth.max(LEAST_BLOCK).min(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_holds() {
        let start = host::clock::now();
        let pacer = Pacer::new("8mbit".parse().unwrap(), start);
        assert_eq!(pacer.wait(0, start), Duration::ZERO);
        assert_eq!(pacer.wait(1_000_000, start), Duration::from_secs(1));
        assert_eq!(pacer.wait(1_000_000, start + Duration::from_millis(999)).as_millis(), 1);
        assert_eq!(pacer.wait(1_000_000, start + Duration::from_secs(5)), Duration::ZERO);
    }

    #[test]
    fn writes_are_small_at_low_rates_and_whole_at_high_ones() {
        let block =
            |rate: &str| Pacer::new(rate.parse().unwrap(), host::clock::now()).block(131_072);
        assert_eq!(block("1kbit"), 1448);
        assert_eq!(block("8mbit"), 10_000);
        assert_eq!(block("10gbit"), 131_072);
    }

    #[test]
    fn trains_stand_for_little_time() {
        let at = |rate: &str| {
            let rate: BitRate = rate.parse().unwrap();
            let spacing = rate.time_for(ByteCount::from_bytes(1448));
            (train(spacing, true), train(spacing, false))
        };
        assert_eq!(at("1mbit"), (1, 1));
        assert_eq!(at("1gbit"), (3, 43));
        assert_eq!(at("10gbit"), (34, 431));
        assert!(train(Duration::ZERO, true) > 1);
    }

    #[test]
    fn waiting_ends_when_it_is_told() {
        let now = clock::now();
        assert!(sleep_until(now, true, || true), "what is due goes");
        assert!(!sleep_until(now + Duration::from_secs(3600), false, || true));
        assert!(sleep_until(now + Duration::from_millis(2), true, || false));
        assert!(clock::now() >= now + Duration::from_millis(2));
    }

    #[test]
    fn no_rate_and_no_count_overflow() {
        let now = host::clock::now();
        for bps in [0, 1, u64::MAX] {
            let pacer = Pacer::new(BitRate::from_bps(bps), now);
            let _ = (pacer.block(1), pacer.block(usize::MAX));
        }
    }
}
