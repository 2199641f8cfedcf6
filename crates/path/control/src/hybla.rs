//! TCP Hybla (Caini, Firrincieli: "TCP Hybla: a TCP enhancement for heterogeneous networks",
//! Int. J. Satellite Communications and Networking 22(5), 2004): the rate of a Reno connection
//! with a round trip of 25 ms, whatever its own.
//!
//! With rho = max(1, R / 25 ms) a packet acknowledged adds 2^rho - 1 in slow start and
//! rho^2 / w in congestion avoidance; losses halve the window.

use crate::law::Law;
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion, Phase};

/// Round trip of the reference connection, ns.
const REFERENCE_NS: u64 = 25_000_000;
/// Linux holds the window at this, packets: 7.6 Gbit/s at 100 ms.
const CLAMP: u64 = 65_535;
/// Most of rho in the exponent of slow start.
const MAX_EXPONENT: u64 = 16;
/// Linux counts rho in eighths, and parts of a packet in 1/128.
const PARTS: u64 = 128;
/// 2^(n/8) in 1/128.
const EIGHTH_POWERS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

/// Hybla. Linux computes once for each acknowledgement, however many packets it covers, takes
/// rho from the smoothed RTT when the minimum RTT falls, begins with a window of rho, and is
/// Reno in slow start after a timeout.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hybla {
    /// Least smoothed RTT, ns.
    min_rtt_ns: Option<u64>,
    /// rho in eighths and rounded down, at least 8; the kernel's arithmetic.
    rho_eighths: u64,
    /// rho; the paper's arithmetic.
    rho: f64,
    /// Parts of a packet saved up, 1/128.
    parts: u64,
    /// Acknowledgements since the window last grew.
    since_growth: u64,
    phase: Phase,
}

impl Hybla {
    fn increase_in_kernel(&mut self, window: &mut Window) {
        let cwnd = window.cwnd();
        let slow_start = window.in_slow_start();
        let increment = if slow_start {
            let whole = (self.rho_eighths / 8).min(MAX_EXPONENT);
            let eighths = EIGHTH_POWERS[(self.rho_eighths % 8) as usize];
            (eighths << whole) - PARTS
        } else {
            // rho^2 in 1/128 has twice the square of eighths.
            let increment = 2 * self.rho_eighths * self.rho_eighths / cwnd;
            self.since_growth += u64::from(increment < PARTS);
            increment
        };
        let mut grown = cwnd + increment / PARTS;
        self.parts += increment % PARTS;
        if self.parts >= PARTS {
            grown += self.parts / PARTS;
            self.parts %= PARTS;
            self.since_growth = 0;
        }
        // Where an acknowledgement adds less than 1/128, one packet a window.
        if increment == 0 && self.since_growth >= cwnd {
            grown += 1;
            self.since_growth = 0;
        }
        if slow_start && let Some(threshold) = window.ssthresh() {
            grown = grown.min(threshold);
        }
        window.set(grown.min(CLAMP));
    }

    fn increase_by_paper(&self, acked: u64, window: &mut Window) {
        let (exact, acked) = (window.exact(), acked as f64);
        let increment = if window.in_slow_start() {
            let rho = self.rho.min(MAX_EXPONENT as f64);
            let grown = exact + acked * (libm::exp2(rho) - 1.0);
            window.ssthresh().map_or(grown, |most| grown.min(most as f64)) - exact
        } else {
            acked * self.rho * self.rho / exact
        };
        window.set_exact(exact + increment);
    }

    fn increase(&mut self, acked: u64, window: &mut Window) {
        match window.arithmetic() {
            Arithmetic::Kernel => self.increase_in_kernel(window),
            Arithmetic::Paper => self.increase_by_paper(acked, window),
        }
    }
}

impl Law for Hybla {
    fn name(&self) -> &'static str {
        "hybla"
    }

    fn measure(&mut self, ack: &Ack, window: &mut Window) {
        self.phase = ack.phase;
        let Some(rtt_ns) = ack.srtt.or(ack.rtt).map(units::Rtt::nanos) else { return };
        if self.min_rtt_ns.is_none_or(|least| rtt_ns < least) {
            let first = self.min_rtt_ns.is_none();
            self.min_rtt_ns = Some(rtt_ns);
            self.rho_eighths = (8 * rtt_ns / REFERENCE_NS).max(8);
            self.rho = (rtt_ns as f64 / REFERENCE_NS as f64).max(1.0);
            if first && window.arithmetic() == Arithmetic::Kernel && ack.delivered <= window.cwnd()
            {
                window.set(self.rho_eighths / 8);
            }
        }
    }

    fn slow_start(&mut self, ack: &Ack, window: &mut Window) -> u64 {
        let reno = self.phase != Phase::Open || self.min_rtt_ns.is_none();
        if reno {
            return window.slow_start(ack.newly_delivered);
        }
        self.increase(ack.newly_delivered, window);
        0
    }

    fn avoid_congestion(&mut self, _ack: &Ack, acked: u64, window: &mut Window) {
        if self.phase != Phase::Open || self.min_rtt_ns.is_none() {
            window.increase_as_reno(acked);
        } else {
            self.increase(acked, window);
        }
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        window.reduce_to_half();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    /// With an RTT of 100 ms known.
    fn known() -> Hybla {
        Hybla { min_rtt_ns: Some(100_000_000), rho_eighths: 32, rho: 4.0, ..Hybla::default() }
    }

    #[test]
    fn growth_a_round_trip_is_the_square_of_rho() {
        for arithmetic in [Arithmetic::Kernel, Arithmetic::Paper] {
            let mut driver = Driver::new(known(), arithmetic, 1_000);
            driver.round(100);
            let grown = driver.control.window().exact() - 1_000.0;
            assert!((grown - 16.0).abs() < 1.1, "{arithmetic:?}: {grown}");
        }
    }

    #[test]
    fn a_short_path_is_reno() {
        let law = Hybla { min_rtt_ns: Some(1), rho_eighths: 8, rho: 1.0, ..Hybla::default() };
        let mut driver = Driver::new(law, Arithmetic::Paper, 100);
        driver.round(10);
        assert!((driver.control.window().exact() - 101.0).abs() < 0.01);
    }

    #[test]
    fn the_kernel_holds_the_window_at_65_535_packets() {
        let mut driver = Driver::new(Hybla::default(), Arithmetic::Kernel, 1);
        driver.control = crate::Windowed::new(known(), Arithmetic::Kernel);
        for _ in 0..4 {
            driver.round(100);
        }
        assert_eq!(driver.cwnd(), 65_535);
    }
}
