//! What the controls that adapt a window have in common, and the law that each has of its own.

use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion, CongestionControl, Phase, Reduction};
use units::{BitRate, Nanos};

/// What distinguishes one window-based control from another: its growth in congestion
/// avoidance and its reduction. The rest ([`Windowed`]) is Reno's.
pub trait Law {
    /// Its name in Linux (`tcp_congestion_control`), where it has one there.
    fn name(&self) -> &'static str;

    /// Looks at an acknowledgement of any phase, before the window grows by it.
    fn measure(&mut self, _ack: &Ack, _window: &mut Window) {}

    /// Slow start. Gives the packets acknowledged that are left for congestion avoidance.
    fn slow_start(&mut self, ack: &Ack, window: &mut Window) -> u64 {
        window.slow_start(ack.newly_delivered)
    }

    /// Congestion avoidance: `acked` packets were acknowledged while the window limited the
    /// sender.
    fn avoid_congestion(&mut self, _ack: &Ack, acked: u64, window: &mut Window) {
        window.increase_as_reno(acked);
    }

    /// Congestion: sets the window's threshold.
    fn reduce(&mut self, congestion: &Congestion, window: &mut Window);

    /// Whether the window also grows in the recovery that is under way.
    fn grows_in_recovery(&self) -> bool {
        false
    }

    /// All that was in flight when recovery began is acknowledged.
    fn recovered(&mut self, _now: Nanos, window: &mut Window) {
        window.recovered();
    }

    /// The retransmission timer expired; the threshold is set and the window one packet.
    fn timed_out(&mut self, _window: &mut Window) {}

    /// The last reduction was needless.
    fn undone(&mut self) {}

    /// Data is sent after a pause of `idle_ns` without any in flight.
    fn idle_ended(&mut self, _idle_ns: u64) {}

    /// Who reduces the window in the recovery that is under way.
    fn reduction(&self) -> Reduction {
        Reduction::Proportional
    }
}

/// A controller that adapts a window by a law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Windowed<L> {
    window: Window,
    law: L,
}

impl<L: Law> Windowed<L> {
    /// In slow start from [`crate::INITIAL_WINDOW`].
    #[must_use]
    pub const fn new(law: L, arithmetic: Arithmetic) -> Self {
        Windowed { window: Window::in_arithmetic(arithmetic), law }
    }

    /// In congestion avoidance at a window of `cwnd` packets; at least 1.
    #[must_use]
    pub fn avoiding_congestion(law: L, arithmetic: Arithmetic, cwnd: u64) -> Self {
        let mut control = Windowed::new(law, arithmetic);
        control.window.set(cwnd);
        control.window.leave_slow_start();
        control
    }

    /// Its window.
    #[must_use]
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// Its law.
    #[must_use]
    pub const fn law(&self) -> &L {
        &self.law
    }
}

impl<L: Law> CongestionControl for Windowed<L> {
    fn name(&self) -> &'static str {
        self.law.name()
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.law.measure(ack, &mut self.window);
        let repairing = ack.phase == Phase::Recovery && !self.law.grows_in_recovery();
        if repairing || ack.newly_acked == 0 || !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.newly_delivered;
        if self.window.in_slow_start() {
            acked = self.law.slow_start(ack, &mut self.window);
        }
        if acked > 0 {
            self.law.avoid_congestion(ack, acked, &mut self.window);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if congestion.is_new {
            self.law.reduce(congestion, &mut self.window);
        }
    }

    fn on_recovery_end(&mut self, now: Nanos) {
        self.law.recovered(now, &mut self.window);
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.on_congestion(congestion);
        self.window.collapse();
        self.law.timed_out(&mut self.window);
    }

    fn undo(&mut self, _now: Nanos) {
        self.window.undo();
        self.law.undone();
    }

    fn on_idle_end(&mut self, _now: Nanos, idle_ns: u64, timeouts: u32) {
        self.law.idle_ended(idle_ns);
        self.window.decay(timeouts);
    }

    fn cwnd(&self) -> u64 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh()
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        None
    }

    fn reduction(&self) -> Reduction {
        self.law.reduction()
    }
}
