//! Packets that wait, in order.

use crate::Nanos;
use crate::fate::{Packet, Run};
use std::collections::VecDeque;

/// Runs of packets in the order in which they came, and their sums.
#[derive(Debug)]
pub(crate) struct Backlog<P> {
    runs: VecDeque<Run<P>>,
    bytes: u64,
    packets: u64,
    overhead: u64,
}

impl<P: Clone> Backlog<P> {
    pub(crate) fn new(overhead: u32) -> Self {
        Backlog { runs: VecDeque::new(), bytes: 0, packets: 0, overhead: overhead.into() }
    }

    /// Bytes a packet counts, framing included.
    pub(crate) fn size(&self, run: &Run<P>, index: u32) -> u64 {
        u64::from(run.train.size(index)) + self.overhead
    }

    /// Puts a run at the end.
    pub(crate) fn push(&mut self, run: Run<P>) {
        if run.packets.is_empty() {
            return;
        }
        self.bytes += run.packets.clone().map(|index| self.size(&run, index)).sum::<u64>();
        self.packets += u64::from(run.packets.end - run.packets.start);
        self.runs.push_back(run);
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

    /// When the first packet arrived.
    pub(crate) fn head_arrived(&self) -> Option<Nanos> {
        self.runs.front().map(|run| run.arrived)
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
