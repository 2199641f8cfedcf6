//! Where the capture was made: how soon each side answers what passes by.
//!
//! A side that is near answers within microseconds, one that is far after the RTT of its
//! part of the path. Every answer counts: SYN and SYN-ACK, an ACK of data, an echoed
//! timestamp (RFC 7323). The least of them is the RTT to that side, and the two sides
//! together are the RTT of the path.

use record::CapturePoint;
use std::num::{NonZeroU32, NonZeroU64};

/// The soonest answers of a side.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Responses {
    least_ns: Option<NonZeroU64>,
    /// A timestamp value of its own, and when it passed first; the peer's echo of it ends the
    /// wait.
    probe: Option<(NonZeroU32, u64)>,
}

impl Responses {
    /// Notes an answer.
    #[inline]
    pub(crate) fn add(&mut self, delay_ns: u64) {
        // Two packets in the same nanosecond are one after the other all the same.
        let delay = NonZeroU64::new(delay_ns).unwrap_or(NonZeroU64::MIN);
        self.least_ns = Some(self.least_ns.map_or(delay, |least| least.min(delay)));
    }

    /// The RTT between this point and the side.
    pub(crate) fn least_ns(&self) -> Option<u64> {
        self.least_ns.map(NonZeroU64::get)
    }

    /// A timestamp value of its own passes by.
    #[inline]
    pub(crate) fn sent(&mut self, value: u32, now_ns: u64) {
        self.probe = self.probe.or_else(|| NonZeroU32::new(value).map(|value| (value, now_ns)));
    }

    /// The peer echoes `value`: the time since it passed by, once for each.
    #[inline]
    pub(crate) fn echoed(&mut self, value: u32, now_ns: u64) -> Option<u64> {
        let (probe, sent_ns) =
            self.probe.filter(|(probe, _)| value.wrapping_sub(probe.get()) as i32 >= 0)?;
        self.probe = None;
        (value == probe.get()).then(|| now_ns.saturating_sub(sent_ns))
    }
}

/// The capture point with what it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vantage {
    /// Where.
    pub point: CapturePoint,
    /// Share of the RTT that lies between the sender and this point, 0 to 1.
    pub position: Option<f64>,
    /// How far that may be off: the hosts' own delays are part of their answers.
    pub uncertainty: Option<f64>,
    /// RTT between this point and the sender, in ns.
    pub to_sender_ns: Option<u64>,
    /// RTT between this point and the receiver, in ns.
    pub to_receiver_ns: Option<u64>,
}

/// Delays of a host between a packet and its answer, in ns: interrupt and scheduler.
const HOST_DELAY_NS: f64 = 500_000.0;

/// A share of the RTT up to which a point is at an end.
const AT_AN_END: f64 = 0.1;

impl Vantage {
    pub(crate) fn of(sender: &Responses, receiver: &Responses) -> Self {
        let (to_sender_ns, to_receiver_ns) = (sender.least_ns(), receiver.least_ns());
        let Some((near, far)) = to_sender_ns.zip(to_receiver_ns) else {
            return Vantage {
                point: CapturePoint::Unknown,
                position: None,
                uncertainty: None,
                to_sender_ns,
                to_receiver_ns,
            };
        };
        let sum = near as f64 + far as f64;
        let position = near as f64 / sum;
        let uncertainty = (HOST_DELAY_NS / sum).min(0.5);
        let point = if uncertainty >= 0.5 {
            // Both are within a host's delay.
            CapturePoint::Unknown
        } else if position - uncertainty <= AT_AN_END && position < 0.5 {
            CapturePoint::Sender
        } else if position + uncertainty >= 1.0 - AT_AN_END {
            CapturePoint::Receiver
        } else {
            CapturePoint::Between
        };
        Vantage {
            point,
            position: Some(position),
            uncertainty: Some(uncertainty),
            to_sender_ns,
            to_receiver_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(sender_ms: f64, receiver_ms: f64) -> CapturePoint {
        let side = |ms: f64| {
            let mut responses = Responses::default();
            responses.add((ms * 1e6) as u64);
            responses
        };
        Vantage::of(&side(sender_ms), &side(receiver_ms)).point
    }

    #[test]
    fn a_point_is_at_the_end_that_answers_at_once() {
        assert_eq!(point(0.05, 40.0), CapturePoint::Sender);
        assert_eq!(point(40.0, 0.05), CapturePoint::Receiver);
        assert_eq!(point(20.0, 20.0), CapturePoint::Between);
        // Just within a tenth of the RTT, and just beyond.
        assert_eq!(point(11.0, 89.0), CapturePoint::Between);
        assert_eq!(point(10.0, 90.0), CapturePoint::Sender);
        assert_eq!(point(89.0, 11.0), CapturePoint::Between);
        // Over loopback no one knows.
        assert_eq!(point(0.03, 0.04), CapturePoint::Unknown);
    }

    #[test]
    fn a_timestamp_counts_once_and_exactly() {
        let mut side = Responses::default();
        side.sent(7, 100);
        side.sent(8, 150);
        assert_eq!(side.echoed(6, 160), None);
        assert_eq!(side.echoed(7, 170), Some(70));
        assert_eq!(side.echoed(7, 180), None);
        side.sent(9, 200);
        // A later value was echoed: the ACK of the probe was lost.
        assert_eq!(side.echoed(10, 210), None);
        assert_eq!(side.echoed(9, 220), None);
    }
}
