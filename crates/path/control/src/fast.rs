//! FAST (Wei, Jin, Low, Hegde: "FAST TCP: motivation, architecture, algorithms, performance",
//! IEEE/ACM ToN 14(6), 2006): keeps a fixed number of packets in the queue, by an equation.
//!
//! Each round trip w = min(2 w, (1 - g) w + g (w Rmin / R + a)) with g = 1/2. At rest
//! w (R - Rmin) / R = a: the rate is a / q with the queueing delay q, and N connections share
//! equally with N a packets queued. A loss halves the window. No kernel has it.

use crate::law::Law;
use crate::round_trips::RoundTrips;
use crate::window::Window;
use crate::{Ack, Congestion};

/// g: how far the window moves towards its target in a round trip.
const GAIN: f64 = 0.5;

/// FAST.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fast {
    /// a, packets.
    backlog: f64,
    min_rtt_ns: Option<u64>,
    rounds: RoundTrips,
}

impl Fast {
    /// Keeps that many packets queued; at least 1. The paper has 200 at 1 Gbit/s.
    #[must_use]
    pub fn new(backlog: u32) -> Self {
        let backlog = f64::from(backlog.max(1));
        Fast { backlog, min_rtt_ns: None, rounds: RoundTrips::default() }
    }
}

impl Law for Fast {
    fn name(&self) -> &'static str {
        "fast"
    }

    fn measure(&mut self, ack: &Ack, window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            let rtt_ns = rtt.nanos().max(1);
            self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
        let Some(samples) = self.rounds.observe_open(ack).filter(|_| ack.cwnd_limited) else {
            return;
        };
        let (Some(rtt_ns), Some(min_rtt_ns)) = (samples.mean_ns(), self.min_rtt_ns) else { return };
        let exact = window.exact();
        let empty = exact * min_rtt_ns as f64 / rtt_ns.max(1) as f64;
        let target = (1.0 - GAIN) * exact + GAIN * (empty + self.backlog);
        // Slow start goes on until half of the backlog is queued.
        if window.in_slow_start() {
            if exact - empty < self.backlog / 2.0 {
                return;
            }
            window.leave_slow_start();
        }
        window.set_exact(target.min(2.0 * exact));
        if window.in_slow_start() {
            window.leave_slow_start();
        }
    }

    /// The window moves once a round trip only.
    fn avoid_congestion(&mut self, _ack: &Ack, _acked: u64, _window: &mut Window) {}

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        window.reduce_to_half();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::window::Arithmetic;

    #[test]
    fn the_window_moves_half_way_to_its_target_each_round_trip() {
        let law = Fast { min_rtt_ns: Some(100_000_000), ..Fast::new(20) };
        let mut driver = Driver::new(law, Arithmetic::Paper, 100);
        driver.round(150);
        driver.round(150);
        // Half way from 100 to the 66.7 of an empty queue and 20.
        let window = driver.control.window().exact();
        assert!((window - (100.0 + 200.0 / 3.0 + 20.0) / 2.0).abs() < 1e-9, "{window}");
    }
}
