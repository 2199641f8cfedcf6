//! How much data a sender's program may have written that TCP has not sent yet, over a short path.
//!
//! Send buffers that were tuned for long paths hold tens of megabytes for each stream, many times
//! the BDP of a short path: data then leaves the CPU's caches before it is read, and a byte costs
//! more CPU time (docs/design/traffic.md). The limit is
//!
//! > max(1 MiB, 4 x minimum RTT x peak rate of a stream)
//!
//! It does not count what is in flight, so it never limits the congestion window.
//!
//! Pure: the caller has the clock and the sockets.

use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// The minimum RTT below which unsent data is limited. From here on, four BDPs of the rates at
/// which memory matters (25 Gbit/s) are 25 MB, as much as caches hold: nothing would be gained.
const SHORT: Rtt = Rtt::from_micros(2_000);
/// BDPs that may wait: a writer that is woken late has this many RTTs.
const BDPS: u64 = 4;
/// The least limit: two of the largest system calls (`traffic/gather.rs`). Smaller ones gained no
/// more, and a stream over a veth pair lost with 512 KiB.
const MIN: ByteCount = ByteCount::from_bytes(1 << 20);
/// The rate of all streams from which unsent data costs throughput. Below, a writer that is woken
/// more often takes CPU time from others, and the limit gains nothing.
const FAST: BitRate = BitRate::from_bps(5_000_000_000);
/// Rates over less than this time are not measured: a count grows by whole blocks.
const SHORTEST_TICK: Duration = Duration::from_millis(5);

/// The limit of all sending streams.
#[derive(Debug)]
pub(crate) struct UnsentLimit {
    min_rtt: Rtt,
    /// The highest rate of one stream so far.
    peak: BitRate,
    /// Whether all streams together were as fast as [`FAST`].
    fast: bool,
    /// Bytes of each stream at the last tick, and when that was.
    counts: Vec<u64>,
    at: Duration,
}

impl UnsentLimit {
    /// The limit of `streams` whose least RTT is that of their handshakes; `None` if that is not
    /// known, or not short.
    pub(crate) fn new(min_rtt: Option<Rtt>, streams: usize) -> Option<Self> {
        let min_rtt = min_rtt.filter(|rtt| *rtt < SHORT)?;
        let counts = vec![0; streams];
        Some(UnsentLimit { min_rtt, peak: BitRate::ZERO, fast: false, counts, at: Duration::ZERO })
    }

    /// The bytes of each stream so far, `at` the time since the traffic began.
    pub(crate) fn tick(&mut self, at: Duration, counts: impl IntoIterator<Item = u64>) {
        let time = at.saturating_sub(self.at);
        if time < SHORTEST_TICK {
            return;
        }
        let mut sum = 0u64;
        for (before, now) in self.counts.iter_mut().zip(counts) {
            let bytes = now.saturating_sub(*before);
            *before = now;
            sum = sum.saturating_add(bytes);
            self.peak = self.peak.max(BitRate::of(ByteCount::from_bytes(bytes), time));
        }
        self.fast |= BitRate::of(ByteCount::from_bytes(sum), time) >= FAST;
        self.at = at;
    }

    /// Bytes of each stream; `None` until the streams are fast enough.
    pub(crate) fn bytes(&self) -> Option<ByteCount> {
        let bdps = self.peak.bytes_in(self.min_rtt.duration()).times(BDPS);
        self.fast.then(|| bdps.max(MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit after `rates` of a stream, bit/s, each for 10 ms.
    fn after(rtt_us: u64, rates: &[u64]) -> Option<u64> {
        let mut limit = UnsentLimit::new(Some(Rtt::from_micros(rtt_us)), 1).unwrap();
        let mut bytes = 0;
        for (tick, rate) in (1..).zip(rates) {
            bytes += rate / 800;
            limit.tick(Duration::from_millis(10 * tick), [bytes]);
        }
        limit.bytes().map(ByteCount::bytes)
    }

    #[test]
    fn only_short_paths_are_limited() {
        for (rtt, limited) in [(None, false), (Some(1_999), true), (Some(2_000), false)] {
            let limit = UnsentLimit::new(rtt.map(Rtt::from_micros), 1);
            assert_eq!(limit.is_some(), limited, "{rtt:?}");
        }
    }

    #[test]
    fn the_limit_applies_at_high_rates_and_stays() {
        assert_eq!(after(20, &[]), None, "before any data");
        assert_eq!(after(20, &[4_900_000_000; 100]), None);
        assert_eq!(after(20, &[6_000_000_000]), Some(1 << 20));
        assert_eq!(after(20, &[6_000_000_000, 0, 1_000_000]), Some(1 << 20));
    }

    #[test]
    fn the_rate_counts_over_all_streams_and_the_peak_of_one() {
        let mut limit = UnsentLimit::new(Some(Rtt::from_micros(1_000)), 4).unwrap();
        // 10 and three times 1 Gbit/s: 13 together; the BDP of the fastest is 1.25 MB.
        let counts = [10u64, 1, 1, 1].map(|gbit| gbit * 1_250_000);
        limit.tick(Duration::from_millis(10), counts);
        assert_eq!(limit.bytes().map(ByteCount::bytes), Some(5_000_000));
    }

    #[test]
    fn odd_ticks_do_no_harm() {
        let mut limit = UnsentLimit::new(Some(Rtt::from_micros(20)), 1).unwrap();
        for (ms, count) in [(0, 0), (0, 5), (20, u64::MAX), (10, 7), (5_000, 3), (90_000, u64::MAX)]
        {
            limit.tick(Duration::from_millis(ms), [count]);
            assert!(limit.bytes().is_none_or(|bytes| bytes >= MIN));
        }
    }
}
