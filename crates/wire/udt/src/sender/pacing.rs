//! When the next packet may leave, and how many may leave together.

use control::{CongestionControl, Phase, Reduction};
use units::Nanos;

/// A train is what the rate sends in this time, ns: bursts of it fit into any queue, and
/// few timers are enough at high rates.
const BURST_NS: f64 = 500_000.0;
/// A late timer is made up for, up to this time, ns.
const CREDIT_NS: u64 = 2_000_000;

/// Packet pairs are sent apart from trains once in this time at most, ns: a receiver takes
/// the median of 64. At higher rates the others are part of trains.
const PAIR_INTERVAL_NS: u64 = 1_000_000;

/// The time at which the next packet may leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pacer {
    next: Nanos,
    /// Fraction of a nanosecond that is still to be waited.
    fraction_ns: f64,
    /// When the last packet pair was sent.
    pair: Option<Nanos>,
}

/// Packets of one train.
pub(crate) fn burst_packets(period_ns: f64) -> u64 {
    // Saturates.
    ((BURST_NS / period_ns) as u64).max(1)
}

/// Time between two packets of `payload_bytes` as congestion control asks for it, or as
/// Linux paces a window: in slow start twice the window a round trip, else 120 %.
pub(crate) fn period_ns(
    control: &impl CongestionControl,
    window: u64,
    rtt_ns: u64,
    payload_bytes: usize,
) -> f64 {
    if let Some(rate) = control.pacing_rate() {
        return payload_bytes as f64 * 8e9 / rate.as_f64().max(1.0);
    }
    let slow_start = control.ssthresh().is_none_or(|threshold| control.cwnd() < threshold / 2);
    let gain = if slow_start { 2.0 } else { 1.2 };
    rtt_ns as f64 / (gain * window.max(1) as f64)
}

/// The window that bounds what is in flight, packets.
pub(crate) fn congestion_window(control: &impl CongestionControl, phase: Phase) -> u64 {
    let cwnd = control.cwnd();
    match (phase, control.reduction()) {
        // Without Proportional Rate Reduction: paced from the first packet of recovery.
        (Phase::Recovery, Reduction::Proportional) => cwnd.min(control.ssthresh().unwrap_or(cwnd)),
        _ => cwnd,
    }
}

impl Pacer {
    pub(crate) const fn new() -> Self {
        Pacer { next: Nanos(0), fraction_ns: 0.0, pair: None }
    }

    pub(crate) const fn next(&self) -> Nanos {
        self.next
    }

    /// Whether a packet pair is sent apart now.
    pub(crate) fn takes_pair(&self, now: Nanos) -> bool {
        self.pair.is_none_or(|last| now.nanos_since(last) >= PAIR_INTERVAL_NS)
    }

    /// A packet pair is sent.
    pub(crate) const fn on_pair(&mut self, now: Nanos) {
        self.pair = Some(now);
    }

    /// A packet was sent.
    pub(crate) fn on_send(&mut self, now: Nanos, period_ns: f64) {
        let earliest = Nanos(now.0.saturating_sub(CREDIT_NS));
        let wait_ns = period_ns + self.fraction_ns;
        self.fraction_ns = wait_ns.fract();
        self.next = self.next.max(earliest).plus_nanos(wait_ns as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_of_parts_of_a_nanosecond_add_up() {
        let mut pacer = Pacer::new();
        for _ in 0..1_000 {
            pacer.on_send(Nanos(0), 1_200.4);
        }
        assert_eq!(pacer.next(), Nanos(1_200_400));
    }

    #[test]
    fn a_late_packet_is_made_up_for_up_to_two_milliseconds() {
        let mut pacer = Pacer::new();
        pacer.on_send(Nanos(1_000_000), 100_000.0);
        assert_eq!(pacer.next(), Nanos(100_000));
        pacer.on_send(Nanos(10_000_000), 100_000.0);
        assert_eq!(pacer.next(), Nanos(8_100_000));
    }

    #[test]
    fn trains_last_half_a_millisecond() {
        assert_eq!(burst_packets(1e9), 1);
        assert_eq!(burst_packets(12_000.0), 41);
    }
}
