//! The EXP timer: nothing came from the peer for long.

use crate::SYN_NS;
use crate::rtt::RttEstimator;
use units::Nanos;

/// Shortest time for each expiration in a row, ns.
const MIN_NS: u64 = 300_000_000;
/// The connection is broken after more expirations in a row than this,
const MAX_EXPIRATIONS: u64 = 16;
/// and no less than this time without a response, ns.
const BROKEN_NS: u64 = 5_000_000_000;

/// What a timer's expiration means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expired {
    /// No response in time.
    Response,
    /// The connection is broken.
    Connection,
}

/// Counts expirations in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expiry {
    /// The last response, or expiration.
    since: Nanos,
    /// Expirations in a row, plus one.
    count: u64,
}

impl Expiry {
    pub(super) const fn new(now: Nanos) -> Self {
        Expiry { since: now, count: 1 }
    }

    /// Something came from the peer.
    pub(super) const fn on_response(&mut self, now: Nanos) {
        *self = Expiry::new(now);
    }

    pub(super) fn deadline(&self, rtt: &RttEstimator) -> Nanos {
        let by_rtt = self.count * rtt.timeout_ns() + SYN_NS;
        self.since.plus_nanos(by_rtt.max(self.count * MIN_NS))
    }

    /// What the timer says now.
    pub(super) fn poll(&mut self, now: Nanos, rtt: &RttEstimator) -> Option<Expired> {
        if now < self.deadline(rtt) {
            return None;
        }
        if self.count > MAX_EXPIRATIONS && now.nanos_since(self.since) >= BROKEN_NS {
            return Some(Expired::Connection);
        }
        self.count += 1;
        self.since = now;
        Some(Expired::Response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_breaks_after_seventeen_expirations() {
        let (rtt, mut expiry) = (RttEstimator::new(), Expiry::new(Nanos(0)));
        let mut times = Vec::new();
        loop {
            let now = expiry.deadline(&rtt);
            times.push(now.0 / 1_000_000);
            match expiry.poll(now, &rtt) {
                Some(Expired::Connection) => break,
                other => assert_eq!(other, Some(Expired::Response)),
            }
        }
        // n x 300 ms and 10 ms for the SYN.
        assert_eq!((times[0], times[1], times.len()), (310, 920, 17));
        expiry.on_response(Nanos(99));
        assert_eq!(expiry.deadline(&rtt), Nanos(99 + 310_000_000));
    }
}
