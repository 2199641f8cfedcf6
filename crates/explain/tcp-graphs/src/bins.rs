//! Bins of time: extremes, sums and counts of one direction.

use crate::marks::MARK_COUNT;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The finest bin, in ns.
pub(crate) const FINEST_NS: i64 = 1_000_000;

/// Least and greatest of some values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The least.
    pub low: i64,
    /// The greatest.
    pub high: i64,
}

impl Span {
    /// Of one value.
    #[must_use]
    pub const fn of(value: i64) -> Self {
        Span { low: value, high: value }
    }

    /// From one value to another, in any order.
    #[must_use]
    pub fn between(a: i64, b: i64) -> Self {
        Span { low: a.min(b), high: a.max(b) }
    }

    /// What covers both.
    #[must_use]
    pub fn cover(self, other: Span) -> Self {
        Span { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

fn cover(slot: &mut Option<Span>, other: Option<Span>) {
    *slot = match (*slot, other) {
        (Some(a), Some(b)) => Some(a.cover(b)),
        (a, b) => a.or(b),
    };
}

/// Segments with data (or SYN, FIN) that were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// Numbers of the first and the last packet.
    pub packets: Span,
    /// Segments.
    pub segments: u64,
    /// Payload, retransmissions included, in bytes.
    pub bytes: u64,
    /// Relative sequence numbers, from the first byte to the one after the last.
    pub seq: Span,
}

/// Acknowledgements that were received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acks {
    /// Numbers of the first and the last packet.
    pub packets: Span,
    /// Segments.
    pub segments: u64,
    /// Relative acknowledgement numbers.
    pub ack: Span,
    /// The window's right edge: acknowledgement number and window.
    pub edge: Span,
    /// The advertised window in bytes.
    pub window: Span,
    /// Bytes acknowledged or reported by SACK for the first time.
    pub delivered: u64,
}

/// What happened in a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bin {
    /// Data that was sent.
    pub data: Option<Data>,
    /// ACKs that were received.
    pub acks: Option<Acks>,
    /// Marked events, by [`crate::Mark`].
    pub marks: [u32; MARK_COUNT],
    /// Sequence numbers of marked data.
    pub marked: Option<Span>,
    /// Edges of SACK blocks.
    pub sacked: Option<Span>,
    /// RTT from this point to the receiver and back, in ns.
    pub rtt: Option<Span>,
    /// Bytes sent and not yet acknowledged.
    pub in_flight: Option<Span>,
}

impl Bin {
    pub(crate) fn is_marked(&self) -> bool {
        self.marks.iter().any(|count| *count > 0)
    }

    /// Adds what another bin, or a packet, has.
    pub(crate) fn merge(&mut self, other: &Bin) {
        match (&mut self.data, &other.data) {
            (Some(own), Some(data)) => {
                own.packets = own.packets.cover(data.packets);
                own.segments += data.segments;
                own.bytes = own.bytes.saturating_add(data.bytes);
                own.seq = own.seq.cover(data.seq);
            }
            (own @ None, data) => *own = *data,
            (Some(_), None) => {}
        }
        match (&mut self.acks, &other.acks) {
            (Some(own), Some(acks)) => {
                own.packets = own.packets.cover(acks.packets);
                own.segments += acks.segments;
                own.ack = own.ack.cover(acks.ack);
                own.edge = own.edge.cover(acks.edge);
                own.window = own.window.cover(acks.window);
                own.delivered = own.delivered.saturating_add(acks.delivered);
            }
            (own @ None, acks) => *own = *acks,
            (Some(_), None) => {}
        }
        for (own, count) in self.marks.iter_mut().zip(other.marks) {
            *own = own.saturating_add(count);
        }
        cover(&mut self.marked, other.marked);
        cover(&mut self.sacked, other.sacked);
        cover(&mut self.rtt, other.rtt);
        cover(&mut self.in_flight, other.in_flight);
    }
}

/// The bins of a direction, by time. At most a number of them: beyond it, their width
/// doubles.
#[derive(Debug, Clone)]
pub struct Bins {
    width_ns: i64,
    most: usize,
    bins: BTreeMap<i64, Bin>,
    /// The bin of the last packet, not yet in `bins`: most packets are in the same one as
    /// the packet before.
    current: Option<(i64, Bin)>,
}

impl Bins {
    /// At most `most` bins, but two: no width merges what is before the start with the rest.
    pub(crate) fn new(most: usize) -> Self {
        Bins { width_ns: FINEST_NS, most: most.max(2), bins: BTreeMap::new(), current: None }
    }

    /// The bin at a time relative to the start, in ns.
    #[inline]
    pub(crate) fn at(&mut self, time_ns: i64) -> &mut Bin {
        let index = time_ns.div_euclid(self.width_ns);
        if self.current.as_ref().is_some_and(|(at, _)| *at != index) {
            self.settle();
        }
        // Settling may have doubled the width.
        let index = time_ns.div_euclid(self.width_ns);
        &mut self.current.get_or_insert((index, Bin::default())).1
    }

    /// Moves the current bin to the others.
    pub(crate) fn settle(&mut self) {
        let Some((index, bin)) = self.current.take() else { return };
        self.bins.entry(index).or_default().merge(&bin);
        while self.bins.len() > self.most && self.coarsen() {}
    }

    /// Merges bins so that they are twice as wide. Whether they could be.
    pub(crate) fn coarsen(&mut self) -> bool {
        let Some(width_ns) = self.width_ns.checked_mul(2) else { return false };
        self.width_ns = width_ns;
        let fine = std::mem::take(&mut self.bins);
        for (index, bin) in fine {
            self.bins.entry(index.div_euclid(2)).or_default().merge(&bin);
        }
        true
    }

    /// Width of a bin in ns.
    #[must_use]
    pub fn width_ns(&self) -> i64 {
        self.width_ns
    }

    /// How many bins there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bins.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// The bins in order of time; bin `i` begins at `i` widths.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &Bin)> + Clone {
        let all = (Bound::Unbounded::<i64>, Bound::Unbounded);
        self.bins.range(all).map(|(index, bin)| (*index, bin))
    }
}
