//! The phases: when startup has filled the pipe, the gain cycle, and `ProbeRtt`.

use super::{Bbr, BbrMode, MIN_WINDOW};
use crate::random::SplitMix64;
use crate::{Ack, RateSample};
use units::Nanos;

/// Pacing gains while probing for bandwidth: up, down, then cruising.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Bandwidth growth by less than this factor counts towards a full pipe.
const GROWTH: f64 = 1.25;
/// Rounds without that growth after which startup has filled the pipe.
const FULL_ROUNDS: u32 = 3;
/// Time after which a minimum RTT expires.
const MIN_RTT_NS: u64 = 10_000_000_000;
/// Minimum duration of `ProbeRtt`, which also lasts one round.
const PROBE_RTT_NS: u64 = 200_000_000;

/// Whether startup has filled the pipe.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct FullPipe {
    bandwidth: f64,
    rounds: u32,
    reached: bool,
}

impl FullPipe {
    pub(super) const fn is_reached(&self) -> bool {
        self.reached
    }

    /// After a timeout the bandwidth is compared anew.
    pub(super) fn forget_bandwidth(&mut self) {
        self.bandwidth = 0.0;
    }

    /// The losses were spurious.
    pub(super) fn restart(&mut self) {
        self.bandwidth = 0.0;
        self.rounds = 0;
    }

    /// A round ended with that bandwidth.
    fn on_round(&mut self, bandwidth: f64) {
        if bandwidth >= self.bandwidth * GROWTH {
            self.bandwidth = bandwidth;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= FULL_ROUNDS;
    }
}

/// The gain cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cycle {
    index: usize,
    since: Nanos,
    /// Draws the first phase.
    random: SplitMix64,
}

impl Cycle {
    pub(super) const fn new(seed: u64) -> Self {
        Cycle { index: 0, since: Nanos(0), random: SplitMix64::new(seed) }
    }

    pub(super) const fn gain(&self) -> f64 {
        GAINS[self.index]
    }

    pub(super) const fn is_probing_up(&self) -> bool {
        self.index == 0
    }

    fn advance(&mut self, now: Nanos) {
        self.index = (self.index + 1) % GAINS.len();
        self.since = now;
    }

    /// In any phase but that of draining, so that flows do not probe together.
    fn begin(&mut self, now: Nanos) {
        let skipped = self.random.draw() % (GAINS.len() as u64 - 1);
        self.index = GAINS.len() - 1 - skipped as usize;
        self.advance(now);
    }
}

/// The minimum RTT, and the phase that looks for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ProbeRtt {
    min_rtt_ns: Option<u64>,
    at: Nanos,
    /// When it may end; `None` until the packets in flight are few.
    done: Option<Nanos>,
    round_done: bool,
    /// Packets delivered when it began, and when the last packet sent in it is.
    limited: (u64, u64),
}

impl ProbeRtt {
    pub(super) const fn min_rtt_ns(&self) -> Option<u64> {
        self.min_rtt_ns
    }

    /// Whether a packet was sent within the phase, by what had been delivered then.
    pub(super) const fn limited(&self, prior_delivered: u64) -> bool {
        self.limited.0 <= prior_delivered && prior_delivered < self.limited.1
    }
}

impl Bbr {
    pub(super) fn update_cycle(&mut self, ack: &Ack) {
        if self.mode != BbrMode::ProbeBw {
            return;
        }
        let min_rtt_ns = self.min_rtt_ns().unwrap_or(0);
        let full_length = ack.now.nanos_since(self.cycle.since) > min_rtt_ns;
        let gain = self.cycle_gain();
        let is_over = if gain > 1.0 {
            let reached = ack.prior_in_flight >= self.inflight(gain);
            full_length && (ack.newly_lost > 0 || reached)
        } else if gain < 1.0 {
            full_length || ack.prior_in_flight <= self.inflight(1.0)
        } else {
            full_length
        };
        if is_over {
            self.cycle.advance(ack.now);
        }
    }

    pub(super) fn check_full_pipe(&mut self, rate: &RateSample) {
        if !self.full_pipe.reached && self.round_start && !self.is_limited(rate) {
            self.full_pipe.on_round(self.bandwidth.max());
        }
    }

    pub(super) fn check_drain(&mut self, ack: &Ack) {
        if self.mode == BbrMode::Startup && self.full_pipe.reached {
            self.mode = BbrMode::Drain;
            self.ssthresh = Some(self.inflight(1.0));
        }
        if self.mode == BbrMode::Drain && ack.in_flight <= self.inflight(1.0) {
            self.begin_probing(ack.now);
        }
    }

    pub(super) fn update_policer(&mut self, ack: &Ack, rate: &RateSample) {
        let is_probing = self.mode == BbrMode::ProbeBw;
        let about = (self.round_start, rate.app_limited, is_probing);
        if self.policer.on_ack(ack, self.mss, about) {
            self.begin_probing(ack.now);
        }
    }

    fn begin_probing(&mut self, now: Nanos) {
        self.mode = BbrMode::ProbeBw;
        self.cycle.begin(now);
    }

    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        let probe = &mut self.probe_rtt;
        // A flow that has no sample yet has none that is old, whenever it starts.
        let expired = probe.min_rtt_ns.is_some() && ack.now > probe.at.plus_nanos(MIN_RTT_NS);
        if let Some(rtt_ns) = ack.rtt.map(units::Rtt::nanos)
            && (expired || probe.min_rtt_ns.is_none_or(|least| rtt_ns < least))
        {
            probe.min_rtt_ns = Some(rtt_ns);
            probe.at = ack.now;
        }
        if expired && !self.idle_restart && self.mode != BbrMode::ProbeRtt {
            self.save_cwnd();
            self.mode = BbrMode::ProbeRtt;
            self.probe_rtt.done = None;
            self.probe_rtt.limited.0 = ack.delivered;
        }
        if self.mode == BbrMode::ProbeRtt {
            self.stay_in_probe_rtt(ack);
        }
    }

    fn stay_in_probe_rtt(&mut self, ack: &Ack) {
        let probe = &mut self.probe_rtt;
        probe.limited.1 = ack.delivered + ack.in_flight.max(1);
        match probe.done {
            None if ack.in_flight <= MIN_WINDOW => {
                probe.done = Some(ack.now.plus_nanos(PROBE_RTT_NS));
                probe.round_done = false;
                self.round_end = ack.delivered;
            }
            None => {}
            Some(done) => {
                probe.round_done |= self.round_start;
                if probe.round_done && ack.now > done {
                    probe.at = ack.now;
                    self.cwnd = self.cwnd.max(self.prior_cwnd);
                    if self.full_pipe.reached {
                        self.begin_probing(ack.now);
                    } else {
                        self.mode = BbrMode::Startup;
                    }
                }
            }
        }
    }
}
