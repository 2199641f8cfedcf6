//! UDP cross traffic.

use std::time::Duration;
use units::{BitRate, ByteCount, Nanos, nanos};

/// Datagrams at a constant rate while on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramSource {
    /// Rate of the IP packets while on.
    pub rate: BitRate,
    /// Size of the IP packets, bytes.
    pub size: u32,
    /// How long it sends; it begins with it.
    pub on: Duration,
    /// How long it does not.
    pub off: Duration,
    /// When it begins.
    pub start: Duration,
}

impl DatagramSource {
    /// When the first datagram is sent.
    pub(crate) fn first(&self) -> Nanos {
        Nanos(0).plus(self.start)
    }

    /// When the one after that at `now` is sent.
    pub(crate) fn after(&self, now: Nanos) -> Nanos {
        let size = ByteCount::from_bytes(u64::from(self.size));
        let gap = self.rate.time_for(size).max(Duration::from_nanos(1));
        let next = now.plus(gap);
        let on = nanos(self.on);
        let period = on.saturating_add(nanos(self.off));
        let elapsed = next.nanos_since(self.first());
        if period == 0 || elapsed % period < on {
            return next;
        }
        self.first().plus_nanos((elapsed / period + 1).saturating_mul(period))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_pauses_between_its_on_times() {
        let source = DatagramSource {
            rate: BitRate::from_bps(8_000_000),
            size: 1_000,
            on: Duration::from_millis(10),
            off: Duration::from_millis(90),
            start: Duration::from_millis(5),
        };
        let mut at = source.first();
        let mut sent = Vec::new();
        while at < Nanos(205_000_000) {
            sent.push(at.0 / 1_000_000);
            at = source.after(at);
        }
        assert_eq!(sent, (5..15).chain(105..115).collect::<Vec<u64>>());
    }
}
