//! Scalable TCP (Kelly: "Scalable TCP: improving performance in highspeed wide area networks",
//! ACM CCR 33(2), 2003): 0.01 packets for each acknowledged, an eighth less at a loss.
//!
//! The time to recover is 13.4 round trips at any window. With evenly spaced losses the window
//! peaks at 0.08 / p, and its mean over time is 0.0749 / p.

use crate::law::Law;
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion};

/// Growth for each packet acknowledged.
const INCREASE: f64 = 0.01;
/// What a loss leaves of the window.
const DECREASE: f64 = 0.875;
/// Up to this window it is Reno (section 3.2, legacy window), packets; the paper only.
const LEGACY_WINDOW: f64 = 16.0;
/// Linux: packets acknowledged per packet of growth; Reno below this window.
const PER: u64 = 100;

/// Scalable TCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scalable;

/// Its growth, which YeAH has as well.
pub(crate) fn increase(acked: u64, window: &mut Window) {
    match window.arithmetic() {
        Arithmetic::Kernel => window.increase(acked, window.cwnd().min(PER)),
        Arithmetic::Paper if window.exact() <= LEGACY_WINDOW => window.increase_as_reno(acked),
        Arithmetic::Paper => window.set_exact(window.exact() + INCREASE * acked as f64),
    }
}

impl Law for Scalable {
    fn name(&self) -> &'static str {
        "scalable"
    }

    fn avoid_congestion(&mut self, _ack: &Ack, acked: u64, window: &mut Window) {
        increase(acked, window);
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        match window.arithmetic() {
            Arithmetic::Kernel => window.reduce_to(window.cwnd() - window.cwnd() / 8),
            Arithmetic::Paper if window.exact() <= LEGACY_WINDOW => window.reduce_to_half(),
            Arithmetic::Paper => window.reduce_to_exact(DECREASE * window.exact()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    #[test]
    fn the_kernel_grows_by_a_hundredth_above_100_packets_and_by_one_below() {
        for (cwnd, grown) in [(1_000, 10), (50, 1)] {
            let mut driver = Driver::new(Scalable, Arithmetic::Kernel, cwnd);
            driver.round(100);
            assert_eq!(driver.cwnd(), cwnd + grown);
        }
    }

    #[test]
    fn a_loss_takes_an_eighth() {
        for arithmetic in [Arithmetic::Kernel, Arithmetic::Paper] {
            let mut driver = Driver::new(Scalable, arithmetic, 800);
            driver.congestion(1);
            assert_eq!(driver.cwnd(), 700);
        }
    }
}
