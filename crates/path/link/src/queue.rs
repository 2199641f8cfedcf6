//! Queues in front of the bottleneck.
//!
//! Trains are enqueued, single packets dequeued: every decision is about a packet of
//! MTU size.

mod backlog;
mod codel;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod xcp;

pub(crate) use backlog::{Backlog, Verdict};

use crate::packet_fate::{FateLog, Packet, TrainRun};
use crate::{Queue, Rate};
use codel::CoDelQueue;
use dualpi2::DualPi2Queue;
use fifo::FifoQueue;
use fq_codel::FqCoDelQueue;
use pie::PieQueue;
use red::RedQueue;
use units::{BitRate, Nanos};
use xcp::XcpQueue;

/// What a queue needs to know apart from its own settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueContext {
    /// Framing bytes counted per packet.
    pub(crate) overhead: u32,
    /// Mean bottleneck rate; `None` if unlimited.
    pub(crate) rate: Option<BitRate>,
    /// Seed of its random numbers.
    pub(crate) seed: u64,
}

impl QueueContext {
    pub(crate) fn rate_of(rate: &Rate) -> Option<BitRate> {
        match rate {
            Rate::Unlimited => None,
            Rate::Constant(rate) => Some(*rate),
            Rate::TokenBucket(bucket) => Some(bucket.rate),
            Rate::Trace(trace) => Some(trace.mean_rate()),
        }
    }
}

/// A queue with its discipline.
#[derive(Debug)]
pub(crate) enum Discipline<P> {
    Fifo(FifoQueue<P>),
    CoDel(CoDelQueue<P>),
    FqCoDel(FqCoDelQueue<P>),
    Red(RedQueue<P>),
    Pie(PieQueue<P>),
    DualPi2(DualPi2Queue<P>),
    Xcp(XcpQueue<P>),
}

impl<P: Clone> Discipline<P> {
    pub(crate) fn new(queue: &Queue, context: QueueContext) -> Self {
        match queue {
            Queue::DropTail(fifo) => Discipline::Fifo(FifoQueue::new(*fifo, false, context)),
            Queue::DropHead(fifo) => Discipline::Fifo(FifoQueue::new(*fifo, true, context)),
            Queue::CoDel(codel) => Discipline::CoDel(CoDelQueue::new(*codel, context)),
            Queue::FqCoDel(fq) => Discipline::FqCoDel(FqCoDelQueue::new(*fq, context)),
            Queue::Red(red) => Discipline::Red(RedQueue::new(*red, context)),
            Queue::Pie(pie) => Discipline::Pie(PieQueue::new(*pie, context)),
            Queue::DualPi2(dual) => Discipline::DualPi2(DualPi2Queue::new(*dual, context)),
            Queue::Xcp(xcp) => Discipline::Xcp(XcpQueue::new(*xcp, context)),
        }
    }

    /// The bottleneck rate has changed.
    pub(crate) fn apply_settings(&mut self, context: QueueContext) {
        match self {
            Discipline::Red(queue) => queue.apply_settings(context),
            Discipline::Xcp(queue) => queue.apply_settings(context),
            _ => {}
        }
    }

    /// Enqueues a run that arrives now, as far as the discipline admits it. `idle`: the
    /// bottleneck is idle, so the first packet is sent without waiting.
    pub(crate) fn enqueue(
        &mut self,
        now: Nanos,
        run: TrainRun<P>,
        idle: bool,
        log: &mut FateLog<P>,
    ) {
        match self {
            Discipline::Fifo(queue) => queue.enqueue(now, run, idle, log),
            Discipline::CoDel(queue) => queue.enqueue(now, run, idle, log),
            Discipline::FqCoDel(queue) => queue.enqueue(now, run, idle, log),
            Discipline::Red(queue) => queue.enqueue(now, run, idle, log),
            Discipline::Pie(queue) => queue.enqueue(now, run, idle, log),
            Discipline::DualPi2(queue) => queue.enqueue(now, run, idle, log),
            Discipline::Xcp(queue) => queue.enqueue(now, run, idle, log),
        }
    }

    /// The next packet to send, as the bottleneck is free at `now`; `None` if all queued
    /// packets were dropped.
    pub(crate) fn dequeue(&mut self, now: Nanos, log: &mut FateLog<P>) -> Option<Packet<P>> {
        match self {
            Discipline::Fifo(queue) => queue.dequeue(),
            Discipline::CoDel(queue) => queue.dequeue(now, log),
            Discipline::FqCoDel(queue) => queue.dequeue(now, log),
            Discipline::Red(queue) => queue.dequeue(now),
            Discipline::Pie(queue) => queue.dequeue(now),
            Discipline::DualPi2(queue) => queue.dequeue(now, log),
            Discipline::Xcp(queue) => queue.dequeue(now),
        }
    }

    /// The packets of a queue that sends them in order of arrival and decides nothing when
    /// it does.
    pub(crate) const fn as_plain(&mut self) -> Option<&mut Backlog<P>> {
        match self {
            Discipline::Fifo(queue) => Some(&mut queue.backlog),
            _ => None,
        }
    }

    /// Bytes queued, including framing.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Discipline::Fifo(queue) => queue.backlog.bytes(),
            Discipline::CoDel(queue) => queue.backlog.bytes(),
            Discipline::FqCoDel(queue) => queue.bytes(),
            Discipline::Red(queue) => queue.backlog.bytes(),
            Discipline::Pie(queue) => queue.backlog.bytes(),
            Discipline::DualPi2(queue) => queue.bytes(),
            Discipline::Xcp(queue) => queue.backlog.bytes(),
        }
    }

    /// Packets queued.
    pub(crate) fn packets(&self) -> u64 {
        match self {
            Discipline::Fifo(queue) => queue.backlog.packets(),
            Discipline::CoDel(queue) => queue.backlog.packets(),
            Discipline::FqCoDel(queue) => queue.packets(),
            Discipline::Red(queue) => queue.backlog.packets(),
            Discipline::Pie(queue) => queue.backlog.packets(),
            Discipline::DualPi2(queue) => queue.packets(),
            Discipline::Xcp(queue) => queue.backlog.packets(),
        }
    }

    /// Removes all packets, in order of arrival, so that another queue can take them.
    pub(crate) fn drain(&mut self) -> Vec<TrainRun<P>> {
        match self {
            Discipline::Fifo(queue) => queue.backlog.drain(),
            Discipline::CoDel(queue) => queue.backlog.drain(),
            Discipline::FqCoDel(queue) => queue.drain(),
            Discipline::Red(queue) => queue.backlog.drain(),
            Discipline::Pie(queue) => queue.backlog.drain(),
            Discipline::DualPi2(queue) => queue.drain(),
            Discipline::Xcp(queue) => queue.backlog.drain(),
        }
    }
}
