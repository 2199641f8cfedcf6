//! A fixed rate, which losses do not reduce, with a circuit breaker.

use crate::{Ack, Congestion, CongestionControl, INITIAL_WINDOW, Reduction};
use std::time::Duration;
use units::{BitRate, ByteCount, Nanos};

/// How often the circuit breaker looks at the losses (RFC 8084 section 4: several RTTs, and
/// long enough not to be triggered by a transient).
const INTERVAL: Duration = Duration::from_secs(1);
/// Packets below which an interval says nothing.
const MIN_PACKETS: u64 = 20;
/// What the circuit breaker leaves at least, of the target.
const FLOOR: f64 = 0.01;
/// Growth of a reduced rate in each interval without such losses.
const GROWTH: f64 = 1.25;

/// Sends at a rate, whatever is lost: for paths whose capacity is reserved, or known and
/// otherwise unused. It is not fair to other traffic.
///
/// At most twice the BDP is in flight, so that a path that delivers nothing is sent nothing.
/// Where more than half the packets of a second are lost, the rate falls to what was
/// delivered, and returns by a quarter each second (a circuit breaker, RFC 8084).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FixedRate {
    target: BitRate,
    /// The target, or less after the circuit breaker was triggered.
    rate: BitRate,
    /// Payload of a packet, bytes.
    packet_bytes: u32,
    cwnd: u64,
    interval: Interval,
}

/// What happened since the circuit breaker last looked.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Interval {
    began: Option<Nanos>,
    delivered: u64,
    lost: u64,
}

impl FixedRate {
    /// Sends payload at `target`, in packets of `packet_bytes` bytes of payload.
    #[must_use]
    pub fn new(target: BitRate, packet_bytes: u32) -> Self {
        let interval = Interval::default();
        FixedRate { target, rate: target, packet_bytes, cwnd: INITIAL_WINDOW, interval }
    }

    fn count(&mut self, ack: &Ack) {
        let began = *self.interval.began.get_or_insert(ack.now);
        self.interval.delivered += ack.newly_delivered;
        self.interval.lost += ack.newly_lost;
        let elapsed = ack.now.since(began);
        let Interval { delivered, lost, .. } = self.interval;
        // At a low rate an interval is longer, until it says something.
        if elapsed < INTERVAL || delivered + lost < MIN_PACKETS {
            return;
        }
        self.interval = Interval { began: Some(ack.now), ..Interval::default() };
        let payload = ByteCount::from_bytes(delivered * u64::from(self.packet_bytes));
        self.rate = if lost > delivered {
            BitRate::of(payload, elapsed).max(self.target.scaled(FLOOR)).min(self.rate)
        } else {
            self.rate.scaled(GROWTH).min(self.target)
        };
    }
}

impl CongestionControl for FixedRate {
    fn name(&self) -> &'static str {
        "fixed-rate"
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.count(ack);
        if let Some(srtt) = ack.srtt {
            let bdp = self.rate.bytes_in(srtt.duration()).bytes() / u64::from(self.packet_bytes);
            self.cwnd = (2 * bdp).max(INITIAL_WINDOW);
        }
    }

    fn on_congestion(&mut self, _congestion: &Congestion) {}

    fn on_recovery_end(&mut self, _now: Nanos) {}

    fn on_retransmission_timeout(&mut self, _congestion: &Congestion) {}

    fn undo(&mut self, _now: Nanos) {}

    fn on_idle_end(&mut self, _now: Nanos, _idle_ns: u64, _timeouts: u32) {}

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u64> {
        None
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        Some(self.rate)
    }

    fn reduction(&self) -> Reduction {
        Reduction::Controlled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;
    use units::Rtt;

    const TARGET: BitRate = BitRate::from_bps(80_000_000);

    fn ack(now: Nanos, delivered: u64, lost: u64) -> Ack {
        Ack {
            now,
            newly_acked: delivered,
            newly_delivered: delivered,
            newly_lost: lost,
            delivered: 0,
            newly_marked: 0,
            acked_to: 0,
            sent_to: 0,
            in_flight: 100,
            prior_in_flight: 200,
            cwnd_limited: false,
            rtt: None,
            srtt: Some(Rtt::from_micros(50_000)),
            rate: None,
            receiver: None,
            phase: Phase::Recovery,
        }
    }

    /// A rate reduced so far that a second has few packets grows again.
    #[test]
    fn a_low_rate_returns_to_the_target() {
        let target = BitRate::from_bps(10_000_000);
        let mut control = FixedRate::new(target, 1_430);
        second(&mut control, 0, 98);
        second(&mut control, 1, 98);
        let floor = control.pacing_rate().unwrap();
        assert!(floor < target.scaled(0.3), "{floor}");
        // A packet each 100 ms.
        for step in 0..1_200 {
            control.on_ack(&ack(Nanos(2_000_000_000 + step * 100_000_000), 1, 0));
        }
        assert_eq!(control.pacing_rate(), Some(target));
    }

    /// Acknowledgements of a second, of 100 packets each 10 ms with so many of them lost.
    fn second(control: &mut FixedRate, from_s: u64, lost: u64) {
        for step in 0..=100 {
            let at = Nanos(from_s * 1_000_000_000 + step * 10_000_000);
            control.on_ack(&ack(at, 100 - lost, lost));
        }
    }

    #[test]
    fn losses_below_one_half_change_nothing() {
        let mut control = FixedRate::new(TARGET, 1_000);
        for at in 0..5 {
            second(&mut control, at, 49);
        }
        assert_eq!(control.pacing_rate(), Some(TARGET));
        // Twice 80 Mbit/s x 50 ms.
        assert_eq!(control.cwnd(), 1_000);
    }

    #[test]
    fn the_circuit_breaker_opens_and_closes() {
        let mut control = FixedRate::new(TARGET, 1_000);
        second(&mut control, 0, 75);
        let reduced = control.pacing_rate().unwrap();
        let share = reduced.as_f64() / TARGET.as_f64();
        assert!((0.24..0.27).contains(&share), "{share}");
        assert!(control.cwnd() < 300);
        for at in 1..20 {
            second(&mut control, at, 100);
        }
        assert_eq!(control.pacing_rate(), Some(TARGET.scaled(FLOOR)));
        for at in 20..50 {
            second(&mut control, at, 0);
        }
        assert_eq!(control.pacing_rate(), Some(TARGET));
    }
}
