//! The stream that is received: which packets have arrived, what of it the application can
//! read, and when to acknowledge.

use super::packet::{Ack, DataHeader, MAX_RANGES, expand};
use crate::packet_store::{PacketStore, Set};
use crate::receiver::ReceiveCounters;
use runs::{PacketRun, RunSet};
use std::collections::VecDeque;
use units::Nanos;

/// An acknowledgement after so many packets, or this long after the last one, ns.
const ACK_EVERY: u64 = 64;
const ACK_INTERVAL_NS: u64 = 1_000_000;
/// A number is reported by so many acknowledgements, of which some may be lost.
const REPORTS: usize = 16;
/// Receive buffer at the start, packets.
const FIRST_CAPACITY: u64 = 8_192;

/// The stream that is received.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// Numbers that have arrived. Below `floor` all count as such.
    numbers: RunSet,
    floor: u64,
    store: PacketStore,
    /// The first packet that the application has not read, and the bytes that it has read
    /// of it.
    read: u64,
    read_bytes: usize,
    /// The first packet that has not arrived, and one past the highest that has.
    next: u64,
    highest: u64,
    /// The last packet of the stream.
    last: Option<u64>,
    /// Packets that the buffer holds now, and at most.
    capacity: u64,
    max_capacity: u64,
    /// Packets since the last acknowledgement, and when the next is due.
    unacknowledged: u64,
    due: Option<Nanos>,
    /// When the last one was sent, and one past the largest number at each of the last.
    last_ack: Nanos,
    reported: VecDeque<u64>,
    /// The end of the buffer that was last advertised.
    advertised: u64,
    newest: Newest,
    counters: ReceiveCounters,
}

/// The packet with the largest number.
#[derive(Debug, Clone, Copy, Default)]
struct Newest {
    at: Nanos,
    timestamp_us: u32,
}

impl Incoming {
    /// Packets that a buffer holds at first.
    pub(crate) fn first_window(max_capacity: u64) -> u64 {
        FIRST_CAPACITY.min(max_capacity)
    }

    pub(crate) fn new(payload_bytes: usize, max_capacity: u64) -> Self {
        let capacity = Incoming::first_window(max_capacity);
        Incoming {
            numbers: RunSet::default(),
            floor: 0,
            store: PacketStore::new(payload_bytes),
            read: 0,
            read_bytes: 0,
            next: 0,
            highest: 0,
            last: None,
            capacity,
            max_capacity,
            unacknowledged: 0,
            due: None,
            last_ack: Nanos(0),
            reported: VecDeque::new(),
            advertised: capacity,
            newest: Newest::default(),
            counters: ReceiveCounters::default(),
        }
    }

    pub(crate) const fn counters(&self) -> ReceiveCounters {
        self.counters
    }

    /// The number nearest to those expected.
    pub(crate) fn expand(&self, lower: u32) -> u64 {
        expand(lower, self.numbers.last().map_or(0, |run| run.end))
    }

    /// Whether a number has arrived before, or may have.
    pub(crate) fn is_repeated(&self, number: u64) -> bool {
        number < self.floor || self.numbers.contains(number)
    }

    /// Whether no larger number has arrived.
    pub(crate) fn is_largest(&self, number: u64) -> bool {
        self.numbers.last().is_none_or(|run| number >= run.end)
    }

    /// An authentic packet arrived; `wants_ack` if it is to be acknowledged soon.
    pub(crate) fn on_packet(&mut self, now: Nanos, arrived: Nanos, number: u64, wants_ack: bool) {
        let expected = self.numbers.last().map_or(0, |run| run.end);
        if number >= expected {
            self.newest.at = arrived;
        } else if self.reported.back().is_some_and(|reported| number < *reported) {
            // A late one: it is reported like all others.
            self.reported.clear();
        }
        self.numbers.insert(PacketRun::new(number, number + 1));
        while self.numbers.iter().len() > MAX_RANGES
            && let Some(first) = self.numbers.first()
        {
            self.floor = first.end;
            self.numbers.remove_before(first.end);
        }
        if !wants_ack {
            return;
        }
        self.counters.packets += 1;
        self.unacknowledged += 1;
        let due = if self.unacknowledged >= ACK_EVERY {
            now
        } else {
            now.max(self.last_ack.plus_nanos(ACK_INTERVAL_NS))
        };
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// It has data. False if that is beyond the end of the stream or of the buffer.
    pub(crate) fn on_data(&mut self, now: Nanos, header: &DataHeader, payload: &[u8]) -> bool {
        self.newest.timestamp_us = header.timestamp_us;
        let packet = expand(header.sequence, self.next);
        let is_beyond = self.last.is_some_and(|last| packet > last)
            || (header.is_last && (packet + 1 < self.highest || !payload.is_empty()))
            || packet >= self.read + self.capacity
            || payload.len() > self.store.stride();
        if is_beyond {
            return false;
        }
        if header.is_blocked {
            self.grow();
        }
        if packet < self.next || self.store.contains(Set::Marked, packet) {
            self.counters.discarded += 1;
            return true;
        }
        if header.is_last {
            self.last = Some(packet);
            self.due = Some(now);
        }
        self.store.put(packet, 0, payload);
        self.store.insert(Set::Marked, packet);
        self.counters.missing += packet.saturating_sub(self.highest);
        self.highest = self.highest.max(packet + 1);
        let missing = self.store.first_not_in(Set::Marked, self.next..self.highest);
        self.next = missing.unwrap_or(self.highest);
        true
    }

    /// The buffer limits the sender: it doubles if the application keeps up.
    fn grow(&mut self) {
        if self.next - self.read < self.capacity / 4 {
            self.capacity = (2 * self.capacity).min(self.max_capacity);
        }
    }

    /// When an acknowledgement is due.
    pub(crate) const fn next_ack(&self) -> Option<Nanos> {
        self.due
    }

    /// Calls `send` with an acknowledgement, if one is due, whose ranges have `max_bytes` at
    /// most.
    pub(crate) fn poll_ack(
        &mut self,
        now: Nanos,
        max_bytes: usize,
        send: impl FnOnce(&Ack<'_>),
    ) -> bool {
        // The application has read: the sender may be waiting for it.
        let edge = self.read + self.capacity;
        let has_room = edge - self.advertised >= (self.capacity / 4).max(1);
        if !has_room && self.due.is_none_or(|due| now < due) {
            return false;
        }
        let mut ranges = Vec::new();
        let from = if self.reported.len() < REPORTS { 0 } else { self.reported[0] };
        let newer = self.numbers.iter().filter(|run| run.end > from);
        self.due = None;
        let Some(ack) = Ack::new(newer, &mut ranges, max_bytes) else { return false };
        if self.reported.len() == REPORTS {
            self.reported.pop_front();
        }
        self.reported.push_back(self.numbers.last().map_or(0, |run| run.end));
        self.last_ack = now;
        self.unacknowledged = 0;
        self.advertised = edge;
        self.counters.acks += 1;
        let us = |ns: u64| (ns / 1_000) as u32;
        send(&Ack {
            delay_us: us(now.nanos_since(self.newest.at)),
            timestamp_us: self.newest.timestamp_us,
            arrived_us: us(self.newest.at.0),
            edge: edge as u32,
            ..ack
        });
        true
    }

    /// Reads bytes that have arrived in order.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> usize {
        let bytes;
        (bytes, self.read, self.read_bytes) =
            self.store.read(self.read..self.next, self.read_bytes, into);
        self.skip_end();
        bytes
    }

    /// Discards all bytes that have arrived in order, and counts them.
    pub(crate) fn discard(&mut self) -> u64 {
        let bytes = self.store.bytes_of(self.read..self.next) - self.read_bytes as u64;
        self.read = self.next;
        self.read_bytes = 0;
        self.skip_end();
        bytes
    }

    /// The last packet has no bytes.
    fn skip_end(&mut self) {
        if self.last == Some(self.read) && self.read < self.next {
            self.read += 1;
        }
        self.store.release_before(self.read);
    }

    /// Whether the stream ended and all of it was read.
    pub(crate) fn is_finished(&self) -> bool {
        self.last.is_some_and(|last| self.read > last)
    }
}
