//! What became of each packet, and the sums.

use crate::{Nanos, Train};
use std::ops::Range;

/// What a link has done so far, in packets of MTU size and bytes with framing.
///
/// `arrived` = `too_long` + `policed` + `queue_drops` + `aqm_drops` + `sent` +
/// what waits; `sent` + `duplicated` = `lost` + `burst_lost` + `dark_lost` +
/// what was or will be delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counters {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets dropped because they were longer than the MTU.
    pub too_long: u64,
    /// Packets dropped by the policer.
    pub policed: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets dropped by active queue management.
    pub aqm_drops: u64,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// Packets that went through the bottleneck: delivered or lost after it.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Packets lost on the wire by the loss model.
    pub lost: u64,
    /// Packets lost in bursts.
    pub burst_lost: u64,
    /// Packets lost in a blackhole.
    pub dark_lost: u64,
    /// Second copies made.
    pub duplicated: u64,
    /// Packets delivered with a bit turned over.
    pub corrupted: u64,
    /// Packets held back.
    pub reordered: u64,
    /// Time the bottleneck was sending, in ns.
    pub busy: u64,
    /// What the loss model made one expect of `lost`: the sum of the
    /// probabilities drawn with, and the variance of that sum.
    pub loss_expected: f64,
    /// See `loss_expected`.
    pub loss_variance: f64,
}

/// Why a packet never came to the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Longer than the MTU.
    TooLong,
    /// The policer.
    Policed,
    /// No room in the queue.
    QueueFull,
    /// Active queue management.
    Aqm,
    /// The loss model.
    Lost,
    /// A burst of losses.
    Burst,
    /// A blackhole.
    Dark,
}

/// What became of one packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Fate<P> {
    /// The caller's handle on its train.
    pub payload: P,
    /// Its train.
    pub train: Train,
    /// Which packet of the train.
    pub index: u32,
    /// Its number at this link, from 1.
    pub number: u64,
    /// When it arrived.
    pub arrived: Nanos,
    /// When its fate was decided: dropped, or sent by the bottleneck.
    pub decided: Nanos,
    /// How.
    pub kind: FateKind,
}

/// Delivered or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FateKind {
    /// It never came to the far end.
    Dropped(Cause),
    /// It did, or will.
    Delivered {
        /// When.
        due: Nanos,
        /// How long it waited for the bottleneck, in ns.
        queued: u64,
        /// Marked with congestion experienced.
        marked: bool,
        /// One bit was turned over.
        corrupted: bool,
        /// A second copy came with it.
        duplicated: bool,
    },
}

/// Neighbouring packets of one train, on their way to the bottleneck.
#[derive(Debug, Clone)]
pub(crate) struct Run<P> {
    /// Numbers the trains of this link.
    pub(crate) serial: u64,
    pub(crate) payload: P,
    pub(crate) train: Train,
    pub(crate) packets: Range<u32>,
    /// Number of the train's first packet at this link, from 1.
    pub(crate) first_number: u64,
    pub(crate) arrived: Nanos,
    pub(crate) marked: bool,
}

/// One packet of a train.
#[derive(Debug, Clone)]
pub(crate) struct Packet<P> {
    pub(crate) serial: u64,
    pub(crate) payload: P,
    pub(crate) train: Train,
    pub(crate) index: u32,
    pub(crate) number: u64,
    pub(crate) arrived: Nanos,
    pub(crate) marked: bool,
}

impl<P: Clone> Run<P> {
    /// How many packets.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.packets.end - self.packets.start)
    }

    /// The same, but only some of its packets.
    pub(crate) fn part(&self, packets: Range<u32>) -> Self {
        Run { packets, payload: self.payload.clone(), ..*self }
    }

    /// One of its packets.
    pub(crate) fn packet(&self, index: u32) -> Packet<P> {
        Packet {
            serial: self.serial,
            payload: self.payload.clone(),
            train: self.train,
            index,
            number: self.first_number + u64::from(index),
            arrived: self.arrived,
            marked: self.marked,
        }
    }
}

/// Where fates are written down: the sums always, each single one where asked.
#[derive(Debug)]
pub(crate) struct Ledger<P> {
    pub(crate) counters: Counters,
    pub(crate) fates: Option<Vec<Fate<P>>>,
}

impl<P: Clone> Ledger<P> {
    pub(crate) fn new() -> Self {
        Ledger { counters: Counters::default(), fates: None }
    }

    /// All packets of a run are dropped.
    pub(crate) fn drop_run(&mut self, now: Nanos, cause: Cause, run: &Run<P>) {
        *self.counter(cause) += run.count();
        if self.fates.is_some() {
            for index in run.packets.clone() {
                self.write(now, run.packet(index), FateKind::Dropped(cause));
            }
        }
    }

    /// A packet is dropped.
    pub(crate) fn drop_packet(&mut self, now: Nanos, cause: Cause, packet: Packet<P>) {
        *self.counter(cause) += 1;
        self.write(now, packet, FateKind::Dropped(cause));
    }

    pub(crate) fn write(&mut self, decided: Nanos, packet: Packet<P>, kind: FateKind) {
        if let Some(fates) = &mut self.fates {
            let Packet { payload, train, index, number, arrived, .. } = packet;
            fates.push(Fate { payload, train, index, number, arrived, decided, kind });
        }
    }

    fn counter(&mut self, cause: Cause) -> &mut u64 {
        let counters = &mut self.counters;
        match cause {
            Cause::TooLong => &mut counters.too_long,
            Cause::Policed => &mut counters.policed,
            Cause::QueueFull => &mut counters.queue_drops,
            Cause::Aqm => &mut counters.aqm_drops,
            Cause::Lost => &mut counters.lost,
            Cause::Burst => &mut counters.burst_lost,
            Cause::Dark => &mut counters.dark_lost,
        }
    }
}
