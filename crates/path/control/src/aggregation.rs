//! Acknowledgements that come in bursts: how much more than the bandwidth explains.

use units::Nanos;

/// Rounds of each of two halves of the window of maxima.
const ROUNDS: u32 = 5;
/// At most what the bandwidth delivers in that time, s.
const MAX_S: f64 = 0.1;

/// Packets acknowledged beyond the expected ones, at most, within 5 to 10 rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Aggregation {
    epoch: Nanos,
    acked: u64,
    most: [u64; 2],
    half: usize,
    rounds: u32,
}

impl Aggregation {
    /// Nothing was in flight.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.epoch = now;
        self.acked = 0;
    }

    /// Packets were acknowledged; `window` is the congestion window and the bandwidth in
    /// packets a second.
    pub(crate) fn update(
        &mut self,
        now: Nanos,
        acked: u64,
        (cwnd, bandwidth): (u64, f64),
        round_start: bool,
    ) {
        if acked == 0 {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.half = 1 - self.half;
                self.most[self.half] = 0;
            }
        }
        let expected = (bandwidth * now.nanos_since(self.epoch) as f64 / 1e9) as u64;
        let mut expected = expected;
        if self.acked <= expected {
            self.restart(now);
            expected = 0;
        }
        self.acked += acked;
        let extra = self.acked.saturating_sub(expected).min(cwnd);
        self.most[self.half] = self.most[self.half].max(extra);
    }

    /// Packets that the window holds for it.
    pub(crate) fn extra(&self, bandwidth: f64) -> u64 {
        self.most[0].max(self.most[1]).min((bandwidth * MAX_S) as u64)
    }
}
