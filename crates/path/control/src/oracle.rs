//! An oracle: a control that knows its share of the path. The upper bound to compare others
//! with, not a control for a network.
//!
//! It paces at its share of the bottleneck and bounds what is in flight, so that the queue stays
//! empty; losses change nothing.

use crate::{Ack, Congestion, CongestionControl, Reduction};
use units::{BitRate, Nanos, Rtt};

/// What is in flight is bounded by that many bandwidth-delay products: acknowledgements may be
/// delayed, and retransmissions are in flight too.
const WINDOWS: f64 = 2.0;
/// Room for delayed and coalesced acknowledgements on short paths, packets.
const LEAST_WINDOW: u64 = 16;
/// Headers of a packet on the link: IPv4, TCP with timestamps.
const HEADER_BYTES: u32 = 52;

/// What an oracle knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathShare {
    /// Share of the bottleneck's rate, headers included.
    pub rate: BitRate,
    /// Round trip without a queue.
    pub rtt: Rtt,
}

/// The oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oracle {
    window: u64,
    pacing: BitRate,
}

impl Oracle {
    /// With packets of `mss` bytes of payload.
    #[must_use]
    pub fn new(share: PathShare, mss: u32) -> Self {
        let size = f64::from(mss.max(1)) + f64::from(HEADER_BYTES);
        let payload = f64::from(mss.max(1)) / size;
        let packets = share.rate.as_f64() * share.rtt.secs_f64() / 8.0 / size;
        Oracle {
            window: ((WINDOWS * packets) as u64).max(LEAST_WINDOW),
            pacing: BitRate::from_bps_f64(share.rate.as_f64() * payload),
        }
    }
}

impl CongestionControl for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn on_ack(&mut self, _ack: &Ack) {}

    fn on_congestion(&mut self, _congestion: &Congestion) {}

    fn on_recovery_end(&mut self, _now: Nanos) {}

    fn on_retransmission_timeout(&mut self, _congestion: &Congestion) {}

    fn undo(&mut self, _now: Nanos) {}

    fn on_idle_end(&mut self, _now: Nanos, _idle_ns: u64, _timeouts: u32) {}

    fn cwnd(&self) -> u64 {
        self.window
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.window)
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        Some(self.pacing)
    }

    fn reduction(&self) -> Reduction {
        Reduction::Controlled
    }

    fn min_burst(&self) -> u64 {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_paces_at_its_share_without_headers() {
        let share =
            PathShare { rate: BitRate::from_bps(100_000_000), rtt: Rtt::from_micros(60_000) };
        let oracle = Oracle::new(share, 1_448);
        assert_eq!(oracle.cwnd(), 1_000);
        let payload = oracle.pacing_rate().map(BitRate::bps);
        assert_eq!(payload, Some(96_533_333));
    }
}
