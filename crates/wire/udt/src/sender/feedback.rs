//! What a sender learns: acknowledgements, NAKs, timeouts.

use super::Sender;
use crate::loss_list::LossList;
use crate::packet::Ack;
use crate::packet_store::Set;
use crate::rtt::RttEstimator;
use control::{Congestion, CongestionControl, Phase, ReceiverReport};
use units::{Nanos, Rtt};

/// An acknowledgement of packets that were never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeverSent;

/// Moving averages of what receivers report, packets a second; zero: unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    arrival: f64,
    capacity: f64,
}

impl Rates {
    /// Adds a report; zeros are ignored. The first one counts in full.
    pub(crate) fn add(&mut self, (arrival, capacity): (u32, u32)) {
        let average = |old: f64, new: u32| match (old > 0.0, new) {
            (_, 0) => old,
            (false, new) => f64::from(new),
            (true, new) => (7.0 * old + f64::from(new)) / 8.0,
        };
        self.arrival = average(self.arrival, arrival);
        self.capacity = average(self.capacity, capacity);
    }

    pub(crate) fn report(self) -> ReceiverReport {
        let known = |rate: f64| (rate > 0.0).then_some(rate);
        ReceiverReport { arrival_pps: known(self.arrival), capacity_pps: known(self.capacity) }
    }
}

impl Sender {
    /// An acknowledgement came, full or light.
    ///
    /// # Errors
    /// It acknowledges what was never sent: the connection is broken.
    pub(crate) fn on_ack(
        &mut self,
        now: Nanos,
        ack: &Ack,
        rtt: &RttEstimator,
        rates: Rates,
    ) -> Result<(), NeverSent> {
        let Some(next) = ack.next.count(self.first, self.una) else { return Ok(()) };
        if next > self.nxt {
            return Err(NeverSent);
        }
        let newly_acked = next.saturating_sub(self.una);
        let prior_in_flight = self.in_flight();
        let was_limited = self.nxt - self.una >= self.congestion_window() / 2;
        let delivered_before = self.delivered();
        if newly_acked > 0 {
            self.acknowledge(next);
        }
        if let Some(full) = ack.full {
            self.counters.acks += 1;
            self.confirmed = self.confirmed.max(next);
            if next >= self.una {
                self.window = u64::from(full.window);
            }
        } else {
            self.counters.light_acks += 1;
            self.window = self.window.saturating_sub(newly_acked);
        }
        if self.phase != Phase::Open && self.una >= self.recovery_end {
            self.phase = Phase::Open;
            self.control.on_recovery_end(now);
        }
        let delivered = self.delivered();
        self.control.on_ack(&control::Ack {
            now,
            newly_acked,
            newly_delivered: delivered - delivered_before,
            newly_lost: 0,
            delivered,
            newly_marked: 0,
            acked_to: self.una,
            sent_to: self.nxt,
            in_flight: self.in_flight(),
            prior_in_flight,
            cwnd_limited: was_limited,
            rtt: rtt.sampled_ns().map(Rtt::from_nanos),
            srtt: rtt.sampled_ns().map(Rtt::from_nanos),
            rate: None,
            receiver: Some(rates.report()),
            phase: self.phase,
        });
        Ok(())
    }

    /// Packets known to have arrived.
    const fn delivered(&self) -> u64 {
        let behind = self.arrived_to.saturating_sub(self.una);
        self.una + behind.saturating_sub(self.missing)
    }

    /// All packets before this one have arrived.
    fn acknowledge(&mut self, next: u64) {
        if self.missing > 0 {
            self.missing -= self.store.count(Set::Missing, self.una..next);
            self.lost -= self.store.count(Set::Marked, self.una..next);
        }
        self.una = next;
        self.first_lost = self.first_lost.max(next);
        self.arrived_to = self.arrived_to.max(next);
        self.store.release_before(next);
        while self.deadlines.front().is_some_and(|deadline| deadline.last < next) {
            self.deadlines.pop_front();
        }
    }

    /// Packets were reported missing.
    pub(crate) fn on_nak(&mut self, now: Nanos, list: LossList<'_>) {
        self.counters.naks = self.counters.naks.map(|naks| naks + 1);
        let (mut lowest, mut reported, mut from) = (u64::MAX, 0, self.una);
        for (first, last) in list.ranges() {
            let count = |sequence: crate::Sequence| sequence.count(self.first, self.una);
            let (Some(first), Some(last)) = (count(first), count(last)) else { continue };
            // Reports of what is acknowledged or was never sent are of no use. Ranges come
            // in ascending order, so that a list costs no more than what is in flight.
            if first > last || last >= self.nxt || last < from {
                continue;
            }
            for packet in first.max(from)..=last {
                reported += u64::from(self.lose(packet));
            }
            from = last + 1;
            lowest = lowest.min(first);
            // It was sent by the arrival of the packet after it.
            self.arrived_to = self.arrived_to.max((last + 2).min(self.nxt));
        }
        if lowest == u64::MAX {
            return;
        }
        self.counters.lost += reported;
        let is_new = self.phase == Phase::Open;
        let congestion = self.congestion(now, is_new, lowest);
        self.control.on_congestion(&congestion);
        if is_new {
            self.phase = Phase::Recovery;
            self.recovery_end = self.nxt;
        }
    }

    /// Takes a packet in flight as lost, and says whether it was not.
    fn lose(&mut self, packet: u64) -> bool {
        if !self.store.insert(Set::Marked, packet) {
            return false;
        }
        self.lost += 1;
        self.first_lost = self.first_lost.min(packet);
        if self.store.insert(Set::Missing, packet) {
            self.missing += 1;
        }
        true
    }

    fn congestion(&self, now: Nanos, is_new: bool, first_lost: u64) -> Congestion {
        let (in_flight, lost) = (self.in_flight(), self.lost);
        Congestion { now, in_flight, is_new, first_lost, lost, sent_to: self.nxt }
    }

    /// Nothing came from the receiver for long: all that is in flight is taken as lost,
    /// unless something still waits to be retransmitted.
    pub(crate) fn on_timeout(&mut self, now: Nanos) {
        self.counters.timeouts += 1;
        if self.has_unacknowledged() && self.lost == 0 {
            for packet in self.una..self.nxt {
                self.lose(packet);
            }
            self.arrived_to = self.una;
        }
        let congestion = self.congestion(now, self.phase == Phase::Open, self.una);
        self.control.on_retransmission_timeout(&congestion);
        self.phase = Phase::Loss;
        self.recovery_end = self.nxt;
    }
}
