//! The round-trip time, as both ends of a connection share it.

/// Before the first sample, ns.
const FIRST_RTT_NS: u64 = 100_000_000;
const FIRST_VARIANCE_NS: u64 = 50_000_000;

/// RTT and its variance: moving averages with weights of 7/8 and 3/4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RttEstimator {
    rtt_ns: u64,
    variance_ns: u64,
    sampled: bool,
}

impl RttEstimator {
    pub(crate) const fn new() -> Self {
        RttEstimator { rtt_ns: FIRST_RTT_NS, variance_ns: FIRST_VARIANCE_NS, sampled: false }
    }

    pub(crate) const fn rtt_ns(&self) -> u64 {
        self.rtt_ns
    }

    pub(crate) const fn variance_ns(&self) -> u64 {
        self.variance_ns
    }

    /// The RTT, once there was a sample.
    pub(crate) const fn sampled_ns(&self) -> Option<u64> {
        if self.sampled { Some(self.rtt_ns) } else { None }
    }

    /// RTT + 4 x variance, ns.
    pub(crate) const fn timeout_ns(&self) -> u64 {
        self.rtt_ns + 4 * self.variance_ns
    }

    /// Adds a sample; the variance first.
    pub(crate) const fn update(&mut self, sample_ns: u64) {
        // Ten seconds bound what a peer can claim: timers follow.
        let sample_ns = if sample_ns < 10_000_000_000 { sample_ns } else { return };
        self.variance_ns = (3 * self.variance_ns + sample_ns.abs_diff(self.rtt_ns)) / 4;
        self.rtt_ns = (7 * self.rtt_ns + sample_ns) / 8;
        self.sampled = true;
    }
}
