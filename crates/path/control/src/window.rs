//! A window in packets: slow start, additive increase, reduction.

use crate::INITIAL_WINDOW;

/// Congestion window and slow-start threshold of a loss-based controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) cwnd: u64,
    /// `u64::MAX` until it is first set.
    threshold: u64,
    /// Packets acknowledged since the window last grew.
    credit: u64,
    /// Window and threshold before the last reduction.
    prior: (u64, u64),
}

impl Window {
    pub(crate) const fn new() -> Self {
        Window {
            cwnd: INITIAL_WINDOW,
            threshold: u64::MAX,
            credit: 0,
            prior: (INITIAL_WINDOW, u64::MAX),
        }
    }

    pub(crate) const fn in_slow_start(&self) -> bool {
        self.cwnd < self.threshold
    }

    pub(crate) fn ssthresh(&self) -> Option<u64> {
        (self.threshold != u64::MAX).then_some(self.threshold)
    }

    /// Slow start ends here, without a loss.
    pub(crate) fn leave_slow_start(&mut self) {
        self.threshold = self.cwnd;
    }

    /// Slow start: one packet for each acknowledged, up to the threshold. Gives the
    /// packets that are left for congestion avoidance.
    pub(crate) fn slow_start(&mut self, acked: u64) -> u64 {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# Slow start ends when cwnd exceeds ssthresh (or, optionally, when it reaches it, as
        //# noted above) or when congestion is observed.
        let room = self.threshold.saturating_sub(self.cwnd);
        let grown = acked.min(room);
        self.cwnd += grown;
        acked - grown
    }

    /// Congestion avoidance: one packet for each `per` acknowledged.
    pub(crate) fn increase(&mut self, acked: u64, per: u64) {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# During congestion avoidance, cwnd is incremented by roughly 1 full-sized segment
        //# per round-trip time (RTT).
        let per = per.max(1);
        // What was saved up for a slower growth gives one packet at most.
        if self.credit >= per {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        self.cwnd += self.credit / per;
        self.credit %= per;
    }

    /// Sets the threshold at the beginning of a recovery.
    pub(crate) fn reduce_to(&mut self, threshold: u64) {
        self.prior = (self.cwnd, self.threshold);
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# ssthresh = max (FlightSize / 2, 2*SMSS)            (4)
        self.threshold = threshold.max(2);
    }

    /// The end of a recovery by Proportional Rate Reduction.
    pub(crate) fn recovered(&mut self) {
        self.cwnd = self.cwnd.min(self.threshold);
        self.credit = 0;
    }

    /// A retransmission timeout: slow start from one packet (RFC 5681 equation 4).
    pub(crate) fn collapse(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# Furthermore, upon a timeout (as specified in [RFC2988]) cwnd MUST be set to no more
        //# than the loss window, LW, which equals 1 full-sized segment (regardless of the
        //# value of IW).
        self.cwnd = 1;
        self.credit = 0;
    }

    pub(crate) fn undo(&mut self) {
        self.cwnd = self.cwnd.max(self.prior.0);
        self.threshold = self.threshold.max(self.prior.1);
    }

    /// Congestion window validation after idle time: halved for each timeout that has
    /// passed, not below the initial window (RFC 2861 section 3).
    pub(crate) fn decay(&mut self, timeouts: u32) {
        if timeouts == 0 {
            return;
        }
        // Where the path was known to bear more, slow start may return there.
        if self.threshold != u64::MAX {
            self.threshold = self.threshold.max(self.cwnd * 3 / 4);
        }
        //= https://www.rfc-editor.org/rfc/rfc5681#section-4.1
        //# Therefore, a TCP SHOULD set cwnd to no more than RW before beginning transmission
        //# if the TCP has not sent data in an interval exceeding the retransmission timeout.
        let restart = INITIAL_WINDOW.min(self.cwnd);
        self.cwnd = self.cwnd.checked_shr(timeouts).unwrap_or(0).max(restart);
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_the_threshold_and_gives_back_the_rest() {
        let mut window = Window::new();
        assert_eq!(window.slow_start(10), 0);
        assert_eq!(window.cwnd, 20);
        window.reduce_to(25);
        assert_eq!(window.slow_start(8), 3);
        assert_eq!(window.cwnd, 25);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn congestion_avoidance_adds_one_packet_a_window() {
        let mut window = Window::new();
        window.leave_slow_start();
        for _ in 0..9 {
            window.increase(1, 10);
        }
        assert_eq!(window.cwnd, 10);
        window.increase(1, 10);
        assert_eq!(window.cwnd, 11);
        // One acknowledgement for many packets counts in full.
        window.increase(33, 11);
        assert_eq!(window.cwnd, 14);
    }

    #[test]
    fn undo_restores_window_and_threshold() {
        let mut window = Window::new();
        window.slow_start(90);
        window.reduce_to(50);
        window.collapse();
        window.undo();
        assert_eq!((window.cwnd, window.ssthresh()), (100, None));
    }

    #[test]
    fn idle_time_halves_the_window_for_each_timeout() {
        let mut window = Window::new();
        window.slow_start(150);
        window.decay(2);
        assert_eq!(window.cwnd, 40);
        window.decay(60);
        assert_eq!(window.cwnd, 10);
        window.decay(200);
        assert_eq!(window.cwnd, 10);
    }
}
