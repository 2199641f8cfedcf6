//! Which ACKs a sender had when it sent a segment, from a capture that is not at the sender.
//!
//! A segment echoes the timestamp of the ACK that its sender received last (RFC 7323). So ACKs
//! wait here until a segment echoes them: segments and ACKs then come in the order in which
//! the sender saw them, whatever the delay of the path is.

use std::collections::VecDeque;

/// ACKs that wait at most; the oldest are taken as received.
const MAX: usize = 1 << 16;

/// ACKs that no segment has echoed.
#[derive(Debug, Clone)]
pub(crate) struct EchoOrder<A> {
    waiting: VecDeque<(u32, A)>,
    most: usize,
}

impl<A> Default for EchoOrder<A> {
    fn default() -> Self {
        EchoOrder { waiting: VecDeque::new(), most: MAX }
    }
}

impl<A> EchoOrder<A> {
    /// Has at most so many ACKs wait.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most.min(MAX);
    }

    /// An ACK with its timestamp value passes by; what has waited too long is returned.
    pub(crate) fn ack(&mut self, value: u32, ack: A) -> Option<A> {
        self.waiting.push_back((value, ack));
        if self.waiting.len() > self.most {
            self.waiting.pop_front().map(|(_, ack)| ack)
        } else {
            None
        }
    }

    /// The ACK that has waited longest.
    pub(crate) fn oldest(&mut self) -> Option<A> {
        self.waiting.pop_front().map(|(_, ack)| ack)
    }

    /// The next ACK that the sender of a segment with this echo had received.
    pub(crate) fn echoed(&mut self, echo: u32) -> Option<A> {
        let (value, _) = self.waiting.front()?;
        if (value.wrapping_sub(echo) as i32) > 0 {
            return None;
        }
        self.waiting.pop_front().map(|(_, ack)| ack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_are_received_when_they_are_echoed() {
        let mut order = EchoOrder::default();
        for (value, ack) in [(10, 'a'), (10, 'b'), (11, 'c'), (13, 'd')] {
            assert_eq!(order.ack(value, ack), None);
        }
        assert_eq!(order.echoed(9), None);
        // All of the same millisecond, and those before that were lost on the way.
        let mut received = Vec::new();
        while let Some(ack) = order.echoed(11) {
            received.push(ack);
        }
        assert_eq!(received, ['a', 'b', 'c']);
        assert_eq!(order.echoed(12), None);
        assert_eq!(order.echoed(13), Some('d'));
        assert_eq!(order.echoed(13), None);
    }

    #[test]
    fn values_wrap() {
        let mut order = EchoOrder::default();
        order.ack(u32::MAX, 1);
        order.ack(2, 2);
        assert_eq!(order.echoed(u32::MAX - 1), None);
        assert_eq!(order.echoed(u32::MAX), Some(1));
        assert_eq!(order.echoed(u32::MAX), None);
        assert_eq!(order.echoed(3), Some(2));
    }
}
