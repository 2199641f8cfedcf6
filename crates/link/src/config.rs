//! What is asked of a link.

use std::time::Duration;
use units::{BitRate, ByteCount, LossRatio};

/// The settings of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkConfig {
    /// Rate of the bottleneck, counting each packet's bytes plus `overhead`.
    pub rate: BitRate,
    /// Propagation delay, one way, beside serialisation and queueing.
    pub delay: Duration,
    /// Share of packets lost on the wire, each by an independent draw (Bernoulli).
    pub loss: LossRatio,
    /// Room before the bottleneck.
    pub queue: Queue,
    /// Framing bytes counted on each packet: 0 counts IP packets, 38 Ethernet
    /// with preamble and gap.
    pub overhead: u32,
    /// Seed of the draws.
    pub seed: u64,
}

/// A drop-tail queue; the packet being sent is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Room for so many bytes, framing included.
    Bytes(ByteCount),
    /// Room for so many packets of MTU size or less.
    Packets(u64),
}

impl Queue {
    /// Whether `size` more bytes fit.
    #[must_use]
    pub const fn admits(self, queued_bytes: u64, queued_packets: u64, size: u64) -> bool {
        match self {
            Queue::Bytes(limit) => queued_bytes + size <= limit.bytes(),
            Queue::Packets(limit) => queued_packets < limit,
        }
    }
}
