//! HighSpeed TCP (RFC 3649): growth and reduction depend on the window.
//!
//! Between windows of 38 and 83 000 packets the response function is w = 0.12 / p^0.835:
//! b(w) falls from 0.5 to 0.1 with ln w, and a(w) = w^2 p(w) 2 b(w) / (2 - b(w)) with
//! p(w) = 0.078 / w^1.2 (section 5). Below, it is Reno.

use crate::law::Law;
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion};

/// Below this window it is Reno (RFC 3649 section 5, `Low_Window`), packets.
const LOW_WINDOW: f64 = 38.0;
/// The window at which the reduction is the least (`High_Window`), packets.
const HIGH_WINDOW: f64 = 83_000.0;
/// Reduction at the high window (`High_Decrease`).
const HIGH_DECREASE: f64 = 0.1;

/// The table of RFC 3649's appendix B as Linux has it: up to the window of the n-th row, n
/// packets of growth a round trip.
const WINDOWS: [u32; 72] = [
    38, 118, 221, 347, 495, 663, 851, 1_058, 1_284, 1_529, 1_793, 2_076, 2_378, 2_699, 3_039,
    3_399, 3_778, 4_177, 4_596, 5_036, 5_497, 5_979, 6_483, 7_009, 7_558, 8_130, 8_726, 9_346,
    9_991, 10_661, 11_358, 12_082, 12_834, 13_614, 14_424, 15_265, 16_137, 17_042, 17_981, 18_955,
    19_965, 21_013, 22_101, 23_230, 24_402, 25_618, 26_881, 28_193, 29_557, 30_975, 32_450, 33_986,
    35_586, 37_253, 38_992, 40_808, 42_707, 44_694, 46_776, 48_961, 51_258, 53_677, 56_230, 58_932,
    61_799, 64_851, 68_113, 71_617, 75_401, 79_517, 84_035, 89_053,
];

/// HighSpeed TCP. Linux takes growth and reduction from the table of appendix B, the latter in
/// 1/256, and grows once for each acknowledgement, however many packets it covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HighSpeed {
    /// Index of the row of the table; the kernel's arithmetic only.
    row: usize,
    /// Growth saved up, packets; the kernel's arithmetic only.
    saved: u64,
}

/// b(w), the share of the window that a loss takes (RFC 3649 section 5).
fn decrease(window: f64) -> f64 {
    if window <= LOW_WINDOW {
        return 0.5;
    }
    let position = libm::log(window / LOW_WINDOW) / libm::log(HIGH_WINDOW / LOW_WINDOW);
    (0.5 + (HIGH_DECREASE - 0.5) * position).max(0.0)
}

/// a(w), packets of growth a round trip (RFC 3649 section 5).
fn increase(window: f64) -> f64 {
    if window <= LOW_WINDOW {
        return 1.0;
    }
    let loss = 0.078 / libm::pow(window, 1.2);
    let b = decrease(window);
    window * window * loss * 2.0 * b / (2.0 - b)
}

impl HighSpeed {
    fn find_row(&mut self, cwnd: u64) {
        let last = WINDOWS.len() - 1;
        self.row = WINDOWS.partition_point(|window| u64::from(*window) < cwnd).min(last);
    }

    /// The reduction of the row in 1/256, rounded down as in Linux's table.
    fn decrease_256(&self) -> u64 {
        let window = WINDOWS.get(self.row).map_or(HIGH_WINDOW, |window| f64::from(*window));
        (decrease(window) * 256.0) as u64
    }
}

impl Law for HighSpeed {
    fn name(&self) -> &'static str {
        "highspeed"
    }

    fn avoid_congestion(&mut self, _ack: &Ack, acked: u64, window: &mut Window) {
        match window.arithmetic() {
            Arithmetic::Paper => {
                let exact = window.exact();
                window.set_exact(exact + acked as f64 * increase(exact) / exact);
            }
            Arithmetic::Kernel => {
                let cwnd = window.cwnd();
                self.find_row(cwnd);
                self.saved += self.row as u64 + 1;
                if self.saved >= cwnd {
                    self.saved -= cwnd;
                    window.set(cwnd + 1);
                }
            }
        }
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        match window.arithmetic() {
            Arithmetic::Paper => {
                let exact = window.exact();
                window.reduce_to_exact(exact * (1.0 - decrease(exact)));
            }
            Arithmetic::Kernel => {
                // By the row of the last growth, which may be of another window.
                let cwnd = window.cwnd();
                window.reduce_to(cwnd - cwnd * self.decrease_256() / 256);
                self.saved = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    #[test]
    fn at_the_high_window_it_grows_by_71_packets_and_loses_a_tenth() {
        assert!((decrease(83_000.0) - 0.1).abs() < 1e-9);
        assert!((increase(83_000.0) - 71.0).abs() < 1.5, "{}", increase(83_000.0));
        assert!((increase(38.1) - 1.0).abs() < 0.05, "{}", increase(38.1));
    }

    #[test]
    fn the_kernel_rows_are_those_of_appendix_b() {
        // Window, growth, and reduction in 1/256 as published with Linux's table.
        let rows =
            [(38, 1, 128), (118, 2, 112), (1_058, 8, 83), (10_661, 30, 52), (89_053, 72, 24)];
        for (window, growth, share) in rows {
            let mut law = HighSpeed::default();
            law.find_row(window);
            assert_eq!((law.row + 1, law.decrease_256()), (growth, share), "{window}");
        }
        let mut law = HighSpeed::default();
        law.find_row(1_000_000);
        assert_eq!(law.row, 71);
    }

    #[test]
    fn the_kernel_counts_acknowledgements_not_packets() {
        let grown = |each| {
            let mut driver = Driver::new(HighSpeed::default(), Arithmetic::Kernel, 1_000);
            driver.round_by(100, each);
            driver.cwnd() - 1_000
        };
        // 8 packets for 1000 acknowledged at a(w) = 8, less as the window grows.
        assert_eq!(grown(1), 7);
        assert_eq!(grown(2), 3);
    }
}
