//! Startup and Drain (the draft's sections 5.3.1 and 5.3.2).

use super::{Bbr3, State, sample_bandwidth};
use crate::{Ack, RateSample};

/// Startup's pacing gain: 4 ln 2, the least that doubles the rate each round.
pub(super) const GAIN: f64 = 2.77;
/// Drain's pacing gain.
pub(super) const DRAIN_GAIN: f64 = 0.5;
/// Bandwidth growth by less than this factor counts towards a full pipe.
const GROWTH: f64 = 1.25;
/// Rounds without that growth after which the pipe is full.
const FULL_ROUNDS: u32 = 3;
/// Acknowledgements with losses in one round after which too high a loss rate fills the
/// pipe, too (`BBRStartupFullLossCnt`).
const FULL_LOSSES: u32 = 6;

/// Whether the bandwidth no longer grows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct FullPipe {
    bandwidth: f64,
    rounds: u32,
    /// Of the current probe; `reached` is for good.
    now: bool,
    reached: bool,
}

impl FullPipe {
    /// Startup has filled the pipe.
    pub(super) const fn is_reached(&self) -> bool {
        self.reached
    }

    /// The current probe has.
    pub(super) const fn is_now(&self) -> bool {
        self.now
    }

    /// A new probe begins.
    pub(super) const fn restart(&mut self) {
        self.bandwidth = 0.0;
        self.rounds = 0;
        self.now = false;
    }

    pub(super) const fn restart_from(&mut self, bandwidth: f64) {
        self.restart();
        self.bandwidth = bandwidth;
    }

    fn on_sample(&mut self, bandwidth: f64, round_start: bool) {
        if bandwidth >= self.bandwidth * GROWTH {
            self.restart_from(bandwidth);
        } else if round_start {
            self.rounds += 1;
            self.now = self.rounds >= FULL_ROUNDS;
            self.reached |= self.now;
        }
    }
}

impl Bbr3 {
    pub(super) fn check_full_pipe(&mut self, rate: &RateSample) {
        if self.full_pipe.now || self.is_limited(rate) {
            return;
        }
        if let Some(bandwidth) = sample_bandwidth(rate) {
            self.full_pipe.on_sample(bandwidth, self.round.started);
        }
    }

    /// A shallow queue shows by losses before the bandwidth shows it.
    pub(super) fn check_startup_loss(&mut self, ack: &Ack, rate: &RateSample) {
        if self.state != State::Startup || self.full_pipe.reached {
            return;
        }
        let losses = self.short_term.losses_of_round(ack.newly_lost > 0);
        if losses >= FULL_LOSSES && Bbr3::is_inflight_too_high(rate) {
            self.full_pipe.reached = true;
            let bdp = self.bdp(self.long_term.bandwidth(), 1.0);
            self.long_term.limit_inflight(bdp.max(self.short_term.inflight_latest()));
        }
    }

    pub(super) fn check_drain(&mut self, ack: &Ack) {
        if self.state == State::Startup && self.full_pipe.reached {
            self.state = State::Drain;
        }
        if self.state == State::Drain
            && ack.in_flight <= self.inflight(self.long_term.bandwidth(), 1.0)
        {
            self.begin_probe_down(ack.now, ack.delivered);
        }
    }
}
