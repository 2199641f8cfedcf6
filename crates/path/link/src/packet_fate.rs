//! The fate of each packet, and counters.

use crate::{Train, WindowFeedback};
use std::ops::Range;
use std::time::Duration;
use units::Nanos;

/// Counters of a link, in packets of MTU size and bytes including framing.
///
/// `arrived` = `too_long` + `policed` + `queue_drops` + `aqm_drops` + `sent` + queued;
/// `sent` + `duplicated` = `lost` + `burst_lost` + `blackhole_lost` + delivered or on the
/// wire.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counters {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets dropped because they exceeded the MTU.
    pub too_long: u64,
    /// Packets dropped by the policer.
    pub policed: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets dropped by active queue management.
    pub aqm_drops: u64,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// Packets sent by the bottleneck, including those lost after it.
    pub sent: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets lost on the wire by the loss model.
    pub lost: u64,
    /// Packets lost in bursts.
    pub burst_lost: u64,
    /// Packets lost in outages.
    pub blackhole_lost: u64,
    /// Duplicates created.
    pub duplicated: u64,
    /// Packets delivered with a flipped bit.
    pub corrupted: u64,
    /// Packets delayed by random reordering.
    pub reordered: u64,
    /// Time that the bottleneck was sending.
    pub busy: Duration,
    /// Expected value of `lost`: the sum of the draws' probabilities.
    pub loss_expected: f64,
    /// Variance of `loss_expected`.
    pub loss_variance: f64,
}

impl Counters {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            arrived: self.arrived - earlier.arrived,
            too_long: self.too_long - earlier.too_long,
            policed: self.policed - earlier.policed,
            queue_drops: self.queue_drops - earlier.queue_drops,
            aqm_drops: self.aqm_drops - earlier.aqm_drops,
            marked: self.marked - earlier.marked,
            sent: self.sent - earlier.sent,
            sent_bytes: self.sent_bytes - earlier.sent_bytes,
            lost: self.lost - earlier.lost,
            burst_lost: self.burst_lost - earlier.burst_lost,
            blackhole_lost: self.blackhole_lost - earlier.blackhole_lost,
            duplicated: self.duplicated - earlier.duplicated,
            corrupted: self.corrupted - earlier.corrupted,
            reordered: self.reordered - earlier.reordered,
            busy: self.busy.saturating_sub(earlier.busy),
            loss_expected: self.loss_expected - earlier.loss_expected,
            loss_variance: self.loss_variance - earlier.loss_variance,
        }
    }
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It exceeded the MTU.
    TooLong,
    /// It exceeded the policer's rate.
    Policed,
    /// The queue was full.
    QueueFull,
    /// Active queue management.
    Aqm,
    /// The loss model.
    Lost,
    /// A burst of losses.
    Burst,
    /// An outage.
    Blackhole,
}

/// The fate of one packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Fate<P> {
    /// The caller's handle to its train.
    pub payload: P,
    /// Its train.
    pub train: Train,
    /// Its index in the train.
    pub index: u32,
    /// Its packet number at this link, from 1.
    pub number: u64,
    /// Time of arrival.
    pub arrived: Nanos,
    /// When it was dropped, or sent by the bottleneck.
    pub decided: Nanos,
    /// What happened to it.
    pub kind: FateKind,
}

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FateKind {
    /// It was dropped.
    Dropped(Cause),
    /// It was or will be delivered.
    Delivered {
        /// Time of delivery.
        due: Nanos,
        /// Queueing delay.
        queued: Duration,
        /// Marked with congestion experienced.
        marked: bool,
        /// Delivered with a bit error.
        corrupted: bool,
        /// Delivered twice.
        duplicated: bool,
    },
}

/// Consecutive packets of one train on their way to the bottleneck.
#[derive(Debug, Clone)]
pub(crate) struct TrainRun<P> {
    /// Serial number of the train at this link.
    pub(crate) serial: u64,
    pub(crate) payload: P,
    pub(crate) train: Train,
    pub(crate) packets: Range<u32>,
    /// Packet number of the train's first packet at this link, from 1.
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
    /// The queue's, from when it is sent.
    pub(crate) feedback: WindowFeedback,
}

impl<P: Clone> TrainRun<P> {
    /// Number of packets.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.packets.end - self.packets.start)
    }

    /// A part of its packets.
    pub(crate) fn part(&self, packets: Range<u32>) -> Self {
        TrainRun { packets, payload: self.payload.clone(), ..*self }
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
            feedback: WindowFeedback::NONE,
        }
    }
}

/// The counters, and the recorded fates if enabled.
#[derive(Debug)]
pub(crate) struct FateLog<P> {
    pub(crate) counters: Counters,
    pub(crate) fates: Option<Vec<Fate<P>>>,
    /// Drops are recorded alone.
    pub(crate) drops_only: bool,
}

impl<P: Clone> FateLog<P> {
    pub(crate) fn new() -> Self {
        FateLog { counters: Counters::default(), fates: None, drops_only: false }
    }

    /// Whether delivered packets are recorded too.
    pub(crate) const fn records_deliveries(&self) -> bool {
        self.fates.is_some() && !self.drops_only
    }

    /// Records that all packets of a run are dropped.
    pub(crate) fn drop_run(&mut self, now: Nanos, cause: Cause, run: &TrainRun<P>) {
        *self.counter(cause) += run.count();
        if self.fates.is_some() {
            for index in run.packets.clone() {
                self.write(now, run.packet(index), FateKind::Dropped(cause));
            }
        }
    }

    /// Records that a packet is dropped.
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
            Cause::Blackhole => &mut counters.blackhole_lost,
        }
    }
}
