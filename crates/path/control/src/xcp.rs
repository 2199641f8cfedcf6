//! XCP, the end of it that sends (Katabi, Handley, Rohrs: "Congestion control for high
//! bandwidth-delay product networks", SIGCOMM 2002, sections 3.1 and 3.4). Routers decide: each
//! data packet tells them its sender's window and RTT, each acknowledgement brings back what
//! they grant, and w = max(w + feedback, 1 packet).
//!
//! A loss means that some queue on the path has no XCP: the window is halved as by Reno. No
//! kernel has XCP, and no router on the Internet.

use crate::{Ack, Congestion, CongestionControl, INITIAL_WINDOW};
use units::{Nanos, WindowChange};

/// The least threshold after a loss (RFC 5681, equation 4), packets.
const MIN_THRESHOLD: f64 = 2.0;

/// The largest window, packets: real numbers of this size still have parts of a packet.
const MAX_WINDOW: f64 = (1_u64 << 40) as f64;

/// XCP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Xcp {
    /// Packets.
    window: f64,
    /// The window that the last loss asked for. Without slow start it is no more than that.
    threshold: f64,
    /// Window and threshold before it.
    prior: (f64, f64),
}

impl Default for Xcp {
    fn default() -> Self {
        let window = INITIAL_WINDOW as f64;
        Xcp { window, threshold: MIN_THRESHOLD, prior: (window, MIN_THRESHOLD) }
    }
}

impl Xcp {
    fn set(&mut self, window: f64) {
        self.window = window.clamp(1.0, MAX_WINDOW);
    }
}

impl CongestionControl for Xcp {
    fn name(&self) -> &'static str {
        "xcp"
    }

    /// The window changes by [`CongestionControl::on_router_feedback`] alone.
    fn on_ack(&mut self, _ack: &Ack) {}

    fn reads_router_feedback(&self) -> bool {
        true
    }

    fn on_router_feedback(&mut self, change: WindowChange) {
        self.set(self.window + change.packets());
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if congestion.is_new {
            self.prior = (self.window, self.threshold);
            self.threshold = (self.window / 2.0).max(MIN_THRESHOLD);
        }
    }

    fn on_recovery_end(&mut self, _now: Nanos) {
        self.set(self.threshold);
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.on_congestion(congestion);
        self.window = 1.0;
    }

    fn undo(&mut self, _now: Nanos) {
        (self.window, self.threshold) = (self.window.max(self.prior.0), self.prior.1);
    }

    fn cwnd(&self) -> u64 {
        self.window as u64
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.threshold as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(packets: i64) -> WindowChange {
        WindowChange::from_parts(packets * i64::from(WindowChange::PARTS))
    }

    #[test]
    fn the_window_is_what_routers_grant_and_at_least_a_packet() {
        let mut xcp = Xcp::default();
        xcp.on_router_feedback(packets(90));
        assert_eq!(xcp.cwnd(), 100);
        for _ in 0..2 {
            xcp.on_router_feedback(WindowChange::from_parts(i64::from(WindowChange::PARTS) / 2));
        }
        assert_eq!(xcp.cwnd(), 101);
        xcp.on_router_feedback(packets(-1_000));
        assert_eq!(xcp.cwnd(), 1);
    }

    #[test]
    fn a_loss_halves_the_window_once() {
        let mut xcp = Xcp::default();
        xcp.on_router_feedback(packets(90));
        let congestion = Congestion {
            now: Nanos(0),
            in_flight: 100,
            is_new: true,
            first_lost: 0,
            lost: 1,
            sent_to: 100,
        };
        xcp.on_congestion(&congestion);
        assert_eq!((xcp.cwnd(), xcp.ssthresh()), (100, Some(50)));
        xcp.on_recovery_end(Nanos(1));
        assert_eq!(xcp.cwnd(), 50);
        xcp.on_retransmission_timeout(&congestion);
        assert_eq!((xcp.cwnd(), xcp.ssthresh()), (1, Some(25)));
        xcp.undo(Nanos(2));
        assert_eq!((xcp.cwnd(), xcp.ssthresh()), (50, Some(50)));
    }
}
