//! Burst sizes and pacing, as Linux's `tcp_output` does them.

use units::{BitRate, Nanos};

/// Largest burst: one segmentation-offload buffer, bytes.
const MAX_BURST_BYTES: u64 = 65_536;
/// A burst is what the rate sends in 2^-10 s.
const BURST_SHIFT: u32 = 10;
/// The minimum RTT halves the addition to it once in so many ns.
const RTT_STEP_NS: u64 = 512_000;
/// Packets that are never paced: the initial window.
const UNPACED: u64 = 10;

/// When the next burst may leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pacer {
    next: Nanos,
    sent: u64,
}

impl Pacer {
    /// When a burst may be sent.
    pub(crate) const fn next(&self) -> Nanos {
        self.next
    }

    /// A burst was sent; `rate` if paced.
    pub(crate) fn on_send(&mut self, now: Nanos, packets: u64, bytes: u64, rate: Option<BitRate>) {
        self.sent += packets;
        let Some(rate) = rate.filter(|_| self.sent > UNPACED) else { return };
        let length = nanos_for(bytes, rate);
        // A late timer is made up for, by half a burst at most.
        let credit = now.nanos_since(self.next).min(length / 2);
        self.next = now.plus_nanos(length - credit);
    }
}

fn nanos_for(bytes: u64, rate: BitRate) -> u64 {
    (bytes as f64 * 8e9 / rate.as_f64().max(1.0)) as u64
}

/// Packets of one burst at that rate: 1 ms of it, more where the RTT is short.
pub(crate) fn burst_packets(rate: BitRate, min_rtt_ns: u64, mss: u64, least: u64) -> u64 {
    let by_rate = (rate.bps() / 8) >> BURST_SHIFT;
    let steps = u32::try_from(min_rtt_ns / RTT_STEP_NS).unwrap_or(u32::MAX);
    let by_rtt = MAX_BURST_BYTES.checked_shr(steps).unwrap_or(0);
    ((by_rate + by_rtt).min(MAX_BURST_BYTES) / mss).max(least).min((MAX_BURST_BYTES / mss).max(1))
}

/// The rate that Linux paces a loss-based control at, where it paces it: 200 % of the
/// window a round trip in slow start, else 120 %.
pub(crate) fn window_rate(cwnd: u64, ssthresh: Option<u64>, mss: u64, srtt_ns: u64) -> BitRate {
    let percent = if ssthresh.is_none_or(|threshold| cwnd < threshold / 2) { 200 } else { 120 };
    BitRate::from_bps_f64((cwnd * mss * 8 * percent / 100) as f64 * 1e9 / srtt_ns.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_grow_with_the_rate_and_shrink_with_the_rtt() {
        let rate = BitRate::from_bps(100_000_000);
        assert_eq!(burst_packets(rate, 50_000_000, 1448, 2), 8);
        assert_eq!(burst_packets(rate, 0, 1448, 2), 45);
        assert_eq!(burst_packets(BitRate::from_bps(1_000_000), 50_000_000, 1448, 2), 2);
        assert_eq!(burst_packets(BitRate::from_bps(100_000_000_000), 0, 1448, 2), 45);
    }

    #[test]
    fn a_paced_burst_takes_its_time() {
        let mut pacer = Pacer::default();
        let rate = Some(BitRate::from_bps(8_000_000));
        pacer.on_send(Nanos(0), 10, 10_000, rate);
        assert_eq!(pacer.next(), Nanos(0));
        pacer.on_send(Nanos(0), 2, 2_000, rate);
        assert_eq!(pacer.next(), Nanos(2_000_000));
    }
}
