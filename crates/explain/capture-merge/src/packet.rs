//! What is kept of a packet: enough to recognise it in the other capture.

use capture::dissect::{PacketDirection, TcpFlags, TcpSegment};

/// Bytes of payload whose digest is kept besides that of the whole: as many as any
/// snaplen that has the headers leaves.
const PREFIX: usize = 16;

/// TCP flags that no segmentation offload changes: FIN, SYN, RST.
const CONTROL: u16 = 0x007;

/// A packet of a capture, 64 bytes whatever its length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketIdentity {
    /// Since 1970; times after the year 2100 count as that.
    pub(crate) time_ns: i64,
    /// Its number in the file.
    pub(crate) number: u32,
    /// Its flow in [`crate::CapturedPackets`].
    pub(crate) flow: u32,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) ts_val: u32,
    pub(crate) ts_ecr: u32,
    /// Payload by the headers; of packets that are neither TCP nor UDP, that of IP.
    pub(crate) payload_len: u32,
    /// Digest of the TCP options without padding and timestamps.
    pub(crate) options: u32,
    /// Digests of the first 16 bytes of the payload and of all of it, where captured.
    pub(crate) prefix: u32,
    pub(crate) whole: u32,
    pub(crate) ip_id: u16,
    pub(crate) window: u16,
    pub(crate) flags: u16,
    pub(crate) ttl: u8,
    /// Traffic class: DSCP and ECN.
    pub(crate) tos: u8,
    marks: u8,
}

const SECOND_DIRECTION: u8 = 1;
const HAS_TIMESTAMPS: u8 = 2;
const HAS_PREFIX: u8 = 4;
const HAS_WHOLE: u8 = 8;

/// Latest time that is told apart, 2116: sums of two of them fit 63 bits.
const LATEST_NS: u64 = 1 << 62;

/// What an IP header says of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpHeader {
    tos: u8,
    ttl: u8,
    id: u16,
}

impl IpHeader {
    /// The header at the start of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let first: &[u8; 9] = bytes.first_chunk()?;
        Some(if first[0] >> 4 == 4 {
            let id = u16::from_be_bytes([first[4], first[5]]);
            IpHeader { tos: first[1], ttl: first[8], id }
        } else {
            IpHeader { tos: first[0] << 4 | first[1] >> 4, ttl: first[7], id: 0 }
        })
    }
}

impl PacketIdentity {
    /// A packet without a transport header that is read; `payload` as captured.
    pub(crate) fn new(
        (number, time_ns): (u32, u64),
        (flow, direction): (u32, PacketDirection),
        ip: IpHeader,
        (payload_len, payload): (u32, &[u8]),
    ) -> Self {
        let length = payload_len as usize;
        let mut marks = if direction == PacketDirection::BToA { SECOND_DIRECTION } else { 0 };
        let first = payload.get(..PREFIX.min(length));
        let whole = (payload.len() >= length).then_some(payload);
        marks |= if first.is_some() { HAS_PREFIX } else { 0 };
        marks |= if whole.is_some() { HAS_WHOLE } else { 0 };
        PacketIdentity {
            time_ns: time_ns.min(LATEST_NS) as i64,
            number,
            flow,
            seq: 0,
            ack: 0,
            ts_val: 0,
            ts_ecr: 0,
            payload_len,
            options: 0,
            prefix: digest(first.unwrap_or_default()),
            whole: digest(whole.unwrap_or_default()),
            ip_id: ip.id,
            window: 0,
            flags: 0,
            ttl: ip.ttl,
            tos: ip.tos,
            marks,
        }
    }

    /// Adds what a TCP header says.
    pub(crate) fn with_segment(mut self, segment: &TcpSegment<'_>) -> Self {
        self.seq = segment.seq;
        self.ack = if segment.flags.has(TcpFlags::ACK) { segment.ack } else { 0 };
        self.flags = segment.flags.0;
        self.window = segment.window;
        if let Some((value, echo)) = segment.options().timestamps {
            (self.ts_val, self.ts_ecr) = (value, echo);
            self.marks |= HAS_TIMESTAMPS;
        }
        for option in segment.each_option().filter(|option| ![1, 8].contains(&option.kind)) {
            self.options = (self.options ^ u32::from(option.kind)).wrapping_mul(0x9e37_79b1)
                ^ digest(option.data);
        }
        self
    }

    /// 0 or 1: which side of its flow sent it.
    pub(crate) fn direction(&self) -> usize {
        usize::from(self.marks & SECOND_DIRECTION)
    }

    pub(crate) fn has_timestamps(&self) -> bool {
        self.marks & HAS_TIMESTAMPS != 0
    }

    pub(crate) fn has_prefix(&self) -> bool {
        self.marks & HAS_PREFIX != 0
    }

    pub(crate) fn has_whole(&self) -> bool {
        self.marks & HAS_WHOLE != 0
    }

    /// FIN, SYN and RST.
    pub(crate) fn control(&self) -> u32 {
        u32::from(self.flags & CONTROL)
    }

    pub(crate) fn is_syn(&self) -> bool {
        TcpFlags(self.flags).has(TcpFlags::SYN)
    }
}

/// A digest of bytes by multiplication, eight at a time. Who makes packets that collide
/// has them compared wrongly, and nothing else.
fn digest(bytes: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(FACTOR);
        (product >> 64) as u64 ^ product as u64
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut state = words
        .iter()
        .fold(bytes.len() as u64 ^ FACTOR, |state, word| mix(state, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    state = mix(state, u64::from_le_bytes(last));
    (state >> 32) as u32 ^ state as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_64_bytes() {
        assert_eq!(size_of::<PacketIdentity>(), 64);
    }

    #[test]
    fn digests_tell_payloads_apart() {
        let texts: [&[u8]; 6] = [b"", b"a", b"b", b"12345678", b"123456780", b"0000000012345678"];
        for (place, one) in texts.iter().enumerate() {
            for other in &texts[place + 1..] {
                assert_ne!(digest(one), digest(other));
            }
        }
    }
}
