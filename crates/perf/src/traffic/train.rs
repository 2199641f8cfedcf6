//! A train of datagrams: the receiver records when each arrived, and stops the sender once it has
//! seen enough losses.
//!
//! The stop is a datagram on the stream's own socket. It may be lost, and then the bytes of the
//! test end the train.

use super::Traffic;
use crate::stream::Stream;
use host::wait;
use iperf3_proto::datagram::{self, Header};
use record::TimedDatagram;
use std::{io::Read, os::fd::AsFd, sync::atomic::Ordering, time::Duration};

/// Maximum datagrams that are recorded: 8.6 MB of full-size ones.
const MAX_DATAGRAMS: usize = 6_000;
/// Losses that end a train: at 1.25 times the bottleneck's rate, 150 datagrams after the first.
const ENOUGH_LOST: u64 = 30;
/// Maximum stops sent: one may be lost.
const MAX_STOPS: u32 = 8;
/// The numbers and times that are recorded lie far below, and sums of them fit.
const MAX_VALUE: u64 = 1 << 48;

/// The arrival times of a train, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct TrainLog {
    datagrams: Vec<TimedDatagram>,
    stops: u32,
}

impl TrainLog {
    /// Maximum memory of the record, in bytes: a vector grows by doubling.
    pub(super) const MEMORY: usize = MAX_DATAGRAMS.next_power_of_two() * size_of::<TimedDatagram>();

    /// Records a datagram that arrived in the kernel at `arrived_us`.
    pub(super) fn record(&mut self, header: Header, arrived_us: u64) {
        let Header { sent_us, number } = header;
        if self.datagrams.len() < MAX_DATAGRAMS && number.max(sent_us) < MAX_VALUE {
            self.datagrams.push(TimedDatagram { number, sent_us, arrived_us });
        }
    }

    /// Whether the sender is to be stopped now, after so many losses.
    pub(super) fn stops(&mut self, lost: u64) -> bool {
        let stops = lost >= ENOUGH_LOST && self.stops < MAX_STOPS;
        self.stops += u32::from(stops);
        stops
    }

    /// The datagrams that arrived.
    pub(crate) fn datagrams(&self) -> &[TimedDatagram] {
        &self.datagrams
    }
}

impl Traffic {
    /// Whether a train has lost enough datagrams, so that the test may end.
    pub(crate) fn train_has_ended(&self) -> bool {
        self.train_ended.load(Ordering::Relaxed)
    }

    /// Asks the sender of a train to stop.
    pub(super) fn stop_train(&self, stream: &Stream) {
        self.train_ended.store(true, Ordering::Relaxed);
        let _ = stream.socket.send(&datagram::STOP);
    }

    /// Whether the receiver has asked this end to stop sending.
    pub(super) fn was_stopped(&self, stream: &Stream) -> bool {
        let ready = wait::readable([stream.socket.as_fd()], Some(Duration::ZERO));
        if !matches!(ready, Ok([true])) {
            return false;
        }
        let mut text = [0; 5];
        // An ICMP error is reported by the next send as well.
        let length = (&stream.socket).read(&mut text).unwrap_or(0);
        let stopped = text.get(..length) == Some(&datagram::STOP[..]);
        if stopped {
            self.train_ended.store(true, Ordering::Relaxed);
        }
        stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_bounded_and_the_stops_are_few() {
        let mut log = TrainLog::default();
        for number in 0..2 * MAX_DATAGRAMS as u64 {
            log.record(Header { sent_us: 1, number }, 2);
        }
        log.record(Header { sent_us: u64::MAX, number: 1 }, 2);
        assert_eq!(log.datagrams().len(), MAX_DATAGRAMS);
        assert!(log.datagrams.capacity() * size_of::<TimedDatagram>() <= TrainLog::MEMORY);
        assert!(!log.stops(ENOUGH_LOST - 1));
        let stops = (0..1_000).filter(|_| log.stops(u64::MAX)).count();
        assert_eq!(stops, MAX_STOPS as usize);
    }
}
