//! Segments that were sent and not yet acknowledged, as Wireshark keeps them: every
//! transmission has its entry, retransmissions too, at most 10,000 of them.
//!
//! Segments in order are in a queue whose ends are known, so an ACK costs what it
//! removes. What was retransmitted or reordered is in a second list.

use crate::sequence::{after, before, up_to};
use std::collections::VecDeque;

/// Entries that Wireshark keeps for a direction (`TCP_MAX_UNACKED_SEGMENTS`).
pub(crate) const MOST: usize = 10_000;

/// One transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) time_ns: u64,
    pub(crate) seq: u32,
    pub(crate) next: u32,
    pub(crate) packet: u32,
    /// Its timestamp value; 0 without.
    pub(crate) ts_value: u32,
}

/// What an ACK acknowledged exactly: the end of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acked {
    pub(crate) packet: u32,
    pub(crate) time_ns: u64,
}

#[derive(Debug, Clone, Default)]
struct Disordered {
    segments: Vec<Segment>,
    /// Smallest and largest edges, valid where there are segments.
    first: u32,
    end: u32,
    /// Smallest `next`: an ACK before it removes none.
    least_next: u32,
}

impl Disordered {
    fn include(&mut self, segment: &Segment) {
        if self.segments.is_empty() {
            (self.first, self.end, self.least_next) = (segment.seq, segment.next, segment.next);
            return;
        }
        if before(segment.seq, self.first) {
            self.first = segment.seq;
        }
        if after(segment.next, self.end) {
            self.end = segment.next;
        }
        if before(segment.next, self.least_next) {
            self.least_next = segment.next;
        }
    }

    /// Finds the edges anew.
    fn measure(&mut self) {
        let Some((head, rest)) = self.segments.split_first() else { return };
        (self.first, self.end, self.least_next) = (head.seq, head.next, head.next);
        for segment in rest {
            if before(segment.seq, self.first) {
                self.first = segment.seq;
            }
            if after(segment.next, self.end) {
                self.end = segment.next;
            }
            if before(segment.next, self.least_next) {
                self.least_next = segment.next;
            }
        }
    }
}

/// The outstanding segments of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outstanding {
    in_order: VecDeque<Segment>,
    disordered: Option<Box<Disordered>>,
}

impl Outstanding {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.disordered.as_ref().map_or(0, |list| list.segments.len())
    }

    /// Adds a transmission.
    #[inline]
    pub(crate) fn push(&mut self, segment: Segment) {
        let follows = self
            .in_order
            .back()
            .is_none_or(|last| up_to(last.next, segment.seq) && up_to(segment.seq, segment.next));
        if follows {
            self.in_order.push_back(segment);
        } else {
            let list = self.disordered.get_or_insert_default();
            list.include(&segment);
            list.segments.push(segment);
        }
    }

    /// Removes what `ack` acknowledges; of the segments that end there, the oldest one is
    /// returned.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: u32) -> Option<Acked> {
        let mut acked: Option<Acked> = None;
        while let Some(segment) = self.in_order.front_mut() {
            if after(segment.next, ack) {
                if before(segment.seq, ack) {
                    segment.seq = ack;
                }
                break;
            }
            if segment.next == ack && acked.is_none() {
                acked = Some(Acked { packet: segment.packet, time_ns: segment.time_ns });
            }
            self.in_order.pop_front();
        }
        match &mut self.disordered {
            None => acked,
            Some(list) => {
                let late = list.acknowledge(ack);
                if list.segments.is_empty() {
                    self.disordered = None;
                }
                match (acked, late) {
                    (Some(a), Some(b)) => Some(if b.packet < a.packet { b } else { a }),
                    (a, b) => a.or(b),
                }
            }
        }
    }

    /// From the first to the last byte that is outstanding.
    #[inline]
    pub(crate) fn span(&self) -> Option<u32> {
        let ends = self.in_order.front().zip(self.in_order.back());
        let (mut first, mut end) = match (ends, &self.disordered) {
            (Some((front, back)), _) => (front.seq, back.next),
            (None, Some(list)) => (list.first, list.end),
            (None, None) => return None,
        };
        if let Some(list) = &self.disordered {
            first = if before(list.first, first) { list.first } else { first };
            end = if after(list.end, end) { list.end } else { end };
        }
        Some(end.wrapping_sub(first))
    }

    /// When the oldest of them was sent.
    #[inline]
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        let in_order = self.in_order.front().map(|segment| (segment.packet, segment.time_ns));
        let late = self.disordered.as_ref().and_then(|list| list.segments.first());
        let late = late.map(|segment| (segment.packet, segment.time_ns));
        in_order.into_iter().chain(late).min_by_key(|(packet, _)| *packet).map(|(_, time)| time)
    }

    /// The transmissions that were not in order.
    pub(crate) fn late(&self) -> &[Segment] {
        self.disordered.as_ref().map_or(&[][..], |list| &list.segments)
    }
}

impl Disordered {
    fn acknowledge(&mut self, ack: u32) -> Option<Acked> {
        if before(ack, self.least_next) && up_to(ack, self.first) {
            return None;
        }
        let mut acked: Option<Acked> = None;
        self.segments.retain_mut(|segment| {
            if after(segment.next, ack) {
                if before(segment.seq, ack) {
                    segment.seq = ack;
                }
                return true;
            }
            if segment.next == ack && acked.is_none() {
                acked = Some(Acked { packet: segment.packet, time_ns: segment.time_ns });
            }
            false
        });
        self.measure();
        acked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(packet: u32, seq: u32, next: u32) -> Segment {
        Segment { time_ns: u64::from(packet) * 10, seq, next, packet, ts_value: 0 }
    }

    #[test]
    fn an_entry_has_24_bytes() {
        assert_eq!(size_of::<Segment>(), 24);
    }

    #[test]
    fn an_ack_removes_what_ends_at_it_or_before() {
        let mut list = Outstanding::default();
        list.push(segment(1, 100, 200));
        list.push(segment(2, 200, 300));
        list.push(segment(3, 300, 400));
        assert_eq!(list.span(), Some(300));
        // In the middle of the second: no segment ends there, and it is trimmed.
        assert_eq!(list.acknowledge(250), None);
        assert_eq!((list.len(), list.span()), (2, Some(150)));
        assert_eq!(list.acknowledge(300), Some(Acked { packet: 2, time_ns: 20 }));
        assert_eq!(list.acknowledge(400), Some(Acked { packet: 3, time_ns: 30 }));
        assert_eq!((list.len(), list.span()), (0, None));
    }

    #[test]
    fn the_first_of_two_transmissions_counts() {
        let mut list = Outstanding::default();
        list.push(segment(1, 100, 200));
        list.push(segment(2, 200, 300));
        list.push(segment(3, 100, 200));
        assert_eq!((list.len(), list.span(), list.oldest_ns()), (3, Some(200), Some(10)));
        assert_eq!(list.acknowledge(200), Some(Acked { packet: 1, time_ns: 10 }));
        assert_eq!((list.len(), list.span(), list.oldest_ns()), (1, Some(100), Some(20)));
    }

    #[test]
    fn a_list_of_late_segments_knows_its_edges() {
        let mut list = Outstanding::default();
        list.push(segment(1, 500, 600));
        for (packet, seq) in [(2, 100), (3, 300), (4, 200)] {
            list.push(segment(packet, seq, seq + 100));
        }
        assert_eq!(list.span(), Some(500));
        assert_eq!(list.acknowledge(250), None);
        assert_eq!((list.len(), list.span()), (3, Some(350)));
        assert_eq!(list.acknowledge(300), Some(Acked { packet: 4, time_ns: 40 }));
        assert_eq!(list.acknowledge(600), Some(Acked { packet: 1, time_ns: 10 }));
        assert_eq!(list.span(), None);
    }
}
