//! Packets in flight: what each number carried, which have arrived, which are lost (RFC 9002
//! section 6.1).

use super::packet::{Ack, expand};
use super::round_trip::RoundTrip;
use control::{DeliveryRate, DeliverySnapshot, RateSample, SentPackets};
use runs::{PacketRun, RunSet};
use std::collections::VecDeque;
use units::Nanos;

/// A packet is lost if this many later ones have arrived (`kPacketThreshold`); more where
/// packets were reordered.
const THRESHOLD: u64 = 3;
/// Reordering is adapted to up to this distance.
const MAX_THRESHOLD: u64 = 4_096;
/// A lost packet can still show by its arrival that it was only late, for this many times
/// the time after which it was taken as lost.
const LATE: u64 = 2;

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    /// The packet of the stream that it carried, if any.
    packet: Option<u64>,
    at: Nanos,
    snapshot: DeliverySnapshot,
}

/// All packets sent, by number from 0.
#[derive(Debug)]
pub(crate) struct Flight {
    /// The oldest number that is remembered.
    first: u64,
    log: VecDeque<Sent>,
    /// Numbers of packets with data that are in flight, and of lost ones that may be late.
    outstanding: RunSet,
    lost: RunSet,
    largest_acked: Option<u64>,
    threshold: u64,
    rate: DeliveryRate,
    /// When the next packet is lost by time.
    loss_time: Option<Nanos>,
    last_sent: Nanos,
    /// How long lost packets are remembered, ns.
    late_ns: u64,
}

/// What an acknowledgement brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Packets with data that were in flight.
    pub(crate) packets: u64,
    /// Packets that were taken as lost.
    pub(crate) late: u64,
    /// When the largest number was sent, if it is newly acknowledged and had data.
    pub(crate) largest_sent: Option<Nanos>,
    /// The largest number acknowledged at all.
    pub(crate) largest: u64,
}

/// An acknowledgement of packets that were never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeverSent;

impl Flight {
    pub(crate) fn new() -> Self {
        Flight {
            first: 0,
            log: VecDeque::new(),
            outstanding: RunSet::default(),
            lost: RunSet::default(),
            largest_acked: None,
            threshold: THRESHOLD,
            rate: DeliveryRate::default(),
            loss_time: None,
            last_sent: Nanos(0),
            late_ns: u64::MAX,
        }
    }

    /// The number of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// Packets with data in flight.
    pub(crate) const fn in_flight(&self) -> u64 {
        self.outstanding.packets()
    }

    pub(crate) const fn delivered(&self) -> u64 {
        self.rate.delivered()
    }

    pub(crate) const fn reported_rate(&self) -> Option<RateSample> {
        self.rate.reported()
    }

    /// When a packet is lost that was not acknowledged.
    pub(crate) const fn loss_time(&self) -> Option<Nanos> {
        self.loss_time
    }

    /// When a packet with data was last sent.
    pub(crate) const fn last_sent(&self) -> Nanos {
        self.last_sent
    }

    /// The packet of the stream that was in flight first.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.sent(self.outstanding.first()?.start)?.packet
    }

    fn sent(&self, number: u64) -> Option<&Sent> {
        self.log.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// A packet is sent, with one of the stream or without.
    pub(crate) fn on_send(&mut self, now: Nanos, packet: Option<u64>) {
        let number = self.next();
        let snapshot = if packet.is_some() {
            self.outstanding.insert(PacketRun::new(number, number + 1));
            self.last_sent = now;
            self.rate.on_send(now, self.in_flight() - 1, 1)
        } else {
            DeliverySnapshot::default()
        };
        self.log.push_back(Sent { packet, at: now, snapshot });
        self.forget(now);
    }

    /// There was room to send more, and nothing to send.
    pub(crate) fn set_app_limited(&mut self) {
        self.rate.set_app_limited(self.in_flight());
    }

    /// An acknowledgement came; its newest packet had arrived at the time `arrived_at`. Calls
    /// `deliver` with the packets of the stream that it is the first to acknowledge.
    ///
    /// # Errors
    /// It acknowledges what was never sent.
    pub(crate) fn on_ack(
        &mut self,
        arrived_at: Nanos,
        ack: &Ack<'_>,
        mut deliver: impl FnMut(u64),
    ) -> Result<Arrived, NeverSent> {
        let largest = expand(ack.largest, self.largest_acked.unwrap_or(0));
        if largest >= self.next() {
            return Err(NeverSent);
        }
        let is_newest = self.largest_acked.is_none_or(|known| largest > known);
        // Packets without data are not acknowledged at once: their times are no RTT.
        let largest_sent = self
            .sent(largest)
            .filter(|sent| is_newest && sent.packet.is_some())
            .map(|sent| sent.at);
        self.largest_acked = self.largest_acked.max(Some(largest));
        let mut arrived = Arrived { largest_sent, largest, ..Arrived::default() };
        let known = PacketRun::new(self.first, self.next());
        let (mut outstanding, mut lost) =
            (std::mem::take(&mut self.outstanding), std::mem::take(&mut self.lost));
        for run in ack.runs(largest) {
            let run = run.overlap(known);
            if run.is_empty() {
                break;
            }
            outstanding.remove(run, |part| {
                arrived.packets += part.len();
                self.deliver(arrived_at, part, &mut deliver);
            });
            lost.remove(run, |part| {
                arrived.late += part.len();
                self.adapt(part, largest);
                self.deliver(arrived_at, part, &mut deliver);
            });
        }
        (self.outstanding, self.lost) = (outstanding, lost);
        Ok(arrived)
    }

    fn deliver(&mut self, now: Nanos, part: PacketRun, deliver: &mut impl FnMut(u64)) {
        for number in part.start..part.end {
            let Some(sent) = self.sent(number).copied() else { continue };
            let order = (number, 0);
            let snapshot = sent.snapshot;
            self.rate
                .on_delivered(now, &SentPackets { packets: 1, sent: sent.at, order, snapshot });
            if let Some(packet) = sent.packet {
                deliver(packet);
            }
        }
    }

    /// Packets were late, not lost: the path reorders by at least this much.
    fn adapt(&mut self, part: PacketRun, largest: u64) {
        let distance = largest.saturating_sub(part.start) + 1;
        self.threshold = self.threshold.max(distance.min(MAX_THRESHOLD));
    }

    /// The sample of the delivery rate of the last acknowledgement, with what it showed as
    /// lost.
    pub(crate) fn sample(&mut self, now: Nanos, rtt: &RoundTrip) -> Option<RateSample> {
        self.rate.sample(now, rtt.min_ns())
    }

    /// Takes packets as lost that were sent before one that arrived, and either long ago or
    /// many numbers before. Calls `lose` with those of the stream; gives how many.
    pub(crate) fn detect_losses(
        &mut self,
        now: Nanos,
        rtt: &RoundTrip,
        mut lose: impl FnMut(u64),
    ) -> u64 {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else { return 0 };
        let delay_ns = rtt.loss_delay_ns();
        let mut lost = 0;
        while let Some(run) = self.outstanding.first().filter(|run| run.start < largest) {
            let end = run.end.min(largest);
            // Sent in the order of numbers: what is lost by either is a prefix.
            let by_number = end.min((largest + 1).saturating_sub(self.threshold));
            let mut until = run.start.max(by_number);
            while until < end
                && self.sent(until).is_none_or(|sent| sent.at.plus_nanos(delay_ns) <= now)
            {
                until += 1;
            }
            let part = PacketRun::new(run.start, until);
            self.outstanding.remove(part, |_| {});
            self.lost.insert(part);
            lost += part.len();
            for number in part.start..part.end {
                if let Some(packet) = self.sent(number).and_then(|sent| sent.packet) {
                    lose(packet);
                }
            }
            if until < end {
                self.loss_time = self.sent(until).map(|sent| sent.at.plus_nanos(delay_ns));
                break;
            }
        }
        self.rate.on_lost(lost);
        self.late_ns = LATE * delay_ns;
        self.forget(now);
        lost
    }

    /// Takes all that is in flight as lost.
    pub(crate) fn lose_all(&mut self, now: Nanos, rtt: &RoundTrip, mut lose: impl FnMut(u64)) {
        self.late_ns = LATE * rtt.loss_delay_ns();
        self.forget(now);
        let outstanding = std::mem::take(&mut self.outstanding);
        self.rate.on_lost(outstanding.packets());
        for run in outstanding.iter() {
            self.lost.insert(run);
            for number in run.start..run.end {
                if let Some(packet) = self.sent(number).and_then(|sent| sent.packet) {
                    lose(packet);
                }
            }
        }
        self.loss_time = None;
    }

    /// Forgets what has arrived, and what was lost longer ago than late packets come.
    fn forget(&mut self, now: Nanos) {
        while let Some(run) = self.lost.first()
            && self.sent(run.start).is_none_or(|sent| now.nanos_since(sent.at) > self.late_ns)
        {
            self.lost.take_first(1);
        }
        let oldest = |set: &RunSet| set.first().map_or(u64::MAX, |run| run.start);
        let keep = oldest(&self.outstanding).min(oldest(&self.lost));
        while self.first < keep && self.log.len() > 1 {
            self.log.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A flight of `packets`, sent 1 ms apart from 0 on.
    fn flight(packets: u64) -> Flight {
        let mut flight = Flight::new();
        for packet in 0..packets {
            flight.on_send(Nanos(packet * MS), Some(packet));
        }
        flight
    }

    fn acknowledge(flight: &mut Flight, at_ms: u64, runs: &[PacketRun]) -> (Arrived, Vec<u64>) {
        let mut room = Vec::new();
        let ack = Ack::new(runs.iter().copied(), &mut room, 999).unwrap();
        let mut delivered = Vec::new();
        let arrived =
            flight.on_ack(Nanos(at_ms * MS), &ack, |packet| delivered.push(packet)).unwrap();
        (arrived, delivered)
    }

    fn lost(flight: &mut Flight, at_ms: u64, rtt_ms: u64) -> Vec<u64> {
        let mut rtt = RoundTrip::default();
        rtt.update(Nanos(rtt_ms * MS), Nanos(0), 0);
        let mut lost = Vec::new();
        flight.detect_losses(Nanos(at_ms * MS), &rtt, |packet| lost.push(packet));
        lost
    }

    #[test]
    fn a_packet_is_lost_once_three_later_ones_have_arrived() {
        let mut flight = flight(10);
        acknowledge(&mut flight, 50, &[PacketRun::new(0, 2), PacketRun::new(3, 5)]);
        assert!(lost(&mut flight, 50, 50).is_empty());
        assert!(flight.loss_time().is_some());
        let (arrived, delivered) =
            acknowledge(&mut flight, 51, &[PacketRun::new(0, 2), PacketRun::new(3, 6)]);
        assert_eq!((arrived.packets, delivered), (1, vec![5]));
        assert_eq!(lost(&mut flight, 51, 50), [2]);
        assert_eq!(flight.in_flight(), 4);
    }

    #[test]
    fn a_packet_is_lost_an_eighth_of_a_round_trip_late() {
        let mut flight = flight(3);
        acknowledge(&mut flight, 50, &[PacketRun::new(1, 2)]);
        assert!(lost(&mut flight, 50, 48).is_empty());
        assert_eq!(flight.loss_time(), Some(Nanos(54 * MS)));
        assert_eq!(lost(&mut flight, 54, 48), [0]);
        assert_eq!(flight.in_flight(), 1, "what was sent after the largest is not lost");
    }

    #[test]
    fn late_packets_widen_the_threshold() {
        let mut flight = flight(30);
        acknowledge(&mut flight, 50, &[PacketRun::new(1, 10)]);
        assert_eq!(lost(&mut flight, 50, 50), [0]);
        let (arrived, delivered) = acknowledge(&mut flight, 51, &[PacketRun::new(0, 10)]);
        assert_eq!((arrived.late, arrived.packets, delivered), (1, 0, vec![0]));
        acknowledge(&mut flight, 52, &[PacketRun::new(0, 10), PacketRun::new(11, 20)]);
        assert_eq!(lost(&mut flight, 52, 50), [] as [u64; 0], "nine later ones");
        acknowledge(&mut flight, 53, &[PacketRun::new(0, 10), PacketRun::new(11, 21)]);
        assert_eq!(lost(&mut flight, 53, 50), [10]);
    }

    #[test]
    fn what_was_never_sent_is_an_error() {
        let mut flight = flight(3);
        let mut room = Vec::new();
        let ack = Ack::new([PacketRun::new(0, 4)].into_iter(), &mut room, 999).unwrap();
        assert_eq!(flight.on_ack(Nanos(0), &ack, |_| {}), Err(NeverSent));
    }

    #[test]
    fn the_log_is_as_long_as_what_is_in_flight() {
        let mut flight = Flight::new();
        for packet in 0..10_000 {
            flight.on_send(Nanos(packet * MS), Some(packet));
            if packet >= 50 {
                // Every hundredth packet is lost.
                let mut room = Vec::new();
                let arrived = packet - 50;
                let newest = PacketRun::new(arrived / 100 * 100 + 1, arrived + 1);
                if newest.is_empty() {
                    continue;
                }
                let ack = Ack::new([newest].into_iter(), &mut room, 999).unwrap();
                flight.on_ack(Nanos(packet * MS), &ack, |_| {}).unwrap();
                lost(&mut flight, packet, 50);
            }
        }
        assert!(flight.log.len() < 300, "{}", flight.log.len());
        assert!(flight.in_flight() < 60);
    }
}
