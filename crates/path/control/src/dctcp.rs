//! DCTCP (RFC 8257): the window falls in proportion to the share of marked packets.
//!
//! Once a round trip alpha = (1 - g) alpha + g F, with F the share of marked packets of those
//! acknowledged in it; congestion marks reduce the window to w (1 - alpha / 2), a loss to w / 2.
//! With every packet marked with probability p, one packet of growth a round trip balances the
//! reduction at w = 2 / p.

use crate::law::Law;
use crate::round_trips::RoundTrips;
use crate::window::{Arithmetic, Window};
use crate::{Ack, Congestion, Phase, Reduction};
use units::Nanos;

/// g = 1/16 as a shift (RFC 8257 section 4.2).
const GAIN_SHIFT: u32 = 4;
/// Linux's alpha is in 1/1024.
const SCALE: u64 = 1024;

/// The moving average of the share of marked packets (RFC 8257 section 3.3, DCTCP.Alpha).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MarkedShare {
    arithmetic: Arithmetic,
    /// In the kernel's arithmetic whole 1/1024, else a real number of 1/1024.
    alpha: f64,
    rounds: RoundTrips,
    delivered: u64,
    marked: u64,
}

impl MarkedShare {
    /// Alpha is 1 until the first round trip has passed.
    #[must_use]
    pub fn new(arithmetic: Arithmetic) -> Self {
        MarkedShare {
            arithmetic,
            alpha: SCALE as f64,
            rounds: RoundTrips::default(),
            delivered: 0,
            marked: 0,
        }
    }

    /// Counts an acknowledgement. Returns true if it ended a round trip, so that alpha is new.
    pub fn observe(&mut self, ack: &Ack) -> bool {
        self.delivered += ack.newly_delivered;
        self.marked += ack.newly_marked;
        if self.rounds.observe(ack).is_none() {
            return false;
        }
        let (delivered, marked) = (self.delivered.max(1), self.marked.min(self.delivered));
        self.alpha = match self.arithmetic {
            Arithmetic::Kernel => {
                let alpha = self.alpha as u64;
                // Where the sixteenth is nothing, all of it goes at once.
                let old = alpha >> GAIN_SHIFT;
                let kept = alpha - if old == 0 { alpha } else { old };
                let new = (marked * (SCALE >> GAIN_SHIFT)) / delivered;
                (kept + new).min(SCALE) as f64
            }
            Arithmetic::Paper => {
                let share = marked as f64 / delivered as f64 * SCALE as f64;
                self.alpha + (share - self.alpha) / f64::from(1_u32 << GAIN_SHIFT)
            }
        };
        self.delivered = 0;
        self.marked = 0;
        true
    }

    /// Alpha, 0 to 1.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha / SCALE as f64
    }

    /// The window reduced by half of alpha, packets.
    #[must_use]
    pub fn reduced(&self, window: f64) -> f64 {
        match self.arithmetic {
            Arithmetic::Kernel => {
                let window = window as u64;
                (window - window * self.alpha as u64 / (2 * SCALE)) as f64
            }
            Arithmetic::Paper => window * (1.0 - self.alpha() / 2.0),
        }
    }
}

/// DCTCP. In the kernel's arithmetic the window does not grow in the round trip that follows
/// a reduction; in the RFC's the reduction is immediate and growth goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dctcp {
    share: MarkedShare,
    /// The window was reduced already for the recovery that is under way.
    reduced: bool,
}

impl Dctcp {
    /// Before the first round trip.
    #[must_use]
    pub fn new(arithmetic: Arithmetic) -> Self {
        Dctcp { share: MarkedShare::new(arithmetic), reduced: false }
    }

    /// The average share of marked packets, 0 to 1.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.share.alpha()
    }
}

impl Law for Dctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    fn measure(&mut self, ack: &Ack, _window: &mut Window) {
        self.share.observe(ack);
        if ack.phase == Phase::Open {
            self.reduced = false;
        }
    }

    fn reduce(&mut self, congestion: &Congestion, window: &mut Window) {
        self.reduced = false;
        if congestion.lost > 0 {
            window.reduce_to_half();
            return;
        }
        match window.arithmetic() {
            Arithmetic::Kernel => {
                window.reduce_to(self.share.reduced(window.cwnd() as f64) as u64);
            }
            Arithmetic::Paper => {
                window.reduce_to_exact(self.share.reduced(window.exact()));
                window.recovered();
                self.reduced = true;
            }
        }
    }

    fn grows_in_recovery(&self) -> bool {
        self.reduced
    }

    fn recovered(&mut self, _now: Nanos, window: &mut Window) {
        if !std::mem::take(&mut self.reduced) {
            window.recovered();
        }
    }

    fn reduction(&self) -> Reduction {
        if self.reduced { Reduction::Controlled } else { Reduction::Proportional }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{Driver, ack};

    /// Alpha after round trips of 100 packets, of which that many are marked.
    fn alpha(arithmetic: Arithmetic, marked: u64, rounds: u64) -> f64 {
        let mut share = MarkedShare::new(arithmetic);
        for round in 0..=rounds {
            let to = 100 * round;
            share.observe(&Ack {
                newly_delivered: 100,
                newly_marked: marked,
                acked_to: to + 1,
                sent_to: to + 100,
                ..ack()
            });
        }
        share.alpha()
    }

    #[test]
    fn alpha_tends_to_the_share_of_marked_packets() {
        let paper = alpha(Arithmetic::Paper, 25, 300);
        assert!((paper - 0.25).abs() < 1e-6, "{paper}");
        // In whole 1/1024 the sixteenth that is forgotten is rounded down.
        let kernel = alpha(Arithmetic::Kernel, 25, 300);
        assert!((0.25..0.27).contains(&kernel), "{kernel}");
    }

    #[test]
    fn alpha_forgets_all_marks() {
        assert_eq!(alpha(Arithmetic::Kernel, 0, 200), 0.0);
        assert!(alpha(Arithmetic::Paper, 0, 60) < 0.03);
    }

    #[test]
    fn a_loss_halves_and_marks_reduce_by_half_of_alpha() {
        for (lost, expected) in [(1, 50), (0, 50)] {
            // Alpha is still 1.
            let law = Dctcp::new(Arithmetic::Kernel);
            let mut driver = Driver::new(law, Arithmetic::Kernel, 100);
            driver.congestion(lost);
            assert_eq!(driver.cwnd(), expected);
        }
    }
}
