//! When a receiver acknowledges: each SYN, a light acknowledgement after each 64 packets,
//! at once after a packet that is not full. An acknowledgement is repeated until the
//! sender confirms it (ACK2), which also measures the RTT.

use super::Receiver;
use crate::SYN_NS;
use crate::packet::{Ack, FullAck};
use crate::rtt::RttEstimator;
use crate::sequence::Sequence;
use std::collections::VecDeque;
use units::Nanos;

/// A light acknowledgement after so many packets.
const LIGHT_EVERY: u32 = 64;
/// Acknowledgements that are remembered until they are confirmed.
const REMEMBERED: usize = 1_024;
/// A sender with a window of one packet could not send a packet pair.
const MIN_WINDOW: u64 = 2;

#[derive(Debug, Default)]
pub(super) struct Acknowledgements {
    /// All packets before this one are acknowledged, and that is confirmed.
    sent_to: u64,
    confirmed_to: u64,
    /// Number of the last full acknowledgement, and when it was sent.
    number: Sequence,
    sent_at: Nanos,
    /// When rates were last sent.
    rates_at: Option<Nanos>,
    /// The timer.
    due: Nanos,
    /// Packets since the last full acknowledgement, and light ones sent since.
    packets: u32,
    light: u32,
    /// Number, first packet not acknowledged, and time of those not confirmed.
    unconfirmed: VecDeque<(Sequence, u64, Nanos)>,
}

impl Acknowledgements {
    pub(super) const fn on_packet(&mut self) {
        self.packets = self.packets.saturating_add(1);
    }

    /// The next full acknowledgement is due now.
    pub(super) fn hasten(&mut self, now: Nanos) {
        self.due = self.due.min(now);
    }

    const fn is_light_due(&self) -> bool {
        self.packets >= LIGHT_EVERY * (self.light + 1)
    }
}

impl Receiver {
    /// When an acknowledgement is due; `None` if all that arrived is confirmed.
    pub(crate) const fn next_ack(&self) -> Option<Nanos> {
        if self.next > self.acknowledgements.confirmed_to {
            Some(self.acknowledgements.due)
        } else {
            None
        }
    }

    /// An acknowledgement, if one is due.
    pub(crate) fn poll_ack(&mut self, now: Nanos, rtt: &RttEstimator) -> Option<Ack> {
        let is_due = self.next_ack().is_some_and(|due| due <= now);
        if is_due {
            self.acknowledgements.due = now.plus_nanos(SYN_NS);
            self.acknowledgements.packets = 0;
            self.acknowledgements.light = 0;
            return self.full_ack(now, rtt);
        }
        let next = self.first.after(self.next);
        let acknowledgements = &mut self.acknowledgements;
        if !acknowledgements.is_light_due() {
            return None;
        }
        acknowledgements.light += 1;
        if self.next <= acknowledgements.sent_to {
            return None;
        }
        self.counters.light_acks += 1;
        Some(Ack { next, full: None })
    }

    fn full_ack(&mut self, now: Nanos, rtt: &RttEstimator) -> Option<Ack> {
        let since_ns = now.nanos_since(self.acknowledgements.sent_at);
        let is_new = self.next > self.acknowledgements.sent_to;
        if !is_new && since_ns < rtt.timeout_ns() {
            return None;
        }
        let (arrival, capacity) = (self.estimator.arrival_pps(), self.estimator.capacity_pps());
        self.grow(arrival, rtt);
        let window = self.window().max(MIN_WINDOW);
        let acknowledgements = &mut self.acknowledgements;
        acknowledgements.sent_to = self.next;
        acknowledgements.sent_at = now;
        acknowledgements.number = acknowledgements.number.after(1);
        let number = acknowledgements.number;
        if acknowledgements.unconfirmed.len() >= REMEMBERED {
            acknowledgements.unconfirmed.pop_front();
        }
        acknowledgements.unconfirmed.push_back((number, self.next, now));
        let has_rates = acknowledgements.rates_at.is_none_or(|at| now.nanos_since(at) >= SYN_NS);
        if has_rates {
            acknowledgements.rates_at = Some(now);
        }
        self.counters.acks += 1;
        let us = |ns: u64| u32::try_from(ns / 1_000).unwrap_or(u32::MAX);
        Some(Ack {
            next: self.first.after(self.next),
            full: Some(FullAck {
                number,
                rtt_us: us(rtt.rtt_ns()),
                rtt_variance_us: us(rtt.variance_ns()),
                window: u32::try_from(window).unwrap_or(u32::MAX),
                rates: has_rates.then_some((arrival, capacity)),
            }),
        })
    }

    /// The sender confirmed an acknowledgement. Gives a sample of the RTT, ns.
    pub(crate) fn on_ack2(&mut self, now: Nanos, number: Sequence) -> Option<u64> {
        let acknowledgements = &mut self.acknowledgements;
        let index = acknowledgements.unconfirmed.iter().position(|(sent, ..)| *sent == number)?;
        let (_, next, at) = *acknowledgements.unconfirmed.get(index)?;
        acknowledgements.unconfirmed.drain(..=index);
        acknowledgements.confirmed_to = acknowledgements.confirmed_to.max(next);
        Some(now.nanos_since(at))
    }
}
