//! Round-trip time and retransmission timeout (RFC 6298, with Linux's floor).

use units::Rtt;

/// Least that the timeout exceeds the smoothed RTT by: 200 ms (RFC 6298: at least 1 s in
/// all).
const MIN_MARGIN_NS: u64 = 200_000_000;
/// Before the first sample.
//= https://www.rfc-editor.org/rfc/rfc6298#section-2
//# Until a round-trip time (RTT) measurement has been made for a segment sent between the
//# sender and receiver, the sender SHOULD set RTO <- 1 second
const INITIAL_TIMEOUT_NS: u64 = 1_000_000_000;
/// The longest timeout, backoff included.
//= https://www.rfc-editor.org/rfc/rfc6298#section-2
//# A maximum value MAY be placed on RTO provided it is at least 60 seconds.
const MAX_TIMEOUT_NS: u64 = 120_000_000_000;

/// The estimator of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RttEstimator {
    /// Zero before the first sample.
    smoothed_ns: u64,
    deviation_ns: u64,
    min_ns: Option<u64>,
    /// Expiries since the last sample: each doubles the timeout.
    backoff: u32,
}

impl RttEstimator {
    /// Takes a sample of a packet that was sent once.
    pub(crate) fn update(&mut self, rtt_ns: u64) {
        let rtt = rtt_ns.max(1_000);
        self.backoff = 0;
        self.min_ns = Some(self.min_ns.map_or(rtt, |least| least.min(rtt)));
        //= https://www.rfc-editor.org/rfc/rfc6298#section-2
        //# When the first RTT measurement R is made, the host MUST set
        //#
        //# SRTT <- R
        //# RTTVAR <- R/2
        if self.smoothed_ns == 0 {
            self.smoothed_ns = rtt;
            self.deviation_ns = rtt / 2;
            return;
        }
        let error = self.smoothed_ns.abs_diff(rtt);
        self.deviation_ns = self.deviation_ns - self.deviation_ns / 4 + error / 4;
        self.smoothed_ns = self.smoothed_ns - self.smoothed_ns / 8 + rtt / 8;
    }

    /// A shorter RTT was seen, of a packet that says nothing about the timeout.
    pub(crate) fn observe(&mut self, rtt_ns: u64) {
        let rtt = rtt_ns.max(1_000);
        self.min_ns = self.min_ns.map(|least| least.min(rtt));
    }

    pub(crate) fn back_off(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc6298#section-5
        //# The host MUST set RTO <- RTO * 2 ("back off the timer").
        self.backoff = self.backoff.saturating_add(1);
    }

    /// The smoothed RTT; `None` before the first sample.
    pub(crate) fn smoothed(&self) -> Option<Rtt> {
        (self.smoothed_ns > 0).then(|| Rtt::from_nanos(self.smoothed_ns))
    }

    /// The same in ns, zero before the first sample.
    pub(crate) const fn smoothed_ns(&self) -> u64 {
        self.smoothed_ns
    }

    pub(crate) const fn deviation_ns(&self) -> u64 {
        self.deviation_ns
    }

    pub(crate) const fn min_ns(&self) -> Option<u64> {
        self.min_ns
    }

    /// The timeout without backoff.
    pub(crate) fn base_timeout_ns(&self) -> u64 {
        if self.smoothed_ns == 0 {
            return INITIAL_TIMEOUT_NS;
        }
        (self.smoothed_ns + (4 * self.deviation_ns).max(MIN_MARGIN_NS)).min(MAX_TIMEOUT_NS)
    }

    /// The timeout.
    pub(crate) fn timeout_ns(&self) -> u64 {
        let factor = 1_u64.checked_shl(self.backoff.min(30)).unwrap_or(u64::MAX);
        self.base_timeout_ns().saturating_mul(factor).min(MAX_TIMEOUT_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_timeout_is_never_within_200_ms_of_the_smoothed_rtt() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout_ns(), 1_000 * MS);
        for _ in 0..100 {
            rtt.update(50 * MS);
        }
        assert!(rtt.timeout_ns().abs_diff(250 * MS) < MS);
        assert_eq!(rtt.min_ns(), Some(50 * MS));
    }

    #[test]
    fn each_expiry_doubles_the_timeout_up_to_two_minutes_until_a_sample() {
        let mut rtt = RttEstimator::default();
        rtt.update(100 * MS);
        let base = rtt.timeout_ns();
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.timeout_ns(), 4 * base);
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.timeout_ns(), 120_000 * MS);
        rtt.update(100 * MS);
        assert!(rtt.timeout_ns() <= base);
    }
}
