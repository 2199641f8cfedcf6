//! Segments that were sent and not yet acknowledged, as Wireshark keeps them: every
//! transmission has its entry, retransmissions too, at most 10,000 of them.
//!
//! Segments in order are in a queue whose ends are known, so an ACK costs what it
//! removes. What was retransmitted or reordered is in further queues, each of them in order:
//! a recovery retransmits in order, too, and so does a replay of the whole stream. What fits
//! into none of these is in a list that each ACK goes through.

use crate::sequence::{after, before, up_to};
use std::collections::VecDeque;
use std::num::NonZeroU32;

/// Entries that Wireshark keeps for a direction (`TCP_MAX_UNACKED_SEGMENTS`).
pub(crate) const MAX: usize = 10_000;

/// One transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) time_ns: u64,
    pub(crate) seq: u32,
    pub(crate) next: u32,
    pub(crate) packet: u32,
    /// Its timestamp value.
    pub(crate) ts_value: Option<NonZeroU32>,
}

/// What an ACK acknowledged exactly: the end of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acked {
    pub(crate) packet: u32,
    pub(crate) time_ns: u64,
}

/// Queues beside the first one: recoveries in a recovery.
const MAX_RUNS: usize = 8;

/// Segments in order, without an overlap.
type Run = VecDeque<Segment>;

/// What did not follow the segment before it.
#[derive(Debug, Clone, Default)]
struct Disordered {
    runs: Vec<Run>,
    /// In the order of capture.
    rest: Vec<Segment>,
    /// Of the rest: smallest and largest edges, valid where there are segments.
    first: u32,
    end: u32,
    /// Smallest `next`: an ACK before it removes none.
    least_next: u32,
}

/// The outstanding segments of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outstanding {
    in_order: Run,
    disordered: Option<Box<Disordered>>,
}

impl Outstanding {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.disordered.as_ref().map_or(0, |list| list.len())
    }

    /// Bytes that it takes on the heap.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        let late = self.disordered.as_ref().map_or(0, |list| list.heap_bytes());
        segments_bytes(self.in_order.capacity()) + late
    }

    /// Adds a transmission.
    #[inline]
    pub(crate) fn push(&mut self, segment: Segment) {
        if self.in_order.back().is_none_or(|last| follows(last, &segment)) {
            self.in_order.push_back(segment);
        } else {
            self.disordered.get_or_insert_default().push(segment);
        }
    }

    /// Removes what `ack` acknowledges; of the segments that end there, the oldest one is
    /// returned.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: u32) -> Option<Acked> {
        let acked = acknowledge_run(&mut self.in_order, ack);
        let Some(list) = &mut self.disordered else { return acked };
        let late = list.acknowledge(ack);
        if list.len() == 0 {
            self.disordered = None;
        }
        older(acked, late)
    }

    /// From the first to the last byte that is outstanding.
    #[inline]
    pub(crate) fn span(&self) -> Option<u32> {
        let mut span = edges(&self.in_order);
        if let Some(list) = &self.disordered {
            let rest = (!list.rest.is_empty()).then_some((list.first, list.end));
            for found in list.runs.iter().map(edges).chain([rest]).flatten() {
                let (first, end) = span.unwrap_or(found);
                span = Some((
                    if before(found.0, first) { found.0 } else { first },
                    if after(found.1, end) { found.1 } else { end },
                ));
            }
        }
        span.map(|(first, end)| end.wrapping_sub(first))
    }

    /// The latest timestamp value of the transmissions in order that `seq` is in; `None`
    /// without one.
    pub(crate) fn ts_value_at(&self, seq: u32) -> Option<u32> {
        let runs = self.disordered.iter().flat_map(|list| &list.runs);
        let values = std::iter::once(&self.in_order).chain(runs).filter_map(|run| {
            let place = run.partition_point(|segment| up_to(segment.next, seq));
            run.get(place).filter(|segment| up_to(segment.seq, seq))?.ts_value
        });
        values.map(NonZeroU32::get).reduce(|a, b| if after(a, b) { a } else { b })
    }

    /// When the oldest of them was sent.
    #[inline]
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        let late = self.disordered.iter().flat_map(|list| {
            list.runs.iter().filter_map(|run| run.front()).chain(list.rest.first())
        });
        let oldest = self.in_order.front().into_iter().chain(late);
        oldest.min_by_key(|segment| segment.packet).map(|segment| segment.time_ns)
    }

    /// The transmissions that were not in order and end at `ack` or before.
    pub(crate) fn late(&self, ack: u32) -> impl Iterator<Item = &Segment> {
        let ends = move |segment: &&Segment| up_to(segment.next, ack);
        self.disordered.iter().flat_map(move |list| {
            let runs = list.runs.iter().flat_map(move |run| run.iter().take_while(ends));
            runs.chain(list.rest.iter().filter(ends))
        })
    }
}

/// What the allocator adds to an allocation, in bytes.
pub(crate) const ALLOCATION: usize = 16;

/// Bytes of an allocation for so many segments; none without.
#[inline]
fn segments_bytes(capacity: usize) -> usize {
    if capacity == 0 { 0 } else { capacity * size_of::<Segment>() + ALLOCATION }
}

/// Whether a segment continues a run whose last one is that.
#[inline]
fn follows(last: &Segment, segment: &Segment) -> bool {
    up_to(last.next, segment.seq) && up_to(segment.seq, segment.next)
}

/// First and last byte of a run.
#[inline]
fn edges(run: &Run) -> Option<(u32, u32)> {
    run.front().zip(run.back()).map(|(front, back)| (front.seq, back.next))
}

/// The one that was captured earlier.
#[inline]
fn older(a: Option<Acked>, b: Option<Acked>) -> Option<Acked> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.packet < a.packet { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// Removes what `ack` acknowledges from a run.
#[inline]
fn acknowledge_run(run: &mut Run, ack: u32) -> Option<Acked> {
    let mut acked: Option<Acked> = None;
    while let Some(segment) = run.front_mut() {
        if after(segment.next, ack) {
            if before(segment.seq, ack) {
                segment.seq = ack;
            }
            break;
        }
        if segment.next == ack && acked.is_none() {
            acked = Some(Acked { packet: segment.packet, time_ns: segment.time_ns });
        }
        run.pop_front();
    }
    acked
}

impl Disordered {
    fn heap_bytes(&self) -> usize {
        let runs: usize = self.runs.iter().map(|run| segments_bytes(run.capacity())).sum();
        let list = self.runs.capacity() * size_of::<Run>() + ALLOCATION;
        let own = size_of::<Self>() + ALLOCATION;
        own + list + runs + segments_bytes(self.rest.capacity())
    }

    fn len(&self) -> usize {
        self.runs.iter().map(VecDeque::len).sum::<usize>() + self.rest.len()
    }

    fn push(&mut self, segment: Segment) {
        let fits = |run: &&mut Run| run.back().is_some_and(|last| follows(last, &segment));
        if let Some(run) = self.runs.iter_mut().find(fits) {
            run.push_back(segment);
        } else if self.runs.len() < MAX_RUNS {
            self.runs.push(VecDeque::from([segment]));
        } else {
            self.include(&segment);
            self.rest.push(segment);
        }
    }

    /// Widens the edges of the rest.
    fn include(&mut self, segment: &Segment) {
        if self.rest.is_empty() {
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

    fn acknowledge(&mut self, ack: u32) -> Option<Acked> {
        let mut acked: Option<Acked> = None;
        for run in &mut self.runs {
            acked = older(acked, acknowledge_run(run, ack));
        }
        self.runs.retain(|run| !run.is_empty());
        if self.rest.is_empty() || (before(ack, self.least_next) && up_to(ack, self.first)) {
            return acked;
        }
        let mut late: Option<Acked> = None;
        self.rest.retain_mut(|segment| {
            if after(segment.next, ack) {
                if before(segment.seq, ack) {
                    segment.seq = ack;
                }
                return true;
            }
            if segment.next == ack && late.is_none() {
                late = Some(Acked { packet: segment.packet, time_ns: segment.time_ns });
            }
            false
        });
        self.measure();
        older(acked, late)
    }

    /// Finds the edges of the rest anew.
    fn measure(&mut self) {
        let Some(head) = self.rest.first() else { return };
        (self.first, self.end, self.least_next) = (head.seq, head.next, head.next);
        for at in 0..self.rest.len() {
            if let Some(segment) = self.rest.get(at).copied() {
                self.include(&segment);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(packet: u32, seq: u32, next: u32) -> Segment {
        Segment { time_ns: u64::from(packet) * 10, seq, next, packet, ts_value: None }
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
    fn the_latest_copy_of_a_segment_has_the_timestamp() {
        let mut list = Outstanding::default();
        for (packet, seq, ts_value) in [(1, 100, 7), (2, 200, 8), (3, 400, 9), (4, 100, 12)] {
            let ts_value = NonZeroU32::new(ts_value);
            list.push(Segment { ts_value, ..segment(packet, seq, seq + 100) });
        }
        let values = [50, 100, 199, 200, 300, 400, 500].map(|seq| list.ts_value_at(seq));
        assert_eq!(values, [None, Some(12), Some(12), Some(8), None, Some(9), None]);
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

    /// Transmissions in any order against a plain list: what an ACK acknowledges, the span
    /// and the oldest one agree.
    #[test]
    fn runs_are_the_same_as_one_list() {
        let mut state = 7_u32;
        let mut random = |most: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % most
        };
        let (mut list, mut plain) = (Outstanding::default(), Vec::<Segment>::new());
        for packet in 1..20_000 {
            if random(3) > 0 {
                let seq = 1000 * (packet / 40) + 50 * random(60);
                let new = segment(packet, seq, seq + 50 * (1 + random(3)));
                list.push(new);
                plain.push(new);
            } else {
                let ack = 1000 * (packet / 40).saturating_sub(2) + 50 * random(40);
                let ends = plain.iter().find(|it| it.next == ack).map(|it| it.packet);
                plain.retain(|it| it.next > ack);
                plain.iter_mut().for_each(|it| it.seq = it.seq.max(ack));
                assert_eq!(list.acknowledge(ack).map(|acked| acked.packet), ends);
            }
            let first = plain.iter().map(|it| it.seq).min();
            let span = first.and_then(|first| Some(plain.iter().map(|it| it.next).max()? - first));
            assert_eq!((list.len(), list.span()), (plain.len(), span), "packet {packet}");
            assert_eq!(list.oldest_ns(), plain.first().map(|it| it.time_ns));
        }
    }
}
