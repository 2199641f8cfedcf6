//! Paces the datagrams of a stream.

use crate::{pacing, plan::Plan};
use host::clock;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount};

/// Maximum bytes sent at once to catch up: half of what the smallest usual receive
/// buffer (`net.core.rmem_default`, 212992 bytes) holds of 1448-byte datagrams.
const CATCH_UP_BYTES: u64 = 65_536;

/// Paces one stream's datagrams.
pub(super) struct DatagramPacer {
    rate: BitRate,
    length: ByteCount,
    began: Instant,
    spacing: Duration,
    /// Datagrams that are sent back to back: a burst that was asked for may be longer than the
    /// trains of one call.
    burst: usize,
    /// Those of the present burst that are not sent.
    left: usize,
    precise: bool,
    /// Earliest time of the next burst while catching up.
    next: Instant,
}

impl DatagramPacer {
    /// Trains have at most `most` datagrams.
    pub(super) fn new(
        plan: &Plan,
        spacing: Duration,
        began: Instant,
        precise: bool,
        most: usize,
    ) -> Self {
        DatagramPacer {
            rate: plan.rate.unwrap_or(BitRate::MAX),
            length: ByteCount::from_bytes(plan.block as u64),
            began,
            spacing,
            burst: match plan.burst {
                0 => pacing::train(spacing, precise).min(most),
                burst => usize::try_from(burst).unwrap_or(1),
            },
            left: 0,
            precise,
            next: began,
        }
    }

    /// Datagrams that are sent back to back.
    pub(super) fn burst(&self) -> usize {
        self.burst
    }

    /// Waits until the datagram after the first `number` is due, unless it continues a burst; how many
    /// may be sent back to back, or `None` if the test ended first.
    pub(super) fn wait(&mut self, number: u64, ended: impl Fn() -> bool) -> Option<usize> {
        if self.left == 0 {
            let due = self.began + self.rate.time_for(self.length.times(number));
            let now = clock::now();
            let at = if now > due + pacing::STALL_THRESHOLD { self.catch_up(now) } else { due };
            if !pacing::sleep_until(at, self.precise, ended) {
                return None;
            }
            self.left = self.burst;
        }
        Some(self.left)
    }

    /// So many datagrams were sent.
    pub(super) fn sent(&mut self, datagrams: usize) {
        self.left = self.left.saturating_sub(datagrams);
    }

    /// When to send the next burst after a stall: at twice the rate, plus
    /// [`CATCH_UP_BYTES`] at once for sleeps that end late.
    fn catch_up(&mut self, now: Instant) -> Instant {
        let half = self.spacing / 2;
        let burst = half.saturating_mul(u32::try_from(self.burst).unwrap_or(u32::MAX));
        let most = u32::try_from(CATCH_UP_BYTES / self.length.bytes().max(1)).unwrap_or(u32::MAX);
        let at_once = half.saturating_mul(most).max(burst);
        let at = now.checked_sub(at_once).map_or(self.next, |from| self.next.max(from));
        self.next = at.checked_add(burst).unwrap_or(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Mbit/s of 1000-byte datagrams: one a millisecond.
    fn pacer(began: Instant) -> DatagramPacer {
        DatagramPacer {
            rate: BitRate::from_bps(8_000_000),
            length: ByteCount::from_bytes(1000),
            began,
            spacing: Duration::from_millis(1),
            burst: 1,
            left: 0,
            precise: false,
            next: began,
        }
    }

    /// Datagrams that go while the clock passes `time`, where every sleep ends
    /// `oversleep` late.
    fn caught_up(time: Duration, oversleep: Duration) -> u32 {
        let began = clock::now();
        let mut pacer = pacer(began);
        let (mut now, mut sent) = (began + Duration::from_secs(60), 0);
        let end = now + time;
        while now < end {
            let at = pacer.catch_up(now);
            if at > now {
                now = at + oversleep;
            }
            sent += 1;
        }
        sent
    }

    #[test]
    fn it_catches_up_at_twice_the_rate() {
        let burst = 65_536 / 1000;
        let awake = caught_up(Duration::from_secs(1), Duration::ZERO);
        assert!((2000..=2000 + burst + 1).contains(&awake), "{awake}");
    }

    #[test]
    fn it_catches_up_where_sleeps_end_late() {
        let slow = caught_up(Duration::from_secs(1), Duration::from_millis(10));
        assert!(slow > 1900, "{slow}");
        // A burst a sleep is the most there is.
        let slower = caught_up(Duration::from_secs(1), Duration::from_millis(100));
        assert!((600..700).contains(&slower), "{slower}");
    }

    #[test]
    fn an_unreachable_deadline_does_not_panic() {
        let mut pacer = DatagramPacer { spacing: Duration::MAX, ..pacer(clock::now()) };
        assert!(pacer.catch_up(clock::now()) <= clock::now());
        let _ = pacer.catch_up(clock::now());
    }

    #[test]
    fn a_burst_is_sent_back_to_back_whatever_a_call_takes() {
        // Each datagram is due an hour after the one before it.
        let (began, hour) = (clock::now(), Duration::from_secs(3600));
        let rate = BitRate::of(ByteCount::from_bytes(1000), hour);
        let mut pacer = DatagramPacer { rate, spacing: hour, burst: 200, ..pacer(began) };
        let mut number = 0;
        while number < 200 {
            let train = pacer.wait(number, || true).unwrap().min(45);
            pacer.sent(train);
            number += train as u64;
        }
        assert_eq!(number, 200);
        assert_eq!(pacer.wait(number, || true), None, "the next burst is paced");
    }
}
