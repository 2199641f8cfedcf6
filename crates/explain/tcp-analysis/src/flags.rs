//! The flags of a packet, by the names of Wireshark's fields.

/// A set of analysis flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u32);

macro_rules! flags {
    ($($number:literal $name:ident $field:literal $doc:literal),* $(,)?) => {
        impl Flags {
            $(#[doc = $doc] pub const $name: Flags = Flags(1 << $number);)*
            /// Every flag with the name of Wireshark's field below `tcp.analysis`.
            pub const ALL: [(Flags, &'static str); FLAG_COUNT] = [$((Flags::$name, $field)),*];
        }
    };
}

/// How many flags there are.
pub const FLAG_COUNT: usize = 16;

flags! {
    0 RETRANSMISSION "retransmission" "Repeats a sequence number; also set with the next two, as in Wireshark.",
    1 FAST_RETRANSMISSION "fast_retransmission" "Retransmitted within 20 ms of two or more duplicate ACKs.",
    2 SPURIOUS_RETRANSMISSION "spurious_retransmission" "Retransmits what was already acknowledged.",
    3 OUT_OF_ORDER "out_of_order" "Fills a hole so early that it was probably overtaken.",
    4 DUPLICATE_ACK "duplicate_ack" "Repeats an ACK without data.",
    5 ACK_LOST_SEGMENT "ack_lost_segment" "Acknowledges a segment that was not captured.",
    6 LOST_SEGMENT "lost_segment" "The segment before it was not captured.",
    7 ZERO_WINDOW "zero_window" "Advertises a window of 0.",
    8 ZERO_WINDOW_PROBE "zero_window_probe" "One byte into a closed window.",
    9 ZERO_WINDOW_PROBE_ACK "zero_window_probe_ack" "Answers such a probe.",
    10 WINDOW_FULL "window_full" "Fills the window that the receiver advertises.",
    11 WINDOW_UPDATE "window_update" "Changes the window and nothing else.",
    12 KEEP_ALIVE "keep_alive" "Repeats the byte before the next one.",
    13 KEEP_ALIVE_ACK "keep_alive_ack" "Answers such a segment.",
    14 REUSED_PORTS "reused_ports" "A SYN on ports that had a connection.",
    15 DUPLICATE_SACK "duplicate_sack" "Its first SACK block reports a duplicate (RFC 2883).",
}

impl Flags {
    /// Whether any flag of `other` is set.
    #[must_use]
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Sets the flags of `other`.
    #[inline]
    pub fn set(&mut self, other: Flags) {
        self.0 |= other.0;
    }

    /// Whether no flag is set.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Flags::ALL.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}

/// How often each flag was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlagCounts(pub [u32; FLAG_COUNT]);

impl FlagCounts {
    /// Counts the flags of a packet.
    #[inline]
    pub fn add(&mut self, flags: Flags) {
        let mut left = flags.0;
        while left != 0 {
            if let Some(count) = self.0.get_mut(left.trailing_zeros() as usize) {
                *count = count.saturating_add(1);
            }
            left &= left - 1;
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &FlagCounts) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
    }

    /// How often `flag` was set.
    #[must_use]
    pub fn of(&self, flag: Flags) -> u32 {
        self.0.get(flag.0.trailing_zeros() as usize).copied().unwrap_or(0)
    }

    /// Each flag's field and count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
        Flags::ALL.into_iter().map(|(_, name)| name).zip(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_the_bit_of_its_place() {
        for (place, (flag, _)) in Flags::ALL.into_iter().enumerate() {
            assert_eq!(flag.0, 1 << place);
        }
    }

    #[test]
    fn each_flag_of_a_packet_counts() {
        let mut counts = FlagCounts::default();
        let mut flags = Flags::KEEP_ALIVE;
        flags.set(Flags::RETRANSMISSION);
        counts.add(flags);
        counts.add(Flags::KEEP_ALIVE);
        assert_eq!(counts.of(Flags::KEEP_ALIVE), 2);
        assert_eq!(counts.of(Flags::RETRANSMISSION), 1);
        assert_eq!(flags.names().collect::<Vec<_>>(), ["retransmission", "keep_alive"]);
    }
}
