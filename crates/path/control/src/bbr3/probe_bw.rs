//! The cycle of probing for bandwidth (the draft's section 5.3.3).

use super::long_term::AckPhase;
use super::{Bbr3, State};
use crate::Ack;
use units::Nanos;

/// Pacing gains while probing and while draining what that queued.
pub(super) const UP_GAIN: f64 = 1.25;
pub(super) const DOWN_GAIN: f64 = 0.9;
/// Time between two probes: at least, and what is drawn on top, ns.
const WAIT_NS: u64 = 2_000_000_000;
const WAIT_SPREAD_NS: f64 = 1e9;
/// Rounds between two probes at most: those in which Reno would grow to the BDP, and no
/// more than this many, so that it coexists with Reno and CUBIC.
const MAX_ROUNDS: u64 = 63;
/// RFC 9438 section 4.2: the time K in which CUBIC regains its window W after a loss is
/// the cube root of W (1 - 0.7) / 0.4, in s.
const CUBIC_K: f64 = 0.75;
/// After this share of K it has regained 99.8 %.
const REGAINED: f64 = 0.8;
/// The window doubles its growth each round, this often at most.
const MAX_DOUBLINGS: u32 = 30;

/// The cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cycle {
    /// When the cycle began, and how long after that the next probe does, ns.
    since: Nanos,
    wait_ns: u64,
    /// Rounds since the last probe.
    pub(super) rounds: u64,
    pub(super) acks: AckPhase,
    /// Acknowledgements may show that this probe's packets in flight were too many.
    pub(super) samples: bool,
    /// A queue lasted though this flow drained its own: others share the path.
    pub(super) is_shared: bool,
    /// Rounds of growth in this probe; packets acknowledged for which one more may be in
    /// flight, and those counted towards it.
    doublings: u32,
    per_packet: u64,
    acked: u64,
}

impl Bbr3 {
    pub(super) fn update_cycle(&mut self, ack: &Ack) {
        match self.state {
            State::ProbeBwDown => {
                if self.is_time_to_probe(ack.now) {
                    self.begin_refill(ack);
                } else if self.is_time_to_cruise(ack) {
                    self.state = State::ProbeBwCruise;
                }
            }
            State::ProbeBwCruise => {
                if self.is_time_to_probe(ack.now) {
                    self.begin_refill(ack);
                }
            }
            State::ProbeBwRefill => {
                if self.round.started {
                    self.cycle.samples = true;
                    self.begin_probe_up(ack);
                }
            }
            State::ProbeBwUp => {
                if self.is_time_to_go_down(ack) {
                    self.begin_probe_down(ack.now, ack.delivered);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    fn is_time_to_probe(&self, now: Nanos) -> bool {
        let wait_ns = if self.probe_rtt.has_queue() {
            let regained_s = REGAINED * libm::cbrt(CUBIC_K * self.target_inflight() as f64);
            self.cycle.wait_ns.max((regained_s * 1e9) as u64)
        } else {
            self.cycle.wait_ns
        };
        let has_waited = now.nanos_since(self.cycle.since) > wait_ns;
        has_waited || self.cycle.rounds >= self.target_inflight().min(MAX_ROUNDS)
    }

    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        ack.in_flight <= self.long_term.inflight_with_headroom()
            && ack.in_flight <= self.inflight(self.long_term.bandwidth(), 1.0)
    }

    fn is_time_to_go_down(&mut self, ack: &Ack) -> bool {
        if ack.cwnd_limited && self.cwnd >= self.long_term.inflight() {
            // The bound held packets back: the bandwidth could not grow.
            self.restart_full_pipe(ack);
            return false;
        }
        self.full_pipe.is_now()
    }

    fn restart_full_pipe(&mut self, ack: &Ack) {
        let bandwidth = ack.rate.as_ref().and_then(super::sample_bandwidth);
        self.full_pipe.restart_from(bandwidth.unwrap_or(0.0));
    }

    pub(super) fn begin_probe_down(&mut self, now: Nanos, delivered: u64) {
        self.state = State::ProbeBwDown;
        self.cycle.since = now;
        self.cycle.wait_ns = WAIT_NS + (self.random.unit() * WAIT_SPREAD_NS) as u64;
        self.cycle.rounds = self.random.draw() & 1;
        self.cycle.acks = AckPhase::ProbeStopping;
        self.restart_round(delivered);
    }

    pub(super) const fn begin_cruise(&mut self) {
        self.state = State::ProbeBwCruise;
    }

    fn begin_refill(&mut self, ack: &Ack) {
        self.state = State::ProbeBwRefill;
        self.cycle.is_shared = self.probe_rtt.has_queue();
        self.short_term.reset();
        self.cycle.doublings = 0;
        self.cycle.acked = 0;
        self.cycle.acks = AckPhase::Refilling;
        self.restart_round(ack.delivered);
    }

    fn begin_probe_up(&mut self, ack: &Ack) {
        self.state = State::ProbeBwUp;
        self.cycle.since = ack.now;
        self.cycle.acks = AckPhase::ProbeStarting;
        self.restart_round(ack.delivered);
        self.restart_full_pipe(ack);
        self.raise_slope();
    }

    /// The bound grows by one packet a round, two, four and so on.
    fn raise_slope(&mut self) {
        let growth = 1 << self.cycle.doublings;
        self.cycle.doublings = (self.cycle.doublings + 1).min(MAX_DOUBLINGS);
        self.cycle.per_packet = (self.cwnd / growth).max(1);
    }

    pub(super) fn raise_inflight(&mut self, ack: &Ack) {
        if !ack.cwnd_limited || self.cwnd < self.long_term.inflight() {
            return;
        }
        self.cycle.acked += ack.newly_delivered;
        self.long_term.raise(self.cycle.acked / self.cycle.per_packet);
        self.cycle.acked %= self.cycle.per_packet;
        if self.round.started {
            self.raise_slope();
        }
    }
}
