//! The short-term model (the draft's section 5.5.10.3): losses lower its bounds each round,
//! and the next probe removes them.

use super::{BETA, Bbr3};
use crate::Ack;

/// Bounds that hold until the next probe, and the signals that they follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ShortTerm {
    /// Packets a second, and packets; `None`: no bound.
    bandwidth: Option<f64>,
    inflight: Option<u64>,
    /// The most of the current round.
    bandwidth_latest: f64,
    inflight_latest: u64,
    /// A round of its own: it begins when this many packets have been delivered.
    round_begin: u64,
    round_started: bool,
    lost_in_round: bool,
    /// Acknowledgements of the current round that showed losses.
    losses: u32,
}

impl Default for ShortTerm {
    fn default() -> Self {
        ShortTerm {
            bandwidth: None,
            inflight: None,
            bandwidth_latest: 0.0,
            inflight_latest: 0,
            round_begin: 0,
            round_started: false,
            lost_in_round: false,
            losses: 0,
        }
    }
}

impl ShortTerm {
    pub(super) const fn bandwidth(&self) -> f64 {
        match self.bandwidth {
            Some(bandwidth) => bandwidth,
            None => f64::INFINITY,
        }
    }

    pub(super) const fn inflight(&self) -> u64 {
        match self.inflight {
            Some(inflight) => inflight,
            None => u64::MAX,
        }
    }

    pub(super) const fn inflight_latest(&self) -> u64 {
        self.inflight_latest
    }

    /// Removes the bounds.
    pub(super) const fn reset(&mut self) {
        self.bandwidth = None;
        self.inflight = None;
    }

    pub(super) fn on_sample(
        &mut self,
        delivered: u64,
        prior_delivered: u64,
        bandwidth: Option<f64>,
        inflight: u64,
    ) {
        let bandwidth = bandwidth.unwrap_or(0.0);
        self.bandwidth_latest = self.bandwidth_latest.max(bandwidth);
        self.inflight_latest = self.inflight_latest.max(inflight);
        self.round_started = prior_delivered >= self.round_begin;
        if self.round_started {
            self.round_begin = delivered;
        }
    }

    /// Acknowledgements with losses in the round that ends, at its end; zero before.
    pub(super) const fn losses_of_round(&mut self, has_losses: bool) -> u32 {
        if has_losses {
            self.losses = self.losses.saturating_add(1);
        }
        if !self.round_started {
            return 0;
        }
        std::mem::replace(&mut self.losses, 0)
    }

    fn lower(&mut self, bandwidth: f64, inflight: u64) {
        let lower = self.bandwidth.unwrap_or(bandwidth) * BETA;
        self.bandwidth = Some(lower.max(self.bandwidth_latest));
        let lower = (self.inflight.unwrap_or(inflight) as f64 * BETA) as u64;
        self.inflight = Some(lower.max(self.inflight_latest));
    }
}

impl Bbr3 {
    /// At the end of a round with losses the bounds follow what was delivered in it.
    pub(super) fn adapt_short_term(&mut self, ack: &Ack) {
        self.short_term.lost_in_round |= ack.newly_lost > 0;
        if !self.short_term.round_started {
            return;
        }
        let lost = std::mem::take(&mut self.short_term.lost_in_round);
        let is_congestion =
            self.probe_rtt.has_queue() || ack.rate.as_ref().is_some_and(Bbr3::is_inflight_too_high);
        if lost && is_congestion && !self.is_probing_bandwidth() {
            self.short_term.lower(self.long_term.bandwidth(), self.cwnd);
        }
        if let Some(rate) = &ack.rate {
            self.short_term.bandwidth_latest = super::sample_bandwidth(rate).unwrap_or(0.0);
            self.short_term.inflight_latest = rate.delivered;
        }
    }
}
