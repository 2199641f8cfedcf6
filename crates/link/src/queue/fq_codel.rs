//! Flow queues with controlled delay (RFC 8290).
//!
//! ```text
//!             hash of the flow          new queues (served first)
//!   packet ──────────────────> queue ─┬──> o o          empty: to the end of the old
//!                                     └──> o o o o o    old queues, round robin
//! ```
//!
//! Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) by bytes: a queue
//! that has used its quantum goes to the end of the old ones. One that just got
//! its first packet is new and has its turn before them, so a flow that sends
//! less than a quantum a round hardly waits. Each queue has a CoDel of its own.

use super::codel::{Aim, Control};
use super::{Backlog, Surroundings};
use crate::fate::{Cause, Ledger, Packet, Run};
use crate::{FqCoDel, Limit, Nanos};
use std::collections::VecDeque;

/// Most packets dropped at once from the fattest queue, and never more than
/// half of it: finding it takes a look at all queues (section 4.1, as Linux
/// does it).
const BATCH: u32 = 64;

/// A place in `slots` that no flow has come to yet.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct FqCoDelQueue<P> {
    limit: Limit,
    aim: Aim,
    quantum: i64,
    overhead: u32,
    /// Makes which flows share a queue another matter for each seed.
    perturbation: u64,
    /// For each hash, which of `queues`.
    slots: Vec<u32>,
    /// Those that ever held a packet, in the order of their first.
    queues: Vec<FlowQueue<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    bytes: u64,
    packets: u64,
}

#[derive(Debug)]
struct FlowQueue<P> {
    backlog: Backlog<P>,
    control: Control,
    /// Bytes it may send in this round; below zero, what it sent too much.
    deficit: i64,
    /// It is among the new or the old.
    listed: bool,
}

impl<P: Clone> FqCoDelQueue<P> {
    pub(crate) fn new(settings: FqCoDel, around: Surroundings) -> Self {
        FqCoDelQueue {
            limit: settings.codel.limit,
            aim: Aim::new(settings.codel),
            quantum: i64::from(settings.quantum.max(1)),
            overhead: around.overhead,
            perturbation: around.seed,
            slots: vec![NONE; settings.flows.max(1) as usize],
            queues: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
        }
    }

    pub(crate) fn enqueue(&mut self, now: Nanos, run: Run<P>, idle: bool, ledger: &mut Ledger<P>) {
        if idle {
            self.rest();
        }
        let which = self.queue_of(run.train.flow());
        let queue = &mut self.queues[which as usize];
        self.aim.see(queue.backlog.size(&run, run.packets.start));
        if !queue.listed {
            queue.listed = true;
            queue.deficit = self.quantum;
            self.new.push_back(which);
        }
        let mut rest = run;
        while !rest.packets.is_empty() && !self.holds(&rest) {
            // As much of it as fits, and the packet that is too much.
            let end = rest.packets.end.min(rest.packets.start + self.fitting(&rest) + 1);
            self.push(which, rest.part(rest.packets.start..end));
            rest.packets.start = end;
            // An idle bottleneck takes one packet at once, whatever the limit.
            while self.packets > u64::from(idle) && self.limit.is_exceeded(self.bytes, self.packets)
            {
                self.drop_from_fattest(now, idle, ledger);
            }
        }
        self.push(which, rest);
    }

    pub(crate) fn dequeue(&mut self, now: Nanos, ledger: &mut Ledger<P>) -> Option<Packet<P>> {
        loop {
            let of_new = !self.new.is_empty();
            let list = if of_new { &mut self.new } else { &mut self.old };
            let which = *list.front()?;
            let queue = &mut self.queues[which as usize];
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(which);
                continue;
            }
            let (bytes, packets) = (queue.backlog.bytes(), queue.backlog.packets());
            let packet = queue.control.dequeue(now, &self.aim, &mut queue.backlog, ledger);
            self.bytes -= bytes - queue.backlog.bytes();
            self.packets -= packets - queue.backlog.packets();
            if let Some(packet) = packet {
                let size = packet.train.size(packet.index) + self.overhead;
                queue.deficit -= i64::from(size);
                return Some(packet);
            }
            list.pop_front();
            if of_new {
                // Once through the old ones, or a flow could be new for ever
                // by sending a packet a round, and starve them (section 4.2).
                self.old.push_back(which);
            } else {
                queue.listed = false;
            }
        }
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Takes all, in the order in which it came.
    pub(crate) fn drain(&mut self) -> Vec<Run<P>> {
        (self.bytes, self.packets) = (0, 0);
        let mut runs: Vec<_> =
            self.queues.iter_mut().flat_map(|queue| queue.backlog.drain()).collect();
        runs.sort_by_key(|run| (run.serial, run.packets.start));
        runs
    }

    /// The bottleneck has found all queues empty: none has had a turn since.
    fn rest(&mut self) {
        for which in self.new.drain(..).chain(self.old.drain(..)) {
            let queue = &mut self.queues[which as usize];
            queue.listed = false;
            queue.control.rest();
        }
    }

    fn queue_of(&mut self, flow: u32) -> u32 {
        let slots = self.slots.len() as u64;
        // The upper 32 bits as a fraction of the slots.
        let slot = ((mixed(u64::from(flow) ^ self.perturbation) >> 32) * slots) >> 32;
        let slot = &mut self.slots[slot as usize];
        if *slot == NONE {
            #[expect(clippy::cast_possible_truncation, reason = "as many as slots, a u32")]
            let next = self.queues.len() as u32;
            *slot = next;
            self.queues.push(FlowQueue {
                backlog: Backlog::new(self.overhead),
                control: Control::default(),
                deficit: 0,
                listed: false,
            });
        }
        *slot
    }

    fn push(&mut self, which: u32, run: Run<P>) {
        let backlog = &mut self.queues[which as usize].backlog;
        self.bytes += backlog.bytes_of(&run);
        self.packets += run.count();
        backlog.push(run);
    }

    /// Whether there is room for all of a run.
    fn holds(&self, run: &Run<P>) -> bool {
        let framing = run.count() * u64::from(self.overhead);
        let bytes = self.bytes + run.train.bytes(&run.packets) + framing;
        !self.limit.is_exceeded(bytes, self.packets + run.count())
    }

    /// How many packets of a run fit beside what is there.
    fn fitting(&self, run: &Run<P>) -> u32 {
        let overhead = u64::from(self.overhead);
        let (mut bytes, mut packets, mut fits) = (self.bytes, self.packets, 0);
        for index in run.packets.clone() {
            let size = u64::from(run.train.size(index)) + overhead;
            if !self.limit.admits(bytes, packets, size) {
                break;
            }
            bytes += size;
            packets += 1;
            fits += 1;
        }
        fits
    }

    /// Drops from the head of the queue that holds most bytes.
    fn drop_from_fattest(&mut self, now: Nanos, idle: bool, ledger: &mut Ledger<P>) {
        let Some(fattest) = self.queues.iter_mut().max_by_key(|queue| queue.backlog.bytes()) else {
            return;
        };
        let half = fattest.backlog.bytes().div_ceil(2);
        let mut dropped = 0;
        for _ in 0..BATCH {
            if dropped >= half || self.packets <= u64::from(idle) {
                return;
            }
            let before = fattest.backlog.bytes();
            let Some(packet) = fattest.backlog.pop() else { return };
            let size = before - fattest.backlog.bytes();
            dropped += size;
            self.bytes -= size;
            self.packets -= 1;
            ledger.drop_packet(now, Cause::QueueFull, packet);
        }
    }
}

/// Spreads every bit over all (the finalizer of SplitMix64: Steele, Lea and
/// Flood, OOPSLA 2014).
const fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
