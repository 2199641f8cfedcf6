//! Reno with timeouts and the receive window: Padhye, Firoiu, Towsley,
//! Kurose, "Modeling TCP throughput: a simple model and its empirical
//! validation", ACM SIGCOMM 1998, section 2.3 (also IEEE/ACM ToN 8(2), 2000).
//!
//! The model assumes that after a loss the rest of its round is lost, too, and that
//! rounds are independent. The rate is the *sent* one, including retransmissions.

use crate::loss::{loss_from_fraction, segments_rate};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// The loss ratio from which timeouts take much of the time, which Mathis' and CUBIC's equations
/// leave out (section 3 of the paper).
pub const TIMEOUT_LOSS: f64 = 0.02;

/// A Reno sender and its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenoPath {
    /// Payload of a full segment.
    pub mss: ByteCount,
    /// The RTT, including queueing delay.
    pub rtt: Rtt,
    /// The initial retransmission timeout, T0, which doubles up to 64 T0.
    pub rto: Rtt,
    /// The receive window, Wmax, if it limits the sender.
    pub window: Option<ByteCount>,
    /// Packets per ACK, b: 2 with delayed ACKs.
    pub packets_per_ack: u32,
}

impl RenoPath {
    fn b(&self) -> f64 {
        f64::from(self.packets_per_ack.max(1))
    }

    /// Wmax in segments, at least one.
    fn most(&self) -> f64 {
        self.window.map_or(f64::INFINITY, |window| (window.as_f64() / self.mss.as_f64()).max(1.0))
    }
}

/// The retransmission timeout of Linux on a path with a constant RTT: the RTT plus the
/// minimum variance term of 200 ms (`TCP_RTO_MIN`, `tcp_rtt_estimator` in
/// `tcp_input.c`). RFC 6298, section 2.4, requires at least 1 s.
#[must_use]
pub fn linux_rto(rtt: Rtt) -> Rtt {
    Rtt::from_nanos(rtt.nanos().saturating_add(200_000_000))
}

/// The full model, with T0 and Wmax. Without loss it is `window / RTT`; `None`
/// without loss and window, or if RTT or MSS is zero.
#[must_use]
pub fn pftk(path: &RenoPath, loss: LossRatio) -> Option<BitRate> {
    let (p, rtt, t0, b) = (loss.fraction(), path.rtt.secs_f64(), path.rto.secs_f64(), path.b());
    let most = path.most();
    if p <= 0.0 {
        return most
            .is_finite()
            .then_some(())
            .and_then(|()| segments_rate(most, path.mss, path.rtt));
    }
    let c = (2.0 + b) / (3.0 * b);
    let unbounded = c + (8.0 * (1.0 - p) / (3.0 * b * p) + c * c).sqrt();
    let window = unbounded.min(most);
    let rounds = if unbounded < most {
        b / 2.0 * unbounded + 1.0
    } else {
        b / 8.0 * most + (1.0 - p) / (p * most) + 2.0
    };
    let q = timeout_share(window, p);
    let packets = (1.0 - p) / p + window + q / (1.0 - p);
    let time = rtt * rounds + q * t0 * backoff(p) / (1.0 - p);
    // From packets per second to a rate.
    segments_rate(packets / time * rtt, path.mss, path.rtt)
}

/// The approximation of the same paper that TFRC uses (RFC 5348, section 3.1):
/// `MSS / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2))`, at most
/// `window / RTT`. RFC 5348 omits the `min` and uses b = 1.
#[must_use]
pub fn pftk_simple(path: &RenoPath, loss: LossRatio) -> Option<BitRate> {
    let (p, rtt, t0, b) = (loss.fraction(), path.rtt.secs_f64(), path.rto.secs_f64(), path.b());
    let timeouts = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    let per_packet = rtt * (2.0 * b * p / 3.0).sqrt() + t0 * timeouts;
    let segments = (rtt / per_packet).min(path.most());
    segments_rate(segments, path.mss, path.rtt)
}

/// The maximum loss at which [`pftk`] reaches `rate`; `None` if the window is too small
/// for it.
#[must_use]
pub fn loss_budget_pftk(path: &RenoPath, rate: BitRate) -> Option<LossRatio> {
    let reaches = |p: f64| {
        loss_from_fraction(p).and_then(|p| pftk(path, p)).is_some_and(|carried| carried >= rate)
    };
    let (mut good, mut bad) = (1e-12, 1.0 - 1e-12);
    if !reaches(good) {
        return None;
    }
    if reaches(bad) {
        return loss_from_fraction(bad);
    }
    // Bisection of log p: 60 steps exceed the resolution of a ratio.
    for _ in 0..60 {
        let middle = (good * bad).sqrt();
        if reaches(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    loss_from_fraction(good)
}

/// The share of losses in a window of `w` that end in a timeout, because fewer than
/// three later packets of the two rounds arrive.
fn timeout_share(w: f64, p: f64) -> f64 {
    if w <= 3.0 {
        return 1.0;
    }
    // 1 - (1 - p)^n, accurate for a small p.
    let lost = |n: f64| -(n * (-p).ln_1p()).exp_m1();
    let some = (1.0 - p).powi(3);
    (lost(3.0) * (1.0 + some * lost(w - 3.0)) / lost(w)).min(1.0)
}

/// The mean length of a timeout sequence in T0, with six doublings, up to 64 T0.
fn backoff(p: f64) -> f64 {
    (0..6).fold((1.0, p), |(sum, term), _| (sum + term, 2.0 * term * p)).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mathis;

    const MSS: ByteCount = ByteCount::from_bytes(1460);

    fn path(rtt: &str, b: u32, window: Option<u64>) -> RenoPath {
        let rtt = rtt.parse().unwrap();
        let window = window.map(ByteCount::from_bytes);
        RenoPath { mss: MSS, rtt, rto: linux_rto(rtt), window, packets_per_ack: b }
    }
    fn loss(text: &str) -> LossRatio {
        text.parse().unwrap()
    }
    fn bps(rate: Option<BitRate>) -> f64 {
        rate.unwrap().as_f64()
    }

    #[test]
    fn little_loss_is_mathis() {
        let path = path("100ms", 1, None);
        let ratio =
            bps(pftk(&path, loss("0.000001%"))) / bps(mathis(MSS, path.rtt, loss("0.000001%")));
        assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
        // Timeouts take their share long before that.
        let ratio = bps(pftk(&path, loss("5%"))) / bps(mathis(MSS, path.rtt, loss("5%")));
        assert!((0.3..0.8).contains(&ratio), "{ratio}");
    }

    #[test]
    fn the_sums_by_hand() {
        // p = 1 %, b = 2, RTT 100 ms, T0 300 ms, no window:
        // E[W] = 2/3 + sqrt(8 x 0.99/0.06 + 4/9) = 12.175; Q = 0.2486 by its
        // formula; B = (99 + 12.175 + 0.2511) / (0.1 x 13.175 + 0.2486 x 0.3
        // x 1.0102 / 0.99) = 79.9 packets/s.
        let rate = bps(pftk(&path("100ms", 2, None), loss("1%"))) / 8.0 / 1460.0;
        let (p, w) = (0.01_f64, 2.0 / 3.0 + (132.0_f64 + 4.0 / 9.0).sqrt());
        let k = 0.99_f64;
        let q = (1.0 - k.powi(3)) * (1.0 + k.powi(3) * (1.0 - k.powf(w - 3.0))) / (1.0 - k.powf(w));
        let f = 1.0
            + p
            + 2.0 * p.powi(2)
            + 4.0 * p.powi(3)
            + 8.0 * p.powi(4)
            + 16.0 * p.powi(5)
            + 32.0 * p.powi(6);
        let expected = (99.0 + w + q / k) / (0.1 * (w + 1.0) + q * 0.3 * f / k);
        assert!((rate / expected - 1.0).abs() < 1e-6, "{rate} {expected}");
        assert!((79.0..81.0).contains(&rate), "{rate}");
    }

    #[test]
    fn the_window_bounds_it() {
        let bounded = path("100ms", 2, Some(16 * 1460));
        let full = 16.0 * 1460.0 * 8.0 / 0.1;
        assert!((bps(pftk(&bounded, LossRatio::NONE)) / full - 1.0).abs() < 1e-6);
        assert!((bps(pftk(&bounded, loss("0.0001%"))) / full - 1.0).abs() < 1e-2);
        assert!(bps(pftk(&bounded, loss("0.1%"))) < full);
        assert_eq!(pftk(&path("100ms", 1, None), LossRatio::NONE), None);
        assert_eq!(loss_budget_pftk(&bounded, BitRate::from_bps(3_000_000)), None);
    }

    #[test]
    fn with_delayed_acknowledgements_both_forms_meet() {
        // Where E[W] passes Wmax the paper's two cases agree exactly for b = 2.
        let most = 40 * 1460;
        let p_at = |w: f64| {
            let r = 0.75 * (w * w - 2.0 * w * 2.0 / 3.0);
            1.0 / (1.0 + r)
        };
        let at =
            |w: f64| bps(pftk(&path("50ms", 2, Some(most)), loss_from_fraction(p_at(w)).unwrap()));
        assert!((at(39.999) / at(40.001) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn the_simple_form_is_near_the_full_one() {
        for (rtt, p) in [("50ms", "0.01%"), ("100ms", "0.1%"), ("200ms", "1%"), ("100ms", "5%")] {
            let path = path(rtt, 2, None);
            let ratio = bps(pftk_simple(&path, loss(p))) / bps(pftk(&path, loss(p)));
            assert!((0.7..1.4).contains(&ratio), "{rtt} {p} {ratio}");
        }
    }

    #[test]
    fn rfc_5348_form() {
        // s = 1460, R = 100 ms, p = 1 %, b = 1, t_RTO = 4 R: X = s / (0.1 x
        // 0.08165 + 0.4 x 0.18371 x 0.01 x 1.0032) = 164 kB/s.
        let path = RenoPath { rto: Rtt::from_micros(400_000), ..path("100ms", 1, None) };
        let rate = bps(pftk_simple(&path, loss("1%"))) / 8.0;
        assert!((rate / 164_000.0 - 1.0).abs() < 5e-3, "{rate}");
    }

    proptest::proptest! {
        #[test]
        fn any_path_is_answered(mss: u64, rtt: u64, rto: u64, window: Option<u64>, b: u32,
                                p in 0.0..1.0_f64, rate: u64) {
            let path = RenoPath {
                mss: ByteCount::from_bytes(mss), rtt: Rtt::from_nanos(rtt), rto: Rtt::from_nanos(rto),
                window: window.map(ByteCount::from_bytes), packets_per_ack: b,
            };
            let p = loss_from_fraction(p).unwrap();
            let _ = (pftk(&path, p), pftk_simple(&path, p));
            let _ = loss_budget_pftk(&path, BitRate::from_bps(rate));
        }

        #[test]
        fn it_falls_with_loss_and_round_trip(decades in -7.0..-0.5_f64, more in 1.05..10.0_f64,
                                             ms in 1u64..500, longer in 2u64..5, b in 1u32..3) {
            let at = |ms: u64, p: f64| {
                let rtt = Rtt::from_micros(ms * 1000);
                let path = RenoPath { mss: MSS, rtt, rto: linux_rto(rtt), window: None, packets_per_ack: b };
                pftk(&path, loss_from_fraction(p.min(0.99)).unwrap()).unwrap()
            };
            let p = 10f64.powf(decades);
            proptest::prop_assert!(at(ms, p) >= at(ms, p * more));
            proptest::prop_assert!(at(ms, p) > at(ms * longer, p));
        }

        #[test]
        fn a_budget_gives_its_rate_back(mbit in 0.2..500.0_f64, ms in 5u64..300) {
            let rate = BitRate::from_bps_f64(mbit * 1e6);
            let rtt = Rtt::from_micros(ms * 1000);
            let path = RenoPath { mss: MSS, rtt, rto: linux_rto(rtt), window: None, packets_per_ack: 1 };
            // Budgets below 10^-8 keep too few digits to come back exactly.
            if let Some(p) = loss_budget_pftk(&path, rate).filter(|p| p.fraction() > 1e-8) {
                let again = pftk(&path, p).unwrap().as_f64();
                proptest::prop_assert!((again / rate.as_f64() - 1.0).abs() < 1e-2, "{} {}", again, p);
            }
        }
    }
}
