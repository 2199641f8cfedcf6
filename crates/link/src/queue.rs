//! Queues before the bottleneck.
//!
//! Whole trains are taken in, single packets go out: every decision is one
//! about a packet of MTU size.

mod backlog;
mod fifo;

pub(crate) use backlog::Backlog;

use crate::fate::{Ledger, Packet, Run};
use crate::{Nanos, Queue, Rate};
use fifo::FifoQueue;
use units::BitRate;

/// What a queue needs to know beside its own settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings {
    /// Framing bytes counted on each packet.
    pub(crate) overhead: u32,
    /// Rate of the bottleneck in the long run; `None` where it has none.
    pub(crate) rate: Option<BitRate>,
    /// Seed of its draws.
    pub(crate) seed: u64,
}

impl Surroundings {
    pub(crate) fn rate_of(rate: &Rate) -> Option<BitRate> {
        match rate {
            Rate::Unlimited => None,
            Rate::Constant(rate) => Some(*rate),
            Rate::Bucket(bucket) => Some(bucket.rate),
            Rate::Trace(trace) => Some(trace.mean_rate()),
        }
    }
}

/// A queue and its management.
#[derive(Debug)]
pub(crate) enum Discipline<P> {
    Fifo(FifoQueue<P>),
}

impl<P: Clone> Discipline<P> {
    pub(crate) fn new(queue: &Queue, around: Surroundings) -> Self {
        match queue {
            Queue::DropTail(fifo) => Discipline::Fifo(FifoQueue::new(*fifo, false, around)),
            Queue::DropHead(fifo) => Discipline::Fifo(FifoQueue::new(*fifo, true, around)),
            _ => todo!(),
        }
    }

    /// Takes in what fits of a run that arrives now. `idle`: the bottleneck
    /// has nothing to send, so the first packet goes through without waiting.
    pub(crate) fn enqueue(
        &mut self,
        now: Nanos,
        run: Run<P>,
        idle: bool,
        ledger: &mut Ledger<P>,
    ) {
        match self {
            Discipline::Fifo(queue) => queue.enqueue(now, run, idle, ledger),
        }
    }

    /// The next packet for the bottleneck, which is free at `now`.
    pub(crate) fn dequeue(&mut self, now: Nanos, ledger: &mut Ledger<P>) -> Option<Packet<P>> {
        match self {
            Discipline::Fifo(queue) => queue.dequeue(),
        }
    }

    /// Bytes that wait, framing included.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Discipline::Fifo(queue) => queue.backlog.bytes(),
        }
    }

    /// Packets that wait.
    pub(crate) fn packets(&self) -> u64 {
        match self {
            Discipline::Fifo(queue) => queue.backlog.packets(),
        }
    }

    /// All that waits, for another queue to take over.
    pub(crate) fn drain(&mut self) -> Vec<Run<P>> {
        match self {
            Discipline::Fifo(queue) => queue.backlog.drain(),
        }
    }
}
