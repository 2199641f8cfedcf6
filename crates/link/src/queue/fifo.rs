//! Drop-tail and drop-head queues, with DCTCP's step marking.

use super::{Backlog, Surroundings};
use crate::fate::{Cause, Ledger, Packet, Run};
use crate::{Fifo, Limit, Nanos};

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

    pub(crate) fn enqueue(
        &mut self,
        now: Nanos,
        run: Run<P>,
        idle: bool,
        ledger: &mut Ledger<P>,
    ) {
        if self.drop_head {
            self.make_room(now, &run, ledger);
        }
        let (first, end) = (run.packets.start, run.packets.end);
        let (mut bytes, mut packets) = (self.backlog.bytes(), self.backlog.packets());
        let mut admitted = first;
        // From here on packets find the queue above the step.
        let mut above = end;
        for index in first..end {
            let size = self.backlog.size(&run, index);
            let at_once = idle && index == first;
            if !at_once && !self.settings.limit.admits(bytes, packets, size) {
                break;
            }
            if above == end && self.settings.mark.is_some_and(|step| exceeds(step, bytes, packets)) {
                above = index;
            }
            bytes += size;
            packets += 1;
            admitted += 1;
        }
        if admitted < end {
            ledger.drop_run(now, Cause::QueueFull, &run.part(admitted..end));
        }
        let above = above.min(admitted);
        if run.train.is_ecn_capable() && above < admitted {
            ledger.counters.marked += u64::from(admitted - above);
            self.backlog.push(run.part(first..above));
            self.backlog.push(Run { marked: true, packets: above..admitted, ..run });
        } else {
            self.backlog.push(Run { packets: first..admitted, ..run });
        }
    }

    pub(crate) fn dequeue(&mut self) -> Option<Packet<P>> {
        self.backlog.pop()
    }

    /// Drops the oldest until the run fits, or nothing is left to drop.
    fn make_room(&mut self, now: Nanos, run: &Run<P>, ledger: &mut Ledger<P>) {
        let size: u64 = run.packets.clone().map(|index| self.backlog.size(run, index)).sum();
        let packets = u64::from(run.packets.end - run.packets.start);
        let fits = |bytes: u64, waiting: u64| match self.settings.limit {
            Limit::Bytes(limit) => bytes + size <= limit.bytes(),
            Limit::Packets(limit) => waiting + packets <= limit,
        };
        while !fits(self.backlog.bytes(), self.backlog.packets()) {
            let Some(oldest) = self.backlog.pop() else { return };
            ledger.drop_packet(now, Cause::QueueFull, oldest);
        }
    }
}

/// Whether more than `step` waits.
const fn exceeds(step: Limit, bytes: u64, packets: u64) -> bool {
    match step {
        Limit::Bytes(limit) => bytes > limit.bytes(),
        Limit::Packets(limit) => packets > limit,
    }
}
