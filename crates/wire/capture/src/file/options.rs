//! Options of pcapng blocks (draft-ietf-opsawg-pcapng, section 3.5).

/// Bytes in either order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) big_endian: bool,
}

impl Order {
    #[inline]
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    #[inline]
    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    #[inline]
    pub(super) fn u64(self, bytes: [u8; 8]) -> u64 {
        if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }
}

/// Length with padding to 4 bytes.
#[inline]
pub(super) fn padded(length: usize) -> usize {
    length.div_ceil(4) * 4
}

/// Options in order; ends at the end mark, or where one is malformed.
pub(super) struct Options<'a> {
    pub(super) rest: &'a [u8],
    pub(super) order: Order,
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let (header, rest) = self.rest.split_first_chunk::<4>()?;
        let [a, b, c, d] = *header;
        let (code, length) = (self.order.u16([a, b]), usize::from(self.order.u16([c, d])));
        if code == 0 {
            return None;
        }
        let value = rest.get(..length)?;
        self.rest = rest.get(padded(length)..).unwrap_or_default();
        Some((code, value))
    }
}

/// opt_comment
pub(super) const COMMENT: u16 = 1;

/// The options of a packet, decoded when they are asked for.
#[derive(Debug, Clone, Copy)]
pub struct PacketOptions<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> PacketOptions<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8], big_endian: bool) -> Self {
        PacketOptions { bytes, order: Order { big_endian } }
    }

    /// Codes and values.
    pub fn iter(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        Options { rest: self.bytes, order: self.order }
    }

    /// Codes and values with little-endian numbers (epb_flags, epb_dropcount, epb_packetid and
    /// epb_queue).
    pub(crate) fn little_endian(self) -> impl Iterator<Item = (u16, Vec<u8>)> + use<'a> {
        let big_endian = self.order.big_endian;
        self.iter().map(move |(code, value)| {
            let mut value = value.to_vec();
            if big_endian && matches!(code, 2 | 4 | 5 | 6) {
                value.reverse();
            }
            (code, value)
        })
    }

    /// The comments. Text of the file: unfiltered.
    pub fn comments(self) -> impl Iterator<Item = &'a str> {
        self.iter()
            .filter(|(code, _)| *code == COMMENT)
            .filter_map(|(_, value)| std::str::from_utf8(value).ok())
    }

    /// Packets dropped between this packet and the one before (epb_dropcount).
    #[must_use]
    pub fn dropped(self) -> Option<u64> {
        let (_, value) = self.iter().find(|(code, _)| *code == 4)?;
        Some(self.order.u64(*value.first_chunk()?))
    }

    /// Whether the interface received the packet (`Some(true)`) or sent it
    /// (`Some(false)`), by the flags (epb_flags).
    #[must_use]
    pub fn inbound(self) -> Option<bool> {
        let (_, value) = self.iter().find(|(code, _)| *code == 2)?;
        match self.order.u32(*value.first_chunk()?) & 3 {
            1 => Some(true),
            2 => Some(false),
            _ => None,
        }
    }
}
