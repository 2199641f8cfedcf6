//! The congestion header that XCP's senders put into data packets, and the router's answer
//! (Katabi, Handley, Rohrs, SIGCOMM 2002, section 3.1).

use std::num::NonZeroU32;
use std::time::Duration;
use units::WindowChange;

/// What a sender tells routers of itself: its round trip and its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionHeader {
    rtt_us: NonZeroU32,
    /// In packets of the size of its train's.
    window: u32,
}

impl CongestionHeader {
    /// A header; the RTT in whole us, the window in packets, each at least 1.
    #[must_use]
    pub fn new(rtt: Duration, window: u64) -> Self {
        let micros = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        let window = u32::try_from(window.max(1)).unwrap_or(u32::MAX);
        CongestionHeader { rtt_us: NonZeroU32::new(micros).unwrap_or(NonZeroU32::MIN), window }
    }

    /// The sender's RTT, s.
    pub(crate) fn rtt_s(self) -> f64 {
        f64::from(self.rtt_us.get()) / 1e6
    }

    /// The sender's window, packets.
    pub(crate) fn window(self) -> f64 {
        f64::from(self.window)
    }
}

/// The change of its sender's window that a router grants or asks for with one packet: at most
/// 32 767 packets either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowFeedback {
    /// In the parts of [`WindowChange`]; as small as it may be, for each packet in flight has one.
    parts: i32,
}

impl WindowFeedback {
    /// No change.
    pub const NONE: WindowFeedback = WindowFeedback { parts: 0 };

    /// A change by that many packets.
    pub(crate) fn of_packets(packets: f64) -> Self {
        let parts = libm::round(packets * f64::from(WindowChange::PARTS));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "`as` holds at the limits, as it should"
        )]
        let parts = parts as i32;
        WindowFeedback { parts }
    }

    /// That of as many packets, each with this feedback.
    #[must_use]
    pub fn of_all(self, packets: u32) -> WindowChange {
        WindowChange::from_parts(i64::from(self.parts) * i64::from(packets))
    }
}
