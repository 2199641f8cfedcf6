//! Trains of packets, and deliveries.

use crate::{CongestionHeader, WindowFeedback};
use std::ops::Range;
use units::Nanos;

/// The sizes of the packets that one buffer stands for: all `full` bytes long except the
/// last. Sizes are those of IP packets including headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    packets: u32,
    full: u32,
    last: u32,
    flow: u32,
    ecn: EcnCodepoint,
    protocol: Option<Protocol>,
    congestion_header: Option<CongestionHeader>,
}

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable: the sender wants L4S treatment (RFC 9331).
    Ect1,
    /// ECN-capable, with the classic response to marks.
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl EcnCodepoint {
    /// The codepoint in the two low-order bits of a traffic class; the others are ignored.
    #[must_use]
    pub const fn of_traffic_class(bits: u8) -> Self {
        match bits & 3 {
            0 => EcnCodepoint::NotEct,
            1 => EcnCodepoint::Ect1,
            2 => EcnCodepoint::Ect0,
            _ => EcnCodepoint::Ce,
        }
    }
}

/// Transport protocols that middleboxes tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// UDP, and what runs over it.
    Udp,
    /// TCP.
    Tcp,
}

impl Protocol {
    /// All of them, in the order of their values.
    pub const ALL: [Protocol; 2] = [Protocol::Udp, Protocol::Tcp];

    /// That of an IP protocol number; `None` for any other.
    #[must_use]
    pub const fn of_number(number: u8) -> Option<Self> {
        match number {
            17 => Some(Protocol::Udp),
            6 => Some(Protocol::Tcp),
            _ => None,
        }
    }
}

impl Train {
    /// One packet of `size` bytes.
    #[must_use]
    pub const fn single(size: u32) -> Self {
        Train {
            packets: 1,
            full: size,
            last: size,
            flow: 0,
            ecn: EcnCodepoint::NotEct,
            protocol: None,
            congestion_header: None,
        }
    }

    /// Packets of at most `segment` payload bytes each that carry `payload` bytes in total,
    /// with `headers` bytes each. With a `segment` of zero it is one packet.
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

    /// Sets the flow: a hash of the addresses and ports of its packets, which selects a
    /// flow queue.
    #[must_use]
    pub const fn of_flow(self, flow: u32) -> Self {
        Train { flow, ..self }
    }

    /// Sets the ECN field of its packets.
    #[must_use]
    pub const fn with_ecn(self, ecn: EcnCodepoint) -> Self {
        Train { ecn, ..self }
    }

    /// Sets the transport protocol of its packets.
    #[must_use]
    pub const fn of_protocol(self, protocol: Option<Protocol>) -> Self {
        Train { protocol, ..self }
    }

    /// Puts a congestion header into each of its packets.
    #[must_use]
    pub const fn with_congestion_header(self, header: Option<CongestionHeader>) -> Self {
        Train { congestion_header: header, ..self }
    }

    /// The congestion header of its packets, if they have one.
    #[must_use]
    pub const fn congestion_header(self) -> Option<CongestionHeader> {
        self.congestion_header
    }

    /// The transport protocol, if middleboxes tell it apart.
    #[must_use]
    pub const fn protocol(self) -> Option<Protocol> {
        self.protocol
    }

    /// The flow.
    #[must_use]
    pub const fn flow(self) -> u32 {
        self.flow
    }

    /// Whether its packets are ECN-capable.
    #[must_use]
    pub const fn is_ecn_capable(self) -> bool {
        !matches!(self.ecn, EcnCodepoint::NotEct)
    }

    /// Whether its packets get L4S treatment: ECT(1), or CE, whose sender is unknown
    /// (RFC 9331, section 5.1).
    #[must_use]
    pub const fn is_l4s(self) -> bool {
        matches!(self.ecn, EcnCodepoint::Ect1 | EcnCodepoint::Ce)
    }

    /// Number of packets, at least 1.
    #[must_use]
    pub const fn packets(self) -> u32 {
        self.packets
    }

    /// Size of packet `index` in bytes.
    #[must_use]
    pub const fn size(self, index: u32) -> u32 {
        if index + 1 == self.packets { self.last } else { self.full }
    }

    /// Size of some of its packets in bytes.
    pub(crate) fn bytes(self, packets: &Range<u32>) -> u64 {
        if packets.is_empty() {
            return 0;
        }
        u64::from(packets.end - 1 - packets.start) * u64::from(self.full)
            + u64::from(self.size(packets.end - 1))
    }
}

/// Consecutive packets of one train that reach the far end together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The handle given with the train.
    pub payload: P,
    /// The train they belong to.
    pub train: Train,
    /// The indices of the packets.
    pub packets: Range<u32>,
    /// When the first of them reached the far end.
    pub first_due: Nanos,
    /// When the last of them did: the time of release.
    pub due: Nanos,
    /// Whether they were marked with congestion experienced.
    pub marked: bool,
    /// What an XCP router granted with each of them.
    pub feedback: WindowFeedback,
    /// Bit to flip, modulo the number of bits of the packet; the delivery then has one
    /// packet.
    pub flip: Option<u64>,
    /// Busy period of the bottleneck in which the last of them was sent.
    pub busy_period: u64,
    /// Bytes sent by the bottleneck up to and including the last of them, including lost
    /// packets; with the busy period it gives the achieved rate.
    pub sent_bytes: u64,
}

impl<P> Delivery<P> {
    /// Bytes of the IP packets in this delivery.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.train.bytes(&self.packets)
    }
}
