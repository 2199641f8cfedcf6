//! Packets by number, as runs of consecutive ones.
//!
//! Pure: no I/O, no clock.

use std::collections::VecDeque;

/// Consecutive packets, from `start` to before `end`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketRun {
    /// The first.
    pub start: u64,
    /// The one after the last.
    pub end: u64,
}

impl PacketRun {
    /// From `start` to before `end`.
    #[must_use]
    #[inline]
    pub const fn new(start: u64, end: u64) -> Self {
        PacketRun { start, end }
    }

    /// How many packets.
    #[must_use]
    #[inline]
    pub const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// What is in both.
    #[must_use]
    #[inline]
    pub fn overlap(self, other: PacketRun) -> PacketRun {
        PacketRun::new(self.start.max(other.start), self.end.min(other.end))
    }
}

/// A set of packets: disjoint runs in ascending order, none next to another. As fast as
/// the runs are few at the ends, where a transfer adds and removes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSet {
    runs: VecDeque<PacketRun>,
    packets: u64,
}

impl RunSet {
    /// Packets in it.
    #[must_use]
    #[inline]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The first run.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<PacketRun> {
        self.runs.front().copied()
    }

    /// The last run.
    #[must_use]
    #[inline]
    pub fn last(&self) -> Option<PacketRun> {
        self.runs.back().copied()
    }

    /// The run that contains a packet.
    #[must_use]
    pub fn containing(&self, packet: u64) -> Option<PacketRun> {
        let run = self.runs.get(self.position(packet))?;
        (run.start <= packet).then_some(*run)
    }

    /// Whether a packet is in it.
    #[must_use]
    pub fn contains(&self, packet: u64) -> bool {
        self.containing(packet).is_some()
    }

    /// The first run that ends after `packet`.
    #[inline]
    fn position(&self, packet: u64) -> usize {
        // Most questions are about the newest packets.
        if self.runs.back().is_none_or(|last| last.end <= packet) {
            return self.runs.len();
        }
        self.runs.partition_point(|run| run.end <= packet)
    }

    /// Calls `visit` with each part of `run` that is not in the set, in order.
    #[inline]
    pub fn gaps(&self, run: PacketRun, mut visit: impl FnMut(PacketRun)) {
        let mut from = run.start;
        for other in self.runs.range(self.position(run.start)..) {
            if other.start >= run.end {
                break;
            }
            if from < other.start {
                visit(PacketRun::new(from, other.start));
            }
            from = from.max(other.end);
        }
        if from < run.end {
            visit(PacketRun::new(from, run.end));
        }
    }

    /// Adds packets.
    pub fn insert(&mut self, run: PacketRun) {
        if run.is_empty() {
            return;
        }
        let mut merged = run;
        // From the first run that touches it to the last.
        let first = match self.runs.back() {
            Some(last) if last.end >= run.start => {
                self.runs.partition_point(|other| other.end < run.start)
            }
            _ => self.runs.len(),
        };
        let mut after = first;
        while let Some(other) = self.runs.get(after).filter(|other| other.start <= run.end) {
            merged = PacketRun::new(merged.start.min(other.start), merged.end.max(other.end));
            self.packets -= other.len();
            after += 1;
        }
        self.packets += merged.len();
        if after == first {
            self.runs.insert(first, merged);
            return;
        }
        self.runs[first] = merged;
        if after > first + 1 {
            self.runs.drain(first + 1..after);
        }
    }

    /// Removes packets; calls `visit` with each part that was in the set, in order.
    pub fn remove(&mut self, run: PacketRun, mut visit: impl FnMut(PacketRun)) {
        if run.is_empty() {
            return;
        }
        let mut at = self.position(run.start);
        while let Some(other) = self.runs.get(at).copied().filter(|other| other.start < run.end) {
            let part = other.overlap(run);
            self.packets -= part.len();
            visit(part);
            let before = PacketRun::new(other.start, part.start);
            let after = PacketRun::new(part.end, other.end);
            match (before.is_empty(), after.is_empty()) {
                (true, true) => {
                    self.runs.remove(at);
                }
                (false, true) => {
                    self.runs[at] = before;
                    at += 1;
                }
                (true, false) => self.runs[at] = after,
                (false, false) => {
                    self.runs[at] = before;
                    self.runs.insert(at + 1, after);
                    return;
                }
            }
        }
    }

    /// Removes all packets before `packet`.
    #[inline]
    pub fn remove_before(&mut self, packet: u64) {
        while let Some(first) = self.runs.front_mut().filter(|first| first.start < packet) {
            if first.end > packet {
                self.packets -= packet - first.start;
                first.start = packet;
                return;
            }
            self.packets -= first.len();
            self.runs.pop_front();
        }
    }

    /// Removes and gives the first run, at most `most` packets of it.
    pub fn take_first(&mut self, most: u64) -> Option<PacketRun> {
        let first = self.runs.front_mut()?;
        let taken = PacketRun::new(first.start, first.end.min(first.start + most));
        first.start = taken.end;
        if first.is_empty() {
            self.runs.pop_front();
        }
        self.packets -= taken.len();
        (!taken.is_empty()).then_some(taken)
    }

    /// The runs, in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = PacketRun> + ExactSizeIterator {
        self.runs.iter().copied()
    }

    /// Removes all packets.
    #[inline]
    pub fn clear(&mut self) {
        self.runs.clear();
        self.packets = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn listed(set: &RunSet) -> Vec<(u64, u64)> {
        set.runs.iter().map(|run| (run.start, run.end)).collect()
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(PacketRun),
        Remove(PacketRun),
        Before(u64),
        First(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let run =
            || (0u64..60, 0u64..12).prop_map(|(start, len)| PacketRun::new(start, start + len));
        let step = prop_oneof![
            run().prop_map(Step::Insert),
            run().prop_map(Step::Remove),
            (0u64..40).prop_map(Step::Before),
            (1u64..5).prop_map(Step::First),
        ];
        prop::collection::vec(step, 0..40)
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_packets(steps in steps()) {
            let (mut set, mut model) = (RunSet::default(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Insert(run) => {
                        let mut fresh = 0;
                        set.gaps(run, |gap| fresh += gap.len());
                        let before = model.len();
                        model.extend(run.start..run.end);
                        prop_assert_eq!(fresh, (model.len() - before) as u64);
                        set.insert(run);
                    }
                    Step::Remove(run) => {
                        let mut parts = Vec::new();
                        set.remove(run, |part| parts.extend(part.start..part.end));
                        let expected: Vec<u64> =
                            model.range(run.start..run.end.max(run.start)).copied().collect();
                        model.retain(|packet| !(run.start..run.end).contains(packet));
                        prop_assert_eq!(parts, expected);
                    }
                    Step::Before(packet) => {
                        set.remove_before(packet);
                        model.retain(|other| *other >= packet);
                    }
                    Step::First(most) => {
                        let taken = set.take_first(most);
                        prop_assert_eq!(taken.is_none(), model.is_empty());
                        for packet in taken.map_or(0..0, |run| run.start..run.end) {
                            prop_assert_eq!(model.pop_first(), Some(packet));
                        }
                    }
                }
                let all: Vec<u64> = set.runs.iter().flat_map(|run| run.start..run.end).collect();
                let expected: Vec<u64> = model.iter().copied().collect();
                prop_assert_eq!(all, expected);
                prop_assert_eq!(set.packets(), model.len() as u64);
                prop_assert!(listed(&set).windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
