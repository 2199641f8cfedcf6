//! BBR version 1 (Cardwell et al.: "BBR: congestion-based congestion control", ACM Queue
//! 2016), with the constants and the order of steps of Linux.
//!
//! The path is modelled by its bandwidth, the largest delivery rate of ten rounds, and
//! its minimum RTT of ten seconds. Left out: the sender's queue below the socket.

mod phases;
mod policer;

use crate::aggregation::Aggregation;
use crate::max_filter::MaxFilter;
use crate::{Ack, Congestion, CongestionControl, INITIAL_WINDOW, Phase, RateSample, Reduction};
use phases::{Cycle, FullPipe, ProbeRtt};
use policer::Policer;
use units::{BitRate, Nanos};

/// Startup's gain: 2/ln 2, the least that doubles the rate each round.
const HIGH_GAIN: f64 = 2.885;
/// Drain's gain: its inverse.
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// The window's gain while probing for bandwidth, for delayed acknowledgements.
const CWND_GAIN: f64 = 2.0;
/// The smallest window, packets.
const MIN_WINDOW: u64 = 4;
/// Share of the bandwidth at which it paces, so that no queue builds by rounding.
const PACING_MARGIN: f64 = 0.99;
/// Below this pacing rate bursts are single packets.
const SLOW: BitRate = BitRate::from_bps(1_200_000);
/// The RTT taken before the first sample, ns.
const DEFAULT_RTT_NS: u64 = 1_000_000;
/// The largest burst, bytes.
const MAX_BURST_BYTES: f64 = 65_536.0;
/// Bursts that the window holds beyond the BDP: at the sender, in flight, at the
/// receiver.
const BURSTS: u64 = 3;

/// The state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BbrMode {
    /// Doubles the rate each round until the bandwidth no longer grows.
    Startup,
    /// Drains the queue that this left.
    Drain,
    /// Cycles through pacing gains around the bandwidth.
    ProbeBw,
    /// Four packets in flight for 200 ms, to see the minimum RTT.
    ProbeRtt,
}

/// BBR version 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bbr {
    mode: BbrMode,
    /// Payload of a packet, bytes.
    mss: u64,
    cwnd: u64,
    /// The window before recovery or `ProbeRtt`.
    prior_cwnd: u64,
    ssthresh: Option<u64>,
    /// Pacing rate, packets a second.
    pacing: f64,
    /// An RTT was seen, and the pacing rate is by it.
    has_rtt: bool,
    /// Bandwidth, packets a second.
    bandwidth: MaxFilter,
    rounds: u64,
    /// A round ends when a packet is delivered that was sent after this many were.
    round_end: u64,
    round_start: bool,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    policer: Policer,
    /// After idle time: the next acknowledgement is no reason for `ProbeRtt`.
    idle_restart: bool,
    /// In the first round of a recovery each packet delivered lets one be sent.
    conserving: bool,
    phase: Phase,
    aggregation: Aggregation,
}

impl Bbr {
    /// In startup, with packets of `mss` bytes of payload; the seed chooses in which
    /// phase it begins to probe for bandwidth.
    #[must_use]
    pub fn new(mss: u32, seed: u64) -> Self {
        Bbr {
            mode: BbrMode::Startup,
            mss: u64::from(mss.max(1)),
            cwnd: INITIAL_WINDOW,
            prior_cwnd: 0,
            ssthresh: None,
            pacing: HIGH_GAIN * INITIAL_WINDOW as f64 * 1e9 / DEFAULT_RTT_NS as f64,
            has_rtt: false,
            bandwidth: MaxFilter::new(),
            rounds: 0,
            round_end: 0,
            round_start: false,
            full_pipe: FullPipe::default(),
            cycle: Cycle::new(seed),
            probe_rtt: ProbeRtt::default(),
            policer: Policer::default(),
            idle_restart: false,
            conserving: false,
            phase: Phase::Open,
            aggregation: Aggregation::default(),
        }
    }

    /// Its state.
    #[must_use]
    pub const fn mode(&self) -> BbrMode {
        self.mode
    }

    /// Minimum RTT in ns; `None` before the first sample.
    const fn min_rtt_ns(&self) -> Option<u64> {
        self.probe_rtt.min_rtt_ns()
    }

    /// Gains of the pacing rate and of the window.
    fn gains(&self) -> (f64, f64) {
        match self.mode {
            BbrMode::Startup => (HIGH_GAIN, HIGH_GAIN),
            BbrMode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            BbrMode::ProbeBw => (self.cycle_gain(), CWND_GAIN),
            BbrMode::ProbeRtt => (1.0, 1.0),
        }
    }

    /// The pacing gain while probing for bandwidth: none where that would only fill a policer's
    /// bucket.
    fn cycle_gain(&self) -> f64 {
        if self.policer.rate().is_some() { 1.0 } else { self.cycle.gain() }
    }

    /// The bandwidth to send at, packets a second.
    fn used_bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or(self.bandwidth.max())
    }

    /// That many BDPs at a bandwidth, in packets.
    fn bdp(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(min_rtt_ns) = self.min_rtt_ns() else { return INITIAL_WINDOW };
        (gain * bandwidth * min_rtt_ns as f64 / 1e9).ceil() as u64
    }

    /// A window, and what delayed acknowledgements and bursts need beyond it.
    fn with_bursts(&self, window: u64) -> u64 {
        let window = (window + BURSTS * self.burst()).next_multiple_of(2);
        // Probing up needs more in flight also where the BDP is small.
        let probing_up = self.mode == BbrMode::ProbeBw && self.cycle.is_probing_up();
        window + if probing_up { 2 } else { 0 }
    }

    /// Packets in flight that the model wants at a gain.
    fn inflight(&self, gain: f64) -> u64 {
        self.with_bursts(self.bdp(self.bandwidth.max(), gain))
    }

    /// Packets of one burst: about 1 ms at the pacing rate.
    fn burst(&self) -> u64 {
        let bytes = (self.pacing * self.mss as f64 / 1024.0).min(MAX_BURST_BYTES);
        ((bytes / self.mss as f64) as u64).max(self.min_burst())
    }

    fn update_bandwidth(&mut self, delivered: u64, rate: &RateSample) {
        self.round_start = false;
        if rate.interval_ns == 0 {
            return;
        }
        if rate.prior_delivered >= self.round_end {
            self.round_end = delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserving = false;
        }
        let bandwidth = rate.delivered as f64 * 1e9 / rate.interval_ns as f64;
        if !self.is_limited(rate) || bandwidth >= self.bandwidth.max() {
            self.bandwidth.add(self.rounds, bandwidth);
        }
    }

    /// The sample is a lower bound: the application or `ProbeRtt` held packets back.
    fn is_limited(&self, rate: &RateSample) -> bool {
        rate.app_limited || self.probe_rtt.limited(rate.prior_delivered)
    }

    fn set_pacing(&mut self, srtt_ns: Option<u64>, gain: f64) {
        if let Some(srtt_ns) = srtt_ns.filter(|_| !self.has_rtt) {
            self.has_rtt = true;
            self.pacing = HIGH_GAIN * self.cwnd as f64 * 1e9 / srtt_ns.max(1_000) as f64;
        }
        let rate = self.used_bandwidth() * gain * PACING_MARGIN;
        if rate > 0.0 && (self.full_pipe.is_reached() || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    fn set_cwnd(&mut self, ack: &Ack, gain: f64) {
        let acked = ack.newly_delivered;
        if acked > 0 && !self.hold_in_recovery(ack) {
            let bandwidth = self.used_bandwidth();
            let is_full = self.full_pipe.is_reached();
            let extra = if is_full { self.aggregation.extra(bandwidth) } else { 0 };
            let target = self.with_bursts(self.bdp(bandwidth, gain) + extra);
            if is_full {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || ack.delivered < INITIAL_WINDOW {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(MIN_WINDOW);
        }
        if self.mode == BbrMode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_WINDOW);
        }
    }

    /// The window in recovery and right after it; `true` while packets are conserved.
    fn hold_in_recovery(&mut self, ack: &Ack) -> bool {
        let acked = ack.newly_delivered;
        self.cwnd = self.cwnd.saturating_sub(ack.newly_lost).max(1);
        if ack.phase == Phase::Recovery && self.phase != Phase::Recovery {
            self.conserving = true;
            self.round_end = ack.delivered;
            self.cwnd = ack.in_flight + acked;
        } else if self.phase != Phase::Open && ack.phase == Phase::Open {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.conserving = false;
        }
        self.phase = ack.phase;
        if self.conserving {
            self.cwnd = self.cwnd.max(ack.in_flight + acked);
        }
        self.conserving
    }

    fn save_cwnd(&mut self) {
        let normal = self.phase == Phase::Open && self.mode != BbrMode::ProbeRtt;
        self.prior_cwnd = if normal { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rate) = &ack.rate {
            self.update_bandwidth(ack.delivered, rate);
            self.update_policer(ack, rate);
            let window = (self.cwnd, self.used_bandwidth());
            self.aggregation.update(ack.now, ack.newly_delivered, window, self.round_start);
            self.update_cycle(ack);
            self.check_full_pipe(rate);
        } else {
            self.round_start = false;
        }
        self.check_drain(ack);
        self.update_min_rtt(ack);
        if ack.newly_delivered > 0 {
            self.idle_restart = false;
        }
        let (pacing_gain, cwnd_gain) = self.gains();
        self.set_pacing(ack.srtt.map(units::Rtt::nanos), pacing_gain);
        self.set_cwnd(ack, cwnd_gain);
    }

    fn on_congestion(&mut self, _congestion: &Congestion) {
        self.save_cwnd();
    }

    fn on_recovery_end(&mut self, _now: Nanos) {}

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.save_cwnd();
        self.phase = Phase::Loss;
        self.full_pipe.forget_bandwidth();
        self.cwnd = congestion.in_flight + 1;
    }

    fn undo(&mut self, _now: Nanos) {
        self.full_pipe.restart();
        self.policer.forget();
    }

    fn on_idle_end(&mut self, now: Nanos, _idle_ns: u64, _timeouts: u32) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.mode == BbrMode::ProbeBw {
            self.set_pacing(None, 1.0);
        }
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        Some(BitRate::from_bps_f64(self.pacing * self.mss as f64 * 8.0))
    }

    fn reduction(&self) -> Reduction {
        Reduction::Controlled
    }

    fn min_burst(&self) -> u64 {
        if self.pacing * (self.mss * 8) as f64 >= SLOW.as_f64() { 2 } else { 1 }
    }

    fn send_buffer_windows(&self) -> u64 {
        3
    }
}
