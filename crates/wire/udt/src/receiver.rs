//! The receiving half of a connection: what has arrived, what is missing, when to
//! acknowledge, and what the application can read.

mod acknowledgements;
mod messages;

use crate::SYN_NS;
use crate::estimate::ArrivalEstimator;
use crate::handshake::SocketType;
use crate::loss_list;
use crate::packet::DataHeader;
use crate::packet_store::{PacketStore, Set};
use crate::rtt::RttEstimator;
use crate::sequence::Sequence;
use acknowledgements::Acknowledgements;
use std::collections::VecDeque;
use units::Nanos;

/// Ranges of missing packets that wait to be reported. One that does not fit is repaired
/// by the sender's EXP timer.
const MAX_RANGES: usize = 4_096;
/// Receive buffer at the start, packets (UDT 4.11's default).
pub(crate) const FIRST_CAPACITY: u64 = 8_192;

/// The receiving half.
#[derive(Debug)]
pub(crate) struct Receiver {
    socket_type: SocketType,
    /// Sequence number of packet 0.
    first: Sequence,
    store: PacketStore,
    /// The first packet that the application has not read, and the bytes that it has read
    /// of it.
    read: u64,
    read_bytes: usize,
    /// The first packet that has not arrived.
    next: u64,
    /// One past the highest packet that has arrived.
    highest: u64,
    /// Packets that the buffer holds now, and at most.
    capacity: u64,
    max_capacity: u64,
    /// Missing packets that are not yet reported, first and last.
    unreported: VecDeque<(u64, u64)>,
    acknowledgements: Acknowledgements,
    estimator: ArrivalEstimator,
    messages: messages::Cursor,
    counters: ReceiveCounters,
}

/// What a receiver counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Packets that arrived, duplicates included.
    pub packets: u64,
    /// Packets that had arrived before, or for which there was no room.
    pub discarded: u64,
    /// Packets found missing.
    pub missing: u64,
    /// Full acknowledgements sent.
    pub acks: u64,
    /// Light acknowledgements sent.
    pub light_acks: u64,
    /// NAKs sent.
    pub naks: u64,
}

impl Receiver {
    pub(crate) fn new(
        socket_type: SocketType,
        first: Sequence,
        payload_bytes: usize,
        max_capacity: u64,
    ) -> Self {
        Receiver {
            socket_type,
            first,
            store: PacketStore::new(payload_bytes),
            read: 0,
            read_bytes: 0,
            next: 0,
            highest: 0,
            capacity: FIRST_CAPACITY.min(max_capacity),
            max_capacity,
            unreported: VecDeque::new(),
            acknowledgements: Acknowledgements::default(),
            estimator: ArrivalEstimator::new(),
            messages: messages::Cursor::default(),
            counters: ReceiveCounters::default(),
        }
    }

    pub(crate) const fn counters(&self) -> ReceiveCounters {
        self.counters
    }

    /// Packets arrived together, in one datagram or in one train.
    pub(crate) fn on_arrival(&mut self, now: Nanos, packets: u64) {
        self.estimator.on_arrival(now, packets);
    }

    /// A packet of data arrived.
    pub(crate) fn on_data(
        &mut self,
        now: Nanos,
        arrived: Nanos,
        header: &DataHeader,
        payload: &[u8],
    ) {
        self.counters.packets += 1;
        if header.sequence.begins_pair() {
            self.estimator.begin_pair(arrived);
        } else if header.sequence.ends_pair() {
            self.estimator.end_pair(arrived);
        }
        self.acknowledgements.on_packet();
        let packet = header.sequence.count(self.first, self.highest);
        let fits = |packet: &u64| (self.next..self.read + self.capacity).contains(packet);
        let Some(packet) = packet.filter(fits).filter(|packet| {
            payload.len() <= self.store.stride() && !self.store.contains(Set::Marked, *packet)
        }) else {
            self.counters.discarded += 1;
            return;
        };
        self.store.put(packet, header.part.word(), payload);
        self.store.insert(Set::Marked, packet);
        if packet >= self.highest {
            self.estimator.on_packet(arrived, packet, header.timestamp_us);
        }
        if packet > self.highest {
            self.counters.missing += packet - self.highest;
            if self.unreported.len() < MAX_RANGES {
                self.unreported.push_back((self.highest, packet - 1));
            }
        }
        self.highest = self.highest.max(packet + 1);
        self.advance();
        if payload.len() < self.store.stride() {
            self.acknowledgements.hasten(now);
        }
    }

    /// Moves on to the first packet that has not arrived.
    fn advance(&mut self) {
        let missing = self.store.first_not_in(Set::Marked, self.next..self.highest);
        self.next = missing.unwrap_or(self.highest);
    }

    /// The body of a NAK for packets found missing, at most `max_bytes` long.
    pub(crate) fn poll_nak(&mut self, max_bytes: usize) -> Option<Vec<u8>> {
        self.unreported.front()?;
        let mut body = Vec::new();
        while body.len() + 8 <= max_bytes {
            let Some((first, last)) = self.unreported.pop_front() else { break };
            let (first, last) = (self.first.after(first), self.first.after(last));
            loss_list::push_range(&mut body, first, last);
        }
        self.counters.naks += 1;
        Some(body)
    }

    /// Reads bytes of a stream that have arrived in order.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> usize {
        if self.socket_type != SocketType::Stream {
            return 0;
        }
        let bytes;
        (bytes, self.read, self.read_bytes) =
            self.store.read(self.read..self.next, self.read_bytes, into);
        self.store.release_before(self.read);
        bytes
    }

    /// Discards all bytes of a stream that have arrived in order, and counts them.
    pub(crate) fn discard(&mut self) -> u64 {
        let bytes = self.store.bytes_of(self.read..self.next) - self.read_bytes as u64;
        self.read = self.next;
        self.read_bytes = 0;
        self.store.release_before(self.read);
        bytes
    }

    /// Whether packets are missing before some that have arrived.
    pub(crate) const fn has_gaps(&self) -> bool {
        self.next < self.highest
    }

    /// Whether the application has read all that has arrived in order.
    pub(crate) const fn is_drained(&self) -> bool {
        self.read == self.next
    }

    /// Free receive buffer, packets.
    const fn window(&self) -> u64 {
        (self.read + self.capacity).saturating_sub(self.next)
    }

    /// The buffer holds two round trips at the arrival rate, if the application keeps up.
    fn grow(&mut self, arrival_pps: u32, rtt: &RttEstimator) {
        if self.window() < self.capacity / 2 {
            return;
        }
        let time_s = (rtt.rtt_ns() + SYN_NS) as f64 / 1e9;
        let wanted = (2.0 * f64::from(arrival_pps) * time_s) as u64;
        self.capacity = self.capacity.max(wanted.min(self.max_capacity));
    }
}
