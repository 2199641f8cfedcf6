//! Prague (draft-briscoe-iccrg-prague-congestion-control-04): DCTCP for the Internet.
//!
//! ```text
//!   each virtual round trip   alpha += (share of marked packets - alpha) / 16
//!   first mark in it          w -= w alpha / 2
//!   each unmarked packet      w += (R / V)^2 / w      V = max(R, 25 ms)
//!   loss                      w  = w / 2, as Reno
//! ```
//!
//! V is R for the first 500 round trips (section 2.4.4): short flows are not slowed down.
//!
//! With a share p of packets marked the window settles where (1 - p) (R / V)^2 a round trip
//! R balances w p / 2 each virtual round trip V: w = 2 (1 - p) R / (p V), a rate that does
//! not depend on R while R is below 25 ms.
//!
//! Prague is paced, in bursts of at most 250 us: longer ones would be a queue above the step
//! of an L4S bottleneck themselves. It sends ECT(1) and needs exact counts of marks (AccECN).
//!
//! Without marks it is Reno with the growth of an RTT of at least 25 ms: losses at a queue
//! without L4S halve the window. A queue that marks ECT(1) as RFC 3168 has it, although it
//! serves classic flows too, is not detected: there Prague takes more than its share. The
//! draft leaves that detection to experiments, and its reference disables it by default.
//! Windows below two packets (RFC 9331, section 4.3) are not built either.

use crate::{Ack, Congestion, CongestionControl, EcnResponse, INITIAL_WINDOW, Phase, Reduction};
use units::{BitRate, Nanos};

/// Weight of the newest round trip in `alpha`.
const GAIN: f64 = 1.0 / 16.0;
/// Least virtual round trip of a flow past [`YOUNG_ROUNDS`], ns (section 2.4.4).
const MIN_VIRTUAL_RTT_NS: u64 = 25_000_000;
/// Round trips until a flow's growth depends less on its RTT (section 2.4.4).
const YOUNG_ROUNDS: u32 = 500;
/// The smallest window, packets.
const MIN_WINDOW: f64 = 2.0;
/// Pacing rate in windows a round trip: in slow start the next round trip has twice as many.
const SLOW_START_PACING: f64 = 2.0;
/// The longest burst, in seconds of the pacing rate.
const MAX_BURST_S: f64 = 250e-6;

/// Prague.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prague {
    /// Payload of a packet, bytes.
    mss: u64,
    /// Packets.
    cwnd: f64,
    /// Packets; `None` until the first mark or loss.
    ssthresh: Option<f64>,
    alpha: MarkedShare,
    age: Age,
    /// The last reduction by marks, while its virtual round trip lasts.
    reduction: Option<MarkReduction>,
    /// Window and threshold before the last recovery.
    prior: (f64, Option<f64>),
    /// Smoothed RTT, ns; `None` before the first sample.
    srtt_ns: Option<u64>,
}

/// Round trips so far, up to [`YOUNG_ROUNDS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Age {
    rounds: u32,
    /// The next packet to be sent when the round trip began, as a count of packets.
    end: u64,
}

impl Age {
    const fn update(&mut self, ack: &Ack) {
        if ack.acked_to > self.end {
            self.end = ack.sent_to;
            self.rounds = self.rounds.saturating_add(1);
        }
    }

    /// Least virtual round trip, ns.
    const fn least_rtt_ns(self) -> u64 {
        if self.rounds < YOUNG_ROUNDS { 0 } else { MIN_VIRTUAL_RTT_NS }
    }
}

/// A virtual round trip: over once a real one and the least virtual one have passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct VirtualRound {
    began: Nanos,
    /// The next packet to be sent when it began, as a count of packets.
    end: u64,
}

impl VirtualRound {
    const fn begin(ack: &Ack) -> Self {
        VirtualRound { began: ack.now, end: ack.sent_to }
    }

    fn is_over(&self, ack: &Ack, least_ns: u64) -> bool {
        ack.acked_to > self.end && ack.now.nanos_since(self.began) >= least_ns
    }
}

/// A reduction by marks, of which there is one a virtual round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MarkReduction {
    round: VirtualRound,
    /// The window before it.
    prior_cwnd: f64,
}

/// The moving average of the share of marked packets (as RFC 8257, section 3.3, but over
/// virtual round trips).
#[derive(Debug, Clone, Copy, PartialEq)]
struct MarkedShare {
    value: f64,
    /// The path has marked a packet: before, there is nothing to average.
    has_marks: bool,
    round: VirtualRound,
    delivered: u64,
    marked: u64,
}

impl MarkedShare {
    /// One until the first mark, which halves the window.
    const fn new() -> Self {
        let round = VirtualRound { began: Nanos(0), end: 0 };
        MarkedShare { value: 1.0, has_marks: false, round, delivered: 0, marked: 0 }
    }

    fn update(&mut self, ack: &Ack, least_ns: u64) {
        if !self.has_marks {
            if ack.newly_marked > 0 {
                self.has_marks = true;
                self.begin_round(ack);
            }
            return;
        }
        self.delivered += ack.newly_delivered;
        self.marked += ack.newly_marked;
        if self.round.is_over(ack, least_ns) && self.delivered > 0 {
            let share = (self.marked as f64 / self.delivered as f64).min(1.0);
            self.value += (share - self.value) * GAIN;
            self.begin_round(ack);
        }
    }

    const fn begin_round(&mut self, ack: &Ack) {
        self.round = VirtualRound::begin(ack);
        (self.delivered, self.marked) = (0, 0);
    }
}

impl Prague {
    /// In slow start, with packets of `mss` bytes of payload.
    #[must_use]
    pub fn new(mss: u32) -> Self {
        let cwnd = INITIAL_WINDOW as f64;
        Prague {
            mss: u64::from(mss.max(1)),
            cwnd,
            ssthresh: None,
            alpha: MarkedShare::new(),
            age: Age::default(),
            reduction: None,
            prior: (cwnd, None),
            srtt_ns: None,
        }
    }

    /// The moving average of the share of marked packets, 0 to 1.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.alpha.value
    }

    fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|threshold| self.cwnd < threshold)
    }

    fn reduce_to(&mut self, window: f64) {
        self.cwnd = window.max(MIN_WINDOW);
        self.ssthresh = Some(self.cwnd);
    }

    /// The reduction by marks: at the first of a virtual round trip, by what the ones before
    /// showed (section 2.4.2).
    fn respond(&mut self, ack: &Ack) {
        let least_ns = self.age.least_rtt_ns();
        if self.reduction.is_some_and(|reduction| reduction.round.is_over(ack, least_ns)) {
            self.reduction = None;
        }
        if ack.newly_marked == 0 || self.reduction.is_some() || ack.phase != Phase::Open {
            return;
        }
        let prior_cwnd = self.cwnd;
        self.reduction = Some(MarkReduction { round: VirtualRound::begin(ack), prior_cwnd });
        self.reduce_to(prior_cwnd * (1.0 - self.alpha.value / 2.0));
    }

    /// Growth by packets that were not marked, also within the round trip of a reduction by
    /// marks, which is no recovery.
    fn grow(&mut self, ack: &Ack) {
        let unmarked = ack.newly_delivered.saturating_sub(ack.newly_marked) as f64;
        if self.in_slow_start() {
            let room = self.ssthresh.map_or(f64::INFINITY, |threshold| threshold - self.cwnd);
            self.cwnd += unmarked.min(room);
            return;
        }
        let rtt = self.srtt_ns.unwrap_or(MIN_VIRTUAL_RTT_NS) as f64;
        let scale = rtt / rtt.max(self.age.least_rtt_ns() as f64);
        self.cwnd += unmarked * scale * scale / self.cwnd;
    }

    /// Packets a second; `None` before the first RTT.
    fn pacing(&self) -> Option<f64> {
        let gain = if self.in_slow_start() { SLOW_START_PACING } else { 1.0 };
        self.srtt_ns.map(|srtt_ns| gain * self.cwnd * 1e9 / srtt_ns.max(1) as f64)
    }

    /// Packets of the longest burst, at least 1.
    fn burst(&self) -> u64 {
        self.pacing().map_or(1, |rate| ((rate * MAX_BURST_S) as u64).max(1))
    }

    /// The window was used: by the driver's account, or as far as pacing lets it. At just a
    /// window a round trip packets in flight come no closer to it than a burst.
    fn is_limited(&self, ack: &Ack) -> bool {
        ack.cwnd_limited || ack.prior_in_flight + self.burst() >= self.cwnd()
    }
}

impl CongestionControl for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt_ns = ack.srtt.map(units::Rtt::nanos).or(self.srtt_ns);
        self.age.update(ack);
        self.alpha.update(ack, self.age.least_rtt_ns());
        self.respond(ack);
        if ack.phase != Phase::Recovery && ack.newly_acked > 0 && self.is_limited(ack) {
            self.grow(ack);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !congestion.is_new {
            return;
        }
        self.prior = (self.cwnd, self.ssthresh);
        // Together with a reduction by marks in the same round trip no more than Reno's.
        let prior = self.reduction.take().map_or(self.cwnd, |reduction| reduction.prior_cwnd);
        self.reduce_to(self.cwnd.min(prior / 2.0));
    }

    fn on_recovery_end(&mut self, _now: Nanos) {}

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.on_congestion(congestion);
        self.cwnd = 1.0;
    }

    fn undo(&mut self, _now: Nanos) {
        let (cwnd, ssthresh) = self.prior;
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = ssthresh;
    }

    fn on_idle_end(&mut self, _now: Nanos, _idle_ns: u64, timeouts: u32) {
        // As Reno: halved for each timeout, not below the initial window (RFC 2861).
        let restart = self.cwnd.min(INITIAL_WINDOW as f64);
        for _ in 0..timeouts.min(64) {
            self.cwnd = (self.cwnd / 2.0).max(restart);
        }
    }

    fn cwnd(&self) -> u64 {
        (self.cwnd as u64).max(1)
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ssthresh.map(|threshold| threshold as u64)
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        self.pacing().map(|rate| BitRate::from_bps_f64(rate * self.mss as f64 * 8.0))
    }

    fn reduction(&self) -> Reduction {
        Reduction::Controlled
    }

    fn ecn_response(&self) -> EcnResponse {
        EcnResponse::Scalable
    }

    fn min_burst(&self) -> u64 {
        1
    }

    fn max_burst(&self) -> Option<u64> {
        Some(self.burst())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;
    use units::Rtt;

    /// Acknowledges packet after packet at just a window a round trip.
    struct Path {
        prague: Prague,
        rtt_ns: u64,
        now: u64,
        delivered: u64,
    }

    impl Path {
        fn new(rtt_ms: u64) -> Self {
            Path { prague: Prague::new(1448), rtt_ns: rtt_ms * 1_000_000, now: 0, delivered: 0 }
        }

        fn acknowledge(&mut self, newly_marked: u64) {
            let cwnd = self.prague.cwnd();
            self.now += self.rtt_ns / cwnd;
            self.delivered += 1;
            let rtt = Some(Rtt::from_nanos(self.rtt_ns));
            self.prague.on_ack(&Ack {
                now: Nanos(self.now),
                newly_acked: 1,
                newly_delivered: 1,
                newly_lost: 0,
                delivered: self.delivered,
                newly_marked,
                acked_to: self.delivered,
                sent_to: self.delivered + cwnd,
                in_flight: cwnd,
                prior_in_flight: cwnd,
                cwnd_limited: true,
                rtt,
                srtt: rtt,
                rate: None,
                receiver: None,
                phase: Phase::Open,
            });
        }

        fn lose(&mut self) {
            self.prague.on_congestion(&Congestion {
                now: Nanos(self.now),
                in_flight: self.prague.cwnd(),
                is_new: true,
                first_lost: self.delivered,
                lost: 1,
                sent_to: self.delivered + self.prague.cwnd(),
            });
        }

        /// The mean rate long after slow start, packets a second, where `is_marked` says which
        /// packets are marked.
        fn rate(&mut self, mut is_marked: impl FnMut(u64) -> bool) -> f64 {
            const SETTLED: u64 = 200_000;
            const COUNTED: u64 = 100_000;
            let mut began = 0;
            for packet in 1..=SETTLED + COUNTED {
                self.acknowledge(u64::from(is_marked(packet)));
                if packet == SETTLED {
                    began = self.now;
                }
            }
            COUNTED as f64 * 1e9 / (self.now - began) as f64
        }
    }

    #[test]
    fn the_window_is_two_marks_a_round_trip() {
        for every in [10, 20, 50, 100] {
            let mut path = Path::new(50);
            let window = path.rate(|packet| packet % every == 0) * 0.05;
            let p = 1.0 / every as f64;
            let expected = 2.0 * (1.0 - p) / p;
            println!("every {every}: window {window:.1}, expected {expected:.1}");
            assert!((window / expected - 1.0).abs() < 0.05, "{window} {expected}");
            assert!((path.prague.alpha() / p - 1.0).abs() < 0.3, "{}", path.prague.alpha());
        }
    }

    #[test]
    fn below_25_ms_the_rate_does_not_depend_on_the_rtt() {
        // At random: evenly spaced marks lock in to multiples of the round trip.
        let rate = |rtt_ms| {
            let mut random = SplitMix64::new(1);
            Path::new(rtt_ms).rate(|_| random.unit() < 0.02)
        };
        let expected = rate(25);
        for rtt_ms in [5, 10, 20] {
            let rate = rate(rtt_ms);
            println!("{rtt_ms} ms: {rate:.0}/s, at 25 ms {expected:.0}/s");
            assert!((rate / expected - 1.0).abs() < 0.06, "{rtt_ms} ms: {rate} {expected}");
        }
        let long = rate(50);
        assert!((long / expected - 0.5).abs() < 0.03, "50 ms: {long} {expected}");
    }

    #[test]
    fn the_first_mark_ends_slow_start_with_half_the_window() {
        let mut path = Path::new(50);
        while path.prague.cwnd() < 200 {
            path.acknowledge(0);
        }
        assert!((path.prague.alpha() - 1.0).abs() < f64::EPSILON, "no marks to average yet");
        path.acknowledge(1);
        assert_eq!((path.prague.cwnd(), path.prague.ssthresh()), (100, Some(100)));
        // Further marks of the same round trip change nothing.
        path.acknowledge(1);
        assert_eq!(path.prague.cwnd(), 100);
    }

    #[test]
    fn a_loss_halves_the_window_also_together_with_marks() {
        let mut path = Path::new(50);
        while path.prague.cwnd() < 200 {
            path.acknowledge(0);
        }
        path.lose();
        assert_eq!(path.prague.cwnd(), 100);
        path.prague.undo(Nanos(path.now));
        assert_eq!((path.prague.cwnd(), path.prague.ssthresh()), (200, None));
        path.acknowledge(1);
        path.lose();
        assert_eq!(path.prague.cwnd(), 100, "not a quarter");
    }

    #[test]
    fn a_burst_lasts_no_longer_than_250_us() {
        let mut path = Path::new(20);
        for _ in 0..1_000 {
            path.acknowledge(0);
        }
        let rate = path.prague.pacing_rate().unwrap().as_f64();
        let burst = path.prague.max_burst().unwrap() as f64 * 1448.0 * 8.0;
        assert!(burst / rate <= MAX_BURST_S && path.prague.min_burst() == 1, "{burst} {rate}");
    }
}
