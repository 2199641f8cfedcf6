//! Trains of packets, and what comes out of a link.

use crate::Nanos;
use std::ops::Range;

/// The sizes of the packets that one buffer stands for: all `full` bytes long
/// but the last. Sizes are those of the IP packets, headers included, as they
/// would be on a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    packets: u32,
    full: u32,
    last: u32,
    flow: u32,
    ecn_capable: bool,
}

impl Train {
    /// One packet of `size` bytes.
    #[must_use]
    pub const fn single(size: u32) -> Self {
        Train { packets: 1, full: size, last: size, flow: 0, ecn_capable: false }
    }

    /// The packets that carry `payload` bytes behind `headers` bytes each, at
    /// most `segment` bytes of payload a packet. A `segment` of zero means one
    /// packet.
    #[must_use]
    pub const fn segmented(headers: u32, payload: u32, segment: u32) -> Self {
        if segment == 0 || payload <= segment {
            return Train::single(headers.saturating_add(payload));
        }
        let packets = payload.div_ceil(segment);
        let last = payload - (packets - 1) * segment;
        Train {
            packets,
            full: headers.saturating_add(segment),
            last: headers.saturating_add(last),
            ..Train::single(0)
        }
    }

    /// The same, as part of a flow: a hash of what its packets have in common,
    /// by which flow queues tell them apart.
    #[must_use]
    pub const fn of_flow(self, flow: u32) -> Self {
        Train { flow, ..self }
    }

    /// The same, as sent by one who understands marks or not (RFC 3168: ECT or CE).
    #[must_use]
    pub const fn ecn_capable(self, ecn_capable: bool) -> Self {
        Train { ecn_capable, ..self }
    }

    /// The flow it is part of.
    #[must_use]
    pub const fn flow(self) -> u32 {
        self.flow
    }

    /// Whether its packets may be marked.
    #[must_use]
    pub const fn is_ecn_capable(self) -> bool {
        self.ecn_capable
    }

    /// How many packets it stands for, at least 1.
    #[must_use]
    pub const fn packets(self) -> u32 {
        self.packets
    }

    /// Size of packet `index` in bytes.
    #[must_use]
    pub const fn size(self, index: u32) -> u32 {
        if index + 1 == self.packets { self.last } else { self.full }
    }

    /// Bytes of some of its packets.
    pub(crate) fn bytes(self, packets: &Range<u32>) -> u64 {
        if packets.is_empty() {
            return 0;
        }
        u64::from(packets.end - 1 - packets.start) * u64::from(self.full)
            + u64::from(self.size(packets.end - 1))
    }
}

/// Neighbouring packets of one train that reach the far end together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The handle given with the train.
    pub payload: P,
    /// The train they belong to.
    pub train: Train,
    /// Which of its packets.
    pub packets: Range<u32>,
    /// When the first of them reached the far end of the wire.
    pub first_due: Nanos,
    /// When the last did: the moment of release.
    pub due: Nanos,
    /// They were marked with congestion experienced.
    pub marked: bool,
    /// One bit of the packet (it is one then) is to be turned over: this
    /// number, modulo the bits there are, says which.
    pub flip: Option<u64>,
    /// The bottleneck's busy period the last of them was sent in.
    pub busy_period: u64,
    /// Bytes the bottleneck had sent up to and with the last of them, lost
    /// ones included; with the busy period it tells the rate achieved.
    pub sent_bytes: u64,
}

impl<P> Delivery<P> {
    /// Bytes of the IP packets in this delivery.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.train.bytes(&self.packets)
    }
}
