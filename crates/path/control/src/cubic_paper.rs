//! CUBIC by the equations of RFC 9438, in real numbers, with HyStart++ (RFC 9406).
//!
//! W(t) = C (t - K)^3 + Wmax, K = cbrt((Wmax - w0) / C), with w0 the window at the beginning of
//! congestion avoidance (section 4.2). The window moves to W(t + R) within a round trip and is
//! never below a Reno-friendly one of `3 (1 - b) / (1 + b)` packets a round trip, of 1 from the
//! window before the loss on (section 4.3).

use crate::hystart_plus_plus::{Growth, HyStartPlusPlus};
use crate::law::Law;
use crate::window::Window;
use crate::{Ack, Congestion};
use units::Nanos;

/// C, packets/s^3 (section 5).
const C: f64 = 0.4;
/// What a reduction leaves of the window (section 4.6).
const BETA: f64 = 0.7;
/// Growth of the Reno-friendly window a round trip below the window before the loss.
const FRIENDLY_GROWTH: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The target is at most that many windows (section 4.2).
const MOST_GROWTH: f64 = 1.5;

/// Whether a window that falls short of the last maximum gives way (section 4.7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FastConvergence {
    /// As the RFC has it.
    #[default]
    On,
    /// The equations alone.
    Off,
}

/// CUBIC by RFC 9438.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CubicPaper {
    convergence: FastConvergence,
    /// Wmax; `None` before the first reduction.
    max: Option<f64>,
    /// The window before the last reduction.
    prior: f64,
    epoch: Option<Epoch>,
    hystart: HyStartPlusPlus,
}

/// One stage of congestion avoidance.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Epoch {
    start: Nanos,
    /// Plateau, packets.
    max: f64,
    /// K, s.
    k: f64,
    /// The Reno-friendly window.
    friendly: f64,
}

impl CubicPaper {
    /// Before the first loss.
    #[must_use]
    pub fn new(convergence: FastConvergence) -> Self {
        let hystart = HyStartPlusPlus::default();
        CubicPaper { convergence, max: None, prior: 0.0, epoch: None, hystart }
    }
}

impl Epoch {
    fn new(start: Nanos, max: f64, window: f64) -> Self {
        let k = libm::cbrt((max - window).max(0.0) / C);
        Epoch { start, max: max.max(window), k, friendly: window }
    }

    /// W(t), packets.
    fn window(&self, t_s: f64) -> f64 {
        let distance = t_s - self.k;
        C * distance * distance * distance + self.max
    }
}

impl Law for CubicPaper {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn slow_start(&mut self, ack: &Ack, window: &mut Window) -> u64 {
        // Only the first slow start is by HyStart++ (RFC 9406 section 4.3).
        if window.ssthresh().is_some() {
            return window.slow_start(ack.newly_delivered);
        }
        match self.hystart.observe(ack) {
            Growth::By(packets) => window.slow_start(packets),
            Growth::End => {
                window.leave_slow_start();
                ack.newly_delivered
            }
        }
    }

    fn avoid_congestion(&mut self, ack: &Ack, acked: u64, window: &mut Window) {
        let exact = window.exact();
        let acked = acked as f64;
        let max = self.max.unwrap_or(exact);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(ack.now, max, exact));
        let growth = if epoch.friendly >= self.prior { 1.0 } else { FRIENDLY_GROWTH };
        epoch.friendly += growth * acked / exact;
        let elapsed_s = ack.now.nanos_since(epoch.start) as f64 / 1e9;
        let rtt_s = ack.srtt.or(ack.rtt).map_or(0.0, units::Rtt::secs_f64);
        if epoch.window(elapsed_s) < epoch.friendly {
            window.set_exact(exact.max(epoch.friendly));
            return;
        }
        let target = epoch.window(elapsed_s + rtt_s).clamp(exact, MOST_GROWTH * exact);
        window.set_exact(exact + acked * (target - exact) / exact);
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        let exact = window.exact();
        let short = self.max.is_some_and(|max| exact < max);
        let converging = short && self.convergence == FastConvergence::On;
        self.max = Some(if converging { exact * (1.0 + BETA) / 2.0 } else { exact });
        self.prior = exact;
        self.epoch = None;
        window.reduce_to_exact(BETA * exact);
    }

    fn timed_out(&mut self, _window: &mut Window) {
        self.max = None;
        self.epoch = None;
    }

    fn idle_ended(&mut self, idle_ns: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = epoch.start.plus_nanos(idle_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::window::Arithmetic;

    #[test]
    fn k_is_39_7_s_at_the_window_of_10_gbit_s_and_100_ms() {
        let epoch = Epoch::new(Nanos(0), 83_333.0, 0.7 * 83_333.0);
        assert!((epoch.k - 39.7).abs() < 0.05, "{}", epoch.k);
        assert!((epoch.window(epoch.k) - 83_333.0).abs() < 1e-6);
    }

    #[test]
    fn fast_convergence_lowers_the_plateau_of_a_window_that_fell_short() {
        for (convergence, max) in [(FastConvergence::On, 595.0), (FastConvergence::Off, 700.0)] {
            let mut driver = Driver::new(CubicPaper::new(convergence), Arithmetic::Paper, 1_000);
            driver.congestion(1);
            driver.congestion(1);
            assert!((driver.control.law().max.unwrap() - max).abs() < 1e-9);
        }
    }
}
