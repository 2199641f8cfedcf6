//! `ProbeRTT` (the draft's section 5.3.4): half a BDP in flight for 200 ms, to see the minimum
//! RTT.

use super::{Bbr3, MIN_WINDOW, State};
use crate::Ack;
use units::Nanos;

/// BDPs in flight.
pub(super) const CWND_GAIN: f64 = 0.5;
/// Time after which a minimum RTT expires, ns (`MinRTTFilterLen`).
const MIN_RTT_NS: u64 = 10_000_000_000;
/// Time without a lower RTT after which it looks for one, ns (`ProbeRTTInterval`).
const INTERVAL_NS: u64 = 5_000_000_000;
/// Minimum duration, ns, which also is one round (`ProbeRTTDuration`).
const DURATION_NS: u64 = 200_000_000;

/// RTT over the minimum that shows a queue.
const QUEUE: f64 = 1.25;

/// The minimum RTT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ProbeRtt {
    min_rtt_ns: Option<u64>,
    min_rtt_at: Nanos,
    /// The minimum of the current interval.
    candidate_ns: Option<u64>,
    candidate_at: Nanos,
    /// The minimum of the current round, and of the one before it.
    round_ns: Option<u64>,
    last_round_ns: Option<u64>,
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

    /// Whether a queue lasted all of the last round.
    pub(super) fn has_queue(&self) -> bool {
        let (Some(round_ns), Some(min_ns)) = (self.last_round_ns, self.min_rtt_ns) else {
            return false;
        };
        round_ns as f64 > min_ns as f64 * QUEUE
    }

    /// Adds a sample; true if the interval has expired.
    fn add(&mut self, now: Nanos, rtt_ns: Option<u64>, round_start: bool) -> bool {
        if round_start {
            self.last_round_ns = self.round_ns.take();
        }
        self.round_ns = match (self.round_ns, rtt_ns) {
            (Some(least), Some(rtt_ns)) => Some(least.min(rtt_ns)),
            (least, rtt_ns) => least.or(rtt_ns),
        };
        // A flow that has no sample yet has none that is old, whenever it starts.
        let expired =
            self.candidate_ns.is_some() && now > self.candidate_at.plus_nanos(INTERVAL_NS);
        if let Some(rtt_ns) = rtt_ns
            && (expired || self.candidate_ns.is_none_or(|least| rtt_ns < least))
        {
            self.candidate_ns = Some(rtt_ns);
            self.candidate_at = now;
        }
        let is_old = now > self.min_rtt_at.plus_nanos(MIN_RTT_NS);
        if let Some(candidate_ns) = self.candidate_ns
            && (is_old || self.min_rtt_ns.is_none_or(|least| candidate_ns < least))
        {
            self.min_rtt_ns = Some(candidate_ns);
            self.min_rtt_at = self.candidate_at;
        }
        expired
    }
}

impl Bbr3 {
    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(self.bandwidth(), CWND_GAIN).max(MIN_WINDOW)
    }

    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        let expired =
            self.probe_rtt.add(ack.now, ack.rtt.map(units::Rtt::nanos), self.round.started);
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.cycle.acks = super::long_term::AckPhase::ProbeStopping;
            self.probe_rtt.done = None;
            self.probe_rtt.limited.0 = ack.delivered;
            self.restart_round(ack.delivered);
        }
        if self.state == State::ProbeRtt {
            self.stay_in_probe_rtt(ack);
        }
    }

    fn stay_in_probe_rtt(&mut self, ack: &Ack) {
        let few = self.probe_rtt_window();
        let probe = &mut self.probe_rtt;
        probe.limited.1 = ack.delivered + ack.in_flight.max(1);
        match probe.done {
            None if ack.in_flight <= few => {
                probe.done = Some(ack.now.plus_nanos(DURATION_NS));
                probe.round_done = false;
                self.restart_round(ack.delivered);
            }
            None => {}
            Some(done) => {
                probe.round_done |= self.round.started;
                if probe.round_done && ack.now > done {
                    probe.candidate_at = ack.now;
                    self.leave_probe_rtt(ack);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, ack: &Ack) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.short_term.reset();
        if self.full_pipe.is_reached() {
            self.begin_probe_down(ack.now, ack.delivered);
            self.begin_cruise();
        } else {
            self.state = State::Startup;
        }
    }
}
