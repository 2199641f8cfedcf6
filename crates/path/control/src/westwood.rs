//! Westwood+ (Grieco, Mascolo: "Performance evaluation and comparison of Westwood+, New Reno,
//! and Vegas TCP congestion control", ACM CCR 34(2), 2004): Reno, but a loss reduces the window
//! to the bandwidth-delay product that acknowledgements show, B Rmin.

use crate::jiffies::{HZ, TICK_NS, tick};
use crate::law::Law;
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion};
use units::Nanos;

/// Linux: a sample of the bandwidth takes at least this, ticks (50 ms, rounded down).
const MIN_SAMPLE_TICKS: u64 = HZ / 20;
/// Linux: both filters keep 7/8.
const KERNEL_KEPT: u64 = 7;
/// The paper's filter keeps 0.9 (equation 2).
const KEPT: f64 = 0.9;
/// RTT before the first sample, ns (Linux: 20 s).
const FIRST_RTT_NS: u64 = 20_000_000_000;

/// Westwood+. Linux counts bytes a tick, filters them twice, and applies B Rmin at the end of
/// recovery, in which the window falls to a half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Westwood {
    /// Payload of a packet, bytes.
    mss: u64,
    /// The sample under way: when it began, and packets delivered in it.
    began: Option<Nanos>,
    delivered: u64,
    bandwidth: Option<Bandwidth>,
    rtt_ns: u64,
    min_rtt_ns: Option<u64>,
    /// The minimum RTT is taken anew, after a timeout.
    restart_min: bool,
}

/// Filtered bandwidth: bytes a tick in the kernel's arithmetic, else packets a second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bandwidth {
    once: f64,
    twice: f64,
}

impl Westwood {
    /// With packets of `mss` bytes of payload.
    #[must_use]
    pub fn new(mss: u32) -> Self {
        Westwood {
            mss: u64::from(mss.max(1)),
            began: None,
            delivered: 0,
            bandwidth: None,
            rtt_ns: FIRST_RTT_NS,
            min_rtt_ns: None,
            restart_min: false,
        }
    }

    /// Linux looks whether a sample is whole before it counts what an acknowledgement delivers, and
    /// with the RTT of the one before. The first sample begins with the connection, so it has the
    /// first few packets of a whole round trip: the estimate begins low.
    fn measure_in_kernel(&mut self, ack: &Ack) {
        self.lower_min_rtt();
        match self.began {
            Some(began) => {
                let least = self.rtt_ns.div_ceil(TICK_NS).max(MIN_SAMPLE_TICKS);
                if tick(ack.now) - tick(began) > least {
                    self.sample_in_kernel(began, ack.now);
                    self.began = Some(ack.now);
                    self.delivered = 0;
                }
                self.delivered += ack.newly_delivered;
            }
            None => {
                let rtt_ns = ack.rtt.map_or(0, units::Rtt::nanos);
                self.began = Some(Nanos(ack.now.0.saturating_sub(rtt_ns)));
            }
        }
        if let Some(rtt) = ack.rtt {
            self.rtt_ns = rtt.nanos();
        }
    }

    fn measure_by_paper(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt_ns = rtt.nanos();
            self.lower_min_rtt();
        }
        let Some(began) = self.began else {
            self.began = Some(ack.now);
            return;
        };
        self.delivered += ack.newly_delivered;
        if ack.now.nanos_since(began) > self.rtt_ns {
            self.sample_by_paper(began, ack.now);
            self.began = Some(ack.now);
            self.delivered = 0;
        }
    }

    /// The minimum RTT, with the last one; after a timeout it is taken anew.
    fn lower_min_rtt(&mut self) {
        let restart = std::mem::take(&mut self.restart_min);
        let least = self.min_rtt_ns.filter(|_| !restart);
        self.min_rtt_ns = Some(least.map_or(self.rtt_ns, |least| least.min(self.rtt_ns)));
    }

    fn sample_in_kernel(&mut self, began: Nanos, now: Nanos) {
        let ticks = (tick(now) - tick(began)).max(1);
        let sample = self.delivered * self.mss / ticks;
        let filtered = |old: f64, new: u64| (KERNEL_KEPT * old as u64 + new) / (KERNEL_KEPT + 1);
        self.bandwidth = Some(self.bandwidth.filter(|old| old.once > 0.0).map_or(
            Bandwidth { once: sample as f64, twice: sample as f64 },
            |old| {
                let once = filtered(old.once, sample);
                Bandwidth { once: once as f64, twice: filtered(old.twice, once) as f64 }
            },
        ));
    }

    fn sample_by_paper(&mut self, began: Nanos, now: Nanos) {
        let sample = self.delivered as f64 * 1e9 / now.nanos_since(began).max(1) as f64;
        let once = self.bandwidth.map_or(sample, |old| KEPT * old.once + (1.0 - KEPT) * sample);
        self.bandwidth = Some(Bandwidth { once, twice: once });
    }

    /// B Rmin in packets; `None` before there is an estimate.
    fn product(&self, arithmetic: Arithmetic) -> Option<f64> {
        let (bandwidth, min_rtt_ns) = (self.bandwidth?.twice, self.min_rtt_ns?);
        Some(match arithmetic {
            Arithmetic::Kernel => {
                let bytes = bandwidth as u64 * min_rtt_ns.div_ceil(TICK_NS);
                (bytes / self.mss) as f64
            }
            Arithmetic::Paper => bandwidth * min_rtt_ns as f64 / 1e9,
        })
    }
}

impl Law for Westwood {
    fn name(&self) -> &'static str {
        "westwood"
    }

    fn measure(&mut self, ack: &Ack, window: &mut Window) {
        match window.arithmetic() {
            Arithmetic::Kernel => self.measure_in_kernel(ack),
            Arithmetic::Paper => self.measure_by_paper(ack),
        }
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        match (window.arithmetic(), self.product(Arithmetic::Paper)) {
            (Arithmetic::Paper, Some(product)) => {
                window.reduce_to_exact(product.min(window.exact()));
            }
            _ => window.reduce_to_half(),
        }
    }

    fn recovered(&mut self, _now: Nanos, window: &mut Window) {
        window.recovered();
        if window.arithmetic() == Arithmetic::Kernel
            && let Some(product) = self.product(Arithmetic::Kernel)
        {
            window.set((product as u64).max(2));
            window.leave_slow_start();
        }
    }

    fn timed_out(&mut self, window: &mut Window) {
        self.restart_min = true;
        if window.arithmetic() == Arithmetic::Kernel
            && let Some(product) = self.product(Arithmetic::Kernel)
        {
            window.set_threshold(product as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    #[test]
    fn a_loss_leaves_the_product_of_bandwidth_and_minimum_rtt() {
        for arithmetic in [Arithmetic::Kernel, Arithmetic::Paper] {
            let mut driver = Driver::new(Westwood::new(1448), arithmetic, 100);
            // The kernel's estimate begins low, and both of its filters keep 7/8.
            for _ in 0..80 {
                driver.round(100);
            }
            let bandwidth = driver.cwnd() as f64 / 0.1;
            // Half of that is a queue.
            let law = Westwood { min_rtt_ns: Some(50_000_000), ..*driver.control.law() };
            driver.control = crate::Windowed::avoiding_congestion(law, arithmetic, driver.cwnd());
            driver.congestion(1);
            let share = driver.control.window().exact() / (bandwidth * 0.05);
            assert!((0.85..1.1).contains(&share), "{arithmetic:?}: {share}");
        }
    }

    #[test]
    fn without_an_estimate_it_is_reno() {
        let mut driver = Driver::new(Westwood::new(1448), Arithmetic::Kernel, 100);
        driver.congestion(1);
        assert_eq!(driver.cwnd(), 50);
    }
}
