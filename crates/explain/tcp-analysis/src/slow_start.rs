//! An estimate of the slow start threshold, which no packet has.
//!
//! In slow start the bytes in flight double in each round trip. It has ended at the first loss,
//! or where they grow by less than a quarter in two round trips while nothing but the
//! congestion window holds the sender back.

/// Growth in a round trip below which it is not slow start.
const MIN_GROWTH: f64 = 1.25;

/// What a window is reduced to at most where a loss ends slow start: CUBIC's beta (RFC 9438).
const BETA: f64 = 0.7;

/// The phase of a sender.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SlowStart {
    threshold: Option<u64>,
    last_flight: u64,
    slow_rounds: u32,
}

impl SlowStart {
    /// The threshold in bytes; `None` in the first slow start.
    pub(crate) const fn threshold(&self) -> Option<u64> {
        self.threshold
    }

    /// A round trip ended with at most `flight` bytes in flight; `held` by another window or
    /// by the application.
    pub(crate) fn end_round(&mut self, flight: u64, held: bool) {
        if self.threshold.is_none() {
            let grew = flight as f64 >= self.last_flight as f64 * MIN_GROWTH;
            self.slow_rounds = if grew || held { 0 } else { self.slow_rounds + 1 };
            if self.slow_rounds >= 2 {
                self.threshold = Some(flight);
            }
        }
        self.last_flight = flight;
    }

    /// A recovery begins, with `flight` bytes in flight.
    pub(crate) fn lose(&mut self, flight: u64) {
        self.threshold = Some((flight as f64 * BETA) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_with_a_loss_or_without_growth() {
        let mut phase = SlowStart::default();
        for flight in [10, 20, 40, 80] {
            phase.end_round(flight, false);
        }
        assert_eq!(phase.threshold(), None);
        // Held by another window, it may go on.
        for _ in 0..5 {
            phase.end_round(80, true);
        }
        assert_eq!(phase.threshold(), None);
        phase.end_round(81, false);
        assert_eq!(phase.threshold(), None);
        phase.end_round(82, false);
        assert_eq!(phase.threshold(), Some(82));
        phase.lose(100);
        assert_eq!(phase.threshold(), Some(70));
    }
}
