//! Packets that wait, in order.

use crate::fate::{Cause, Ledger, Packet, Run};
use crate::{Limit, Nanos};
use std::collections::VecDeque;

/// Runs of packets in the order in which they came, and their sums.
#[derive(Debug)]
pub(crate) struct Backlog<P> {
    runs: VecDeque<Run<P>>,
    bytes: u64,
    packets: u64,
    overhead: u64,
}

/// What an arriving packet finds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// Bytes that wait, framing included.
    pub(crate) bytes: u64,
    /// Packets that wait.
    pub(crate) packets: u64,
    /// Its own size, framing included.
    size: u64,
    /// The bottleneck is idle: it goes through without waiting.
    at_once: bool,
}

impl Found {
    /// Whether there is room for it. One that need not wait needs none.
    pub(crate) const fn room(&self, limit: Limit) -> bool {
        self.at_once || limit.admits(self.bytes, self.packets, self.size)
    }
}

/// What a queue decides on an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Enter,
    /// It comes in with congestion experienced.
    EnterMarked,
    Drop(Cause),
}

impl<P: Clone> Backlog<P> {
    pub(crate) fn new(overhead: u32) -> Self {
        Backlog { runs: VecDeque::new(), bytes: 0, packets: 0, overhead: overhead.into() }
    }

    /// Bytes a packet counts, framing included.
    pub(crate) fn size(&self, run: &Run<P>, index: u32) -> u64 {
        u64::from(run.train.size(index)) + self.overhead
    }

    /// Bytes a run counts.
    pub(crate) fn bytes_of(&self, run: &Run<P>) -> u64 {
        run.train.bytes(&run.packets) + run.count() * self.overhead
    }

    /// Puts a run at the end.
    pub(crate) fn push(&mut self, run: Run<P>) {
        if run.packets.is_empty() {
            return;
        }
        self.bytes += self.bytes_of(&run);
        self.packets += run.count();
        self.runs.push_back(run);
    }

    /// Takes in what fits of a run.
    pub(crate) fn admit_within(
        &mut self,
        limit: Limit,
        now: Nanos,
        run: Run<P>,
        idle: bool,
        ledger: &mut Ledger<P>,
    ) {
        let (bytes, packets) = (self.bytes + self.bytes_of(&run), self.packets + run.count());
        if !limit.is_exceeded(bytes, packets) {
            // All of it, without a look at each packet.
            return self.push(run);
        }
        self.admit(now, run, idle, ledger, |found| {
            if found.room(limit) { Verdict::Enter } else { Verdict::Drop(Cause::QueueFull) }
        });
    }

    /// Lets `decide` judge each packet of a run in turn, by what it finds; what
    /// comes in stays in as few runs as can be.
    pub(crate) fn admit(
        &mut self,
        now: Nanos,
        run: Run<P>,
        idle: bool,
        ledger: &mut Ledger<P>,
        mut decide: impl FnMut(Found) -> Verdict,
    ) {
        let (first, end) = (run.packets.start, run.packets.end);
        let (mut bytes, mut packets) = (self.bytes, self.packets);
        let mut from = first;
        let mut verdict = Verdict::Enter;
        for index in first..end {
            let size = self.size(&run, index);
            let next = decide(Found { bytes, packets, size, at_once: idle && index == first });
            if !matches!(next, Verdict::Drop(_)) {
                bytes += size;
                packets += 1;
            }
            if next != verdict && index > from {
                self.settle(now, run.part(from..index), verdict, ledger);
                from = index;
            }
            verdict = next;
        }
        self.settle(now, Run { packets: from..end, ..run }, verdict, ledger);
    }

    fn settle(&mut self, now: Nanos, run: Run<P>, verdict: Verdict, ledger: &mut Ledger<P>) {
        match verdict {
            Verdict::Enter => self.push(run),
            Verdict::EnterMarked => {
                if !run.marked {
                    ledger.counters.marked += run.count();
                }
                self.push(Run { marked: true, ..run });
            }
            Verdict::Drop(cause) => ledger.drop_run(now, cause, &run),
        }
    }

    /// Takes the first packet.
    pub(crate) fn pop(&mut self) -> Option<Packet<P>> {
        let run = self.runs.front_mut()?;
        let index = run.packets.start;
        run.packets.start += 1;
        let size = u64::from(run.train.size(index)) + self.overhead;
        let packet = if run.packets.is_empty() {
            // The last packet takes the handle itself.
            let Run { serial, payload, train, first_number, arrived, marked, .. } =
                self.runs.pop_front()?;
            let number = first_number + u64::from(index);
            Packet { serial, payload, train, index, number, arrived, marked }
        } else {
            run.packet(index)
        };
        self.bytes -= size;
        self.packets -= 1;
        Some(packet)
    }

    /// When the first packet arrived, and the bytes that it counts.
    pub(crate) fn head(&self) -> Option<(Nanos, u64)> {
        self.runs.front().map(|run| (run.arrived, self.size(run, run.packets.start)))
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Takes all.
    pub(crate) fn drain(&mut self) -> Vec<Run<P>> {
        (self.bytes, self.packets) = (0, 0);
        self.runs.drain(..).collect()
    }
}
