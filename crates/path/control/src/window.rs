//! A window in packets: slow start, additive increase, reduction.

use crate::INITIAL_WINDOW;

/// The largest window that the paper's arithmetic knows, packets: real numbers of this size
/// still have parts of a packet.
const LARGEST: f64 = (1_u64 << 40) as f64;

/// How windows are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// As in Linux: whole packets, integers, its constants and its quirks.
    #[default]
    Kernel,
    /// As in the paper or RFC: real numbers, by its equations.
    Paper,
}

/// Congestion window and slow-start threshold of a loss-based controller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    arithmetic: Arithmetic,
    pub(crate) cwnd: u64,
    /// Part of a packet beyond `cwnd`; zero in the kernel's arithmetic.
    fraction: f64,
    threshold: Option<Threshold>,
    /// Packets acknowledged since the window last grew.
    credit: u64,
    /// Window and threshold before the last reduction.
    prior: (u64, Option<Threshold>),
}

/// A slow-start threshold in packets, and the part of a packet beyond.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Threshold {
    packets: u64,
    fraction: f64,
}

impl Window {
    /// In slow start from [`INITIAL_WINDOW`], in the kernel's arithmetic.
    pub(crate) const fn new() -> Self {
        Window::in_arithmetic(Arithmetic::Kernel)
    }

    /// In slow start from [`INITIAL_WINDOW`].
    #[must_use]
    pub const fn in_arithmetic(arithmetic: Arithmetic) -> Self {
        Window {
            arithmetic,
            cwnd: INITIAL_WINDOW,
            fraction: 0.0,
            threshold: None,
            credit: 0,
            prior: (INITIAL_WINDOW, None),
        }
    }

    /// How it is counted.
    #[must_use]
    pub const fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// The window, whole packets.
    #[must_use]
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// The window in packets, with the part of a packet that the paper's arithmetic counts.
    #[must_use]
    pub fn exact(&self) -> f64 {
        self.cwnd as f64 + self.fraction
    }

    /// Below the slow-start threshold.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.threshold.is_none_or(|threshold| {
            let Threshold { packets, fraction } = threshold;
            self.cwnd < packets || (self.cwnd == packets && self.fraction < fraction)
        })
    }

    /// The slow-start threshold in packets; `None` until it is first set.
    #[must_use]
    pub fn ssthresh(&self) -> Option<u64> {
        self.threshold.map(|threshold| threshold.packets)
    }

    /// Slow start ends here, without a loss.
    pub fn leave_slow_start(&mut self) {
        self.threshold = Some(Threshold { packets: self.cwnd, fraction: self.fraction });
    }

    /// Slow start: one packet for each acknowledged, up to the threshold. Gives the
    /// packets that are left for congestion avoidance.
    pub fn slow_start(&mut self, acked: u64) -> u64 {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# Slow start ends when cwnd exceeds ssthresh (or, optionally, when it reaches it, as
        //# noted above) or when congestion is observed.
        let Some(Threshold { packets, fraction }) = self.threshold else {
            self.cwnd = self.cwnd.saturating_add(acked);
            return 0;
        };
        let room = packets.saturating_sub(self.cwnd);
        let grown = acked.min(room);
        self.cwnd += grown;
        if self.cwnd == packets {
            self.fraction = self.fraction.max(fraction);
        }
        acked - grown
    }

    /// Congestion avoidance in whole packets: one packet for each `per` acknowledged.
    pub fn increase(&mut self, acked: u64, per: u64) {
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

    /// Reno's growth: one packet for each window acknowledged.
    pub fn increase_as_reno(&mut self, acked: u64) {
        match self.arithmetic {
            Arithmetic::Kernel => self.increase(acked, self.cwnd),
            Arithmetic::Paper => self.set_exact(self.exact() + acked as f64 / self.exact()),
        }
    }

    /// Sets the window, whole packets; at least 1.
    pub fn set(&mut self, packets: u64) {
        self.cwnd = packets.max(1);
        self.fraction = 0.0;
    }

    /// Sets the window in the paper's arithmetic; at least 1, and what is no number is 1.
    pub fn set_exact(&mut self, packets: f64) {
        let packets = packets.clamp(1.0, LARGEST);
        // A NaN becomes zero by the conversion.
        let whole = packets as u64;
        self.cwnd = whole.max(1);
        self.fraction = if whole == 0 { 0.0 } else { packets - whole as f64 };
    }

    /// Sets the threshold at the beginning of a recovery; at least 2.
    pub fn reduce_to(&mut self, threshold: u64) {
        self.remember();
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# ssthresh = max (FlightSize / 2, 2*SMSS)            (4)
        self.threshold = Some(Threshold { packets: threshold.max(2), fraction: 0.0 });
    }

    /// The same in the paper's arithmetic.
    pub fn reduce_to_exact(&mut self, threshold: f64) {
        self.remember();
        let packets = threshold.clamp(2.0, LARGEST);
        let whole = packets as u64;
        self.threshold = Some(Threshold { packets: whole, fraction: packets - whole as f64 });
    }

    /// Sets the threshold to a half, rounded down in the kernel's arithmetic.
    pub fn reduce_to_half(&mut self) {
        match self.arithmetic {
            Arithmetic::Kernel => self.reduce_to(self.cwnd / 2),
            Arithmetic::Paper => self.reduce_to_exact(self.exact() / 2.0),
        }
    }

    /// Sets the threshold anew after a reduction; at least 2.
    pub fn set_threshold(&mut self, packets: u64) {
        self.threshold = Some(Threshold { packets: packets.max(2), fraction: 0.0 });
    }

    fn remember(&mut self) {
        self.prior = (self.cwnd, self.threshold);
    }

    /// The end of a recovery by Proportional Rate Reduction.
    pub fn recovered(&mut self) {
        self.credit = 0;
        let Some(Threshold { packets, fraction }) = self.threshold else { return };
        if !self.in_slow_start() {
            self.cwnd = packets;
            self.fraction = fraction;
        }
    }

    /// A retransmission timeout: slow start from one packet (RFC 5681 equation 4).
    pub fn collapse(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.1
        //# Furthermore, upon a timeout (as specified in [RFC2988]) cwnd MUST be set to no more
        //# than the loss window, LW, which equals 1 full-sized segment (regardless of the
        //# value of IW).
        self.set(1);
        self.credit = 0;
    }

    /// The last reduction was needless: window and threshold are at least as before it.
    pub fn undo(&mut self) {
        let (cwnd, threshold) = self.prior;
        if self.cwnd < cwnd {
            self.set(cwnd);
        }
        self.threshold = match (self.threshold, threshold) {
            (Some(now), Some(prior)) if now.packets >= prior.packets => Some(now),
            (_, prior) => prior,
        };
    }

    /// Congestion window validation after idle time: halved for each timeout that has
    /// passed, not below the initial window (RFC 2861 section 3).
    pub fn decay(&mut self, timeouts: u32) {
        if timeouts == 0 {
            return;
        }
        // Where the path was known to bear more, slow start may return there.
        let known = self.cwnd * 3 / 4;
        if self.threshold.is_some_and(|threshold| threshold.packets < known) {
            self.threshold = Some(Threshold { packets: known, fraction: 0.0 });
        }
        //= https://www.rfc-editor.org/rfc/rfc5681#section-4.1
        //# Therefore, a TCP SHOULD set cwnd to no more than RW before beginning transmission
        //# if the TCP has not sent data in an interval exceeding the retransmission timeout.
        let restart = INITIAL_WINDOW.min(self.cwnd);
        self.set(self.cwnd.checked_shr(timeouts).unwrap_or(0).max(restart));
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
