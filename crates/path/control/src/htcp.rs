//! H-TCP (Leith, Shorten: "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004;
//! draft-leith-tcp-htcp-06): growth rises with the time since the last congestion.
//!
//! With D seconds since the last congestion a = 2 (1 - b) f(D) packets a round trip, f = 1 in
//! the first second and then 1 + 10 (D - 1) + ((D - 1) / 2)^2. A reduction leaves b = Rmin / Rmax
//! of the window, held in [0.5, 0.8], and 0.5 where the throughput before it had changed by more
//! than a fifth since the one before.

use crate::jiffies::{HZ, TICK_NS, tick};
use crate::law::Law;
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion, Phase};
use units::Nanos;

/// b is held between these.
const BETA: (f64, f64) = (0.5, 0.8);
/// The low-speed regime after congestion, s.
const LOW_SPEED_S: f64 = 1.0;
/// Throughput that changed by more than this share makes b its minimum.
const BACKOFF_CHANGE: f64 = 0.2;
/// Linux's a and b are in 1/128, and b is held between these.
const SCALE: u64 = 128;
const KERNEL_BETA: (u64, u64) = (64, 102);
/// Linux adapts b only above this minimum RTT, ticks (10 ms).
const MIN_ADAPTIVE_TICKS: u64 = HZ / 100;
/// Linux's maximum RTT rises at most by this at once, ticks (20 ms).
const MAX_RTT_STEP_TICKS: u64 = 20_000_000 / TICK_NS;

/// H-TCP. Linux scales the growth by R / 100 ms, held in [0.1, 2], counts time in ticks and the
/// time since congestion from the end of recovery, and lets the maximum RTT fade by 5 % of its
/// distance from the minimum at each reduction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Htcp {
    /// Since when there was no congestion; `None` before the first acknowledgement.
    since: Option<Nanos>,
    /// a in 1/128 packets a round trip.
    alpha: u64,
    /// b in 1/128.
    beta: u64,
    /// b, paper.
    exact_beta: f64,
    /// b may be adapted: not at the first reduction after the throughput changed.
    adaptive: bool,
    rtts: RttRange,
    /// Packets acknowledged since the window last grew.
    credit: u64,
    throughput: Throughput,
    recovering: bool,
}

/// Least and largest RTT, in ticks in the kernel's arithmetic, else in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RttRange {
    least: Option<u64>,
    most: u64,
}

/// The rate of acknowledged packets, one sample a round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Throughput {
    packets: u64,
    began: Nanos,
    /// Packets a second, a moving average of quarters.
    average: f64,
    most: f64,
    /// The most before the reduction before.
    most_before: f64,
}

/// What the throughput is judged by.
#[derive(Debug, Clone, Copy)]
struct Surroundings {
    least_ns: Option<u64>,
    /// The last congestion.
    since: Option<Nanos>,
}

impl Throughput {
    /// Counts an acknowledgement. In the first four round trips since congestion the rate and
    /// its most begin anew.
    fn observe(&mut self, ack: &Ack, cwnd: u64, growth: u64, around: Surroundings) {
        if ack.phase != Phase::Open {
            self.packets = 0;
            self.began = ack.now;
            return;
        }
        self.packets += ack.newly_delivered;
        let elapsed = ack.now.nanos_since(self.began);
        let round = around.least_ns.is_some_and(|least| elapsed >= least && elapsed > 0);
        if self.packets < cwnd.saturating_sub(growth.max(1)) || !round {
            return;
        }
        let rate = self.packets as f64 * 1e9 / elapsed as f64;
        let since_ns = around.since.map_or(0, |since| ack.now.nanos_since(since));
        if since_ns < 4 * around.least_ns.unwrap_or(0) {
            self.average = rate;
            self.most = rate;
        } else {
            self.average = (3.0 * self.average + rate) / 4.0;
            self.most = self.most.max(self.average);
        }
        self.packets = 0;
        self.began = ack.now;
    }

    /// At a reduction: whether the most had changed by more than a fifth.
    fn has_changed(&mut self) -> bool {
        let (most, before) = (self.most, self.most_before);
        self.most_before = most;
        (most - before).abs() > BACKOFF_CHANGE * before
    }
}

impl Default for Htcp {
    fn default() -> Self {
        Htcp {
            since: None,
            alpha: SCALE,
            beta: KERNEL_BETA.0,
            exact_beta: BETA.0,
            adaptive: false,
            rtts: RttRange::default(),
            credit: 0,
            throughput: Throughput::default(),
            recovering: false,
        }
    }
}

impl Htcp {
    fn observe_rtt(&mut self, ack: &Ack, arithmetic: Arithmetic) {
        let Some(rtt) = ack.rtt else { return };
        let (sample, most_step) = match arithmetic {
            Arithmetic::Kernel => (rtt.nanos().div_ceil(TICK_NS), MAX_RTT_STEP_TICKS),
            Arithmetic::Paper => (rtt.nanos(), u64::MAX),
        };
        let rtts = &mut self.rtts;
        let least = rtts.least.map_or(sample, |least| least.min(sample));
        rtts.least = Some(least);
        if ack.phase == Phase::Open {
            rtts.most = rtts.most.max(least);
            if sample <= rtts.most.saturating_add(most_step) {
                rtts.most = rtts.most.max(sample);
            }
        }
    }

    fn min_rtt_ns(&self, arithmetic: Arithmetic) -> Option<u64> {
        let unit = if arithmetic == Arithmetic::Kernel { TICK_NS } else { 1 };
        self.rtts.least.map(|least| least * unit)
    }

    /// a of the kernel, 1/128.
    fn update_alpha(&mut self, now: Nanos) {
        let since = self.since.unwrap_or(now);
        let mut ticks = tick(now).saturating_sub(tick(since));
        let mut factor = 1;
        if ticks > HZ {
            ticks -= HZ;
            factor = 1 + (10 * ticks + (ticks / 2) * (ticks / 2) / HZ) / HZ;
        }
        if let Some(least) = self.rtts.least.filter(|least| *least > 0) {
            // 100 ms / Rmin in eighths, held in [0.5, 10].
            let scale = (8 * HZ / (10 * least)).clamp(4, 80);
            factor = (8 * factor / scale).max(1);
        }
        self.alpha = (2 * factor * (SCALE - self.beta)).max(1);
    }

    fn update_beta(&mut self) {
        if self.throughput.has_changed() {
            self.beta = KERNEL_BETA.0;
            self.exact_beta = BETA.0;
            self.adaptive = false;
            return;
        }
        let (least, most) = (self.rtts.least.unwrap_or(0), self.rtts.most);
        if self.adaptive && most > 0 && least > 0 {
            let (low, high) = KERNEL_BETA;
            let far = least > MIN_ADAPTIVE_TICKS;
            self.beta = if far { (SCALE * least / most).clamp(low, high) } else { low };
            self.exact_beta = (least as f64 / most as f64).clamp(BETA.0, BETA.1);
        } else {
            self.beta = KERNEL_BETA.0;
            self.exact_beta = BETA.0;
            self.adaptive = true;
        }
    }

    /// a of the paper, packets a round trip.
    fn exact_alpha(&self, now: Nanos) -> f64 {
        let elapsed = now.nanos_since(self.since.unwrap_or(now)) as f64 / 1e9;
        let beyond = (elapsed - LOW_SPEED_S).max(0.0);
        let factor = 1.0 + 10.0 * beyond + (beyond / 2.0) * (beyond / 2.0);
        2.0 * (1.0 - self.exact_beta) * factor
    }
}

impl Law for Htcp {
    fn name(&self) -> &'static str {
        "htcp"
    }

    fn measure(&mut self, ack: &Ack, window: &mut Window) {
        self.since.get_or_insert(ack.now);
        if ack.phase == Phase::Open && std::mem::take(&mut self.recovering) {
            self.credit = 0;
            if window.arithmetic() == Arithmetic::Kernel {
                self.since = Some(ack.now);
            }
        }
        self.observe_rtt(ack, window.arithmetic());
        let least_ns = self.min_rtt_ns(window.arithmetic());
        let around = Surroundings { least_ns, since: self.since };
        self.throughput.observe(ack, window.cwnd(), self.alpha / SCALE, around);
    }

    fn avoid_congestion(&mut self, ack: &Ack, acked: u64, window: &mut Window) {
        match window.arithmetic() {
            Arithmetic::Kernel => {
                if self.credit * self.alpha / SCALE >= window.cwnd() {
                    window.set(window.cwnd() + 1);
                    self.credit = 0;
                    self.update_alpha(ack.now);
                } else {
                    self.credit += acked;
                }
            }
            Arithmetic::Paper => {
                let exact = window.exact();
                window.set_exact(exact + acked as f64 * self.exact_alpha(ack.now) / exact);
            }
        }
    }

    fn reduce(&mut self, congestion: &Congestion, window: &mut Window) {
        self.update_beta();
        match window.arithmetic() {
            Arithmetic::Kernel => {
                self.update_alpha(congestion.now);
                if let Some(least) = self.rtts.least.filter(|least| self.rtts.most > *least) {
                    self.rtts.most = least + (self.rtts.most - least) * 95 / 100;
                }
                window.reduce_to(window.cwnd() * self.beta / SCALE);
            }
            Arithmetic::Paper => window.reduce_to_exact(self.exact_beta * window.exact()),
        }
        self.since = Some(congestion.now);
        self.recovering = true;
    }

    fn idle_ended(&mut self, idle_ns: u64) {
        self.since = self.since.map(|since| since.plus_nanos(idle_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    #[test]
    fn growth_rises_with_the_time_since_congestion() {
        let at = |seconds: f64| {
            let law = Htcp { since: Some(Nanos(0)), ..Htcp::default() };
            law.exact_alpha(Nanos((seconds * 1e9) as u64))
        };
        assert_eq!(at(0.5), 1.0);
        assert!((at(3.0) - 22.0).abs() < 1e-9, "{}", at(3.0));
        let mut kernel = Htcp { since: Some(Nanos(0)), ..Htcp::default() };
        kernel.update_alpha(Nanos(3_000_000_000));
        assert_eq!(kernel.alpha / SCALE, 22);
    }

    #[test]
    fn the_kernel_scales_growth_by_the_rtt_between_10_and_200_ms() {
        for (rtt_ms, alpha) in [(4, 2), (100, 22), (200, 44), (400, 44)] {
            let mut kernel = Htcp { since: Some(Nanos(0)), ..Htcp::default() };
            kernel.rtts.least = Some(rtt_ms / 4);
            kernel.update_alpha(Nanos(3_000_000_000));
            // f(3 s) = 22.
            assert_eq!(kernel.alpha / SCALE, alpha, "{rtt_ms} ms");
        }
    }

    #[test]
    fn the_first_reductions_halve_and_steady_ones_adapt_to_the_rtt() {
        for arithmetic in [Arithmetic::Kernel, Arithmetic::Paper] {
            let mut driver = Driver::new(Htcp::default(), arithmetic, 1_000);
            let shares: Vec<f64> = (0..4)
                .map(|_| {
                    for _ in 0..10 {
                        driver.round(100);
                    }
                    // The throughput before each congestion is the same.
                    while driver.cwnd() < 1_000 {
                        driver.round(100);
                    }
                    let before = driver.control.window().exact();
                    driver.congestion(1);
                    driver.control.window().exact() / before
                })
                .collect();
            assert!((shares[0] - 0.5).abs() < 0.01, "{arithmetic:?}: {shares:?}");
            assert!((shares[3] - 0.8).abs() < 0.01, "{arithmetic:?}: {shares:?}");
        }
    }
}
