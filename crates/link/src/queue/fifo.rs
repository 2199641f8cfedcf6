//! Drop-tail and drop-head queues, with DCTCP's step marking.

use super::{Backlog, Surroundings, Verdict};
use crate::fate::{Cause, Ledger, Packet, Run};
use crate::{Fifo, Nanos};

#[derive(Debug)]
pub(crate) struct FifoQueue<P> {
    settings: Fifo,
    drop_head: bool,
    pub(crate) backlog: Backlog<P>,
}

impl<P: Clone> FifoQueue<P> {
    pub(crate) fn new(settings: Fifo, drop_head: bool, around: Surroundings) -> Self {
        FifoQueue { settings, drop_head, backlog: Backlog::new(around.overhead) }
    }

    pub(crate) fn enqueue(&mut self, now: Nanos, run: Run<P>, idle: bool, ledger: &mut Ledger<P>) {
        let Fifo { limit, mark } = self.settings;
        let drop_head = self.drop_head;
        match mark.filter(|_| run.train.is_ecn_capable()) {
            Some(step) => self.backlog.admit(now, run, idle, ledger, |found| {
                if !drop_head && !found.room(limit) {
                    Verdict::Drop(Cause::QueueFull)
                } else if step.is_exceeded(found.bytes, found.packets) {
                    Verdict::EnterMarked
                } else {
                    Verdict::Enter
                }
            }),
            None if drop_head => self.backlog.push(run),
            None => self.backlog.admit_within(limit, now, run, idle, ledger),
        }
        if drop_head {
            self.make_room(now, idle, ledger);
        }
    }

    pub(crate) fn dequeue(&mut self) -> Option<Packet<P>> {
        self.backlog.pop()
    }

    /// Drops the oldest until the rest is within the limit; an idle bottleneck
    /// takes one packet at once, whatever the limit.
    fn make_room(&mut self, now: Nanos, idle: bool, ledger: &mut Ledger<P>) {
        while self.backlog.packets() > u64::from(idle)
            && self.settings.limit.is_exceeded(self.backlog.bytes(), self.backlog.packets())
        {
            let Some(oldest) = self.backlog.pop() else { return };
            ledger.drop_packet(now, Cause::QueueFull, oldest);
        }
    }
}
