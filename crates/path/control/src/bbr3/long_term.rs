//! The long-term model (the draft's section 5.5.10.2): the maximum of the delivery rate in two
//! cycles, and what could be in flight without too many losses.

use super::{BETA, Bbr3, HEADROOM, MIN_WINDOW, State};
use crate::{Ack, RateSample};

/// Bounds that probes find.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct LongTerm {
    /// Largest bandwidth of the last cycle and of this one, packets a second.
    bandwidth: [f64; 2],
    /// Packets; `None`: no bound was found.
    inflight: Option<u64>,
}

impl LongTerm {
    pub(super) const fn bandwidth(&self) -> f64 {
        self.bandwidth[0].max(self.bandwidth[1])
    }

    pub(super) const fn add_bandwidth(&mut self, bandwidth: f64) {
        self.bandwidth[1] = self.bandwidth[1].max(bandwidth);
    }

    /// A cycle ended.
    const fn advance(&mut self) {
        if self.bandwidth[1] > 0.0 {
            self.bandwidth = [self.bandwidth[1], 0.0];
        }
    }

    pub(super) const fn inflight(&self) -> u64 {
        match self.inflight {
            Some(inflight) => inflight,
            None => u64::MAX,
        }
    }

    pub(super) const fn limit_inflight(&mut self, inflight: u64) {
        self.inflight = Some(inflight);
    }

    /// The bound, less a share for other flows.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let Some(inflight) = self.inflight else { return u64::MAX };
        let headroom = ((inflight as f64 * HEADROOM) as u64).max(1);
        inflight.saturating_sub(headroom).max(MIN_WINDOW)
    }

    /// More may be in flight.
    pub(super) const fn raise(&mut self, packets: u64) {
        if let Some(inflight) = &mut self.inflight {
            *inflight += packets;
        }
    }
}

/// Which acknowledgements tell of the last probe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// None.
    #[default]
    Init,
    /// Those of a refilled pipe.
    Refilling,
    /// Those of before the probe, for a round.
    ProbeStarting,
    /// Those of the probe.
    ProbeFeedback,
    /// Those of the probe after its end, for a round.
    ProbeStopping,
}

impl Bbr3 {
    pub(super) fn adapt_long_term(&mut self, ack: &Ack, rate: &RateSample) {
        if self.cycle.acks == AckPhase::ProbeStarting && self.round.started {
            self.cycle.acks = AckPhase::ProbeFeedback;
        }
        if self.cycle.acks == AckPhase::ProbeStopping && self.round.started {
            self.cycle.acks = AckPhase::Init;
            if self.is_in_probe_bw() && !self.is_limited(rate) {
                self.long_term.advance();
            }
        }
        if !self.full_pipe.is_reached() {
            return;
        }
        if Bbr3::is_inflight_too_high(rate) {
            if std::mem::take(&mut self.cycle.samples) {
                self.on_inflight_too_high(ack, rate);
            }
            return;
        }
        let Some(bound) = self.long_term.inflight else { return };
        self.long_term.inflight = Some(bound.max(rate.in_flight));
        if self.state == State::ProbeBwUp {
            self.raise_inflight(ack);
        }
    }

    /// The probe found the bound: what was in flight, or no less than a share of what the
    /// model had before.
    fn on_inflight_too_high(&mut self, ack: &Ack, rate: &RateSample) {
        if !self.is_limited(rate) {
            let least = (self.target_inflight() as f64 * BETA) as u64;
            let share = if self.cycle.is_shared { 1.0 - HEADROOM } else { 1.0 };
            let found = (rate.in_flight as f64 * share) as u64;
            self.long_term.inflight = Some(found.max(least));
        }
        if self.state == State::ProbeBwUp {
            self.begin_probe_down(ack.now, ack.delivered);
        }
    }

    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.bandwidth(), 1.0).min(self.cwnd)
    }
}
