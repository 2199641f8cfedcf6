//! What happened to the packets of each flow, in short intervals: the ground truth of a
//! run, for whole runs at full speed.
//!
//! A packet log has a record for each packet and costs as much as the emulation itself;
//! this one adds numbers, and allocates only for a new interval.

use crate::packet::change::FlowKey;
use link::{Cause, Counters, FateKind};
use std::collections::HashMap;
use std::time::Duration;
use units::{BitRate, ByteCount, Nanos};

/// Length of an interval. Ten of them make one of the 100 ms in which causes are told
/// apart, so the start of a test can be anywhere to 5 ms.
const INTERVAL: Duration = Duration::from_millis(10);

/// Intervals kept: ten minutes.
const MAX_INTERVALS: usize = 60_000;

/// Flows told apart; further ones are only part of the link's counters.
const MAX_FLOWS: usize = 64;

/// The log of one direction of a link.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IntervalLog {
    /// The flows, in the order of their first packets.
    pub flows: Vec<FlowKey>,
    /// The intervals, without gaps.
    pub intervals: Vec<LinkInterval>,
}

/// One interval of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkInterval {
    /// Its end, since the start of the lab. An emulator that was not scheduled makes it
    /// longer than the others.
    pub to: Nanos,
    /// The link's counters at its end.
    pub counters: Counters,
    /// The bottleneck rate in effect at its end, a trace's mean; `None` if unlimited.
    pub rate: Option<BitRate>,
    /// The one-way delay in effect at its end.
    pub delay: Duration,
    /// Bytes queued at its end, framing included.
    pub queued_bytes: ByteCount,
    /// The most after an arrival within it.
    pub peak_queued_bytes: ByteCount,
    /// Of each flow in [`IntervalLog::flows`]; those without a packet so far are missing.
    pub flows: Vec<FlowInterval>,
}

/// One flow in one interval: packets of MTU size, by the moment of their fate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowInterval {
    /// Sent by the bottleneck, including those lost after it.
    pub sent: u64,
    /// IP bytes of packets that were or will be delivered, duplicates counted once.
    pub delivered_bytes: u64,
    /// Sum of their queueing delays.
    pub queued: Duration,
    /// Of them, marked with congestion experienced.
    pub marked: u64,
    /// Of them, those that a later packet of the flow overtakes.
    pub overtaken: u64,
    /// Dropped for exceeding the MTU.
    pub too_long: u64,
    /// Dropped by the policer.
    pub policed: u64,
    /// Dropped because the queue was full.
    pub queue_drops: u64,
    /// Dropped by active queue management.
    pub aqm_drops: u64,
    /// Lost by the loss model.
    pub lost: u64,
    /// Lost in bursts.
    pub burst_lost: u64,
    /// Lost in outages.
    pub blackhole_lost: u64,
}

/// A log that is being written.
#[derive(Debug, Default)]
pub(crate) struct IntervalLogger {
    log: IntervalLog,
    /// The index of each flow by its hash.
    known: HashMap<u32, Option<usize>>,
    /// The flow of the latest packet: mostly also that of the next.
    latest: Option<(u32, Option<usize>)>,
    current: Vec<FlowInterval>,
    /// Of each flow: the latest delivery so far, and whether it was counted as overtaken.
    last_due: Vec<(Nanos, bool)>,
    peak: ByteCount,
    next: Nanos,
}

/// The link at the end of an interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkState {
    pub(crate) counters: Counters,
    pub(crate) rate: Option<BitRate>,
    pub(crate) delay: Duration,
    pub(crate) queued_bytes: ByteCount,
}

impl IntervalLogger {
    /// A packet arrived, after which so much was queued.
    pub(crate) fn arrived(&mut self, queued: ByteCount) {
        self.peak = self.peak.max(queued);
    }

    /// Counts a packet of a flow, `hash`, with its fate; `key` is called for a new flow.
    pub(crate) fn count(
        &mut self,
        hash: u32,
        length: u32,
        kind: FateKind,
        key: impl FnOnce() -> Option<FlowKey>,
    ) {
        let Some(index) = self.flow(hash, key) else { return };
        let flow = &mut self.current[index];
        match kind {
            FateKind::Delivered { due, queued, marked, .. } => {
                flow.sent += 1;
                flow.delivered_bytes += u64::from(length);
                flow.queued += queued;
                flow.marked += u64::from(marked);
                let (last, counted) = &mut self.last_due[index];
                if due >= *last {
                    (*last, *counted) = (due, false);
                } else if !*counted {
                    flow.overtaken += 1;
                    *counted = true;
                }
            }
            FateKind::Dropped(cause) => {
                let lost_after = matches!(cause, Cause::Lost | Cause::Burst | Cause::Blackhole);
                flow.sent += u64::from(lost_after);
                *match cause {
                    Cause::TooLong => &mut flow.too_long,
                    Cause::Policed => &mut flow.policed,
                    Cause::QueueFull => &mut flow.queue_drops,
                    Cause::Aqm => &mut flow.aqm_drops,
                    Cause::Lost => &mut flow.lost,
                    Cause::Burst => &mut flow.burst_lost,
                    Cause::Blackhole => &mut flow.blackhole_lost,
                } += 1;
            }
        }
    }

    fn flow(&mut self, hash: u32, key: impl FnOnce() -> Option<FlowKey>) -> Option<usize> {
        if let Some((latest, index)) = self.latest
            && latest == hash
        {
            return index;
        }
        let (log, current, last_due) = (&mut self.log, &mut self.current, &mut self.last_due);
        let known = self.known.len();
        let index = match self.known.get(&hash) {
            Some(index) => *index,
            None if known >= MAX_FLOWS => None,
            None => {
                let index = key().map(|key| {
                    log.flows.push(key);
                    current.push(FlowInterval::default());
                    last_due.push((Nanos(0), false));
                    log.flows.len() - 1
                });
                self.known.insert(hash, index);
                index
            }
        };
        self.latest = Some((hash, index));
        index
    }

    /// Whether an interval has ended.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// Ends an interval.
    pub(crate) fn end_interval(&mut self, now: Nanos, state: LinkState) {
        // On a grid, so that the number of intervals does not depend on delays.
        self.next = self.next.plus(INTERVAL).max(now.plus(INTERVAL / 2));
        let flows = self.current.clone();
        self.current.fill(FlowInterval::default());
        let LinkState { counters, rate, delay, queued_bytes } = state;
        let peak_queued_bytes = std::mem::replace(&mut self.peak, queued_bytes).max(queued_bytes);
        if self.log.intervals.len() < MAX_INTERVALS {
            self.log.intervals.push(LinkInterval {
                to: now,
                counters,
                rate,
                delay,
                queued_bytes,
                peak_queued_bytes,
                flows,
            });
        }
    }

    pub(crate) fn finish(self) -> IntervalLog {
        self.log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn delivered(due: u64) -> FateKind {
        FateKind::Delivered {
            due: Nanos(due),
            queued: Duration::from_millis(2),
            marked: due == 3,
            corrupted: false,
            duplicated: false,
        }
    }

    fn state() -> LinkState {
        LinkState {
            counters: Counters::default(),
            rate: None,
            delay: Duration::ZERO,
            queued_bytes: ByteCount::from_bytes(10),
        }
    }

    fn key(port: u16) -> FlowKey {
        let at = |port| ([10, 0, 0, 1], port).into();
        FlowKey { protocol: 6, source: at(port), destination: at(5201) }
    }

    #[test]
    fn packets_count_in_the_interval_and_the_flow_of_their_fate() {
        let mut logger = IntervalLogger::default();
        logger.end_interval(Nanos(0), state());
        logger.arrived(ByteCount::from_bytes(300));
        // The packet due at 9 is overtaken by two, and counts once.
        for due in [1, 2, 9, 3, 4, 10] {
            logger.count(7, 100, delivered(due), || Some(key(1000)));
        }
        logger.count(8, 100, FateKind::Dropped(Cause::QueueFull), || Some(key(1001)));
        assert!(!logger.is_due(Nanos(9 * MS)) && logger.is_due(Nanos(10 * MS)));
        logger.end_interval(Nanos(10 * MS), state());
        logger.count(8, 100, FateKind::Dropped(Cause::Lost), || panic!("a known flow"));
        logger.end_interval(Nanos(25 * MS), state());
        let log = logger.finish();
        assert_eq!(log.flows, [key(1000), key(1001)]);
        assert_eq!(log.intervals[0].flows, []);
        let FlowInterval { sent, delivered_bytes, queued, marked, overtaken, .. } =
            log.intervals[1].flows[0];
        assert_eq!((sent, delivered_bytes, marked, overtaken), (6, 600, 1, 1));
        assert_eq!(queued, Duration::from_millis(12));
        assert_eq!(log.intervals[1].flows[1].queue_drops, 1);
        assert_eq!(log.intervals[1].peak_queued_bytes.bytes(), 300);
        let dropped = FlowInterval { sent: 1, lost: 1, ..FlowInterval::default() };
        assert_eq!(log.intervals[2].flows, [FlowInterval::default(), dropped]);
        assert_eq!(log.intervals[2].peak_queued_bytes.bytes(), 10);
    }

    #[test]
    fn the_number_of_flows_is_bounded() {
        let mut logger = IntervalLogger::default();
        for hash in 0..10_000 {
            logger.count(hash, 100, delivered(1), || Some(key(1)));
        }
        assert_eq!(logger.finish().flows.len(), MAX_FLOWS);
    }
}
