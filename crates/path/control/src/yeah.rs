//! YeAH (Baiocchi, Castellani, Vacirca: "YeAH-TCP: yet another highspeed TCP", PFLDnet 2007):
//! Scalable TCP while the queue is short, else Reno, and the queue is drained early.
//!
//! Once a round trip the queue is Q = w (R - Rmin) / R packets, of the least R of the round trip.
//! While Q <= 80 and R - Rmin <= Rmin / 8 growth is Scalable's; else Reno's, and where Q > 80
//! the window falls by Q, at most by a half. A loss takes Q, at least an eighth and at most a
//! half; a half where the queue was not short for 16 round trips: there is a Reno beside it.

use crate::law::Law;
use crate::round_trips::{RoundTrips, RttSamples};
use crate::scalable;
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion};

/// Longest queue that is short, packets.
const SHORT_QUEUE: f64 = 80.0;
/// Queueing delay up to this share of the minimum RTT is short (PHY).
const SHORT_DELAY: u64 = 8;
/// Round trips without a short queue after which others' losses are assumed (RHO).
const COMPETITION_ROUNDS: u32 = 16;
/// Round trips with a short queue after which the count of a Reno beside it is forgotten (ZETA).
const FAST_ROUNDS: u32 = 50;
/// RTT samples of a round trip that are too few.
const FEW_SAMPLES: u64 = 2;

/// YeAH.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Yeah {
    min_rtt_ns: Option<u64>,
    rounds: RoundTrips,
    /// The queue by the last round trip, packets.
    queue: f64,
    /// Round trips in succession without a short queue.
    slow_rounds: u32,
    fast_rounds: u32,
    /// Estimated window of a Reno in the same queue, packets.
    reno_window: f64,
}

impl Default for Yeah {
    fn default() -> Self {
        Yeah {
            min_rtt_ns: None,
            rounds: RoundTrips::default(),
            queue: 0.0,
            slow_rounds: 0,
            fast_rounds: 0,
            reno_window: 2.0,
        }
    }
}

/// Rounded down in the kernel's arithmetic.
fn packets(arithmetic: Arithmetic, packets: f64) -> f64 {
    if arithmetic == Arithmetic::Kernel { packets.floor() } else { packets }
}

impl Yeah {
    fn adapt(&mut self, samples: &RttSamples, window: &mut Window) {
        let least_ns = samples.least_ns().filter(|_| samples.count > FEW_SAMPLES);
        let (Some(rtt_ns), Some(min_rtt_ns)) = (least_ns, self.min_rtt_ns) else { return };
        let arithmetic = window.arithmetic();
        let delay_ns = rtt_ns.saturating_sub(min_rtt_ns);
        let queue = window.exact() * delay_ns as f64 / rtt_ns.max(1) as f64;
        let queue = packets(arithmetic, queue);
        self.queue = queue;
        if queue <= SHORT_QUEUE && delay_ns <= min_rtt_ns / SHORT_DELAY {
            self.slow_rounds = 0;
            self.fast_rounds += 1;
            if self.fast_rounds > FAST_ROUNDS {
                self.reno_window = 2.0;
                self.fast_rounds = 0;
            }
            return;
        }
        if queue > SHORT_QUEUE && window.exact() > self.reno_window {
            let half = packets(arithmetic, window.exact() / 2.0);
            window.set_exact((window.exact() - queue.min(half)).max(self.reno_window));
            window.leave_slow_start();
        }
        let half = packets(arithmetic, window.exact() / 2.0);
        let known = self.reno_window > 2.0;
        self.reno_window = if known { self.reno_window + 1.0 } else { half.max(2.0) };
        self.slow_rounds = self.slow_rounds.saturating_add(1);
    }
}

impl Law for Yeah {
    fn name(&self) -> &'static str {
        "yeah"
    }

    fn measure(&mut self, ack: &Ack, window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            let rtt_ns = rtt.nanos().max(1);
            self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
        let limited = ack.cwnd_limited;
        if let Some(samples) = self.rounds.observe_open(ack).filter(|_| limited) {
            self.adapt(&samples, window);
        }
    }

    fn avoid_congestion(&mut self, _ack: &Ack, acked: u64, window: &mut Window) {
        if self.slow_rounds == 0 {
            scalable::increase(acked, window);
        } else {
            window.increase_as_reno(acked);
        }
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        let arithmetic = window.arithmetic();
        let exact = window.exact();
        let half = packets(arithmetic, exact / 2.0).max(2.0);
        let reduction = if self.slow_rounds < COMPETITION_ROUNDS {
            self.queue.min(half).max(packets(arithmetic, exact / 8.0))
        } else {
            half
        };
        self.fast_rounds = 0;
        self.reno_window = packets(arithmetic, self.reno_window / 2.0).max(2.0);
        window.reduce_to_exact(exact - reduction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    /// With a minimum RTT of 100 ms.
    fn known() -> Yeah {
        Yeah { min_rtt_ns: Some(100_000_000), ..Yeah::default() }
    }

    #[test]
    fn a_short_queue_grows_as_scalable_and_a_long_delay_as_reno() {
        let grown = |rtt_ms| {
            let mut driver = Driver::new(known(), Arithmetic::Kernel, 500);
            driver.round(rtt_ms);
            driver.round(rtt_ms);
            let before = driver.cwnd();
            driver.round(rtt_ms);
            driver.cwnd() - before
        };
        assert_eq!(grown(100), 5);
        // 14 % of delay is 61 packets of queue: no early reduction.
        assert_eq!(grown(114), 1);
    }

    #[test]
    fn a_queue_above_80_packets_is_drained() {
        let mut driver = Driver::new(known(), Arithmetic::Kernel, 1_000);
        driver.round(125);
        driver.round(125);
        // A fifth of the window is queued.
        assert!((790..820).contains(&driver.cwnd()), "{}", driver.cwnd());
    }

    #[test]
    fn a_loss_takes_an_eighth_without_a_queue_and_a_half_beside_a_reno() {
        let mut driver = Driver::new(known(), Arithmetic::Kernel, 800);
        driver.congestion(1);
        assert_eq!(driver.cwnd(), 700);
        let law = Yeah { slow_rounds: COMPETITION_ROUNDS, ..known() };
        let mut driver = Driver::new(law, Arithmetic::Kernel, 800);
        driver.congestion(1);
        assert_eq!(driver.cwnd(), 400);
    }
}
