//! Drop-tail and drop-head queues, with DCTCP's step marking.

use super::{Backlog, QueueContext, Verdict};
use crate::Fifo;
use crate::config::Occupancy;
use crate::packet_fate::{Cause, FateLog, Packet, TrainRun};
use units::Nanos;

#[derive(Debug)]
pub(crate) struct FifoQueue<P> {
    settings: Fifo,
    drop_head: bool,
    pub(crate) backlog: Backlog<P>,
}

impl<P: Clone> FifoQueue<P> {
    pub(crate) fn new(settings: Fifo, drop_head: bool, context: QueueContext) -> Self {
        FifoQueue { settings, drop_head, backlog: Backlog::new(context.overhead) }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Nanos,
        run: TrainRun<P>,
        idle: bool,
        log: &mut FateLog<P>,
    ) {
        let Fifo { limit, mark } = self.settings;
        let drop_head = self.drop_head;
        match mark.filter(|_| run.train.is_ecn_capable()) {
            Some(step) => self.backlog.admit(now, run, idle, log, |view| {
                if !drop_head && !view.fits(limit) {
                    Verdict::Drop(Cause::QueueFull)
                } else if step.is_exceeded(Occupancy::new(view.bytes, view.packets)) {
                    Verdict::EnqueueMarked
                } else {
                    Verdict::Enqueue
                }
            }),
            None if drop_head => self.backlog.push(run),
            None => self.backlog.admit_within(limit, now, run, idle, log),
        }
        if drop_head {
            self.make_room(now, idle, log);
        }
    }

    pub(crate) fn dequeue(&mut self) -> Option<Packet<P>> {
        self.backlog.pop()
    }

    /// Drops the oldest packets until the rest is within the limit; while the bottleneck
    /// is idle, one packet is sent at once and does not count.
    fn make_room(&mut self, now: Nanos, idle: bool, log: &mut FateLog<P>) {
        while self.backlog.packets() > u64::from(idle)
            && self.settings.limit.is_exceeded(self.backlog.occupancy())
        {
            let Some(oldest) = self.backlog.pop() else { return };
            log.drop_packet(now, Cause::QueueFull, oldest);
        }
    }
}
