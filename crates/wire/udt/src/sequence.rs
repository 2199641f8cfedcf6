//! Sequence and message numbers: 31 and 29 bits on the wire, counts of 64 bits inside.

/// Sequence numbers are of 31 bits: 0 follows 0x7FFF_FFFF.
const SEQUENCE_MASK: u32 = 0x7FFF_FFFF;
/// Largest message number; 1 follows it.
const LAST_MESSAGE: u32 = 0x1FFF_FFFF;

/// A sequence number as it is on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Sequence(u32);

impl Sequence {
    /// The number in the lower 31 bits.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Sequence(number & SEQUENCE_MASK)
    }

    /// The number, below 2^31.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The number `count` packets after this one.
    #[must_use]
    pub const fn after(self, count: u64) -> Self {
        // The mask leaves nothing above 31 bits.
        Sequence(self.0.wrapping_add((count & SEQUENCE_MASK as u64) as u32) & SEQUENCE_MASK)
    }

    /// The count of the packet with this number that is nearest to `near`, where packet 0
    /// has the number `first`. `None` for packets before the first.
    #[must_use]
    pub const fn count(self, first: Sequence, near: u64) -> Option<u64> {
        let forward = self.0.wrapping_sub(first.after(near).0) & SEQUENCE_MASK;
        if forward < 1 << 30 {
            near.checked_add(forward as u64)
        } else {
            near.checked_sub((SEQUENCE_MASK - forward) as u64 + 1)
        }
    }

    /// Whether a packet with this number begins a packet pair, which measures capacity.
    #[must_use]
    pub const fn begins_pair(self) -> bool {
        self.0.is_multiple_of(16)
    }

    /// Whether a packet with this number ends a packet pair.
    #[must_use]
    pub const fn ends_pair(self) -> bool {
        self.0 % 16 == 1
    }
}

/// A message number: 1 to 0x1FFF_FFFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageNumber(u32);

impl MessageNumber {
    /// The first message of a connection.
    pub const FIRST: MessageNumber = MessageNumber(1);

    /// The number in the lower 29 bits.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        MessageNumber(number & LAST_MESSAGE)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The number of the next message.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 >= LAST_MESSAGE { MessageNumber::FIRST } else { MessageNumber(self.0 + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_follows_the_last_number() {
        let last = Sequence::new(SEQUENCE_MASK);
        assert_eq!(last.after(1), Sequence::new(0));
        assert_eq!(Sequence::new(0).count(last, 0), Some(1));
        assert_eq!(last.count(Sequence::new(0), 0), None, "before the first packet");
        assert_eq!(MessageNumber::new(LAST_MESSAGE).next(), MessageNumber::FIRST);
    }

    proptest! {
        #[test]
        fn a_number_near_a_count_gives_the_packet(
            first: u32,
            near in 0_u64..1 << 50,
            distance in -(1_i64 << 30)..1 << 30,
        ) {
            let first = Sequence::new(first);
            let packet = near.checked_add_signed(distance);
            let number = first.after(packet.unwrap_or(0));
            match packet {
                Some(packet) => prop_assert_eq!(number.count(first, near), Some(packet)),
                None => prop_assert!(number.number() <= SEQUENCE_MASK),
            }
        }
    }
}
