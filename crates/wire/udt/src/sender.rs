//! The sending half of a connection: what the application has written, what is in flight,
//! what is lost, and when the next packet may leave.

mod feedback;
pub(crate) mod pacing;

use crate::packet::{DataHeader, HEADER_BYTES, MessagePart};
use crate::packet_store::{PacketStore, Set};
use crate::rtt::RttEstimator;
use crate::sequence::{MessageNumber, Sequence};
use control::{CongestionControl, Controller, Phase};
use pacing::Pacer;
use std::collections::VecDeque;
use units::Nanos;

pub(crate) use feedback::Rates;

/// Send buffer at the start, packets (UDT 4.11's default).
const FIRST_CAPACITY: u64 = 8_192;

/// The sending half.
#[derive(Debug)]
pub(crate) struct Sender {
    /// Sequence number of packet 0.
    first: Sequence,
    store: PacketStore,
    /// The first packet that is not acknowledged, the next to be sent for the first time,
    /// and one past the last that was written.
    una: u64,
    nxt: u64,
    end: u64,
    /// The first packet that is not covered by a full acknowledgement. The library's
    /// receiver delivers nothing beyond it once the connection is shut down.
    confirmed: u64,
    /// The last packet of a stream can still be extended.
    is_tail_open: bool,
    /// Packets that the buffer holds at most.
    max_capacity: u64,
    /// Packets lost and not yet retransmitted; none is before `first_lost`.
    lost: u64,
    first_lost: u64,
    /// Packets lost and not yet acknowledged.
    missing: u64,
    /// One past the highest packet that is known to have arrived: a NAK reports what is
    /// missing before a packet that has.
    arrived_to: u64,
    /// The receiver's free buffer, packets.
    window: u64,
    control: Controller,
    phase: Phase,
    /// A recovery ends when the packets before this one are acknowledged.
    recovery_end: u64,
    pacer: Pacer,
    message: MessageNumber,
    /// Messages that are dropped if not delivered in time, in order.
    deadlines: VecDeque<Deadline>,
    /// Messages dropped that the receiver is to be informed of.
    dropped: VecDeque<(MessageNumber, u64, u64)>,
    counters: SendCounters,
}

/// A message with a limited lifetime.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    message: MessageNumber,
    first: u64,
    last: u64,
    at: Nanos,
}

/// What a sender counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Packets sent, retransmissions included.
    pub packets: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Packets reported missing by NAKs.
    pub lost: u64,
    /// NAKs received; `None` in native mode, which has none.
    pub naks: Option<u64>,
    /// Full acknowledgements received.
    pub acks: u64,
    /// Light acknowledgements received.
    pub light_acks: u64,
    /// Expirations of the EXP timer with packets in flight.
    pub timeouts: u64,
}

/// What limits a sender now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendLimit {
    /// The application has written nothing more.
    Application,
    /// The send buffer: all of it waits for acknowledgements.
    SendBuffer,
    /// The congestion window.
    CongestionWindow,
    /// The receiver's free buffer.
    ReceiveWindow,
    /// The pacing period.
    Pacing,
}

impl Sender {
    pub(crate) fn new(
        first: Sequence,
        payload_bytes: usize,
        max_capacity: u64,
        window: u64,
        control: Controller,
    ) -> Self {
        Sender {
            first,
            store: PacketStore::new(payload_bytes),
            una: 0,
            nxt: 0,
            end: 0,
            confirmed: 0,
            is_tail_open: false,
            max_capacity,
            lost: 0,
            first_lost: 0,
            missing: 0,
            arrived_to: 0,
            window,
            control,
            phase: Phase::Open,
            recovery_end: 0,
            pacer: Pacer::new(),
            message: MessageNumber::FIRST,
            deadlines: VecDeque::new(),
            dropped: VecDeque::new(),
            counters: SendCounters { naks: Some(0), ..SendCounters::default() },
        }
    }

    pub(crate) const fn counters(&self) -> SendCounters {
        self.counters
    }

    pub(crate) const fn controller(&self) -> &Controller {
        &self.control
    }

    /// The receiver's free buffer, packets.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// Packets acknowledged since the connection began.
    pub(crate) const fn acknowledged(&self) -> u64 {
        self.una
    }

    /// Packets written and not yet sent.
    pub(crate) const fn unsent(&self) -> u64 {
        self.end - self.nxt
    }

    /// Whether all that was written is acknowledged.
    pub(crate) const fn is_empty(&self) -> bool {
        self.una == self.end
    }

    /// Whether the connection can be shut down without loss of what was written.
    pub(crate) const fn is_confirmed(&self) -> bool {
        self.confirmed == self.end
    }

    /// Whether packets are in flight.
    pub(crate) const fn has_unacknowledged(&self) -> bool {
        self.una < self.nxt
    }

    /// Packets in flight (RFC 6675's pipe): sent, neither known to have arrived nor lost.
    pub(crate) fn in_flight(&self) -> u64 {
        let arrived = self.arrived_to.saturating_sub(self.una).saturating_sub(self.missing);
        (self.nxt - self.una).saturating_sub(arrived + self.lost)
    }

    /// Packets that the buffer holds now: two congestion windows.
    fn capacity(&self) -> u64 {
        (2 * self.control.cwnd()).max(FIRST_CAPACITY).min(self.max_capacity)
    }

    /// Packets that can be written now.
    pub(crate) fn room(&self) -> u64 {
        self.capacity().saturating_sub(self.end - self.una)
    }

    /// Writes bytes of a stream, as many as there is room for.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> usize {
        let mut written = 0;
        if self.is_tail_open && self.nxt < self.end {
            written = self.store.extend(self.end - 1, bytes);
            bytes = &bytes[written..];
        }
        let stride = self.store.stride();
        for payload in bytes.chunks(stride).take(self.room() as usize) {
            let part =
                MessagePart { first: true, last: true, in_order: true, message: self.message };
            self.message = self.message.next();
            self.store.put(self.end, part.word(), payload);
            self.end += 1;
            written += payload.len();
            self.is_tail_open = payload.len() < stride;
        }
        written
    }

    /// Writes a message whole, or nothing of it; false if there is no room.
    pub(crate) fn write_message(
        &mut self,
        message: &[u8],
        in_order: bool,
        expires: Option<Nanos>,
    ) -> bool {
        let stride = self.store.stride();
        let packets = message.len().div_ceil(stride).max(1) as u64;
        if packets > self.room() {
            return false;
        }
        let number = self.message;
        self.message = number.next();
        let first = self.end;
        for index in 0..packets {
            let rest = &message[(index as usize * stride).min(message.len())..];
            let part = MessagePart {
                first: index == 0,
                last: index + 1 == packets,
                in_order,
                message: number,
            };
            self.store.put(self.end, part.word(), &rest[..rest.len().min(stride)]);
            self.end += 1;
        }
        if let Some(at) = expires {
            let last = self.end - 1;
            self.deadlines.push_back(Deadline { message: number, first, last, at });
        }
        true
    }

    /// The largest message that fits into an empty buffer, bytes.
    pub(crate) const fn max_message(&self) -> usize {
        let packets =
            if FIRST_CAPACITY < self.max_capacity { FIRST_CAPACITY } else { self.max_capacity };
        packets as usize * self.store.stride()
    }

    /// The window that bounds what is in flight, packets.
    fn congestion_window(&self) -> u64 {
        pacing::congestion_window(&self.control, self.phase)
    }

    /// What keeps the next packet from being sent; `None` if it may be.
    pub(crate) fn limit(&self, now: Nanos) -> Option<SendLimit> {
        if self.lost == 0 {
            if self.nxt == self.end {
                let is_full = self.room() == 0;
                return Some(if is_full { SendLimit::SendBuffer } else { SendLimit::Application });
            }
            if self.nxt - self.una >= self.window {
                return Some(SendLimit::ReceiveWindow);
            }
            // UDT's own controls count what is not acknowledged in order.
            let in_flight = match self.control {
                Controller::Udt(_) => self.nxt - self.una,
                _ => self.in_flight(),
            };
            if in_flight >= self.congestion_window() {
                return Some(SendLimit::CongestionWindow);
            }
        }
        (now < self.pacer.next()).then_some(SendLimit::Pacing)
    }

    /// When a packet may be sent that is only held back by pacing.
    pub(crate) fn next_transmit(&self) -> Option<Nanos> {
        match self.limit(Nanos(0)) {
            None => Some(Nanos(0)),
            Some(SendLimit::Pacing) => Some(self.pacer.next()),
            Some(_) => None,
        }
    }

    /// Appends the packets that may leave now to `out`, at most `max_packets` of the same
    /// length (the last may be shorter), and says whether they are a packet pair: pairs
    /// are not part of longer trains.
    pub(crate) fn transmit(
        &mut self,
        now: Nanos,
        rtt: &RttEstimator,
        header: impl Fn(Sequence, MessagePart) -> DataHeader,
        max_packets: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let period_ns = self.period_ns(rtt);
        let max_packets = pacing::burst_packets(period_ns).min(max_packets as u64);
        let (mut count, mut is_pair) = (0, false);
        while (count < max_packets || is_pair) && (count > 0 || self.limit(now).is_none()) {
            let Some((packet, is_new)) = self.next_packet(now) else { break };
            let sequence = self.first.after(packet);
            let begins_pair = is_new && sequence.begins_pair();
            let is_apart = begins_pair && (max_packets == 1 || self.pacer.takes_pair(now));
            // No pair is torn apart, either.
            if begins_pair && count > 0 && (is_apart || count + 1 == max_packets) {
                break;
            }
            if is_apart {
                is_pair = true;
                self.pacer.on_pair(now);
            }
            let payload = self.store.payload(packet);
            let is_full = payload.len() == self.store.stride();
            let part = MessagePart::from_word(self.store.part(packet));
            out.extend(header(sequence, part).bytes());
            out.extend(payload);
            self.on_transmit(packet, is_new);
            count += 1;
            // The second packet of a pair follows the first at once.
            if !is_apart {
                self.pacer.on_send(now, period_ns);
            }
            if !is_full || (is_pair && count == 2) {
                break;
            }
        }
        is_pair
    }

    /// The packet to send next, and whether it is sent for the first time: the lowest
    /// that is lost, or a new one where the windows allow it.
    fn next_packet(&mut self, now: Nanos) -> Option<(u64, bool)> {
        while self.lost > 0 {
            let lost = self.store.first_in(Set::Marked, self.first_lost..self.nxt);
            // The count and the set agree.
            let lost = lost?;
            self.first_lost = lost;
            if !self.drop_expired(now, lost) {
                return Some((lost, false));
            }
        }
        match self.limit(now) {
            None | Some(SendLimit::Pacing) if self.nxt < self.end => Some((self.nxt, true)),
            _ => None,
        }
    }

    fn on_transmit(&mut self, packet: u64, is_new: bool) {
        self.counters.packets += 1;
        if is_new {
            self.nxt = packet + 1;
        } else {
            self.counters.retransmitted += 1;
            self.store.remove(Set::Marked, packet);
            self.lost -= 1;
            self.first_lost = packet + 1;
        }
    }

    /// Drops the message of a lost packet if its time is over.
    fn drop_expired(&mut self, now: Nanos, packet: u64) -> bool {
        let holds = |deadline: &&Deadline| (deadline.first..=deadline.last).contains(&packet);
        let found = self.deadlines.iter().find(holds).filter(|deadline| deadline.at <= now);
        let Some(Deadline { message, first, last, .. }) = found.copied() else { return false };
        for packet in first.max(self.una)..=last {
            if self.store.remove(Set::Marked, packet) {
                self.lost -= 1;
            }
        }
        // What was not sent yet is not sent at all.
        self.nxt = self.nxt.max(last + 1);
        self.dropped.push_back((message, first, last));
        true
    }

    /// A message that was dropped, with its first and last packet.
    pub(crate) fn poll_dropped(&mut self) -> Option<(MessageNumber, Sequence, Sequence)> {
        let (message, first, last) = self.dropped.pop_front()?;
        Some((message, self.first.after(first), self.first.after(last)))
    }

    /// Bytes of a full packet, without the headers of IP and UDP.
    pub(crate) const fn packet_bytes(&self) -> usize {
        HEADER_BYTES + self.store.stride()
    }

    /// Time between two packets, ns.
    pub(crate) fn period_ns(&self, rtt: &RttEstimator) -> f64 {
        let (window, payload_bytes) = (self.congestion_window(), self.store.stride());
        pacing::period_ns(&self.control, window, rtt.rtt_ns(), payload_bytes)
    }
}
