//! BBR version 3 (draft-ietf-ccwg-bbr, named "the draft" below), without ECN.
//!
//! The path is modelled by two pairs of bounds: long-term ones, the largest delivery rate
//! of the last two probing cycles and the most that could be in flight without a loss
//! rate over 2 %, and short-term ones, which losses lower until the next probe.
//!
//! Departures from the draft:
//!
//! * Loss rates are evaluated at acknowledgements, of what was lost since the newest packet
//!   delivered was sent; the draft also does so at each packet lost.
//! * The share of 2 % is exceeded where the number of lost packets is two standard deviations
//!   over it (that of random losses is the root of their number): with a few packets in
//!   flight, each random loss would be too many.
//! * Losses of less than 2 % without a queue do not lower the short-term bounds: by the
//!   draft, every round with a random loss costs at least the pacing margin of 1 %, which
//!   adds up to a fifth between two probes.
//! * Where a queue lasts while this flow has drained its own, others share the path. Then a
//!   probe that finds the bound leaves the headroom at once, and the next one waits until
//!   CUBIC with as large a window has regained 99.8 % of it. With the draft's 2 to 3 s,
//!   CUBIC is held to the window that it regains in that time, 85 packets, on any path.

mod long_term;
mod probe_bw;
mod probe_rtt;
mod short_term;
mod startup;

use crate::aggregation::Aggregation;
use crate::random::SplitMix64;
use crate::{
    Ack, BbrMode, Congestion, CongestionControl, INITIAL_WINDOW, Phase, RateSample, Reduction,
};
use long_term::LongTerm;
use probe_bw::Cycle;
use probe_rtt::ProbeRtt;
use short_term::ShortTerm;
use startup::FullPipe;
use units::{BitRate, Nanos};

/// Share of the bandwidth at which it paces (`BBRPacingMarginPercent`).
const PACING_MARGIN: f64 = 0.99;
/// The window's gain (`BBRDefaultCwndGain`), and while probing for bandwidth.
const CWND_GAIN: f64 = 2.0;
const PROBE_UP_CWND_GAIN: f64 = 2.25;
/// The smallest window, packets (`BBRMinPipeCwnd`).
const MIN_WINDOW: u64 = 4;
/// Share of lost packets above which too much was in flight (`BBRLossThresh`).
const LOSS_THRESHOLD: f64 = 0.02;
/// Standard deviations of the number of random losses beyond it: of few packets, more are
/// lost now and then.
const DEVIATIONS: f64 = 2.0;
/// What losses reduce bounds by (`BBRBeta`).
const BETA: f64 = 0.7;
/// Share of the long-term bound that is left to others (`BBRHeadroom`).
const HEADROOM: f64 = 0.15;
/// Pacing rates below which bursts are single packets.
const SLOW: BitRate = BitRate::from_bps(1_200_000);
/// The RTT taken before the first sample, ns.
const DEFAULT_RTT_NS: u64 = 1_000_000;
/// The largest burst, bytes.
const MAX_BURST_BYTES: f64 = 65_536.0;
/// Bursts that the window holds beyond the BDP: at the sender, in flight, at the
/// receiver.
const BURSTS: u64 = 3;

/// The states of BBR version 3 (the draft's section 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bbr3State {
    /// Doubles the rate each round, until the pipe is full.
    Startup,
    /// Drains the queue of startup.
    Drain,
    /// Below the bandwidth, until the queue that probing left is drained.
    ProbeBwDown,
    /// At the bandwidth, with headroom for others.
    ProbeBwCruise,
    /// One round without headroom, before probing.
    ProbeBwRefill,
    /// Above the bandwidth.
    ProbeBwUp,
    /// Half a BDP in flight, to see the minimum RTT.
    ProbeRtt,
}

use Bbr3State as State;

/// BBR version 3.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bbr3 {
    state: State,
    /// Payload of a packet, bytes.
    mss: u64,
    cwnd: u64,
    /// The window before recovery or `ProbeRtt`.
    prior_cwnd: u64,
    /// Pacing rate, packets a second.
    pacing: f64,
    /// An RTT was seen, and the pacing rate is by it.
    has_rtt: bool,
    round: Round,
    full_pipe: FullPipe,
    long_term: LongTerm,
    short_term: ShortTerm,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    /// After idle time: the next acknowledgement is no reason for `ProbeRtt`.
    idle_restart: bool,
    phase: Phase,
    aggregation: Aggregation,
    random: SplitMix64,
}

/// Rounds: one ends when a packet is delivered that was sent after the one before ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Round {
    /// Packets that had been delivered when it began.
    begin: u64,
    /// The last acknowledgement began one.
    started: bool,
}

impl Bbr3 {
    /// In startup, with packets of `mss` bytes of payload; the seed spreads the times at
    /// which flows probe for bandwidth.
    #[must_use]
    pub fn new(mss: u32, seed: u64) -> Self {
        Bbr3 {
            state: State::Startup,
            mss: u64::from(mss.max(1)),
            cwnd: INITIAL_WINDOW,
            prior_cwnd: 0,
            pacing: startup::GAIN * INITIAL_WINDOW as f64 * 1e9 / DEFAULT_RTT_NS as f64,
            has_rtt: false,
            round: Round::default(),
            full_pipe: FullPipe::default(),
            long_term: LongTerm::default(),
            short_term: ShortTerm::default(),
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            idle_restart: false,
            phase: Phase::Open,
            aggregation: Aggregation::default(),
            random: SplitMix64::new(seed),
        }
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> Bbr3State {
        self.state
    }

    /// Its state as version 1 has it: the phases of ProbeBW are one.
    #[must_use]
    pub const fn mode(&self) -> BbrMode {
        match self.state {
            State::Startup => BbrMode::Startup,
            State::Drain => BbrMode::Drain,
            State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp => {
                BbrMode::ProbeBw
            }
            State::ProbeRtt => BbrMode::ProbeRtt,
        }
    }

    /// Gains of the pacing rate and of the window.
    const fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (startup::GAIN, CWND_GAIN),
            State::Drain => (startup::DRAIN_GAIN, CWND_GAIN),
            State::ProbeBwDown => (probe_bw::DOWN_GAIN, CWND_GAIN),
            State::ProbeBwCruise | State::ProbeBwRefill => (1.0, CWND_GAIN),
            State::ProbeBwUp => (probe_bw::UP_GAIN, PROBE_UP_CWND_GAIN),
            State::ProbeRtt => (1.0, probe_rtt::CWND_GAIN),
        }
    }

    const fn is_probing_bandwidth(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBwRefill | State::ProbeBwUp)
    }

    const fn is_in_probe_bw(&self) -> bool {
        matches!(
            self.state,
            State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp
        )
    }

    /// Bandwidth by both models, packets a second.
    fn bandwidth(&self) -> f64 {
        self.long_term.bandwidth().min(self.short_term.bandwidth())
    }

    /// That many BDPs at a bandwidth, in packets.
    fn bdp(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(min_rtt_ns) = self.probe_rtt.min_rtt_ns() else { return INITIAL_WINDOW };
        (gain * bandwidth * min_rtt_ns as f64 / 1e9).ceil() as u64
    }

    /// A window, and what bursts need beyond it (the draft's quantization budget).
    fn with_bursts(&self, window: u64) -> u64 {
        let window = window.max(BURSTS * self.burst()).max(MIN_WINDOW);
        window + if self.state == State::ProbeBwUp { 2 } else { 0 }
    }

    /// Packets in flight that the model wants at a bandwidth and gain.
    fn inflight(&self, bandwidth: f64, gain: f64) -> u64 {
        self.with_bursts(self.bdp(bandwidth, gain))
    }

    /// Packets of one burst: about 1 ms at the pacing rate.
    fn burst(&self) -> u64 {
        let bytes = (self.pacing * self.mss as f64 / 1e3).min(MAX_BURST_BYTES);
        ((bytes / self.mss as f64) as u64).max(self.min_burst())
    }

    fn update_round(&mut self, delivered: u64, rate: &RateSample) {
        self.round.started = rate.prior_delivered >= self.round.begin;
        if self.round.started {
            self.round.begin = delivered;
            self.cycle.rounds += 1;
        }
    }

    /// A round begins with what is sent from now on.
    const fn restart_round(&mut self, delivered: u64) {
        self.round.begin = delivered;
    }

    /// Whether more was lost of what was in flight than a path with room for it loses.
    fn is_inflight_too_high(rate: &RateSample) -> bool {
        let threshold = rate.in_flight as f64 * LOSS_THRESHOLD;
        rate.lost as f64 > threshold + DEVIATIONS * threshold.sqrt()
    }

    /// The sample is a lower bound: the application or `ProbeRtt` held packets back.
    const fn is_limited(&self, rate: &RateSample) -> bool {
        rate.app_limited || self.probe_rtt.limited(rate.prior_delivered)
    }

    fn on_sample(&mut self, ack: &Ack, rate: &RateSample) {
        let bandwidth = sample_bandwidth(rate);
        self.short_term.on_sample(ack.delivered, rate.prior_delivered, bandwidth, rate.delivered);
        self.update_round(ack.delivered, rate);
        if let Some(bandwidth) = bandwidth
            && (!self.is_limited(rate) || bandwidth >= self.long_term.bandwidth())
        {
            self.long_term.add_bandwidth(bandwidth);
        }
        self.adapt_short_term(ack);
        let window = (self.cwnd, self.long_term.bandwidth());
        self.aggregation.update(ack.now, ack.newly_delivered, window, self.round.started);
        self.check_full_pipe(rate);
        self.check_startup_loss(ack, rate);
        self.adapt_long_term(ack, rate);
    }

    fn set_pacing(&mut self, srtt_ns: Option<u64>, gain: f64) {
        if let Some(srtt_ns) = srtt_ns.filter(|_| !self.has_rtt) {
            self.has_rtt = true;
            self.pacing = startup::GAIN * self.cwnd as f64 * 1e9 / srtt_ns.max(1_000) as f64;
        }
        let rate = self.bandwidth() * gain * PACING_MARGIN;
        if rate > 0.0 && (self.full_pipe.is_reached() || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    fn set_cwnd(&mut self, ack: &Ack, gain: f64) {
        if self.phase == Phase::Loss && ack.phase == Phase::Open {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        self.phase = ack.phase;
        let acked = ack.newly_delivered;
        if acked > 0 {
            let bandwidth = self.bandwidth();
            let extra = self.aggregation.extra(bandwidth);
            let most = self.with_bursts(self.bdp(bandwidth, gain) + extra);
            if self.full_pipe.is_reached() {
                self.cwnd = (self.cwnd + acked).min(most);
            } else if self.cwnd < most || ack.delivered < INITIAL_WINDOW {
                self.cwnd += acked;
            }
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.cwnd = self.cwnd.min(self.most_by_model()).max(MIN_WINDOW);
    }

    /// The most in flight by both models.
    fn most_by_model(&self) -> u64 {
        let long_term = match self.state {
            State::ProbeBwCruise | State::ProbeRtt => self.long_term.inflight_with_headroom(),
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => {
                self.long_term.inflight()
            }
            State::Startup | State::Drain => u64::MAX,
        };
        long_term.min(self.short_term.inflight())
    }

    fn save_cwnd(&mut self) {
        let normal = self.phase != Phase::Loss && self.state != State::ProbeRtt;
        self.prior_cwnd = if normal { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }
}

/// Packets a second of a sample; `None` if it is no rate.
fn sample_bandwidth(rate: &RateSample) -> Option<f64> {
    (rate.interval_ns > 0).then(|| rate.delivered as f64 * 1e9 / rate.interval_ns as f64)
}

impl CongestionControl for Bbr3 {
    fn name(&self) -> &'static str {
        "bbr3"
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.round.started = false;
        if let Some(rate) = &ack.rate {
            self.on_sample(ack, rate);
        }
        self.check_drain(ack);
        self.update_cycle(ack);
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
        self.full_pipe.restart();
        self.cwnd = (congestion.in_flight + 1).max(MIN_WINDOW);
    }

    fn undo(&mut self, _now: Nanos) {
        self.full_pipe.restart();
        self.short_term.reset();
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    fn on_idle_end(&mut self, now: Nanos, _idle_ns: u64, _timeouts: u32) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.is_in_probe_bw() {
            self.set_pacing(None, 1.0);
        }
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u64> {
        None
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
