//! Packets in the order of their times. The lab knows a packet's fate when the bottleneck
//! decides it: after it entered the link, and before it arrives.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// How long packets are held back for earlier ones, in ns: queues are rarely longer.
pub(crate) const HOLD_NS: u64 = 1_000_000_000;

/// Bytes that are held back at most; then the earliest packets go first.
const MAX_BYTES: usize = 64 << 20;

/// Encoded packets that wait for earlier ones.
#[derive(Debug, Default)]
pub(crate) struct TimeOrder {
    /// By time, then by the packet's number: the packets of a train have one time, and the
    /// fate of those that are dropped is known first.
    held: BinaryHeap<Reverse<(Nanos, u64, Vec<u8>)>>,
    bytes: usize,
}

impl TimeOrder {
    /// Adds a packet with the number that it has in its direction.
    pub(crate) fn add(&mut self, at: Nanos, number: u64, packet: Vec<u8>) {
        self.bytes += packet.len();
        self.held.push(Reverse((at, number, packet)));
    }

    /// The next packet for which no earlier one is expected at `now`.
    pub(crate) fn next(&mut self, now: Nanos) -> Option<Vec<u8>> {
        let Reverse((at, ..)) = self.held.peek()?;
        if at.0.saturating_add(HOLD_NS) > now.0 && self.bytes <= MAX_BYTES {
            return None;
        }
        self.pop()
    }

    /// The next packet, whatever may come.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        let Reverse((_, _, packet)) = self.held.pop()?;
        self.bytes -= packet.len();
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_order_once_no_earlier_one_can_come() {
        let mut order = TimeOrder::default();
        for (at, name) in [(30, 4), (10, 1), (30, 3), (20, 2)] {
            order.add(Nanos(at), u64::from(name), vec![name]);
        }
        assert_eq!(order.next(Nanos(HOLD_NS + 9)), None);
        assert_eq!(order.next(Nanos(HOLD_NS + 10)), Some(vec![1]));
        assert_eq!(order.next(Nanos(HOLD_NS + 19)), None);
        let rest: Vec<_> = std::iter::from_fn(|| order.pop()).flatten().collect();
        assert_eq!(rest, [2, 3, 4]);
        assert_eq!(order.bytes, 0);
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut order = TimeOrder::default();
        for at in 0..3 {
            order.add(Nanos(at), at, vec![0; MAX_BYTES / 2]);
        }
        assert!(order.next(Nanos(0)).is_some());
        assert!(order.next(Nanos(0)).is_none());
    }
}
