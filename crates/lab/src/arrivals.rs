//! When the packets that are read from a device arrived there.
//!
//! The driver reads a packet some time after it arrived: 0.05 ms on a quiet machine, as long
//! as a stall lasts on a busy one. A bottleneck that started that much later would shift every
//! packet of the busy period, so the link is given the true times.

use host::clock;
use host::transmit_times::TransmitTimes;
use std::time::Duration;
use units::{Nanos, nanos};

/// The arrival of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Nanos,
    /// How much earlier than `at` it may have been.
    pub(crate) uncertainty: Duration,
}

/// The arrivals at one device.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// `None`: the system does not tell; every packet arrives when it is read.
    times: Option<TransmitTimes>,
    /// When the device was last known to be empty.
    last_empty: Nanos,
    /// The latest arrival.
    latest: Nanos,
}

impl Arrivals {
    pub(crate) fn new(times: Option<TransmitTimes>) -> Self {
        Arrivals { times, last_empty: Nanos(0), latest: Nanos(0) }
    }

    /// The device was empty at `at`.
    pub(crate) fn empty(&mut self, at: Nanos) {
        self.last_empty = self.last_empty.max(at);
    }

    /// The arrival of the packet that was just read, at `now`.
    pub(crate) fn next(&mut self, now: Nanos) -> Arrival {
        let times = self.times.as_mut();
        let arrival = match times {
            Some(times) => {
                let wall = clock::unix_time();
                arrival(times.map(|time| wall.saturating_sub(time)), now, self.last_empty)
            }
            None => arrival(std::iter::empty(), now, self.last_empty),
        };
        // Two processors may pass packets in another order than they are recorded.
        self.latest = self.latest.max(arrival.at);
        Arrival { at: self.latest, ..arrival }
    }
}

/// The arrival of a packet read at `now` from a device that was empty at `last_empty`; `ages`
/// are the ages of the packets recorded there since an earlier time, the oldest first.
///
/// Packets and records correspond in order, unless one of them was discarded: of packets by a
/// full device, of records by a full ring. A record from before the device was empty is of no
/// packet that is still to be read, so the two correspond again from there on.
fn arrival(mut ages: impl Iterator<Item = Duration>, now: Nanos, last_empty: Nanos) -> Arrival {
    let since_empty = now.since(last_empty);
    match ages.find(|age| *age <= since_empty) {
        Some(age) => {
            Arrival { at: Nanos(now.nanos_since(Nanos(nanos(age)))), uncertainty: Duration::ZERO }
        }
        None => Arrival { at: now, uncertainty: since_empty },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    #[test]
    fn a_recorded_packet_arrived_when_it_was_recorded() {
        let read = arrival([ms(7), ms(3)].into_iter(), at(100), at(90));
        assert_eq!(read, Arrival { at: at(93), uncertainty: Duration::ZERO });
    }

    #[test]
    fn a_record_from_before_the_device_was_empty_is_skipped() {
        let mut ages = [ms(30), ms(11), ms(9), ms(2)].into_iter();
        assert_eq!(arrival(&mut ages, at(100), at(90)).at, at(91));
        assert_eq!(ages.next(), Some(ms(2)), "the next packet's");
    }

    #[test]
    fn without_a_record_a_packet_arrives_when_it_is_read() {
        let unknown = Arrival { at: at(100), uncertainty: ms(10) };
        assert_eq!(arrival(std::iter::empty(), at(100), at(90)), unknown);
        // Also if the wall clock was set forward since the packets were recorded.
        assert_eq!(arrival([ms(3_600_000)].into_iter(), at(100), at(90)), unknown);
    }

    #[test]
    fn arrivals_never_go_back() {
        let mut arrivals = Arrivals::new(None);
        arrivals.empty(at(10));
        arrivals.empty(at(5));
        assert_eq!(arrivals.next(at(12)), Arrival { at: at(12), uncertainty: ms(2) });
        assert_eq!(arrivals.next(at(11)).at, at(12));
    }
}
