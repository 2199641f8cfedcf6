//! When the packets that are read from a device arrived there.
//!
//! The driver reads a packet some time after it arrived: 0.05 ms on a quiet machine, as long
//! as a stall lasts on a busy one. A bottleneck that started that much later would shift every
//! packet of the busy period, so the link is given the true times.

use host::clock;
use host::transmit_times::{TransmitTimes, Transmitted};
use std::time::Duration;
use units::{Nanos, nanos};

/// How far apart the two clocks may be read; a thread that was interrupted in between reads
/// them again.
const TOGETHER: Duration = Duration::from_micros(20);

/// The arrival of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Nanos,
    /// How much earlier than `at` it may have been.
    pub(crate) uncertainty: Duration,
}

/// The arrivals at one device.
///
/// Packets and records correspond in order, unless one of them was discarded: of packets by a
/// full device, of records by a full ring; and a program may bypass the recording
/// (`PACKET_QDISC_BYPASS`, `AF_XDP`). So a record is used only if it has the packet's length and
/// is from after the device was empty; after one that does not fit, none is used until the
/// device is empty.
#[derive(Debug)]
pub(crate) struct Arrivals<R = TransmitTimes> {
    /// `None`: the system does not allow it; every packet arrives when it is read.
    records: Option<R>,
    /// When a read last found the device empty.
    read_empty: Nanos,
    /// When the device was last known to be empty, also because nothing woke the driver.
    last_empty: Nanos,
    /// Whether a record did not fit since the device was empty.
    out_of_step: bool,
    /// The latest arrival.
    latest: Nanos,
}

impl<R: Iterator<Item = Transmitted>> Arrivals<R> {
    pub(crate) fn new(records: Option<R>) -> Self {
        let [read_empty, last_empty, latest] = [Nanos(0); 3];
        Arrivals { records, read_empty, last_empty, out_of_step: false, latest }
    }

    /// Ends the recording; what was recorded is left to the caller.
    pub(crate) fn finish(self) -> Option<R> {
        self.records
    }

    /// A read that began at `at` found the device empty.
    pub(crate) fn found_empty(&mut self, at: Nanos) {
        self.read_empty = self.read_empty.max(at);
        self.out_of_step = false;
        self.known_empty(at);
    }

    /// The device was empty at `at`, as nothing woke the driver before.
    pub(crate) fn known_empty(&mut self, at: Nanos) {
        self.last_empty = self.last_empty.max(at);
    }

    /// The latest arrival.
    pub(crate) fn latest(&self) -> Nanos {
        self.latest
    }

    /// The arrival of the packet of `length` bytes that was just read, with its own timestamp if
    /// it has one.
    pub(crate) fn next(
        &mut self,
        length: usize,
        stamp: Option<Duration>,
        clock: impl Fn() -> Nanos,
    ) -> Arrival {
        let (now, wall) = both_clocks(clock);
        let recorded = wall.and_then(|wall| match stamp {
            Some(stamp) => self.stamped(stamp, now, wall),
            None => self.recorded(length, now, wall),
        });
        let arrival = match recorded {
            Some(at) => Arrival { at, uncertainty: Duration::ZERO },
            None => Arrival { at: now, uncertainty: now.since(self.last_empty) },
        };
        // Two processors may pass packets in another order than they are recorded.
        self.latest = self.latest.max(arrival.at);
        Arrival { at: self.latest, ..arrival }
    }

    /// A stamp from before the device was empty, or from the future, tells that the wall clock was
    /// set.
    fn stamped(&self, stamp: Duration, now: Nanos, wall: Duration) -> Option<Nanos> {
        let age = wall.checked_sub(stamp)?;
        // Stamps are in whole microseconds, rounded down.
        let longest = now.since(self.read_empty) + Duration::from_micros(1);
        (age <= longest).then(|| Nanos(now.0.saturating_sub(nanos(age))))
    }

    fn recorded(&mut self, length: usize, now: Nanos, wall: Duration) -> Option<Nanos> {
        let since_empty = now.since(self.read_empty);
        // Records from before the device was empty are of packets that were read. The wall clock
        // may have been set back since a record was made.
        let mut ages = self.records.as_mut()?.filter_map(|packet| {
            let age = wall.checked_sub(packet.time);
            age.is_none_or(|age| age <= since_empty).then_some((age, packet.length))
        });
        let (age, recorded) = ages.next()?;
        self.out_of_step |= recorded != length || age.is_none();
        let age = age.filter(|_| !self.out_of_step)?;
        Some(Nanos(now.0.saturating_sub(nanos(age))))
    }
}

/// The time, and the wall clock's at that time; `None` if the thread is interrupted again and
/// again.
fn both_clocks(clock: impl Fn() -> Nanos) -> (Nanos, Option<Duration>) {
    let mut now = clock();
    for _ in 0..3 {
        let wall = clock::unix_time();
        let after = clock();
        if after.since(now) <= TOGETHER {
            return (now, Some(wall));
        }
        now = after;
    }
    (now, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Records of packets, by their ages at a wall-clock time of 1000 s and their lengths.
    fn recorded(records: &[(i64, usize)]) -> Arrivals<std::vec::IntoIter<Transmitted>> {
        let record = |&(age, length): &(i64, usize)| {
            let time = WALL.saturating_sub(ms(age.unsigned_abs()));
            Transmitted { time: if age < 0 { WALL + ms(1) } else { time }, length }
        };
        let records: Vec<Transmitted> = records.iter().map(record).collect();
        let mut arrivals = Arrivals::new(Some(records.into_iter()));
        arrivals.found_empty(at(90));
        arrivals
    }

    const WALL: Duration = Duration::from_secs(1000);

    #[test]
    fn a_recorded_packet_arrived_when_it_was_recorded() {
        let mut arrivals = recorded(&[(7, 100), (3, 200)]);
        // That nothing woke the driver until then makes no record a stale one.
        arrivals.known_empty(at(99));
        assert_eq!(arrivals.recorded(100, at(100), WALL), Some(at(93)));
        assert_eq!(arrivals.recorded(200, at(100), WALL), Some(at(97)));
        assert_eq!(arrivals.recorded(200, at(100), WALL), None);
    }

    #[test]
    fn a_record_from_before_the_device_was_empty_is_skipped() {
        let mut arrivals = recorded(&[(30, 100), (11, 100), (9, 100)]);
        assert_eq!(arrivals.recorded(100, at(100), WALL), Some(at(91)));
    }

    #[test]
    fn a_record_that_does_not_fit_ends_the_correspondence_until_the_device_is_empty() {
        let mut arrivals = recorded(&[(8, 100), (7, 100), (2, 100)]);
        assert_eq!(arrivals.recorded(99, at(100), WALL), None);
        assert_eq!(arrivals.recorded(100, at(100), WALL), None);
        arrivals.found_empty(at(95));
        assert_eq!(arrivals.recorded(100, at(100), WALL), Some(at(98)));
    }

    #[test]
    fn a_wall_clock_that_was_set_tells_nothing() {
        let mut back = recorded(&[(-1, 100), (2, 100)]);
        assert_eq!(back.recorded(100, at(100), WALL), None);
        assert_eq!(back.recorded(100, at(100), WALL), None);
        let mut forward = recorded(&[(3_600_000, 100)]);
        assert_eq!(forward.recorded(100, at(100), WALL), None);
    }

    #[test]
    fn a_packet_with_a_timestamp_arrived_then() {
        let mut arrivals = Arrivals::<TransmitTimes>::new(None);
        arrivals.found_empty(at(90));
        let stamped = |before: Duration| arrivals.stamped(WALL - before, at(100), WALL);
        assert_eq!(stamped(ms(7)), Some(at(93)));
        // The wall clock was set forward, then back.
        assert_eq!(stamped(ms(11)), None);
        assert_eq!(arrivals.stamped(WALL + ms(1), at(100), WALL), None);
    }

    #[test]
    fn without_a_record_a_packet_arrives_when_it_is_read() {
        let mut arrivals = Arrivals::<TransmitTimes>::new(None);
        arrivals.found_empty(at(10));
        arrivals.known_empty(at(5));
        assert_eq!(arrivals.next(100, None, || at(12)), Arrival { at: at(12), uncertainty: ms(2) });
        arrivals.known_empty(at(13));
        assert_eq!(arrivals.next(100, None, || at(14)), Arrival { at: at(14), uncertainty: ms(1) });
        // Arrivals never go back.
        assert_eq!(arrivals.next(100, None, || at(11)).at, at(14));
        assert_eq!(arrivals.latest(), at(14));
    }
}
