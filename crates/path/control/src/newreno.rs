//! Reno's slow start and congestion avoidance (RFC 5681, RFC 6582).

use crate::window::Window;
use crate::{Ack, Congestion, CongestionControl, Phase, Reduction};
use units::{BitRate, Nanos};

/// One packet a round trip, half the window at a loss. Linux's `reno`: every packet
/// acknowledged counts, however many an acknowledgement covers (no limit of RFC 3465).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewReno {
    window: Window,
}

impl NewReno {
    /// In slow start from [`crate::INITIAL_WINDOW`].
    #[must_use]
    pub const fn new() -> Self {
        NewReno { window: Window::new() }
    }
}

impl Default for NewReno {
    fn default() -> Self {
        NewReno::new()
    }
}

impl CongestionControl for NewReno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.phase == Phase::Recovery || ack.newly_acked == 0 || !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.newly_delivered;
        if self.window.in_slow_start() {
            acked = self.window.slow_start(acked);
        }
        if acked > 0 {
            self.window.increase(acked, self.window.cwnd);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if congestion.is_new {
            self.window.reduce_to(self.window.cwnd / 2);
        }
    }

    fn on_recovery_end(&mut self, _now: Nanos) {
        self.window.recovered();
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.on_congestion(congestion);
        self.window.collapse();
    }

    fn undo(&mut self, _now: Nanos) {
        self.window.undo();
    }

    fn on_idle_end(&mut self, _now: Nanos, _idle_ns: u64, timeouts: u32) {
        self.window.decay(timeouts);
    }

    fn cwnd(&self) -> u64 {
        self.window.cwnd
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh()
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        None
    }

    fn reduction(&self) -> Reduction {
        Reduction::Proportional
    }
}
