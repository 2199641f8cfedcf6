//! Messages: packets from a first to a last, delivered when all have arrived.

use super::Receiver;
use crate::handshake::SocketType;
use crate::packet::MessagePart;
use crate::packet_store::Set;
use crate::sequence::Sequence;
use std::ops::Range;

/// Packets after the first unread one in which messages are looked for that may be
/// delivered before it.
const LOOK_AHEAD: u64 = 1_024;

/// Packets of one message that can be dropped: those of the library's whole send buffer.
const MAX_DROPPED: u64 = 8_192;

/// Where the search for the end of the first unread message goes on: one past the packets
/// known to be in the middle of it.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    searched_to: u64,
    /// Packets arrived since messages further on were looked for.
    arrived: u64,
}

impl Receiver {
    fn part(&self, packet: u64) -> MessagePart {
        MessagePart::from_word(self.store.part(packet))
    }

    /// The next message that is whole, if it may be delivered, or `Err` with its length
    /// if `into` is too short for it.
    pub(crate) fn read_message(&mut self, into: &mut [u8]) -> Option<Result<usize, usize>> {
        if self.socket_type != SocketType::Message {
            return None;
        }
        let message = self.next_message()?;
        let bytes = message.clone().map(|packet| self.store.payload(packet).len()).sum();
        let Some(mut rest) = into.get_mut(..bytes) else { return Some(Err(bytes)) };
        for packet in message.clone() {
            let payload = self.store.payload(packet);
            let (now, later) = rest.split_at_mut(payload.len());
            now.copy_from_slice(payload);
            rest = later;
        }
        self.consume(message);
        Some(Ok(bytes))
    }

    /// The packets of the next message that may be delivered.
    fn next_message(&mut self) -> Option<Range<u64>> {
        let mut packet = self.messages.searched_to.max(self.read);
        while packet < self.next {
            packet += 1;
            if self.part(packet - 1).last {
                return Some(self.read..packet);
            }
        }
        self.messages.searched_to = packet;
        if self.messages.arrived == self.counters.packets {
            return None;
        }
        let found = self.message_further_on();
        if found.is_none() {
            self.messages.arrived = self.counters.packets;
        }
        found
    }

    /// A whole message behind missing packets that need not be delivered in order.
    fn message_further_on(&self) -> Option<Range<u64>> {
        let end = self.highest.min(self.read + LOOK_AHEAD);
        let mut first = None;
        for packet in self.next..end {
            let is_there = self.store.contains(Set::Marked, packet)
                && !self.store.contains(Set::Missing, packet);
            let part = self.part(packet);
            if !is_there || (part.in_order && part.first) {
                first = None;
                continue;
            }
            if part.first {
                first = Some(packet);
            }
            if let (Some(first), true) = (first, part.last) {
                return Some(first..packet + 1);
            }
        }
        None
    }

    /// Marks packets as read and releases what can be released.
    fn consume(&mut self, packets: Range<u64>) {
        for packet in packets {
            self.store.insert(Set::Missing, packet);
        }
        let unread = self.store.first_not_in(Set::Missing, self.read..self.next);
        self.read = unread.unwrap_or(self.next);
        self.store.release_before(self.read);
    }

    /// The sender dropped a message: its packets count as read.
    pub(crate) fn on_message_drop(&mut self, first: Sequence, last: Sequence) {
        let (Some(first), Some(last)) =
            (first.count(self.first, self.highest), last.count(self.first, self.highest))
        else {
            return;
        };
        let is_within =
            first <= last && last < self.read + self.capacity && last - first < MAX_DROPPED;
        // A stream is whole or broken.
        if self.socket_type != SocketType::Message || !is_within {
            return;
        }
        let mut packet = first.max(self.read);
        while let Some(missing) = self.store.first_not_in(Set::Marked, packet..last + 1) {
            self.store.put(missing, 0, &[]);
            self.store.insert(Set::Marked, missing);
            packet = missing + 1;
        }
        if last >= self.highest && first > self.highest {
            let range = (self.highest, first - 1);
            self.counters.missing += first - self.highest;
            self.unreported.push_back(range);
        }
        self.highest = self.highest.max(last + 1);
        self.advance();
        self.consume(first.max(self.read)..last + 1);
    }
}
