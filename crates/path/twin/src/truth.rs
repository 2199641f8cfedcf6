//! The ground truth of a run, simulated or in the lab.

use link::{Cause, Counters};
use record::{Drops, SenderState};
use serde::{Deserialize, Serialize};
use tcp::LimitTimes;

/// What was true within one interval of 100 ms.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TruthInterval {
    /// Its end, in seconds since the start.
    pub to_s: f64,
    /// Each connection, in the order of the scenario; those that are measured are first
    /// in the order of the measurement.
    pub connections: Vec<ConnectionTruth>,
    /// Bytes in the bottleneck's queue at its end, framing included.
    pub queue_bytes: u64,
    /// The most within it.
    pub peak_queue_bytes: u64,
    /// Share of the interval in which the bottleneck was sending.
    pub utilization: f64,
    /// Bytes that the bottleneck sent, of all traffic, framing included.
    pub sent_bytes: u64,
    /// Packets of all traffic dropped on the way to the receivers, by cause.
    pub drops: Drops,
    /// Packets of all traffic lost on the wire by the loss model.
    pub lost: u64,
    /// Packets of all traffic marked with congestion experienced.
    pub marked: u64,
    /// The opposite direction.
    pub reverse: ReverseTruth,
}

/// The direction of the acknowledgements within one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ReverseTruth {
    /// Share of the interval in which its bottleneck was sending.
    pub utilization: f64,
    /// Packets that arrived at the link.
    pub arrived: u64,
    /// Packets dropped by its queue or a policer.
    pub dropped: u64,
    /// Packets lost on its wire, in bursts and outages too.
    pub lost: u64,
}

/// One connection within one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionTruth {
    /// It is part of the measurement; the others are cross traffic.
    pub measured: bool,
    /// How long the sender waited for what, within the interval.
    pub times: LimitTimes,
    /// Packets that its receiver's application read.
    pub read: u64,
    /// Packets in the receive buffer that its application had not read, at the end.
    pub unread: u64,
    /// Bytes of its packets that reached the receiver, with headers and duplicates.
    pub arrived_bytes: u64,
    /// Packets retransmitted.
    pub retransmits: u64,
    /// Packets that arrived twice: their retransmission was not needed (D-SACK).
    pub duplicates: u64,
    /// Its packets dropped on the way, by cause.
    pub drops: Drops,
    /// Its packets lost on the wire by the loss model.
    pub lost: u64,
    /// Its packets marked with congestion experienced.
    pub marked: u64,
    /// How often the congestion window was reduced, those included that were undone.
    pub reductions: u64,
    /// It was in slow start (BBR: startup) at the end of the interval.
    pub slow_start: bool,
    /// The state of its sender.
    #[serde(default)]
    pub state: SenderState,
}

impl ConnectionTruth {
    /// Counts a packet that was dropped.
    pub(crate) fn count(&mut self, cause: Cause) {
        let drops = &mut self.drops;
        *match cause {
            Cause::TooLong => &mut drops.too_long,
            Cause::Policed => &mut drops.policer,
            Cause::QueueFull => &mut drops.queue,
            Cause::Aqm => &mut drops.aqm,
            Cause::Lost => &mut self.lost,
            Cause::Burst => &mut drops.bursts,
            Cause::Blackhole => &mut drops.blackhole,
        } += 1;
    }
}

impl ReverseTruth {
    /// Between two readings of a link's counters, `interval_ns` apart.
    pub(crate) fn between(from: &Counters, to: &Counters, interval_ns: u64) -> Self {
        let passed = to.since(from);
        ReverseTruth {
            utilization: utilization(from, to, interval_ns),
            arrived: passed.arrived,
            dropped: passed.queue_drops + passed.aqm_drops + passed.policed + passed.too_long,
            lost: passed.lost + passed.burst_lost + passed.blackhole_lost,
        }
    }
}

/// Share of the time between two readings in which the bottleneck was sending.
pub(crate) fn utilization(from: &Counters, to: &Counters, interval_ns: u64) -> f64 {
    // A packet that begins within an interval counts in it whole.
    to.since(from).busy.as_nanos() as f64 / interval_ns as f64
}

/// Times between two readings.
pub(crate) fn passed(from: &LimitTimes, to: &LimitTimes) -> LimitTimes {
    LimitTimes {
        application_ns: to.application_ns - from.application_ns,
        cwnd_ns: to.cwnd_ns - from.cwnd_ns,
        rwnd_ns: to.rwnd_ns - from.rwnd_ns,
        send_buffer_ns: to.send_buffer_ns - from.send_buffer_ns,
        pacing_ns: to.pacing_ns - from.pacing_ns,
        busy_ns: to.busy_ns - from.busy_ns,
    }
}

/// Drops between two readings of a link's counters.
pub(crate) fn drops(from: &Counters, to: &Counters) -> Drops {
    let passed = to.since(from);
    Drops {
        queue: passed.queue_drops,
        aqm: passed.aqm_drops,
        policer: passed.policed,
        too_long: passed.too_long,
        bursts: passed.burst_lost,
        blackhole: passed.blackhole_lost,
        unintended: 0,
    }
}
