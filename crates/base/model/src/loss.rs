//! The rate of Reno and CUBIC under random loss, and the maximum loss for a rate.
//!
//! Both equations describe long-lived flows with independent losses; they give the
//! sawtooth's average, so expect measured rates within a factor of two.

use units::{BitRate, ByteCount, LossRatio, Rtt};

/// CUBIC's constant C for the window growth, in segments/s^3 (RFC 9438, section 5).
pub const CUBIC_C: f64 = 0.4;

/// CUBIC's multiplicative decrease factor beta (RFC 9438, section 4.6).
pub const CUBIC_BETA: f64 = 0.7;

/// The constant of Mathis et al. for one ACK per packet and periodic losses: sqrt(3/2).
/// NPAD's budgets use 0.7 (delayed ACKs), which tolerates about a third of the loss.
#[must_use]
pub fn mathis_constant() -> f64 {
    mathis_constant_for(1)
}

/// The same for one ACK per b packets: `sqrt(3/(2b))`, 0.87 with delayed ACKs (b = 2).
/// Linux counts the bytes acknowledged, so b = 1 fits it in both cases (RFC 3465).
#[must_use]
pub fn mathis_constant_for(packets_per_ack: u32) -> f64 {
    (1.5 / f64::from(packets_per_ack.max(1))).sqrt()
}

/// `C x MSS / (RTT x sqrt(p))` with C = sqrt(3/2): Mathis, Semke, Mahdavi,
/// Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm",
/// 1997, equation 3. `None` if RTT, MSS or loss is zero.
#[must_use]
pub fn mathis(mss: ByteCount, rtt: Rtt, loss: LossRatio) -> Option<BitRate> {
    mathis_for(1, mss, rtt, loss)
}

/// [`mathis`] with the constant of [`mathis_constant_for`].
#[must_use]
pub fn mathis_for(
    packets_per_ack: u32,
    mss: ByteCount,
    rtt: Rtt,
    loss: LossRatio,
) -> Option<BitRate> {
    let segments = mathis_constant_for(packets_per_ack) / loss.fraction().sqrt();
    segments_rate(segments, mss, rtt)
}

/// The average window of RFC 9438, section 5.1, equation 6, per RTT:
/// `(C (3 + beta) / (4 (1 - beta)))^(1/4) x (RTT / p)^(3/4)` segments, which is
/// `1.054 (RTT/p)^(3/4)`. Only the CUBIC region: at short RTTs and high loss
/// CUBIC is Reno-friendly and faster, see [`cubic`].
#[must_use]
pub fn cubic_region(mss: ByteCount, rtt: Rtt, loss: LossRatio) -> Option<BitRate> {
    segments_rate(cubic_region_window(rtt.secs_f64(), loss.fraction()), mss, rtt)
}

/// CUBIC's average rate: the maximum of [`cubic_region`] and Reno's rate, that of its
/// Reno-friendly region ([`mathis`]; RFC 9438, sections 4.3 and 5.1).
#[must_use]
pub fn cubic(mss: ByteCount, rtt: Rtt, loss: LossRatio) -> Option<BitRate> {
    cubic_region(mss, rtt, loss).max(mathis(mss, rtt, loss))
}

/// How long CUBIC takes to regain the window of a rate after a loss, s:
/// `K = cbrt(W (1 - beta) / C)` with W in segments (RFC 9438, section 4.2, equation 2).
#[must_use]
pub fn cubic_recovery(mss: ByteCount, rtt: Rtt, rate: BitRate) -> f64 {
    let segments = segments_for(rate, mss, rtt).unwrap_or_default();
    (segments * (1.0 - CUBIC_BETA) / CUBIC_C).cbrt()
}

/// The maximum loss at which [`mathis`] reaches `rate`: `(C MSS / (rate RTT))^2`.
/// `None` if rate, MSS or RTT is zero.
#[must_use]
pub fn loss_budget_mathis(rate: BitRate, mss: ByteCount, rtt: Rtt) -> Option<LossRatio> {
    loss_budget_mathis_for(1, rate, mss, rtt)
}

/// [`loss_budget_mathis`] with the constant of [`mathis_constant_for`].
#[must_use]
pub fn loss_budget_mathis_for(
    packets_per_ack: u32,
    rate: BitRate,
    mss: ByteCount,
    rtt: Rtt,
) -> Option<LossRatio> {
    budget_with(mathis_constant_for(packets_per_ack), rate, mss, rtt)
}

/// The maximum loss at which [`cubic`] reaches `rate`.
#[must_use]
pub fn loss_budget_cubic(rate: BitRate, mss: ByteCount, rtt: Rtt) -> Option<LossRatio> {
    let segments = segments_for(rate, mss, rtt)?;
    let own = rtt.secs_f64() / (segments / cubic_factor()).powf(4.0 / 3.0);
    loss_from_fraction(own).max(loss_budget_mathis(rate, mss, rtt))
}

/// A loss ratio from a computed fraction; 1 or more becomes the largest ratio below 1,
/// a negative number or NaN `None`.
#[must_use]
pub fn loss_from_fraction(fraction: f64) -> Option<LossRatio> {
    if fraction.is_nan() || fraction < 0.0 {
        return None;
    }
    // A `LossRatio` has twelve places; its parser is its only constructor.
    format!("{:.12}", fraction.min(0.999_999_999_999)).parse().ok()
}

/// The window of [`cubic_region`], in segments.
pub(crate) fn cubic_region_window(rtt_s: f64, loss: f64) -> f64 {
    cubic_factor() * (rtt_s / loss).powf(0.75)
}

fn cubic_factor() -> f64 {
    (CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA))).powf(0.25)
}

fn budget_with(c: f64, rate: BitRate, mss: ByteCount, rtt: Rtt) -> Option<LossRatio> {
    let segments = segments_for(rate, mss, rtt)?;
    loss_from_fraction((c / segments).powi(2))
}

pub(crate) fn segments_rate(segments: f64, mss: ByteCount, rtt: Rtt) -> Option<BitRate> {
    let bps = segments * mss.as_f64() * 8.0 / rtt.secs_f64();
    (bps.is_finite() && bps > 0.0).then(|| BitRate::from_bps_f64(bps))
}

fn segments_for(rate: BitRate, mss: ByteCount, rtt: Rtt) -> Option<f64> {
    let segments = rate.as_f64() * rtt.secs_f64() / (8.0 * mss.as_f64());
    (segments.is_finite() && segments > 0.0).then_some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: ByteCount = ByteCount::from_bytes(1448);

    fn rtt(text: &str) -> Rtt {
        text.parse().unwrap()
    }
    fn loss(text: &str) -> LossRatio {
        text.parse().unwrap()
    }
    fn mbit(rate: Option<BitRate>) -> f64 {
        rate.unwrap().as_f64() / 1e6
    }

    #[test]
    fn one_percent_at_100_ms_is_mathis() {
        let rate = mbit(mathis(MSS, rtt("100ms"), loss("1%")));
        assert!((rate - 1.42).abs() < 5e-3, "{rate}");
        // There CUBIC is Reno-friendly: below the 3 Mbit/s of the source.
        assert!((mbit(cubic(MSS, rtt("100ms"), loss("1%"))) - rate).abs() < 1e-9);
    }

    #[test]
    fn windows_of_rfc_9438_table_at_100_ms() {
        // Average windows in segments with C = 0.4, RTT 0.1 s.
        for (p, segments) in [
            ("0.01%", 187.0),
            ("0.001%", 1_054.0),
            ("0.0001%", 5_926.0),
            ("0.00001%", 33_325.0),
            ("0.000001%", 187_400.0),
        ] {
            let rate = cubic_region(MSS, rtt("100ms"), loss(p)).unwrap().as_f64();
            let got = rate * 0.1 / 8.0 / 1448.0;
            assert!((got / segments - 1.0).abs() < 3e-3, "{p}: {got} for {segments}");
        }
    }

    #[test]
    fn ten_gigabit_at_100_ms_needs_a_loss_below_3e_8() {
        let rate = BitRate::from_bps(10_000_000_000);
        let budget = loss_budget_cubic(rate, ByteCount::from_bytes(1500), rtt("100ms")).unwrap();
        assert!((2.9e-8..3e-8).contains(&budget.fraction()), "{budget}");
        let reno = loss_budget_mathis(rate, ByteCount::from_bytes(1500), rtt("100ms")).unwrap();
        assert!(reno < budget);
    }

    #[test]
    fn recovery_of_large_windows() {
        // 10 Gbit/s x 100 ms: W = 86,326 segments, K = 40.2 s; 2.5 Gbit/s x 163.6 ms: 29.8 s.
        for (gbit, ms, seconds) in [(10.0, "100ms", 40.15), (2.5, "163.6ms", 29.81)] {
            let k = cubic_recovery(MSS, rtt(ms), BitRate::from_bps_f64(gbit * 1e9));
            assert!((k - seconds).abs() < 0.05, "{k}");
        }
        assert_eq!(cubic_recovery(MSS, Rtt::ZERO, BitRate::from_bps(1)), 0.0);
    }

    #[test]
    fn npad_budget_with_its_own_constant() {
        let budget = budget_with(0.7, BitRate::from_bps(4_000_000), MSS, rtt("200ms")).unwrap();
        assert!((budget.fraction() * 100.0 - 0.0103).abs() < 5e-5, "{budget}");
    }

    #[test]
    fn a_budget_gives_its_rate_back() {
        let rate = BitRate::from_bps(50_000_000);
        for (there, back) in [
            (loss_budget_mathis(rate, MSS, rtt("80ms")), mathis as fn(_, _, _) -> _),
            (loss_budget_cubic(rate, MSS, rtt("80ms")), cubic),
        ] {
            let again = mbit(back(MSS, rtt("80ms"), there.unwrap()));
            assert!((again / 50.0 - 1.0).abs() < 1e-3, "{again}");
        }
    }

    #[test]
    fn without_loss_time_or_segment_there_is_no_answer() {
        assert_eq!(mathis(MSS, rtt("100ms"), LossRatio::NONE), None);
        assert_eq!(cubic(MSS, rtt("100ms"), LossRatio::NONE), None);
        assert_eq!(mathis(MSS, Rtt::ZERO, loss("1%")), None);
        assert_eq!(cubic(ByteCount::ZERO, rtt("1ms"), loss("1%")), None);
        assert_eq!(loss_budget_mathis(BitRate::ZERO, MSS, rtt("1ms")), None);
        assert_eq!(loss_budget_cubic(BitRate::MAX, ByteCount::ZERO, rtt("1ms")), None);
    }

    #[test]
    fn a_slow_flow_bears_almost_any_loss() {
        let budget = loss_budget_mathis(BitRate::from_bps(1), MSS, rtt("1ms")).unwrap();
        assert!(budget.fraction() > 0.99 && budget.fraction() < 1.0);
    }

    #[test]
    fn delayed_acknowledgements_halve_the_budget() {
        assert!((mathis_constant_for(2) - 0.866).abs() < 1e-3);
        let rate = BitRate::from_bps(4_000_000);
        let budget = |b| loss_budget_mathis_for(b, rate, MSS, rtt("200ms")).unwrap().fraction();
        assert!((budget(1) / budget(2) - 2.0).abs() < 1e-3);
        assert_eq!(mathis_constant_for(0), mathis_constant());
    }

    proptest::proptest! {
        #[test]
        fn rates_fall_with_loss_and_round_trip(a in 1e-9..0.9_f64, b in 1e-9..0.9_f64,
                                               c in 1u64..1_000_000, d in 1u64..1_000_000) {
            let [less, more] = [a.min(b), a.max(b)].map(|p| loss_from_fraction(p).unwrap());
            let [short, long] = [c.min(d), c.max(d)].map(Rtt::from_micros);
            for law in [mathis as fn(_, _, _) -> _, cubic, cubic_region] {
                proptest::prop_assert!(law(MSS, short, less) >= law(MSS, short, more));
                proptest::prop_assert!(law(MSS, short, less) >= law(MSS, long, less));
            }
        }

        #[test]
        fn any_numbers_are_answered(mss: u64, nanos: u64, p in 0.0..1.0_f64, bps: u64, acks: u32) {
            let (mss, rtt, rate) = (ByteCount::from_bytes(mss), Rtt::from_nanos(nanos), BitRate::from_bps(bps));
            let p = loss_from_fraction(p).unwrap();
            let _ = (mathis_for(acks, mss, rtt, p), cubic(mss, rtt, p));
            let _ = (loss_budget_mathis_for(acks, rate, mss, rtt), loss_budget_cubic(rate, mss, rtt));
        }
    }

    #[test]
    fn fractions_become_ratios() {
        assert_eq!(loss_from_fraction(0.01), Some(loss("1%")));
        assert_eq!(loss_from_fraction(0.0), Some(LossRatio::NONE));
        assert_eq!(loss_from_fraction(1e-15), Some(LossRatio::NONE));
        assert!(loss_from_fraction(f64::INFINITY).unwrap().fraction() < 1.0);
        assert_eq!(loss_from_fraction(f64::NAN), None);
        assert_eq!(loss_from_fraction(-0.1), None);
    }
}
