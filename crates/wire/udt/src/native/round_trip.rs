//! The round-trip time (RFC 9002 section 5).

use units::{Nanos, Rtt};

/// Before the first sample, ns (RFC 9002 section 6.2.2).
const INITIAL_NS: u64 = 333_000_000;
/// Least time by which a timer exceeds the RTT, ns.
const GRANULARITY_NS: u64 = 1_000_000;
/// The longest time that a peer can claim to have waited with an acknowledgement, ns.
const MAX_DELAY_NS: u64 = 25_000_000;

/// Estimates of the RTT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    latest_ns: u64,
    min_ns: Option<u64>,
    smoothed_ns: u64,
    variance_ns: u64,
}

impl RoundTrip {
    /// A packet sent at that time was the newest in an acknowledgement, which waited.
    pub(crate) fn update(&mut self, now: Nanos, sent: Nanos, delay_us: u32) {
        let latest = now.nanos_since(sent);
        self.latest_ns = latest;
        let Some(min) = self.min_ns else {
            self.min_ns = Some(latest);
            self.smoothed_ns = latest;
            self.variance_ns = latest / 2;
            return;
        };
        //= https://www.rfc-editor.org/rfc/rfc9002#section-5.2
        //# min_rtt MUST be set to the lesser of min_rtt and latest_rtt (Section 5.1) on all
        //# other samples.
        let min = min.min(latest);
        self.min_ns = Some(min);
        let delay = (u64::from(delay_us) * 1_000).min(MAX_DELAY_NS);
        // A wait is left out as far as the sample stays over the minimum.
        let adjusted = if latest >= min + delay { latest - delay } else { latest };
        self.variance_ns = (3 * self.variance_ns + self.smoothed_ns.abs_diff(adjusted)) / 4;
        self.smoothed_ns = (7 * self.smoothed_ns + adjusted) / 8;
    }

    pub(crate) const fn min_ns(&self) -> Option<u64> {
        self.min_ns
    }

    /// Before the first sample, an initial value.
    pub(crate) const fn smoothed_ns(&self) -> u64 {
        if self.min_ns.is_some() { self.smoothed_ns } else { INITIAL_NS }
    }

    pub(crate) fn smoothed(&self) -> Option<Rtt> {
        self.min_ns.map(|_| Rtt::from_nanos(self.smoothed_ns))
    }

    /// Before the first sample, half the initial RTT.
    pub(crate) const fn variance_ns(&self) -> u64 {
        if self.min_ns.is_some() { self.variance_ns } else { INITIAL_NS / 2 }
    }

    /// A packet is lost that was sent before one that arrived, and this long ago, ns (RFC
    /// 9002 section 6.1.2).
    pub(crate) fn loss_delay_ns(&self) -> u64 {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2
        //# The time threshold is:
        //#
        //# max(kTimeThreshold * max(smoothed_rtt, latest_rtt), kGranularity)
        //#
        //# The RECOMMENDED time threshold (kTimeThreshold), expressed as an RTT multiplier, is 9/8.
        let rtt = self.smoothed_ns().max(self.latest_ns);
        (rtt + rtt / 8).max(GRANULARITY_NS)
    }

    /// The probe timeout, ns (RFC 9002 section 6.2.1).
    pub(crate) fn probe_timeout_ns(&self) -> u64 {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# PTO = smoothed_rtt + max(4*rttvar, kGranularity) + max_ack_delay
        self.smoothed_ns() + (4 * self.variance_ns()).max(GRANULARITY_NS) + MAX_DELAY_NS
    }
}
