//! HyStart: the end of slow start before it overshoots (Ha, Rhee: "Taming the elephants:
//! new TCP slow start", Computer Networks 2011), with the thresholds of Linux.

use units::Nanos;

/// The smallest window at which slow start may be left, packets.
const LOW_WINDOW: u64 = 16;
/// RTT samples of a round that the delay test takes the least of.
const MIN_SAMPLES: u32 = 8;
/// The delay test's threshold is an eighth of the minimum RTT, held between these.
const DELAY_NS: (u64, u64) = (4_000_000, 16_000_000);
/// Acknowledgements farther apart do not belong to one train.
const ACK_SPACING_NS: u64 = 2_000_000;
/// Most that a train may be prolonged by aggregation at the sender.
const MAX_CUSHION_NS: u64 = 1_000_000;
/// Bytes of four of the largest bursts (64 KiB): aggregation is granted the time that
/// they take.
const CUSHION_BYTES: u64 = 4 << 16;

/// The two tests, over one round trip after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HyStart {
    /// When the round began.
    round_start: Nanos,
    /// The latest acknowledgement of the round's train.
    last_ack: Nanos,
    /// The round ends when this packet is acknowledged; zero before the first.
    end: u64,
    started: bool,
    samples: u32,
    /// Least RTT of the round's first samples, in ns.
    least_ns: u64,
    /// A test succeeded.
    found: bool,
}

/// What the tests look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observation {
    pub(crate) now: Nanos,
    pub(crate) cwnd: u64,
    pub(crate) acked_to: u64,
    pub(crate) sent_to: u64,
    pub(crate) rtt_ns: u64,
    pub(crate) min_rtt_ns: u64,
    /// Smoothed RTT, ns.
    pub(crate) srtt_ns: u64,
    /// Payload of a packet, bytes.
    pub(crate) mss: u64,
}

impl HyStart {
    /// Begins anew, after a loss.
    pub(crate) fn reset(&mut self) {
        *self = HyStart::default();
    }

    /// Whether slow start should end; once only. Call in slow start only.
    pub(crate) fn observe(&mut self, seen: &Observation) -> bool {
        if !self.started || seen.acked_to > self.end {
            self.started = true;
            self.round_start = seen.now;
            self.last_ack = seen.now;
            self.end = seen.sent_to;
            self.samples = 0;
            self.least_ns = u64::MAX;
        }
        if self.found || seen.cwnd < LOW_WINDOW {
            return false;
        }
        self.found = self.train_is_long(seen) || self.delay_rose(seen);
        self.found
    }

    /// The acknowledgements of a round come as fast as the bottleneck sends. When their
    /// train fills half the round trip, the next round of an unpaced sender, twice as
    /// large, fills the path.
    fn train_is_long(&mut self, seen: &Observation) -> bool {
        if seen.now.nanos_since(self.last_ack) > ACK_SPACING_NS {
            return false;
        }
        self.last_ack = seen.now;
        let cushion = cushion_ns(seen);
        seen.now.nanos_since(self.round_start) > (seen.min_rtt_ns + cushion) / 2
    }

    /// A queue builds: the least of several RTTs of a round is longer than the minimum.
    fn delay_rose(&mut self, seen: &Observation) -> bool {
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            self.least_ns = self.least_ns.min(seen.rtt_ns);
            return false;
        }
        self.least_ns = self.least_ns.min(seen.rtt_ns);
        let (low, high) = DELAY_NS;
        self.least_ns > seen.min_rtt_ns + (seen.min_rtt_ns / 8).clamp(low, high)
    }
}

/// Time of four bursts at the rate of slow start, two windows a round trip.
fn cushion_ns(seen: &Observation) -> u64 {
    let bytes = 2 * seen.cwnd * seen.mss;
    (CUSHION_BYTES.saturating_mul(seen.srtt_ns) / bytes.max(1)).min(MAX_CUSHION_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn seen(now_ms: u64, cwnd: u64, acked_to: u64, rtt_ms: u64) -> Observation {
        Observation {
            now: Nanos(now_ms * MS),
            cwnd,
            acked_to,
            sent_to: acked_to + cwnd,
            rtt_ns: rtt_ms * MS,
            min_rtt_ns: 100 * MS,
            srtt_ns: 100 * MS,
            mss: 1448,
        }
    }

    #[test]
    fn a_train_of_half_the_round_trip_ends_slow_start() {
        let mut hystart = HyStart::default();
        assert!((0..=50).all(|ms| !hystart.observe(&seen(ms, 100, ms, 100))));
        assert!(hystart.observe(&seen(51, 100, 51, 100)));
    }

    #[test]
    fn acknowledgements_apart_are_no_train() {
        let mut hystart = HyStart::default();
        assert!((0..=90).step_by(3).all(|ms| !hystart.observe(&seen(ms, 100, ms, 100))));
    }

    #[test]
    fn delay_beyond_an_eighth_ends_slow_start_at_the_ninth_sample() {
        for (rtt, ends) in [(112, false), (113, true)] {
            let mut hystart = HyStart::default();
            let first = (0..8).map(|n| hystart.observe(&seen(10 * n, 100, n, rtt)));
            assert_eq!(first.filter(|ended| *ended).count(), 0);
            assert_eq!(hystart.observe(&seen(80, 100, 8, rtt)), ends, "{rtt} ms");
        }
    }

    #[test]
    fn small_windows_go_on() {
        let mut hystart = HyStart::default();
        assert!((0..99).all(|ms| !hystart.observe(&seen(ms, 15, ms, 130))));
    }
}
