//! UDT's native congestion control (Gu, Grossman: "UDT: UDP-based data transfer for
//! high-speed wide area networks", Computer Networks 51(7), 2007; draft-gg-udt-03), as the
//! library UDT 4.11 does it, and the variant that SRT uses for files.
//!
//! The sender is paced: one packet a period. Once per SYN (10 ms) without loss the rate
//! rises by a step that depends on the decade of the unused capacity; at a loss the period
//! is multiplied by 1.125. The window only bounds what is in flight: arrival rate times
//! RTT + SYN, plus 16.

use crate::random::SplitMix64;
use crate::{Ack, Congestion, CongestionControl, Reduction};
use units::{BitRate, Nanos};

/// The rate is controlled once in this time, ns (SYN).
const SYN_NS: u64 = 10_000_000;
/// Window at the start, and what the window holds beyond the arrival rate, packets.
const MIN_WINDOW: f64 = 16.0;
/// Period at the start, ns: slow start is limited by its window alone. (The library's 1 us
/// would limit it to 11.6 Gbit/s.)
const FIRST_PERIOD_NS: f64 = 100.0;
/// Longest period, ns: a packet a second, where the arrival rate is all but zero.
const LONGEST_PERIOD_NS: f64 = 1e9;
/// Smallest increase, packets a SYN.
const MIN_INCREASE: f64 = 0.01;
/// RTT before the first sample, ns.
const FIRST_RTT_NS: u64 = 100_000_000;
/// Headers of a packet: IPv4, UDP, UDT. UDT's packet size counts them.
const HEADER_BYTES: u32 = 44;
/// Decreases at most within one congestion period.
const MAX_DECREASES: u32 = 5;

/// In what the variants differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UdtRules {
    /// UDT 4.11, with its formula for an unknown arrival rate corrected.
    #[default]
    Udt,
    /// UDT 4.11 as it is: with no arrival rate known, the period at the end of slow start
    /// is cwnd / (RTT + SYN) in us, the reciprocal of what is meant.
    UdtUncorrected,
    /// SRT's control for files: loss below 2 % of the packets in flight is ignored, the
    /// period grows by 1.03, and the capacity counts as at most twice the rate at the last
    /// decrease.
    Srt,
}

impl UdtRules {
    /// Factor on the period at a decrease.
    const fn decrease(self) -> f64 {
        match self {
            UdtRules::Udt | UdtRules::UdtUncorrected => 1.125,
            UdtRules::Srt => 1.03,
        }
    }

    /// Share of the packets in flight that may be lost without a decrease.
    const fn ignored_loss(self) -> f64 {
        match self {
            UdtRules::Udt | UdtRules::UdtUncorrected => 0.0,
            UdtRules::Srt => 0.02,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            UdtRules::Udt | UdtRules::UdtUncorrected => "udt",
            UdtRules::Srt => "srt",
        }
    }
}

/// UDT's native congestion control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Udt {
    rules: UdtRules,
    /// Payload of a packet, bytes.
    mss: u32,
    /// Window at which slow start ends, packets: the peer's flow window.
    max_window: f64,
    cwnd: f64,
    period_ns: f64,
    slow_start: bool,
    rtt_ns: u64,
    /// Arrival rate and capacity by the receiver, packets a second; zero: unknown.
    arrival_pps: f64,
    capacity_pps: f64,
    /// When the rate was last controlled.
    controlled: Nanos,
    /// `acked_to` at that time.
    counted_to: u64,
    /// A loss was reported since.
    lossy: bool,
    /// The period before the last decrease, ns.
    last_decrease_period_ns: f64,
    /// Packets sent at the last decrease: losses of later ones begin a new congestion
    /// period. `None` before the first.
    last_decrease: Option<u64>,
    /// Mean number of loss reports in a congestion period.
    mean_reports: f64,
    /// Loss reports in this one, and the decreases made by them.
    reports: u32,
    decreases: u32,
    /// Every so many reports in a congestion period decrease the rate again.
    decrease_every: u32,
    random: SplitMix64,
}

impl Udt {
    /// In slow start, with packets of `mss` bytes of payload towards a receiver with a flow
    /// window of `max_window` packets.
    #[must_use]
    pub fn new(rules: UdtRules, mss: u32, max_window: u64, seed: u64) -> Self {
        Udt {
            rules,
            mss: mss.clamp(1, 65_535),
            max_window: max_window.max(1) as f64,
            cwnd: MIN_WINDOW,
            period_ns: FIRST_PERIOD_NS,
            slow_start: true,
            rtt_ns: FIRST_RTT_NS,
            arrival_pps: 0.0,
            capacity_pps: 0.0,
            controlled: Nanos(0),
            counted_to: 0,
            lossy: false,
            last_decrease_period_ns: FIRST_PERIOD_NS,
            last_decrease: None,
            mean_reports: 0.0,
            reports: 0,
            decreases: 0,
            decrease_every: 1,
            random: SplitMix64::new(seed),
        }
    }

    /// Time between two packets, ns.
    #[must_use]
    pub const fn period_ns(&self) -> f64 {
        self.period_ns
    }

    fn learn(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.srtt {
            self.rtt_ns = rtt.nanos();
        }
        // A sender whose peer reports nothing counts deliveries itself.
        let counted = ack
            .rate
            .filter(|rate| rate.interval_ns > 0)
            .map(|rate| rate.delivered as f64 * 1e9 / rate.interval_ns as f64);
        let report = ack.receiver.unwrap_or_default();
        self.arrival_pps = report.arrival_pps.or(counted).unwrap_or(self.arrival_pps);
        self.capacity_pps = report.capacity_pps.unwrap_or(self.capacity_pps);
    }

    /// RTT + SYN in ns, the time for which the window must last.
    fn window_time_ns(&self) -> f64 {
        (self.rtt_ns + SYN_NS) as f64
    }

    fn set_period(&mut self, period_ns: f64) {
        self.period_ns = period_ns.clamp(1.0, LONGEST_PERIOD_NS);
    }

    fn leave_slow_start(&mut self, uncorrected: bool) {
        self.slow_start = false;
        if self.arrival_pps > 0.0 {
            self.set_period(1e9 / self.arrival_pps);
        } else if uncorrected {
            // Packets over us, taken as us.
            self.set_period(self.cwnd / (self.window_time_ns() / 1e3) * 1e3);
        } else {
            self.set_period(self.window_time_ns() / self.cwnd);
        }
    }

    /// Packets by which the rate rises each SYN.
    fn increase(&self) -> f64 {
        let rate = 1e9 / self.period_ns;
        let mut capacity = self.capacity_pps;
        if self.rules == UdtRules::Srt && self.last_decrease.is_some() {
            capacity = capacity.min(2.0 * 1e9 / self.last_decrease_period_ns);
        }
        let mut unused = capacity - rate;
        if self.period_ns > self.last_decrease_period_ns && capacity / 9.0 < unused {
            unused = capacity / 9.0;
        }
        if unused <= 0.0 {
            return MIN_INCREASE;
        }
        let size = f64::from(self.mss + HEADER_BYTES);
        let decade = libm::log10(unused * size * 8.0).ceil();
        (libm::pow(10.0, decade) * 1.5e-6 / size).max(MIN_INCREASE)
    }

    fn decrease(&mut self, sent_to: u64) {
        self.set_period(self.period_ns * self.rules.decrease());
        self.last_decrease = Some(sent_to);
    }
}

impl CongestionControl for Udt {
    fn name(&self) -> &'static str {
        self.rules.name()
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.learn(ack);
        if ack.now.nanos_since(self.controlled) < SYN_NS {
            return;
        }
        self.controlled = ack.now;
        if self.slow_start {
            self.cwnd += ack.acked_to.saturating_sub(self.counted_to) as f64;
            self.counted_to = ack.acked_to;
            if self.cwnd > self.max_window {
                self.leave_slow_start(false);
            }
        } else {
            self.cwnd = self.arrival_pps * self.window_time_ns() / 1e9 + MIN_WINDOW;
        }
        if self.slow_start {
            return;
        }
        if std::mem::take(&mut self.lossy) {
            return;
        }
        let syn_ns = SYN_NS as f64;
        self.set_period(self.period_ns * syn_ns / (self.period_ns * self.increase() + syn_ns));
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if self.slow_start {
            self.leave_slow_start(self.rules == UdtRules::UdtUncorrected);
        }
        self.lossy = true;
        let in_flight = self.rtt_ns as f64 / self.period_ns;
        if (congestion.lost as f64) < self.rules.ignored_loss() * in_flight {
            self.last_decrease_period_ns = self.period_ns;
            return;
        }
        if self.last_decrease.is_none_or(|sent_to| congestion.first_lost >= sent_to) {
            self.last_decrease_period_ns = self.period_ns;
            self.decrease(congestion.sent_to);
            self.mean_reports = 0.875 * self.mean_reports + 0.125 * f64::from(self.reports);
            self.reports = 1;
            self.decreases = 1;
            let drawn = (self.mean_reports * self.random.unit()).ceil();
            self.decrease_every = (drawn as u32).max(1);
            return;
        }
        // Whether a report beyond the first decreases the rate is random, lest flows that
        // share a queue decrease together.
        let is_within = self.decreases < MAX_DECREASES;
        self.decreases = self.decreases.saturating_add(1);
        if is_within {
            self.reports += 1;
            if self.reports.is_multiple_of(self.decrease_every) {
                self.decrease(congestion.sent_to);
            }
        }
    }

    fn on_recovery_end(&mut self, _now: Nanos) {}

    /// Only ends slow start.
    fn on_retransmission_timeout(&mut self, _congestion: &Congestion) {
        if self.slow_start {
            self.leave_slow_start(self.rules == UdtRules::UdtUncorrected);
        }
    }

    fn undo(&mut self, _now: Nanos) {}

    fn on_idle_end(&mut self, _now: Nanos, _idle_ns: u64, _timeouts: u32) {}

    fn cwnd(&self) -> u64 {
        self.cwnd as u64
    }

    fn ssthresh(&self) -> Option<u64> {
        None
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        Some(BitRate::from_bps_f64(f64::from(self.mss) * 8e9 / self.period_ns))
    }

    fn reduction(&self) -> Reduction {
        Reduction::Controlled
    }
}
