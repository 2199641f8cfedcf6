//! TCP Illinois (Liu, Basar, Srikant: "TCP-Illinois: a loss- and delay-based congestion control
//! algorithm for high-speed networks", Performance Evaluation 65(6), 2008): losses decide
//! whether the window grows or shrinks, the queueing delay by how much.
//!
//! With da the mean queueing delay of a round trip and dm the largest: growth falls from 10
//! packets a round trip (da <= dm / 100) as k1 / (k2 + da) to its least at dm; the share that a
//! loss takes rises from 1/8 (da <= dm / 10) linearly to 1/2 (da >= 0.8 dm).

use crate::law::Law;
use crate::round_trips::{RoundTrips, RttSamples};
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion};

/// Most growth, packets a round trip.
const ALPHA_MAX: f64 = 10.0;
/// Share of the window that a loss takes, least and most.
const BETA: (f64, f64) = (0.125, 0.5);
/// Growth may rise to its most only after that many round trips of little delay.
const GOOD_ROUNDS: u32 = 5;

/// What differs between Linux and the paper.
struct Constants {
    /// Least growth, packets a round trip.
    alpha_min: f64,
    /// Below this window it is Reno, packets.
    low_window: f64,
}

// 0.3, as a multiple of 1/128.
const KERNEL: Constants = Constants { alpha_min: 38.0 / ALPHA_SCALE, low_window: 15.0 };
const PAPER: Constants = Constants { alpha_min: 0.1, low_window: 10.0 };

/// Linux's growth is in 1/128 packets, its share in 1/64.
const ALPHA_SCALE: f64 = 128.0;
const BETA_SCALE: f64 = 64.0;

/// Illinois. The largest delay never ages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Illinois {
    /// Packets a round trip.
    alpha: f64,
    /// Share of the window that a loss takes.
    beta: f64,
    least_ns: Option<u64>,
    most_ns: u64,
    rounds: RoundTrips,
    /// The delay was above its hundredth since growth was last at its most.
    was_above: bool,
    good_rounds: u32,
    /// Packets acknowledged since the window last grew; the kernel's arithmetic.
    credit: u64,
}

impl Default for Illinois {
    fn default() -> Self {
        Illinois {
            alpha: ALPHA_MAX,
            beta: BETA.1,
            least_ns: None,
            most_ns: 0,
            rounds: RoundTrips::default(),
            was_above: false,
            good_rounds: 0,
            credit: 0,
        }
    }
}

/// Rounded down to a multiple of 1/`scale` in the kernel's arithmetic, whose integers have no
/// error of a real number's last digit.
fn in_units(arithmetic: Arithmetic, value: f64, scale: f64) -> f64 {
    match arithmetic {
        Arithmetic::Kernel => (value * scale + 1e-9).floor() / scale,
        Arithmetic::Paper => value,
    }
}

impl Illinois {
    fn adapt(&mut self, samples: &RttSamples, window: &Window) {
        let arithmetic = window.arithmetic();
        let constants = if arithmetic == Arithmetic::Kernel { KERNEL } else { PAPER };
        if window.exact() < constants.low_window {
            (self.alpha, self.beta) = (1.0, BETA.1);
            return;
        }
        let (Some(mean_ns), Some(least_ns)) = (samples.mean_ns(), self.least_ns) else { return };
        let most = self.most_ns.saturating_sub(least_ns) as f64;
        let delay = mean_ns.saturating_sub(least_ns) as f64;
        let alpha = self.growth(delay, most, constants.alpha_min);
        self.alpha = in_units(arithmetic, alpha, ALPHA_SCALE);
        self.beta = in_units(arithmetic, share(delay, most), BETA_SCALE);
    }

    fn growth(&mut self, delay: f64, most: f64, alpha_min: f64) -> f64 {
        let first = most / 100.0;
        if delay <= first {
            if !self.was_above {
                return ALPHA_MAX;
            }
            self.good_rounds += 1;
            if self.good_rounds < GOOD_ROUNDS {
                return self.alpha;
            }
            self.good_rounds = 0;
            self.was_above = false;
            return ALPHA_MAX;
        }
        self.was_above = true;
        let (delay, most) = (delay - first, most - first);
        most * ALPHA_MAX / (most + delay * (ALPHA_MAX - alpha_min) / alpha_min)
    }
}

/// The share of the window that a loss takes.
fn share(delay: f64, most: f64) -> f64 {
    let (second, third) = (most / 10.0, most * 0.8);
    if delay <= second {
        return BETA.0;
    }
    if delay >= third || third <= second {
        return BETA.1;
    }
    (BETA.0 * third - BETA.1 * second + (BETA.1 - BETA.0) * delay) / (third - second)
}

impl Law for Illinois {
    fn name(&self) -> &'static str {
        "illinois"
    }

    fn measure(&mut self, ack: &Ack, window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            let rtt_ns = rtt.nanos();
            self.least_ns = Some(self.least_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
            self.most_ns = self.most_ns.max(rtt_ns);
        }
        // Linux adapts where the window may grow, and so in no recovery.
        let ended = match window.arithmetic() {
            Arithmetic::Kernel => self.rounds.observe_through_recovery(ack),
            Arithmetic::Paper => self.rounds.observe(ack),
        };
        if let Some(samples) = ended {
            self.adapt(&samples, window);
        }
    }

    /// In Linux an acknowledgement is for slow start or for congestion avoidance, not for both.
    fn slow_start(&mut self, ack: &Ack, window: &mut Window) -> u64 {
        let left = window.slow_start(ack.newly_delivered);
        if window.arithmetic() == Arithmetic::Kernel { 0 } else { left }
    }

    fn avoid_congestion(&mut self, ack: &Ack, acked: u64, window: &mut Window) {
        match window.arithmetic() {
            Arithmetic::Paper => {
                let exact = window.exact();
                window.set_exact(exact + acked as f64 * self.alpha / exact);
            }
            Arithmetic::Kernel => {
                let cwnd = window.cwnd();
                // All that is acknowledged in order, also what had been selectively before: the last
                // acknowledgement of a recovery is one of a whole window.
                self.credit += ack.newly_acked;
                let grown = self.credit * (self.alpha * ALPHA_SCALE) as u64 / ALPHA_SCALE as u64;
                if grown >= cwnd {
                    window.set(cwnd + grown / cwnd);
                    self.credit = 0;
                }
            }
        }
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        match window.arithmetic() {
            Arithmetic::Paper => window.reduce_to_exact(window.exact() * (1.0 - self.beta)),
            Arithmetic::Kernel => {
                let cwnd = window.cwnd();
                let share = (self.beta * BETA_SCALE) as u64;
                window.reduce_to(cwnd - cwnd * share / BETA_SCALE as u64);
            }
        }
    }

    fn recovered(&mut self, _now: units::Nanos, window: &mut Window) {
        window.recovered();
        self.credit = 0;
    }

    fn timed_out(&mut self, _window: &mut Window) {
        let (least_ns, most_ns) = (self.least_ns, self.most_ns);
        *self = Illinois { alpha: 1.0, least_ns, most_ns, ..Illinois::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    #[test]
    fn the_share_rises_linearly_between_a_tenth_and_eight_tenths_of_the_delay() {
        for (delay, expected) in [(0.0, 0.125), (10.0, 0.125), (45.0, 0.3125), (80.0, 0.5)] {
            assert!((share(delay, 100.0) - expected).abs() < 1e-9, "{delay}");
        }
    }

    #[test]
    fn growth_falls_to_its_least_and_returns_after_five_good_rounds() {
        for alpha_min in [KERNEL.alpha_min, PAPER.alpha_min] {
            let mut law = Illinois::default();
            assert_eq!(law.growth(0.0, 100.0, alpha_min), ALPHA_MAX);
            law.alpha = law.growth(100.0, 100.0, alpha_min);
            assert!((law.alpha - alpha_min).abs() < 1e-9, "{}", law.alpha);
            for _ in 0..4 {
                law.alpha = law.growth(0.5, 100.0, alpha_min);
            }
            assert!(law.alpha < 1.0);
            assert_eq!(law.growth(0.5, 100.0, alpha_min), ALPHA_MAX);
        }
    }

    #[test]
    fn without_delay_it_grows_by_ten_and_loses_an_eighth() {
        for arithmetic in [Arithmetic::Kernel, Arithmetic::Paper] {
            let mut driver = Driver::new(Illinois::default(), arithmetic, 1_000);
            driver.round(100);
            driver.round(100);
            let before = driver.cwnd();
            assert!((1_017..=1_020).contains(&before), "{arithmetic:?}: {before}");
            driver.congestion(1);
            let share = driver.cwnd() as f64 / before as f64;
            assert!((share - 0.875).abs() < 0.002, "{share}");
        }
    }
}
