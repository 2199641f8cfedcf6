//! BIC (Xu, Harfoush, Rhee: "Binary increase congestion control for fast long-distance
//! networks", INFOCOM 2004): a binary search for the window of the last loss.
//!
//! Below the former maximum the window grows a round trip by a part of the distance to it, at
//! most a constant; beyond it, growth begins slowly and rises to the same constant.

use crate::jiffies::tick;
use crate::law::Law;
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion, Phase};

/// Below this window it is Reno, packets.
const LOW_WINDOW: u64 = 14;

/// Linux: at most that many packets of growth a round trip.
const MAX_INCREMENT: u64 = 16;
/// Linux: the window grows by that part of the distance to the maximum (1/4) a round trip.
const SEARCH: u64 = 4;
/// Linux: at the maximum one packet in `SMOOTH / SEARCH` round trips.
const SMOOTH: u64 = 20;
/// Linux: a reduction leaves 819/1024.
const BETA: u64 = 819;
const SCALE: u64 = 1024;
/// Linux: before the first loss at least 5 % a round trip, packets acknowledged per packet.
const MAX_PER_AT_FIRST: u64 = 20;
/// Linux: while the window does not change, growth is recomputed this often: 1/32 s in ticks.
const RECOMPUTE_TICKS: u64 = 7;
/// Linux: packets per acknowledgement are in 1/16, at first 2.
const ACK_RATIO: u64 = 16;

/// Paper: most and least packets of growth a round trip, and the share that a loss takes
/// (section IV).
const S_MAX: f64 = 32.0;
const S_MIN: f64 = 0.01;
const B: f64 = 0.125;

/// BIC. Linux divides by the measured packets per acknowledgement although each packet counts:
/// the window grows faster where acknowledgements cover several. The average begins at 2 and is
/// rounded down, so that it stays at 31/16 where they cover one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bic {
    /// The window of the last loss after fast convergence; `None` before the first.
    last_max: Option<f64>,
    /// Tick and window of the last computation, and its result.
    last: Option<(u64, u64, u64)>,
    /// Packets per acknowledgement, 1/16.
    ack_ratio: u64,
}

impl Default for Bic {
    fn default() -> Self {
        Bic { last_max: None, last: None, ack_ratio: 2 * ACK_RATIO }
    }
}

impl Bic {
    /// Linux: packets acknowledged per packet of growth.
    fn per(&mut self, now: u64, cwnd: u64) -> u64 {
        if let Some((at, same, per)) = self.last
            && same == cwnd
            && now - at <= RECOMPUTE_TICKS
        {
            return per;
        }
        let per = self.compute(cwnd);
        self.last = Some((now, cwnd, per));
        per
    }

    fn compute(&self, cwnd: u64) -> u64 {
        if cwnd <= LOW_WINDOW {
            return cwnd;
        }
        let max = self.last_max.unwrap_or(0.0) as u64;
        let per = if cwnd < max {
            match (max - cwnd) / SEARCH {
                0 | 1 => cwnd * SMOOTH / SEARCH,
                distance => cwnd / distance.min(MAX_INCREMENT),
            }
        } else if cwnd < max + SEARCH {
            cwnd * SMOOTH / SEARCH
        } else if cwnd < max + MAX_INCREMENT * (SEARCH - 1) {
            cwnd * (SEARCH - 1) / (cwnd - max)
        } else {
            cwnd / MAX_INCREMENT
        };
        let per = if self.last_max.is_none() { per.min(MAX_PER_AT_FIRST) } else { per };
        (per * ACK_RATIO / self.ack_ratio.max(1)).max(1)
    }

    /// Paper: packets of growth a round trip.
    fn increment(&self, window: f64) -> f64 {
        match self.last_max {
            _ if window <= LOW_WINDOW as f64 => 1.0,
            Some(max) if window < max => ((max - window) / 2.0).clamp(S_MIN, S_MAX),
            // Max probing: 1, 2, 4, ... packets in successive round trips.
            Some(max) => (window - max + 1.0).min(S_MAX),
            None => S_MAX,
        }
    }
}

impl Law for Bic {
    fn name(&self) -> &'static str {
        "bic"
    }

    fn measure(&mut self, ack: &Ack, _window: &mut Window) {
        if ack.phase == Phase::Open && ack.newly_delivered > 0 {
            self.ack_ratio += ack.newly_delivered;
            self.ack_ratio -= (self.ack_ratio - ack.newly_delivered) / ACK_RATIO;
        }
    }

    fn avoid_congestion(&mut self, ack: &Ack, acked: u64, window: &mut Window) {
        match window.arithmetic() {
            Arithmetic::Kernel => window.increase(acked, self.per(tick(ack.now), window.cwnd())),
            Arithmetic::Paper => {
                let exact = window.exact();
                window.set_exact(exact + acked as f64 * self.increment(exact) / exact);
            }
        }
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        self.last = None;
        let before = self.last_max.unwrap_or(0.0);
        match window.arithmetic() {
            Arithmetic::Kernel => {
                let cwnd = window.cwnd();
                let converging = (cwnd as f64) < before;
                let max = if converging { cwnd * (SCALE + BETA) / (2 * SCALE) } else { cwnd };
                self.last_max = Some(max as f64);
                window.reduce_to(if cwnd <= LOW_WINDOW { cwnd / 2 } else { cwnd * BETA / SCALE });
            }
            Arithmetic::Paper => {
                let exact = window.exact();
                self.last_max = Some(if exact < before { exact * (1.0 - B / 2.0) } else { exact });
                let low = exact <= LOW_WINDOW as f64;
                window.reduce_to_exact(exact * if low { 0.5 } else { 1.0 - B });
            }
        }
    }

    fn timed_out(&mut self, _window: &mut Window) {
        *self = Bic::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    /// At 1000 packets, whose loss left that much.
    fn after_a_loss() -> Driver<Bic> {
        let law = Bic { ack_ratio: ACK_RATIO, ..Bic::default() };
        let mut driver = Driver::new(law, Arithmetic::Kernel, 1_000);
        driver.congestion(1);
        driver
    }

    #[test]
    fn it_grows_by_at_most_16_packets_a_round_trip_towards_the_former_maximum() {
        let mut driver = after_a_loss();
        assert_eq!(driver.cwnd(), 799);
        driver.round(100);
        assert_eq!(driver.cwnd(), 815);
    }

    #[test]
    fn near_the_maximum_it_needs_five_round_trips_for_a_packet() {
        let law = Bic { last_max: Some(1_000.0), ack_ratio: ACK_RATIO, ..Bic::default() };
        assert_eq!(law.compute(995), 5 * 995);
        assert_eq!(law.compute(1_001), 5 * 1_001);
        assert_eq!(law.compute(980), 980 / 5);
        assert_eq!(law.compute(1_100), 1_100 / 16);
    }

    #[test]
    fn acknowledgements_of_two_packets_double_the_growth() {
        let mut driver = after_a_loss();
        // Until the ratio is known.
        for _ in 0..2 {
            driver.round_by(100, 2);
        }
        let before = driver.cwnd();
        driver.round_by(100, 2);
        assert!((driver.cwnd() - before).abs_diff(32) <= 2, "{}", driver.cwnd() - before);
    }

    #[test]
    fn a_second_loss_below_the_maximum_aims_lower() {
        let mut driver = after_a_loss();
        driver.congestion(1);
        assert_eq!(
            driver.control.law().last_max,
            Some((799 * (SCALE + BETA) / (2 * SCALE)) as f64)
        );
        driver.timeout();
        assert_eq!(driver.control.law().last_max, None);
    }
}
