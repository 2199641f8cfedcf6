//! Bytes in flight, in order of time also where the order of the file differs.
//!
//! A capture of several interfaces, or of both directions by different threads, can have an ACK
//! before the data that it acknowledges. Taken in the order of the file, the bytes in
//! flight would have extremes that no host saw.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Packets that wait for earlier ones where times run backwards.
const WAITING: usize = 4096;

/// What a packet says of the data of a side: derived order is that of time, then of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Progress {
    /// Relative time in ns.
    pub(crate) time_ns: i64,
    /// The packet's number in the connection.
    pub(crate) ordinal: u64,
    /// The side whose data it is.
    pub(crate) side: usize,
    /// Whether it was sent, or else acknowledged.
    pub(crate) is_sent: bool,
    /// Up to where.
    pub(crate) to: i64,
}

/// Bytes in flight of both sides' data.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    most_waiting: usize,
    waiting: BinaryHeap<Reverse<Progress>>,
    sent_to: [Option<i64>; 2],
    acked: [Option<i64>; 2],
}

impl InFlight {
    /// `is_sorted` where no time runs backwards.
    pub(crate) fn new(is_sorted: bool) -> Self {
        InFlight {
            most_waiting: if is_sorted { 0 } else { WAITING },
            waiting: BinaryHeap::new(),
            sent_to: [None; 2],
            acked: [None; 2],
        }
    }

    /// Adds what a packet says; the packet that is next in order of time, with the bytes in
    /// flight after it, is returned as soon as it is known.
    #[inline]
    pub(crate) fn add(&mut self, progress: Progress) -> Option<(Progress, i64)> {
        if self.most_waiting == 0 {
            return self.apply(progress);
        }
        self.waiting.push(Reverse(progress));
        if self.waiting.len() > self.most_waiting { self.rest().flatten() } else { None }
    }

    /// Likewise for the first of those that wait.
    pub(crate) fn rest(&mut self) -> Option<Option<(Progress, i64)>> {
        let Reverse(progress) = self.waiting.pop()?;
        Some(self.apply(progress))
    }

    /// Nothing is in flight before both numbers of a side are known.
    fn apply(&mut self, progress: Progress) -> Option<(Progress, i64)> {
        let side = progress.side;
        let known = if progress.is_sent { &mut self.sent_to } else { &mut self.acked };
        known[side] = Some(known[side].map_or(progress.to, |to| to.max(progress.to)));
        let (sent, acked) = self.sent_to[side].zip(self.acked[side])?;
        Some((progress, sent.saturating_sub(acked).max(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_before_its_data_in_the_file_counts_after_it() {
        let at =
            |time_ns, ordinal, is_sent, to| Progress { time_ns, ordinal, side: 0, is_sent, to };
        let packets = [
            at(0, 0, true, 100),
            at(1, 1, false, 100),
            at(20, 2, false, 200),
            at(10, 3, true, 200),
        ];
        let bytes = |is_sorted| {
            let mut flight = InFlight::new(is_sorted);
            let mut all: Vec<i64> = Vec::new();
            all.extend(packets.iter().filter_map(|packet| Some(flight.add(*packet)?.1)));
            while let Some(next) = flight.rest() {
                all.extend(next.map(|(_, bytes)| bytes));
            }
            all
        };
        assert_eq!(bytes(false), [0, 100, 0]);
        assert_eq!(bytes(true), [0, 0, 0]);
    }
}
