//! A controller that this crate does not know: somebody's own.

use crate::{Ack, Congestion, CongestionControl, EcnResponse, Reduction};
use std::fmt;
use units::{BitRate, Nanos, WindowChange};

/// Largest window of an own controller, packets: 6 TB in packets of 1500 bytes. A driver's
/// arithmetic is exact up to there.
pub const MAX_WINDOW: u64 = 1 << 32;
/// Most congestion windows that its send buffer may hold.
const MAX_BUFFER_WINDOWS: u64 = 64;

/// An implementation of [`CongestionControl`] from outside of this crate, behind the type
/// that drivers use.
///
/// Its answers are bounded before the driver sees them: window and threshold to 1 to
/// [`MAX_WINDOW`] packets, so that a mistake in it is a bad result and no crash.
pub struct OwnController(Box<dyn CongestionControl + Send>);

impl OwnController {
    /// Wraps `controller`.
    #[must_use]
    pub fn new(controller: Box<dyn CongestionControl + Send>) -> Self {
        OwnController(controller)
    }
}

impl fmt::Debug for OwnController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnController").field(&self.0.name()).finish()
    }
}

impl CongestionControl for OwnController {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.0.on_ack(ack);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.0.on_congestion(congestion);
    }

    fn on_recovery_end(&mut self, now: Nanos) {
        self.0.on_recovery_end(now);
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.0.on_retransmission_timeout(congestion);
    }

    fn undo(&mut self, now: Nanos) {
        self.0.undo(now);
    }

    fn on_idle_end(&mut self, now: Nanos, idle_ns: u64, timeouts: u32) {
        self.0.on_idle_end(now, idle_ns, timeouts);
    }

    fn cwnd(&self) -> u64 {
        self.0.cwnd().clamp(1, MAX_WINDOW)
    }

    fn ssthresh(&self) -> Option<u64> {
        self.0.ssthresh().map(|threshold| threshold.clamp(1, MAX_WINDOW))
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        self.0.pacing_rate()
    }

    fn reduction(&self) -> Reduction {
        self.0.reduction()
    }

    fn ecn_response(&self) -> EcnResponse {
        self.0.ecn_response()
    }

    fn min_burst(&self) -> u64 {
        self.0.min_burst().max(1)
    }

    fn send_buffer_windows(&self) -> u64 {
        self.0.send_buffer_windows().clamp(1, MAX_BUFFER_WINDOWS)
    }

    fn reads_router_feedback(&self) -> bool {
        self.0.reads_router_feedback()
    }

    fn on_router_feedback(&mut self, change: WindowChange) {
        self.0.on_router_feedback(change);
    }

    fn failure(&self) -> Option<&str> {
        self.0.failure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with these, whatever happens.
    struct Fixed {
        cwnd: u64,
        ssthresh: Option<u64>,
        windows: u64,
    }

    impl CongestionControl for Fixed {
        fn name(&self) -> &str {
            "fixed"
        }

        fn on_ack(&mut self, _ack: &Ack) {}

        fn on_congestion(&mut self, _congestion: &Congestion) {}

        fn on_recovery_end(&mut self, _now: Nanos) {}

        fn on_retransmission_timeout(&mut self, _congestion: &Congestion) {}

        fn cwnd(&self) -> u64 {
            self.cwnd
        }

        fn ssthresh(&self) -> Option<u64> {
            self.ssthresh
        }

        fn send_buffer_windows(&self) -> u64 {
            self.windows
        }
    }

    fn own(cwnd: u64, ssthresh: Option<u64>, windows: u64) -> OwnController {
        OwnController::new(Box::new(Fixed { cwnd, ssthresh, windows }))
    }

    #[test]
    fn answers_are_bounded() {
        let none = own(0, Some(0), 0);
        assert_eq!((none.cwnd(), none.ssthresh(), none.send_buffer_windows()), (1, Some(1), 1));
        let all = own(u64::MAX, Some(u64::MAX), u64::MAX);
        assert_eq!((all.cwnd(), all.ssthresh()), (MAX_WINDOW, Some(MAX_WINDOW)));
        assert_eq!(all.send_buffer_windows(), MAX_BUFFER_WINDOWS);
        let usual = own(40, None, 3);
        assert_eq!((usual.cwnd(), usual.ssthresh(), usual.send_buffer_windows()), (40, None, 3));
        assert_eq!(format!("{usual:?}"), "OwnController(\"fixed\")");
    }
}
