//! Events that graphs mark.

use tcp_analysis::{Flags, PacketAnalysis, RetransmissionKind};

/// How many kinds of marks there are.
pub const MARK_COUNT: usize = 11;

/// An event of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Retransmitted after the timer expired.
    Timeout,
    /// Later segments of that window.
    AfterTimeout,
    /// The first retransmission of a recovery.
    Fast,
    /// The others.
    Recovery,
    /// A tail loss probe that retransmits.
    TailLossProbe,
    /// A retransmission by Wireshark's rules alone.
    Retransmission,
    /// Arrived out of order.
    OutOfOrder,
    /// The segment before it was not captured.
    LostSegment,
    /// Fills the receiver's window.
    WindowFull,
    /// Repeats an ACK.
    DuplicateAck,
    /// Advertises a window of 0.
    ZeroWindow,
}

impl Mark {
    /// Every mark, in the order in which counts are stored.
    pub const ALL: [Mark; MARK_COUNT] = [
        Mark::Timeout,
        Mark::AfterTimeout,
        Mark::Fast,
        Mark::Recovery,
        Mark::TailLossProbe,
        Mark::Retransmission,
        Mark::OutOfOrder,
        Mark::LostSegment,
        Mark::WindowFull,
        Mark::DuplicateAck,
        Mark::ZeroWindow,
    ];

    /// Its name in a legend.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mark::Timeout => "timeout",
            Mark::AfterTimeout => "after timeout",
            Mark::Fast => "fast retransmission",
            Mark::Recovery => "retransmission in recovery",
            Mark::TailLossProbe => "tail loss probe",
            Mark::Retransmission => "other retransmission",
            Mark::OutOfOrder => "out of order",
            Mark::LostSegment => "previous segment not captured",
            Mark::WindowFull => "window full",
            Mark::DuplicateAck => "duplicate ACK",
            Mark::ZeroWindow => "zero window",
        }
    }

    /// Whether it belongs to the ACKs of a direction rather than to its data.
    #[must_use]
    pub const fn is_of_ack(self) -> bool {
        matches!(self, Mark::DuplicateAck | Mark::ZeroWindow)
    }

    /// The event of the segment's own data.
    #[must_use]
    pub fn of_data(found: &PacketAnalysis) -> Option<Mark> {
        if let Some(kind) = found.kind {
            return Some(match kind {
                RetransmissionKind::Timeout => Mark::Timeout,
                RetransmissionKind::AfterTimeout => Mark::AfterTimeout,
                RetransmissionKind::Fast => Mark::Fast,
                RetransmissionKind::Recovery => Mark::Recovery,
                RetransmissionKind::TailLossProbe => Mark::TailLossProbe,
            });
        }
        let flags = found.flags;
        if flags.has(Flags::OUT_OF_ORDER) {
            Some(Mark::OutOfOrder)
        } else if flags.has(Flags::RETRANSMISSION) {
            Some(Mark::Retransmission)
        } else if flags.has(Flags::LOST_SEGMENT) {
            Some(Mark::LostSegment)
        } else if flags.has(Flags::WINDOW_FULL) {
            Some(Mark::WindowFull)
        } else {
            None
        }
    }

    /// The event of the acknowledgement that a segment carries.
    #[must_use]
    pub fn of_ack(found: &PacketAnalysis) -> Option<Mark> {
        if found.flags.has(Flags::ZERO_WINDOW) {
            Some(Mark::ZeroWindow)
        } else if found.flags.has(Flags::DUPLICATE_ACK) {
            Some(Mark::DuplicateAck)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_has_its_position() {
        for (position, mark) in Mark::ALL.into_iter().enumerate() {
            assert_eq!(mark as usize, position);
        }
    }
}
