//! Round trips by packet numbers, and the RTTs seen in each.

use crate::{Ack, Phase};

/// One round trip after the other: each ends when what was sent next at its beginning is
/// acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RoundTrips {
    /// The packet sent next when the round trip began; `None` before the first.
    end: Option<u64>,
    rtts: RttSamples,
}

/// The RTT samples of one round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RttSamples {
    pub(crate) count: u64,
    least_ns: Option<u64>,
    sum_ns: u64,
}

impl RttSamples {
    /// The least of them, ns.
    pub(crate) const fn least_ns(&self) -> Option<u64> {
        self.least_ns
    }

    /// Their mean, ns.
    pub(crate) fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count)
    }
}

impl RoundTrips {
    /// Counts an acknowledgement. Returns the samples of the round trip that it ends.
    pub(crate) fn observe(&mut self, ack: &Ack) -> Option<RttSamples> {
        self.count(ack);
        self.end(ack)
    }

    /// The same, but a round trip that ends in a recovery goes on until that is over.
    pub(crate) fn observe_through_recovery(&mut self, ack: &Ack) -> Option<RttSamples> {
        self.count(ack);
        if ack.phase == Phase::Recovery { None } else { self.end(ack) }
    }

    fn count(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let rtt_ns = rtt.nanos();
            self.rtts.count += 1;
            self.rtts.sum_ns = self.rtts.sum_ns.saturating_add(rtt_ns);
            self.rtts.least_ns = Some(self.rtts.least_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
    }

    fn end(&mut self, ack: &Ack) -> Option<RttSamples> {
        let end = *self.end.get_or_insert(ack.sent_to);
        if ack.acked_to <= end {
            return None;
        }
        self.end = Some(ack.sent_to);
        Some(std::mem::take(&mut self.rtts))
    }

    /// The same outside recoveries, whose round trips are not measured.
    pub(crate) fn observe_open(&mut self, ack: &Ack) -> Option<RttSamples> {
        if ack.phase == Phase::Open {
            return self.observe(ack);
        }
        *self = RoundTrips::default();
        None
    }
}
