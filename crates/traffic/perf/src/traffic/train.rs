//! A train of datagrams whose rate rises: the receiver records when each arrived, and stops the
//! sender once it has seen enough losses.
//!
//! The rate rises by the same amount with each datagram, and so exponentially with time. A sender
//! that was held up does not catch up: a burst would overflow a small queue at any rate.
//!
//! The stop is a datagram on the stream's own socket. It may be lost, and then the bytes of the
//! test end the train.

use super::Traffic;
use crate::{pacing, plan::Plan, stream::Stream};
use host::{clock, wait};
use iperf3_proto::datagram::{self, Header};
use record::TimedDatagram;
use std::{
    io::Read,
    os::fd::AsFd,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use units::{BitRate, ByteCount};

/// Maximum datagrams that are recorded: 8.6 MB of full-size ones.
const MAX_DATAGRAMS: usize = 6_000;
/// Losses that end a train: enough to see that they are regular, up to four times the
/// bottleneck's rate. At 1.25 times it they take 300 datagrams.
const ENOUGH_LOST: u64 = 60;
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

/// Paces a train.
pub(super) struct TrainPacer {
    first: BitRate,
    last: BitRate,
    length: ByteCount,
    /// Datagrams of the whole train, and those sent. Lost ones count: a train never has more.
    count: u64,
    sent: u64,
    precise: bool,
    due: Instant,
}

impl TrainPacer {
    /// For datagrams of `length` bytes; `None` if the test is no train.
    pub(super) fn of(plan: &Plan, length: usize, precise: bool) -> Option<Self> {
        let (first, last) = (plan.train?, plan.rate?);
        let length = ByteCount::from_bytes(length as u64);
        Some(TrainPacer {
            first: first.min(last),
            last,
            length,
            count: plan.limit.unwrap_or(0) / length.bytes().max(1),
            sent: 0,
            precise,
            due: clock::now(),
        })
    }

    pub(super) const fn length(&self) -> usize {
        self.length.bytes() as usize
    }

    /// Waits until the next datagram is due; false if there is none, or the test ended first.
    pub(super) fn wait(&self, ended: impl Fn() -> bool) -> bool {
        self.sent < self.count && !ended() && pacing::sleep_until(self.due, self.precise, ended)
    }

    /// Datagrams were sent at `now`.
    pub(super) fn sent(&mut self, datagrams: u64, now: Instant) {
        self.sent += datagrams;
        let share = self.sent as f64 / self.count.max(1) as f64;
        let rise = self.last.as_f64() - self.first.as_f64();
        let rate = BitRate::from_bps_f64(self.first.as_f64() + rise * share.min(1.0));
        let spacing = rate.time_for(self.length.times(datagrams));
        let late = now.saturating_duration_since(self.due) > pacing::STALL_THRESHOLD;
        let from = if late { now } else { self.due };
        self.due = from.checked_add(spacing).unwrap_or(now);
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

    fn pacer(began: Instant) -> TrainPacer {
        TrainPacer {
            first: BitRate::from_bps(8_000_000),
            last: BitRate::from_bps(32_000_000),
            length: ByteCount::from_bytes(1000),
            count: 1_000,
            sent: 0,
            precise: false,
            due: began,
        }
    }

    /// 1 ms between datagrams at first, a quarter of it at last: ln 4 / 3 of 1 ms on average.
    #[test]
    fn the_rate_rises_with_the_datagrams() {
        let began = clock::now();
        let mut pacer = pacer(began);
        let mut gaps = Vec::new();
        for _ in 0..1_000 {
            let before = pacer.due;
            pacer.sent(1, before);
            gaps.push(pacer.due - before);
        }
        assert!(gaps.is_sorted_by(|one, next| one >= next));
        let (first, last) = (gaps[0].as_secs_f64(), gaps[999].as_secs_f64());
        assert!((first - 1e-3).abs() < 1e-5 && (last - 0.25e-3).abs() < 1e-5, "{first} {last}");
        assert!(!pacer.wait(|| false), "all are sent");
        let all = (pacer.due - began).as_secs_f64();
        assert!((all - 4f64.ln() / 3.0).abs() < 0.002, "{all}");
    }

    #[test]
    fn a_train_does_not_catch_up() {
        let began = clock::now();
        let mut pacer = pacer(began);
        let late = began + Duration::from_millis(50);
        pacer.sent(1, late);
        assert!(pacer.due > late);
        // Below the threshold, the average stays.
        let due = pacer.due;
        pacer.sent(0, due + Duration::from_micros(100));
        assert_eq!(pacer.due, due);
    }

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
