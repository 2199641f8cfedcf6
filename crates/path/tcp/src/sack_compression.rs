//! Acknowledgements of out-of-order data that a receiver holds back (Linux since 4.18,
//! `tcp_comp_sack_delay_ns` and `tcp_comp_sack_nr`).

use units::{Nanos, Rtt};

/// Duplicate acknowledgements that are sent at once: those that fast retransmit counts
/// (RFC 5681 section 3.2).
const IMMEDIATE: u32 = 3;
/// Most that are held back; the next one is sent at once.
const MOST_HELD: u32 = 44;
/// Longest time for which one is held back, ns.
const LONGEST_NS: u64 = 1_000_000;
/// The same as a share of the RTT: 1 / 20.
const RTT_DIVISOR: u64 = 20;

/// The acknowledgements held back.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SackCompression {
    /// The packet that was expected at the latest duplicate acknowledgement.
    expected: u64,
    /// Duplicate acknowledgements for it that were sent at once.
    immediate: u32,
    held: u32,
    /// When those held back are sent as one.
    due: Option<Nanos>,
}

impl SackCompression {
    /// Data arrived out of order while `expected` is missing. Returns true if it is to be
    /// acknowledged at once.
    pub(crate) fn on_out_of_order(&mut self, now: Nanos, expected: u64, rtt: Option<Rtt>) -> bool {
        if self.held >= MOST_HELD {
            return true;
        }
        if self.expected != expected {
            self.expected = expected;
            self.immediate = 0;
        }
        if self.immediate < IMMEDIATE {
            self.immediate += 1;
            return true;
        }
        let Some(rtt) = rtt else { return true };
        self.held += 1;
        let delay_ns = (rtt.nanos() / RTT_DIVISOR).min(LONGEST_NS);
        self.due.get_or_insert(now.plus_nanos(delay_ns));
        false
    }

    /// An acknowledgement was sent, whatever for: it covers those held back.
    pub(crate) fn on_acknowledgement(&mut self) {
        self.held = 0;
        self.due = None;
    }

    /// When to acknowledge what is held back.
    pub(crate) const fn due(&self) -> Option<Nanos> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<Rtt> = Some(Rtt::from_nanos(40_000_000));

    #[test]
    fn three_duplicates_leave_at_once_and_the_rest_within_a_millisecond() {
        let mut sacks = SackCompression::default();
        let at_once: Vec<bool> =
            (0..5).map(|n| sacks.on_out_of_order(Nanos(n * 240_000), 7, RTT)).collect();
        assert_eq!(at_once, [true, true, true, false, false]);
        assert_eq!(sacks.due(), Some(Nanos(3 * 240_000 + 1_000_000)));
        sacks.on_acknowledgement();
        assert_eq!(sacks.due(), None);
        assert!(!sacks.on_out_of_order(Nanos(2_000_000), 7, RTT));
        // The hole was filled, and there is another.
        assert!(sacks.on_out_of_order(Nanos(2_100_000), 9, RTT));
    }

    #[test]
    fn short_round_trips_shorten_the_delay_and_44_are_held_at_most() {
        let mut sacks = SackCompression::default();
        let rtt = Some(Rtt::from_nanos(1_000_000));
        let held = (0..100).find(|_| sacks.on_out_of_order(Nanos(0), 0, rtt) && sacks.held > 0);
        assert_eq!((held, sacks.held), (Some(47), 44));
        assert_eq!(sacks.due(), Some(Nanos(50_000)));
    }
}
