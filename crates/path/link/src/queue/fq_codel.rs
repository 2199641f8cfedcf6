//! Flow queues with controlled delay (RFC 8290).
//!
//! ```text
//!             hash of the flow          new queues (served first)
//!   packet ──────────────────> queue ─┬──> o o          empty: to the end of the old
//!                                     └──> o o o o o    old queues, round robin
//! ```
//!
//! Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) in bytes: a queue that
//! has used its quantum moves to the end of the old queues. A queue that gets its first
//! packet is new and served before them, so a flow that sends less than a quantum per
//! round hardly waits. Each queue has its own CoDel.

use super::codel::{Control, Parameters};
use super::{Backlog, QueueContext};
use crate::config::Occupancy;
use crate::packet_fate::{Cause, FateLog, Packet, TrainRun};
use crate::{FqCoDel, Limit};
use std::collections::VecDeque;
use units::{ByteCount, Nanos};

/// Maximum number of packets dropped at once from the longest queue, and at most half of
/// it: finding it requires a scan of all queues (section 4.1, as in Linux).
const BATCH: u32 = 64;

/// A slot without a queue.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct FqCoDelQueue<P> {
    limit: Limit,
    parameters: Parameters,
    quantum: i64,
    overhead: u32,
    /// Seed of the flow hash: decides which flows share a queue.
    perturbation: u64,
    /// Index into `queues` for each hash value.
    slots: Vec<u32>,
    /// The queues used so far, in order of first use.
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
    /// Bytes that it may send in this round; negative if it has sent too much.
    deficit: i64,
    /// Whether it is in the list of new or old queues.
    listed: bool,
}

impl<P: Clone> FqCoDelQueue<P> {
    pub(crate) fn new(settings: FqCoDel, context: QueueContext) -> Self {
        FqCoDelQueue {
            limit: settings.codel.limit,
            parameters: Parameters::new(settings.codel),
            quantum: i64::from(settings.quantum.max(1)),
            overhead: context.overhead,
            perturbation: context.seed,
            slots: vec![NONE; settings.flows.max(1) as usize],
            queues: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
        }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Nanos,
        run: TrainRun<P>,
        idle: bool,
        log: &mut FateLog<P>,
    ) {
        if idle {
            self.reset();
        }
        let which = self.queue_of(run.train.flow());
        let queue = &mut self.queues[which as usize];
        self.parameters.note_size(queue.backlog.size(&run, run.packets.start));
        if !queue.listed {
            queue.listed = true;
            queue.deficit = self.quantum;
            self.new.push_back(which);
        }
        let mut rest = run;
        while !rest.packets.is_empty() && !self.fits(&rest) {
            // As many packets as fit, plus one.
            let end = rest.packets.end.min(rest.packets.start + self.count_fitting(&rest) + 1);
            self.push(which, rest.part(rest.packets.start..end));
            rest.packets.start = end;
            // With an idle bottleneck one packet is sent at once and does not count.
            while self.packets > u64::from(idle)
                && self.limit.is_exceeded(Occupancy::new(self.bytes, self.packets))
            {
                self.drop_from_longest(now, idle, log);
            }
        }
        self.push(which, rest);
    }

    pub(crate) fn dequeue(&mut self, now: Nanos, log: &mut FateLog<P>) -> Option<Packet<P>> {
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
            let packet = queue.control.dequeue(now, &self.parameters, &mut queue.backlog, log);
            self.bytes -= bytes - queue.backlog.bytes();
            self.packets -= packets - queue.backlog.packets();
            if let Some(packet) = packet {
                let size = packet.train.size(packet.index) + self.overhead;
                queue.deficit -= i64::from(size);
                return Some(packet);
            }
            list.pop_front();
            if of_new {
                // An emptied new queue becomes old, or a flow could stay new by sending one
                // packet per round and starve the others (section 4.2).
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

    /// Removes all packets, in order of arrival.
    pub(crate) fn drain(&mut self) -> Vec<TrainRun<P>> {
        (self.bytes, self.packets) = (0, 0);
        let mut runs: Vec<_> =
            self.queues.iter_mut().flat_map(|queue| queue.backlog.drain()).collect();
        runs.sort_by_key(|run| (run.serial, run.packets.start));
        runs
    }

    /// All queues are empty: the next packet of each flow makes it new.
    fn reset(&mut self) {
        for which in self.new.drain(..).chain(self.old.drain(..)) {
            let queue = &mut self.queues[which as usize];
            queue.listed = false;
            queue.control.reset();
        }
    }

    fn queue_of(&mut self, flow: u32) -> u32 {
        let slots = self.slots.len() as u64;
        // The upper 32 bits as a fraction of the number of slots.
        let slot = ((mix(u64::from(flow) ^ self.perturbation) >> 32) * slots) >> 32;
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

    fn push(&mut self, which: u32, run: TrainRun<P>) {
        let backlog = &mut self.queues[which as usize].backlog;
        self.bytes += backlog.bytes_of(&run);
        self.packets += run.count();
        backlog.push(run);
    }

    /// Whether all of a run fits.
    fn fits(&self, run: &TrainRun<P>) -> bool {
        let framing = run.count() * u64::from(self.overhead);
        let bytes = self.bytes + run.train.bytes(&run.packets) + framing;
        !self.limit.is_exceeded(Occupancy::new(bytes, self.packets + run.count()))
    }

    /// Number of packets of a run that fit.
    fn count_fitting(&self, run: &TrainRun<P>) -> u32 {
        let overhead = u64::from(self.overhead);
        let (mut bytes, mut packets, mut fits) = (self.bytes, self.packets, 0);
        for index in run.packets.clone() {
            let size = u64::from(run.train.size(index)) + overhead;
            if !self.limit.admits(Occupancy::new(bytes, packets), ByteCount::from_bytes(size)) {
                break;
            }
            bytes += size;
            packets += 1;
            fits += 1;
        }
        fits
    }

    /// Drops from the head of the queue with the most bytes.
    fn drop_from_longest(&mut self, now: Nanos, idle: bool, log: &mut FateLog<P>) {
        let Some(longest) = self.queues.iter_mut().max_by_key(|queue| queue.backlog.bytes()) else {
            return;
        };
        let half = longest.backlog.bytes().div_ceil(2);
        let mut dropped = 0;
        for _ in 0..BATCH {
            if dropped >= half || self.packets <= u64::from(idle) {
                return;
            }
            let before = longest.backlog.bytes();
            let Some(packet) = longest.backlog.pop() else { return };
            let size = before - longest.backlog.bytes();
            dropped += size;
            self.bytes -= size;
            self.packets -= 1;
            log.drop_packet(now, Cause::QueueFull, packet);
        }
    }
}

/// Mixes the bits (finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
