//! The bottleneck that a queue belongs to, and what a size means there.

use super::size::Size;
use link::Limit;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The bottleneck that a queue belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bottleneck {
    /// Long-term rate.
    pub(super) rate: BitRate,
    /// RTT without queueing.
    pub(super) rtt: Duration,
    /// Bytes of the longest packet, framing included.
    pub(super) packet: u64,
}

impl Bottleneck {
    pub(super) fn bdp(&self) -> ByteCount {
        self.rate.bytes_in(self.rtt)
    }

    pub(super) fn limit(&self, size: Size) -> Limit {
        match size {
            Size::Bdp(thousandths) => {
                let bytes = u128::from(self.bdp().bytes()) * u128::from(thousandths) / 1000;
                Limit::Bytes(ByteCount::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
            }
            Size::Packets(packets) => Limit::Packets(packets),
            Size::Bytes(bytes) => Limit::Bytes(bytes),
            Size::Time(time) => Limit::Bytes(self.rate.bytes_in(time.duration())),
        }
    }

    /// A limit in bytes; packets count with MTU size.
    pub(super) fn bytes(&self, limit: Limit) -> ByteCount {
        match limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(packets) => ByteCount::from_bytes(packets.saturating_mul(self.packet)),
        }
    }

    pub(super) fn packet_time(&self) -> Duration {
        self.rate.time_for(ByteCount::from_bytes(self.packet))
    }
}
