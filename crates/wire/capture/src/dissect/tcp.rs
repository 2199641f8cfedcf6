//! TCP segments: what an analysis of a flow needs of each packet.
//!
//! Header: RFC 9293, section 3.1. Nothing is copied out of the packet but the fixed
//! fields; options are read when they are asked for.

use super::key::{FlowKey, PacketDirection};
use super::options::{OptionIter, TcpOptions};

/// Flags of a segment (RFC 9293; AE, RFC 9768).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: TcpFlags = TcpFlags(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x002);
    /// Reset.
    pub const RST: TcpFlags = TcpFlags(0x004);
    /// Push.
    pub const PSH: TcpFlags = TcpFlags(0x008);
    /// The acknowledgement number is valid.
    pub const ACK: TcpFlags = TcpFlags(0x010);
    /// The urgent pointer is valid.
    pub const URG: TcpFlags = TcpFlags(0x020);
    /// ECN echo.
    pub const ECE: TcpFlags = TcpFlags(0x040);
    /// Congestion window reduced.
    pub const CWR: TcpFlags = TcpFlags(0x080);
    /// Accurate ECN.
    pub const AE: TcpFlags = TcpFlags(0x100);

    /// Whether any flag of `other` is set.
    #[must_use]
    #[inline]
    pub const fn has(self, other: TcpFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether both are set, or either where they are combined.
    #[must_use]
    #[inline]
    pub const fn with(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }

    /// SYN, FIN or RST.
    #[must_use]
    #[inline]
    pub const fn is_control(self) -> bool {
        self.has(TcpFlags(0x007))
    }

    /// SYN without ACK.
    #[must_use]
    #[inline]
    pub const fn is_first_syn(self) -> bool {
        self.0 & 0x012 == 0x002
    }

    /// SYN and ACK.
    #[must_use]
    #[inline]
    pub const fn is_syn_ack(self) -> bool {
        self.0 & 0x012 == 0x012
    }
}

/// A TCP segment, borrowed from a packet.
#[derive(Debug, Clone, Copy)]
pub struct TcpSegment<'a> {
    /// The flow, of the innermost IP header.
    pub key: FlowKey,
    /// Which side of the flow sent it.
    pub direction: PacketDirection,
    /// Sequence number as sent.
    pub seq: u32,
    /// Acknowledgement number as sent; valid with [`TcpFlags::ACK`].
    pub ack: u32,
    /// Advertised window as sent, not scaled.
    pub window: u16,
    /// Flags.
    pub flags: TcpFlags,
    /// Bytes of payload by the IP header, or by the frame's original length where the
    /// IP header has none (GSO, BIG TCP). Not what was captured.
    pub payload_len: u32,
    /// Urgent pointer.
    pub urgent: u16,
    /// Checksum as sent.
    pub checksum: u16,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// ECN codepoint of the IP header: 0 to 3, CE is 3.
    pub ecn: u8,
    /// Identification of the IPv4 header; 0 with IPv6.
    pub ip_id: u16,
    /// Whether the length is the frame's, as the IP header's is 0 or in a jumbo option:
    /// a super-segment that segmentation offload or BIG TCP made.
    pub length_from_frame: bool,
    /// The options as captured.
    options: &'a [u8],
    /// Bytes of payload as captured; may be fewer than `payload_len`.
    pub payload: &'a [u8],
}

/// What the IP header says of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IpFields {
    pub(crate) ttl: u8,
    pub(crate) ecn: u8,
    pub(crate) id: u16,
    pub(crate) length_from_frame: bool,
}

impl<'a> TcpSegment<'a> {
    /// Reads the segment in `bytes` (from the TCP header on, as captured), of `length`
    /// bytes by the IP header. `None` where the fixed header was not captured, or the
    /// data offset is invalid.
    #[inline]
    pub(crate) fn parse(
        bytes: &'a [u8],
        length: u32,
        key: impl FnOnce(u16, u16) -> (FlowKey, PacketDirection),
        ip: IpFields,
    ) -> Option<Self> {
        let fixed: &[u8; 20] = bytes.first_chunk()?;
        let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| {
            u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        let header = usize::from(fixed[12] >> 4) * 4;
        // At most 60, so the cast is exact.
        let payload_len = length.checked_sub(header as u32)?;
        if header < 20 {
            return None;
        }
        let options = bytes.get(20..header).unwrap_or(&bytes[20..]);
        let captured = bytes.get(header..).unwrap_or_default();
        let payload = captured.get(..payload_len as usize).unwrap_or(captured);
        let (key, direction) = key(word(0), word(2));
        Some(TcpSegment {
            key,
            direction,
            seq: long(4),
            ack: long(8),
            window: word(14),
            flags: TcpFlags(word(12) & 0x0fff),
            payload_len,
            urgent: word(18),
            checksum: word(16),
            ttl: ip.ttl,
            ecn: ip.ecn,
            ip_id: ip.id,
            length_from_frame: ip.length_from_frame,
            options,
            payload,
        })
    }

    /// The options that an analysis uses, decoded.
    #[must_use]
    #[inline]
    pub fn options(&self) -> TcpOptions {
        TcpOptions::parse(self.options)
    }

    /// The options as captured.
    #[must_use]
    pub fn option_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// Every option in order, as sent.
    #[must_use]
    pub fn each_option(&self) -> OptionIter<'a> {
        OptionIter::new(self.options)
    }

    /// Source and destination port.
    #[must_use]
    pub fn ports(&self) -> (u16, u16) {
        match self.direction {
            PacketDirection::AToB => (self.key.a_port, self.key.b_port),
            PacketDirection::BToA => (self.key.b_port, self.key.a_port),
        }
    }

    /// The first sequence number after the segment; SYN and FIN take one each.
    #[must_use]
    #[inline]
    pub fn next_seq(&self) -> u32 {
        let flags = u32::from(self.flags.0 >> 1 & 1) + u32::from(self.flags.0 & 1);
        self.seq.wrapping_add(self.payload_len).wrapping_add(flags)
    }
}
