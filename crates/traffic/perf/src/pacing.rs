//! Paces a stream to a rate.
//!
//! As in iperf3, a block may be sent while the average rate since the start is
//! below the requested rate. So a stream catches up after a stall.

use host::clock;
use std::{
    thread,
    time::{Duration, Instant},
};
use units::{BitRate, ByteCount};

/// Maximum duration of a train of datagrams with precise timing.
const PRECISE_TRAIN: Duration = Duration::from_micros(40);
/// The same for senders without a core of their own, which sleep between trains.
const RELAXED_TRAIN: Duration = Duration::from_micros(500);
/// A sender later than this has stalled.
pub(crate) const STALL_THRESHOLD: Duration = Duration::from_micros(500);
/// Busy wait before the due time: a sleep ends about this much late.
const BUSY_WAIT: Duration = Duration::from_micros(120);
/// Maximum sleep between checks for the end.
const MAX_SLEEP: Duration = Duration::from_millis(20);

/// Datagrams per train at this interval between datagrams.
pub(crate) fn train(spacing: Duration, precise: bool) -> usize {
    let span = if precise { PRECISE_TRAIN } else { RELAXED_TRAIN };
    let fits = span.as_nanos() / spacing.as_nanos().max(1);
    usize::try_from(fits).unwrap_or(usize::MAX).max(1)
}

/// Waits until `due`; false if `ended` returns true first.
pub(crate) fn sleep_until(due: Instant, precise: bool, ended: impl Fn() -> bool) -> bool {
    let awake = if precise { BUSY_WAIT } else { Duration::ZERO };
    loop {
        let left = due.saturating_duration_since(clock::now());
        if left.is_zero() {
            return true;
        }
        if ended() {
            return false;
        }
        match left.checked_sub(awake) {
            Some(nap) if !nap.is_zero() => thread::sleep(nap.min(MAX_SLEEP)),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Maximum duration of one write at the rate, so that a low rate is not sent in
/// large bursts; about a quarter of an RTT on a long path.
const MAX_WRITE_TIME: Duration = Duration::from_millis(10);

/// Minimum size of a write: about one segment.
const MIN_WRITE: usize = 1448;

/// Paces one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pacer {
    rate: BitRate,
    start: Instant,
}

impl Pacer {
    pub(crate) fn new(rate: BitRate, start: Instant) -> Self {
        Pacer { rate, start }
    }

    /// Waits until more may be sent after `sent` bytes; false if `ended` returns
    /// true first.
    pub(crate) fn wait(&self, sent: u64, ended: impl Fn() -> bool) -> bool {
        sleep_until(self.due(sent), false, ended)
    }

    fn due(&self, sent: u64) -> Instant {
        self.start + self.rate.time_for(ByteCount::from_bytes(sent))
    }

    /// Bytes of one write, at most `block`.
    pub(crate) fn block(&self, block: usize) -> usize {
        let smooth = usize::try_from(self.rate.bytes_in(MAX_WRITE_TIME).bytes()).unwrap_or(block);
        smooth.max(MIN_WRITE).min(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_holds() {
        let start = host::clock::now();
        let pacer = Pacer::new("8mbit".parse().unwrap(), start);
        assert_eq!(pacer.due(0), start);
        assert_eq!(pacer.due(1_000_000), start + Duration::from_secs(1));
        assert!(pacer.wait(0, || true), "what is due goes");
        assert!(!pacer.wait(1_000_000_000, || true));
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
    fn trains_cover_a_short_time() {
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
    fn waiting_ends_on_notification() {
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
