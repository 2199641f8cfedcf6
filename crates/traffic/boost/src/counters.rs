//! Counters of a box, which its threads share.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter, or a gauge.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Takes back what was added.
    pub(crate) fn subtract(&self, less: usize) {
        self.0.fetch_sub(u64::try_from(less).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn decrement(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of a box.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) flows: Counter,
    pub(crate) active_flows: Counter,
    pub(crate) refused: Counter,
    pub(crate) reset: Counter,
    pub(crate) lanes: Counter,
    pub(crate) active_lanes: Counter,
    pub(crate) reused: Counter,
    pub(crate) to_lane: Counter,
    pub(crate) to_local: Counter,
    pub(crate) wan_sent: Counter,
    pub(crate) wan_received: Counter,
    pub(crate) pipes: Counter,
}

/// What a box has carried so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Flows that began.
    pub flows: u64,
    /// Flows that have not ended.
    pub active_flows: u64,
    /// Flows that were refused, by far or here.
    pub refused: u64,
    /// Flows that ended with an RST.
    pub reset: u64,
    /// Connections between the boxes that began.
    pub lanes: u64,
    /// Connections between the boxes that are open.
    pub active_lanes: u64,
    /// Flows on a lane that had carried another one.
    pub reused: u64,
    /// Bytes from applications (near) or targets (far).
    pub bytes_in: u64,
    /// Bytes to them.
    pub bytes_out: u64,
    /// Bytes sent to the other box, with headers and encryption, without those of TCP and IP.
    pub wan_sent: u64,
    /// Bytes received from the other box.
    pub wan_received: u64,
    /// Pipes in use or kept for use.
    pub pipes: u64,
}

impl Counters {
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            flows: self.flows.get(),
            active_flows: self.active_flows.get(),
            refused: self.refused.get(),
            reset: self.reset.get(),
            lanes: self.lanes.get(),
            active_lanes: self.active_lanes.get(),
            reused: self.reused.get(),
            bytes_in: self.to_lane.get(),
            bytes_out: self.to_local.get(),
            wan_sent: self.wan_sent.get(),
            wan_received: self.wan_received.get(),
            pipes: self.pipes.get(),
        }
    }
}
