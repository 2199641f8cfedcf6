//! The duration of slow start.

use std::time::Duration;
use units::{ByteCount, Rtt};

/// Initial window in segments (RFC 6928, section 2).
pub const INITIAL_WINDOW_SEGMENTS: u64 = 10;

/// Slow start from the initial window to a given one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowStart {
    /// RTTs in which the window doubles.
    pub rounds: u32,
    /// Their duration.
    pub time: Duration,
}

/// Rounds and time until `window` is in flight: the congestion window doubles every RTT
/// (RFC 5681, section 3.1) from ten segments of `mss`. Excludes the handshake. `None`
/// for an RTT or MSS of zero, or on overflow.
#[must_use]
pub fn slow_start(window: ByteCount, mss: ByteCount, rtt: Rtt) -> Option<SlowStart> {
    if rtt == Rtt::ZERO || mss == ByteCount::ZERO {
        return None;
    }
    let mut reached = mss.times(INITIAL_WINDOW_SEGMENTS);
    let mut rounds = 0;
    while reached < window {
        reached = reached.times(2);
        rounds += 1;
    }
    rtt.duration().checked_mul(rounds).map(|time| SlowStart { rounds, time })
}

/// The time of [`slow_start`].
#[must_use]
pub fn slow_start_time(window: ByteCount, mss: ByteCount, rtt: Rtt) -> Option<Duration> {
    slow_start(window, mss, rtt).map(|ramp| ramp.time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: ByteCount = ByteCount::from_bytes(1448);

    #[test]
    fn doubles_to_the_bdp_of_frankfurt_to_las_vegas() {
        // 14480 B x 2^8 = 3.7 MB is the first to hold 2.1625 MB.
        let ramp =
            slow_start(ByteCount::from_bytes(2_162_500), MSS, "173ms".parse().unwrap()).unwrap();
        assert_eq!((ramp.rounds, ramp.time), (8, Duration::from_millis(1384)));
    }

    #[test]
    fn the_initial_window_takes_no_time() {
        let rtt = Rtt::from_micros(1);
        assert_eq!(slow_start_time(MSS.times(10), MSS, rtt), Some(Duration::ZERO));
        let one_more = MSS.times(10).plus(ByteCount::from_bytes(1));
        assert_eq!(slow_start_time(one_more, MSS, rtt), Some(Duration::from_micros(1)));
    }

    #[test]
    fn senseless_values_have_no_answer_and_huge_ones_end() {
        assert_eq!(slow_start(MSS, MSS, Rtt::ZERO), None);
        assert_eq!(slow_start(MSS, ByteCount::ZERO, Rtt::MAX), None);
        let most = ByteCount::from_bytes(u64::MAX);
        assert!(slow_start(most, ByteCount::from_bytes(1), Rtt::from_nanos(u64::MAX)).is_some());
    }
}
