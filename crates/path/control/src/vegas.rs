//! TCP Vegas (Brakmo, Peterson: "TCP Vegas: end to end congestion avoidance on a global
//! Internet", IEEE JSAC 13(8), 1995): keeps two to four packets in the queue.
//!
//! Once a round trip diff = w (R - Rmin) / Rmin, of the least R of the round trip: below alpha
//! the window grows by a packet, above beta it shrinks by one. Slow start ends at diff above
//! gamma. Losses halve the window.

use crate::law::Law;
use crate::round_trips::{RoundTrips, RttSamples};
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion, Phase};

/// Packets queued below which the window grows, and above which it shrinks.
const ALPHA: f64 = 2.0;
const BETA: f64 = 4.0;
/// Packets queued at which slow start ends.
const GAMMA: f64 = 1.0;
/// With no more RTT samples than this in a round trip it is Reno: they may all be of delayed
/// acknowledgements.
const FEW_SAMPLES: u64 = 2;

/// Vegas. Linux doubles the window every round trip of slow start, the paper's every other one;
/// this does the former in both arithmetics.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Vegas {
    min_rtt_ns: Option<u64>,
    rounds: RoundTrips,
    /// This acknowledgement grows the window as in Reno.
    reno: bool,
}

/// w (R - Rmin) / Rmin, packets.
fn queued(window: &Window, rtt_ns: u64, min_rtt_ns: u64) -> f64 {
    let more = rtt_ns.saturating_sub(min_rtt_ns);
    match window.arithmetic() {
        Arithmetic::Kernel => {
            let packets = u128::from(window.cwnd()) * u128::from(more) / u128::from(min_rtt_ns);
            packets as f64
        }
        Arithmetic::Paper => window.exact() * more as f64 / min_rtt_ns as f64,
    }
}

impl Vegas {
    fn adapt(&mut self, samples: &RttSamples, window: &mut Window) {
        let least_ns = samples.least_ns().filter(|_| samples.count > FEW_SAMPLES);
        let (Some(rtt_ns), Some(min_rtt_ns)) = (least_ns, self.min_rtt_ns) else {
            self.reno = true;
            return;
        };
        let queued = queued(window, rtt_ns, min_rtt_ns);
        if window.in_slow_start() {
            if queued > GAMMA {
                let empty = window.exact() * min_rtt_ns as f64 / rtt_ns as f64;
                window.set(((empty as u64) + 1).min(window.cwnd()));
                window.leave_slow_start();
            }
            return;
        }
        let step = match queued {
            queued if queued > BETA => -1.0,
            queued if queued < ALPHA => 1.0,
            _ => return,
        };
        window.set_exact((window.exact() + step).max(2.0));
        let in_slow_start = window.in_slow_start();
        if in_slow_start {
            window.leave_slow_start();
        }
    }
}

impl Law for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn measure(&mut self, ack: &Ack, window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            let rtt_ns = rtt.nanos().max(1);
            self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
        self.reno = ack.phase != Phase::Open;
        if let Some(samples) = self.rounds.observe_open(ack) {
            self.adapt(&samples, window);
        }
    }

    fn avoid_congestion(&mut self, _ack: &Ack, acked: u64, window: &mut Window) {
        if self.reno {
            window.increase_as_reno(acked);
        }
    }

    fn reduce(&mut self, _congestion: &Congestion, window: &mut Window) {
        window.reduce_to_half();
    }

    /// The path may be another one after a pause.
    fn idle_ended(&mut self, _idle_ns: u64) {
        *self = Vegas::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    /// The window after a round trip with that many packets queued of 100.
    fn after(queued: u64) -> u64 {
        let law = Vegas { min_rtt_ns: Some(100_000_000), ..Vegas::default() };
        let mut driver = Driver::new(law, Arithmetic::Kernel, 100);
        // The second begins when the first's packets are acknowledged.
        driver.round(100 + queued);
        let before = driver.cwnd();
        driver.round(100 + queued);
        100 + driver.cwnd() - before
    }

    #[test]
    fn it_grows_below_two_packets_queued_and_shrinks_above_four() {
        assert_eq!(after(0), 101);
        assert_eq!(after(3), 100);
        assert_eq!(after(9), 99);
    }

    #[test]
    fn a_loss_halves() {
        let mut driver = Driver::new(Vegas::default(), Arithmetic::Kernel, 100);
        driver.congestion(1);
        assert_eq!(driver.cwnd(), 50);
    }
}
