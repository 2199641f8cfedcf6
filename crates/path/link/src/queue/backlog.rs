//! A FIFO of packets.

use crate::config::Occupancy;
use crate::packet_fate::{Cause, FateLog, Packet, TrainRun};
use crate::{Limit, WindowFeedback};
use std::collections::VecDeque;
use units::{ByteCount, Nanos};

/// Runs of packets in order of arrival, and their total size.
#[derive(Debug)]
pub(crate) struct Backlog<P> {
    runs: VecDeque<TrainRun<P>>,
    bytes: u64,
    packets: u64,
    overhead: u64,
}

/// The queue as an arriving packet finds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueView {
    /// Bytes queued, including framing.
    pub(crate) bytes: u64,
    /// Packets queued.
    pub(crate) packets: u64,
    /// Size of the arriving packet, including framing.
    size: u64,
    /// Whether the bottleneck is idle: the packet is sent without waiting.
    unqueued: bool,
}

impl QueueView {
    /// The same with what another queue holds under the same limit.
    pub(crate) const fn beside(self, other: Occupancy) -> Self {
        let bytes = self.bytes + other.bytes.bytes();
        QueueView { bytes, packets: self.packets + other.packets, ..self }
    }

    /// Whether the packet fits; always true if it need not wait.
    pub(crate) const fn fits(&self, limit: Limit) -> bool {
        self.unqueued
            || limit
                .admits(Occupancy::new(self.bytes, self.packets), ByteCount::from_bytes(self.size))
    }
}

/// Decision about an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Enqueue,
    /// Enqueue it, marked with congestion experienced.
    EnqueueMarked,
    Drop(Cause),
}

impl<P: Clone> Backlog<P> {
    /// Bytes and packets queued.
    pub(crate) const fn occupancy(&self) -> Occupancy {
        Occupancy::new(self.bytes, self.packets)
    }

    pub(crate) fn new(overhead: u32) -> Self {
        Backlog { runs: VecDeque::new(), bytes: 0, packets: 0, overhead: overhead.into() }
    }

    /// Size of a packet, including framing.
    pub(crate) fn size(&self, run: &TrainRun<P>, index: u32) -> u64 {
        self.framed(run.train.size(index))
    }

    /// A packet of `size` bytes with its framing.
    pub(crate) fn framed(&self, size: u32) -> u64 {
        u64::from(size) + self.overhead
    }

    /// Size of a run, including framing.
    pub(crate) fn bytes_of(&self, run: &TrainRun<P>) -> u64 {
        run.train.bytes(&run.packets) + run.count() * self.overhead
    }

    /// Appends a run.
    pub(crate) fn push(&mut self, run: TrainRun<P>) {
        if run.packets.is_empty() {
            return;
        }
        self.bytes += self.bytes_of(&run);
        self.packets += run.count();
        self.runs.push_back(run);
    }

    /// Enqueues the packets of a run that fit.
    pub(crate) fn admit_within(
        &mut self,
        limit: Limit,
        now: Nanos,
        run: TrainRun<P>,
        idle: bool,
        log: &mut FateLog<P>,
    ) {
        let (bytes, packets) = (self.bytes + self.bytes_of(&run), self.packets + run.count());
        if !limit.is_exceeded(Occupancy::new(bytes, packets)) {
            // All of it fits: no decision per packet is needed.
            return self.push(run);
        }
        self.admit(now, run, idle, log, |view| {
            if view.fits(limit) { Verdict::Enqueue } else { Verdict::Drop(Cause::QueueFull) }
        });
    }

    /// Lets `decide` decide about each packet of a run in turn; the admitted packets form
    /// as few runs as possible.
    pub(crate) fn admit(
        &mut self,
        now: Nanos,
        run: TrainRun<P>,
        idle: bool,
        log: &mut FateLog<P>,
        mut decide: impl FnMut(QueueView) -> Verdict,
    ) {
        let (first, end) = (run.packets.start, run.packets.end);
        let (mut bytes, mut packets) = (self.bytes, self.packets);
        let mut from = first;
        let mut verdict = Verdict::Enqueue;
        for index in first..end {
            let size = self.size(&run, index);
            let next = decide(QueueView { bytes, packets, size, unqueued: idle && index == first });
            if !matches!(next, Verdict::Drop(_)) {
                bytes += size;
                packets += 1;
            }
            if next != verdict && index > from {
                self.settle(now, run.part(from..index), verdict, log);
                from = index;
            }
            verdict = next;
        }
        self.settle(now, TrainRun { packets: from..end, ..run }, verdict, log);
    }

    fn settle(&mut self, now: Nanos, run: TrainRun<P>, verdict: Verdict, log: &mut FateLog<P>) {
        match verdict {
            Verdict::Enqueue => self.push(run),
            Verdict::EnqueueMarked => {
                if !run.marked {
                    log.counters.marked += run.count();
                }
                self.push(TrainRun { marked: true, ..run });
            }
            Verdict::Drop(cause) => log.drop_run(now, cause, &run),
        }
    }

    /// Removes the first packet.
    pub(crate) fn pop(&mut self) -> Option<Packet<P>> {
        let run = self.runs.front_mut()?;
        let index = run.packets.start;
        run.packets.start += 1;
        let size = u64::from(run.train.size(index)) + self.overhead;
        let packet = if run.packets.is_empty() {
            // The last packet gets the handle itself instead of a clone.
            let TrainRun { serial, payload, train, first_number, arrived, marked, .. } =
                self.runs.pop_front()?;
            let number = first_number + u64::from(index);
            let feedback = WindowFeedback::NONE;
            Packet { serial, payload, train, index, number, arrived, marked, feedback }
        } else {
            run.packet(index)
        };
        self.bytes -= size;
        self.packets -= 1;
        Some(packet)
    }

    /// The first run.
    pub(crate) fn first(&self) -> Option<&TrainRun<P>> {
        self.runs.front()
    }

    /// Removes the packets of the first run before `index`, of `bytes` in all, framing
    /// included.
    pub(crate) fn pop_to(&mut self, index: u32, bytes: u64) {
        let Some(run) = self.runs.front_mut() else { return };
        self.packets -= u64::from(index - run.packets.start);
        self.bytes -= bytes;
        run.packets.start = index;
        if run.packets.is_empty() {
            self.runs.pop_front();
        }
    }

    /// Arrival time and size of the first packet.
    pub(crate) fn head(&self) -> Option<(Nanos, u64)> {
        self.runs.front().map(|run| (run.arrived, self.size(run, run.packets.start)))
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Removes all runs.
    pub(crate) fn drain(&mut self) -> Vec<TrainRun<P>> {
        (self.bytes, self.packets) = (0, 0);
        self.runs.drain(..).collect()
    }
}
