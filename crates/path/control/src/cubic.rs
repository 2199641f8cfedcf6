//! CUBIC (RFC 9438), with the constants and the integer arithmetic of Linux.
//!
//! W(t) = C (t - K)^3 + Wmax with K = cbrt((Wmax - w) / C) from the end of a reduction,
//! and never slower than a Reno of the same average window (RFC 9438 section 4.3).
//! Where Linux differs from the RFC, this follows Linux: the Reno-friendly window grows
//! by one for each 15/8 windows acknowledged, also above the window before the loss.

use crate::hystart::{HyStart, Observation};
use crate::jiffies::{TICK_NS, tick};
use crate::window::Window;
use crate::{Ack, Congestion, CongestionControl, Phase, Reduction};
use units::{BitRate, Nanos, Rtt};

/// A reduction leaves this share of the window, in 1/1024: beta = 0.7.
const BETA: u64 = 717;
/// C = 0.4, in 1/1024 packets a second cubed.
const C: u64 = 410;
/// Both above are in 1/1024, and so is the cubic function's time, in s.
const SCALE: u64 = 1024;
/// While the window does not change, the growth is recomputed this often: 1/32 s in
/// whole ticks.
const RECOMPUTE_TICKS: u64 = 7;
/// Packets acknowledged per packet of growth: at most half the window a round trip.
const MIN_PER: u64 = 2;
/// The same before the first loss: at least 5 % a round trip.
const MAX_PER_AT_FIRST: u64 = 20;
/// At or above the target the window grows by one packet in that many round trips.
const ROUNDS_AT_TARGET: u64 = 100;
/// After a reduction, RTTs are no measure of the path for a second.
const SETTLING_TICKS: u64 = 250;

/// CUBIC with `HyStart`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cubic {
    window: Window,
    hystart: HyStart,
    /// Payload of a packet, bytes; only `HyStart`'s tolerance depends on it.
    mss: u64,
    /// Wmax after fast convergence; zero until the first loss.
    last_max: u64,
    /// Least RTT, ns; zero before the first sample.
    min_rtt_ns: u64,
    growth: Growth,
}

/// One epoch of the cubic function: from a reduction to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Growth {
    /// The tick at which it began; `None` until the first packet acknowledged in
    /// congestion avoidance.
    start: Option<u64>,
    /// The tick and the window of the last computation.
    last: Option<(u64, u64)>,
    /// Plateau of the cubic function, packets.
    origin: u64,
    /// K, in 1/1024 s.
    k: u64,
    /// Packets acknowledged that the Reno-friendly window has yet to count.
    friendly_acked: u64,
    /// The Reno-friendly window, packets.
    friendly: u64,
    /// Packets acknowledged per packet of growth.
    per: u64,
}

impl Cubic {
    /// In slow start from [`crate::INITIAL_WINDOW`], with packets of `mss` bytes of
    /// payload.
    #[must_use]
    pub fn new(mss: u32) -> Self {
        Cubic {
            window: Window::new(),
            hystart: HyStart::default(),
            mss: u64::from(mss),
            last_max: 0,
            min_rtt_ns: 0,
            growth: Growth::default(),
        }
    }

    fn observe_rtt(&mut self, ack: &Ack, rtt: Rtt) {
        let settling =
            self.growth.start.is_some_and(|start| tick(ack.now) < start + SETTLING_TICKS);
        if settling {
            return;
        }
        let rtt_ns = rtt.nanos().max(1_000);
        if self.min_rtt_ns == 0 || rtt_ns < self.min_rtt_ns {
            self.min_rtt_ns = rtt_ns;
        }
        if !self.window.in_slow_start() {
            return;
        }
        let seen = Observation {
            now: ack.now,
            cwnd: self.window.cwnd,
            acked_to: ack.acked_to,
            sent_to: ack.sent_to,
            rtt_ns,
            min_rtt_ns: self.min_rtt_ns,
            srtt_ns: ack.srtt.unwrap_or(rtt).nanos(),
            mss: self.mss,
        };
        if self.hystart.observe(&seen) {
            self.window.leave_slow_start();
        }
    }
}

impl Growth {
    /// Packets acknowledged per packet by which a window of `cwnd` grows.
    fn per(&mut self, now: u64, acked: u64, cwnd: u64, last_max: u64, min_rtt_ns: u64) -> u64 {
        self.friendly_acked += acked;
        match self.last {
            Some((at, same)) if same == cwnd && now - at <= RECOMPUTE_TICKS => return self.per,
            // The cubic function is of whole ticks.
            Some((at, _)) if self.start.is_some() && at == now => {}
            _ => {
                self.last = Some((now, cwnd));
                let start = *self.start.get_or_insert_with(|| {
                    self.friendly_acked = acked;
                    self.friendly = cwnd;
                    self.k = cubic_k(last_max.saturating_sub(cwnd));
                    self.origin = last_max.max(cwnd);
                    now
                });
                let ahead = now.saturating_sub(start) * TICK_NS + min_rtt_ns;
                let t = scaled_time(ahead);
                let target = cubic_window(t, self.k, self.origin);
                self.per =
                    if target > cwnd { cwnd / (target - cwnd) } else { ROUNDS_AT_TARGET * cwnd };
                if last_max == 0 {
                    self.per = self.per.min(MAX_PER_AT_FIRST);
                }
            }
        }
        self.stay_friendly(cwnd);
        self.per = self.per.max(MIN_PER);
        self.per
    }

    /// Grows at least as Reno would (RFC 9438 section 4.3): 3 (1 - beta) / (1 + beta) =
    /// 8/15 packets a round trip.
    fn stay_friendly(&mut self, cwnd: u64) {
        let round = (cwnd * 15 / 8).max(1);
        self.friendly += self.friendly_acked / round;
        self.friendly_acked %= round;
        if self.friendly > cwnd {
            self.per = self.per.min(cwnd / (self.friendly - cwnd));
        }
    }
}

/// A time in 1/1024 s.
fn scaled_time(ns: u64) -> u64 {
    ns.saturating_mul(SCALE) / 1_000_000_000
}

/// K = cbrt(packets / C) in 1/1024 s.
fn cubic_k(packets: u64) -> u64 {
    // packets / (C / SCALE) s^3, in (1/SCALE s)^3: times SCALE^4 / C.
    let cubed = u128::from(packets) * u128::from(SCALE.pow(4)) / u128::from(C);
    cube_root(cubed)
}

/// C (t - K)^3 + origin, packets; not below zero.
fn cubic_window(t: u64, k: u64, origin: u64) -> u64 {
    let cubed = u128::from(t.abs_diff(k)).pow(3) * u128::from(C);
    let distance = u64::try_from(cubed / u128::from(SCALE.pow(4))).unwrap_or(u64::MAX);
    if t < k { origin.saturating_sub(distance) } else { origin.saturating_add(distance) }
}

/// The whole part of a cube root, by Newton's method from above.
fn cube_root(of: u128) -> u64 {
    if of == 0 {
        return 0;
    }
    let bits = 128 - of.leading_zeros();
    let mut root = 1_u128 << bits.div_ceil(3);
    loop {
        let next = (2 * root + of / (root * root)) / 3;
        if next >= root {
            return u64::try_from(root).unwrap_or(u64::MAX);
        }
        root = next;
    }
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.observe_rtt(ack, rtt);
        }
        //= https://www.rfc-editor.org/rfc/rfc9438#section-5.8
        //# CUBIC does not increase its congestion window if a flow is application limited.
        if ack.phase == Phase::Recovery || ack.newly_acked == 0 || !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.newly_delivered;
        if self.window.in_slow_start() {
            acked = self.window.slow_start(acked);
        }
        if acked > 0 {
            let cwnd = self.window.cwnd;
            let now = tick(ack.now);
            let per = self.growth.per(now, acked, cwnd, self.last_max, self.min_rtt_ns);
            self.window.increase(acked, per);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !congestion.is_new {
            return;
        }
        let cwnd = self.window.cwnd;
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.7
        //# With fast convergence, when a congestion event occurs, _W_max_ is updated as
        //# follows, before the window reduction described in Section 4.6.
        // Fast convergence (RFC 9438 section 4.7).
        self.last_max =
            if cwnd < self.last_max { cwnd * (SCALE + BETA) / (2 * SCALE) } else { cwnd };
        self.growth.start = None;
        self.window.reduce_to(cwnd * BETA / SCALE);
    }

    fn on_recovery_end(&mut self, _now: Nanos) {
        self.window.recovered();
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.on_congestion(congestion);
        self.window.collapse();
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.8
        //# During the first congestion avoidance stage after a timeout, CUBIC increases its
        //# congestion window size using Figure 1, where _t_ is the elapsed time since the
        //# beginning of the current congestion avoidance stage, _K_ is set to 0, and _W_max_
        //# is set to the congestion window size at the beginning of the current congestion
        //# avoidance stage.
        // Linux forgets the path, its least RTT too.
        self.last_max = 0;
        self.min_rtt_ns = 0;
        self.growth = Growth::default();
        self.hystart.reset();
    }

    fn undo(&mut self, _now: Nanos) {
        self.window.undo();
    }

    fn on_idle_end(&mut self, _now: Nanos, idle_ns: u64, timeouts: u32) {
        //= https://www.rfc-editor.org/rfc/rfc9438#section-4.2
        //# The elapsed time _t_ in Figure 1 MUST NOT include periods during which _cwnd_ has
        //# not been updated due to application-limited behavior (see Section 5.8).
        // The cubic function does not go on while nothing is sent.
        if let Some(start) = &mut self.growth.start {
            *start += idle_ns / TICK_NS;
        }
        self.window.decay(timeouts);
    }

    fn cwnd(&self) -> u64 {
        self.window.cwnd
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh()
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        None
    }

    fn reduction(&self) -> Reduction {
        Reduction::Proportional
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_whole_parts() {
        for root in [1_u128, 2, 3, 7, 100, 1_023, 65_537, 4_000_000] {
            assert_eq!(u128::from(cube_root(root.pow(3))), root);
            assert_eq!(u128::from(cube_root(root.pow(3) + 1)), root);
            assert_eq!(u128::from(cube_root(root.pow(3) - 1)), root - 1);
        }
        assert_eq!(cube_root(0), 0);
    }

    #[test]
    fn k_is_39_7_s_at_the_window_of_10_gbit_s_and_100_ms() {
        // docs/design: 83 333 packets, reduced to 0.7: K = cbrt(25 000 / 0.4).
        let k = cubic_k(83_333 - 83_333 * BETA / SCALE) as f64 / SCALE as f64;
        assert!((k - 39.7).abs() < 0.1, "{k}");
    }

    #[test]
    fn the_window_is_at_its_former_maximum_after_k() {
        let (max, reduced) = (1_000, 700);
        let k = cubic_k(max - reduced);
        assert!(cubic_window(0, k, max).abs_diff(reduced) <= 1);
        assert_eq!(cubic_window(k, k, max), max);
        assert!(cubic_window(2 * k, k, max).abs_diff(1_300) <= 1);
    }
}
