//! Queues before the bottleneck.
//!
//! Whole trains are taken in, single packets go out: every decision is one
//! about a packet of MTU size.

mod backlog;
mod codel;
mod fifo;
mod fq_codel;
mod pie;
mod red;

pub(crate) use backlog::{Backlog, Verdict};

use crate::fate::{Ledger, Packet, Run};
use crate::{Nanos, Queue, Rate};
use codel::CoDelQueue;
use fifo::FifoQueue;
use fq_codel::FqCoDelQueue;
use pie::PieQueue;
use red::RedQueue;
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
    CoDel(CoDelQueue<P>),
    FqCoDel(FqCoDelQueue<P>),
    Red(RedQueue<P>),
    Pie(PieQueue<P>),
}

impl<P: Clone> Discipline<P> {
    pub(crate) fn new(queue: &Queue, around: Surroundings) -> Self {
        match queue {
            Queue::DropTail(fifo) => Discipline::Fifo(FifoQueue::new(*fifo, false, around)),
            Queue::DropHead(fifo) => Discipline::Fifo(FifoQueue::new(*fifo, true, around)),
            Queue::CoDel(codel) => Discipline::CoDel(CoDelQueue::new(*codel, around)),
            Queue::FqCoDel(fq) => Discipline::FqCoDel(FqCoDelQueue::new(*fq, around)),
            Queue::Red(red) => Discipline::Red(RedQueue::new(*red, around)),
            Queue::Pie(pie) => Discipline::Pie(PieQueue::new(*pie, around)),
        }
    }

    /// The bottleneck has another rate.
    pub(crate) fn adopt(&mut self, around: Surroundings) {
        if let Discipline::Red(queue) = self {
            queue.adopt(around);
        }
    }

    /// Takes in what fits of a run that arrives now. `idle`: the bottleneck
    /// has nothing to send, so the first packet goes through without waiting.
    pub(crate) fn enqueue(&mut self, now: Nanos, run: Run<P>, idle: bool, ledger: &mut Ledger<P>) {
        match self {
            Discipline::Fifo(queue) => queue.enqueue(now, run, idle, ledger),
            Discipline::CoDel(queue) => queue.enqueue(now, run, idle, ledger),
            Discipline::FqCoDel(queue) => queue.enqueue(now, run, idle, ledger),
            Discipline::Red(queue) => queue.enqueue(now, run, idle, ledger),
            Discipline::Pie(queue) => queue.enqueue(now, run, idle, ledger),
        }
    }

    /// The next packet for the bottleneck, which is free at `now`; `None` where
    /// all that waited was dropped.
    pub(crate) fn dequeue(&mut self, now: Nanos, ledger: &mut Ledger<P>) -> Option<Packet<P>> {
        match self {
            Discipline::Fifo(queue) => queue.dequeue(),
            Discipline::CoDel(queue) => queue.dequeue(now, ledger),
            Discipline::FqCoDel(queue) => queue.dequeue(now, ledger),
            Discipline::Red(queue) => queue.dequeue(now),
            Discipline::Pie(queue) => queue.dequeue(now),
        }
    }

    /// Bytes that wait, framing included.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Discipline::Fifo(queue) => queue.backlog.bytes(),
            Discipline::CoDel(queue) => queue.backlog.bytes(),
            Discipline::FqCoDel(queue) => queue.bytes(),
            Discipline::Red(queue) => queue.backlog.bytes(),
            Discipline::Pie(queue) => queue.backlog.bytes(),
        }
    }

    /// Packets that wait.
    pub(crate) fn packets(&self) -> u64 {
        match self {
            Discipline::Fifo(queue) => queue.backlog.packets(),
            Discipline::CoDel(queue) => queue.backlog.packets(),
            Discipline::FqCoDel(queue) => queue.packets(),
            Discipline::Red(queue) => queue.backlog.packets(),
            Discipline::Pie(queue) => queue.backlog.packets(),
        }
    }

    /// All that waits, in the order of arrival, for another queue to take over.
    pub(crate) fn drain(&mut self) -> Vec<Run<P>> {
        match self {
            Discipline::Fifo(queue) => queue.backlog.drain(),
            Discipline::CoDel(queue) => queue.backlog.drain(),
            Discipline::FqCoDel(queue) => queue.drain(),
            Discipline::Red(queue) => queue.backlog.drain(),
            Discipline::Pie(queue) => queue.backlog.drain(),
        }
    }
}
