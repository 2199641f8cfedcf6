//! The rate of BBR version 1 under random loss, within the model's validity.
//!
//! BBRv1 does not react to loss: it sends at the maximum delivery rate of the last ten
//! RTTs, and a share of `1 - p` arrives. To sustain its bandwidth estimate it must
//! measure it again while it probes at 1.25 times the rate, which requires `1.25 (1 -
//! p) >= 1`, so p <= 20 %: N. Cardwell on
//! the bbr-dev list, after Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR:
//! congestion-based congestion control", ACM Queue 14(5), 2016. Above it the
//! estimate decays and no closed form is known; from 10 % on, real flows fall somewhat
//! below the model.

use crate::{bdp, loss::loss_from_fraction};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Seconds between two ProbeRTT phases, and their least length (same source as below).
const PROBE_RTT_EVERY_S: f64 = 10.0;
const PROBE_RTT_S: f64 = 0.2;

/// The pacing gain while BBR probes for bandwidth (ACM Queue, 2016).
pub const BBR_PROBE_GAIN: f64 = 1.25;

/// The limit of data in flight in BDPs (`cwnd_gain`, same source).
pub const BBR_CWND_GAIN: u64 = 2;

/// Pacing gain in startup, 2/ln 2 = 2.885: the minimum that doubles the delivery rate
/// each RTT (same source).
pub const BBR_STARTUP_GAIN: f64 = 2.0 / std::f64::consts::LN_2;

/// The maximum loss of the model: `1 - 1/1.25` = 20 %.
#[must_use]
pub fn bbr_loss_limit() -> f64 {
    1.0 - 1.0 / BBR_PROBE_GAIN
}

/// The loss above which real BBR flows fall below the model.
pub const BBR_ACCURATE_LOSS: f64 = 0.1;

/// `link x (1 - p)` for a loss of up to [`bbr_loss_limit`], at any RTT; `None` above,
/// where no model is known.
#[must_use]
pub fn bbr(link: BitRate, loss: LossRatio) -> Option<BitRate> {
    // A ratio has 12 places: 20 % itself must not fail by a rounding error.
    let within = loss.fraction() <= bbr_loss_limit() + 1e-12;
    within.then(|| link.scaled(1.0 - loss.fraction()))
}

/// The share of the time that BBR spends with an almost empty pipe to measure the RTT: every 10 s
/// it drains the queue for 200 ms or an RTT, whichever is longer, and needs half an RTT to fill the
/// path again (ACM Queue, 2016). At most one half.
#[must_use]
pub fn bbr_probe_rtt_share(rtt: Rtt) -> f64 {
    let rtt = rtt.secs_f64();
    (rtt.max(PROBE_RTT_S) + rtt / 2.0).min(PROBE_RTT_EVERY_S / 2.0) / PROBE_RTT_EVERY_S
}

/// The maximum loss at which [`bbr`] reaches `rate` over `link`: `1 - rate/link`, at
/// most [`bbr_loss_limit`]. `None` if the link is slower.
#[must_use]
pub fn loss_budget_bbr(rate: BitRate, link: BitRate) -> Option<LossRatio> {
    let spare = 1.0 - rate.as_f64() / link.as_f64();
    loss_from_fraction(spare).map(|budget| {
        loss_from_fraction(bbr_loss_limit()).map_or(budget, |limit| budget.min(limit))
    })
}

/// The maximum in flight of BBRv1: two BDPs, which buffers and the receive window must
/// hold.
#[must_use]
pub fn bbr_inflight(link: BitRate, rtt: Rtt) -> ByteCount {
    bdp(link, rtt).times(BBR_CWND_GAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: BitRate = BitRate::from_bps(10_000_000_000);

    fn loss(text: &str) -> LossRatio {
        text.parse().unwrap()
    }

    #[test]
    fn what_arrives_is_what_was_not_lost() {
        // 10 Gbit/s at 100 ms and 1 %: over 9 Gbit/s, where CUBIC has 1.4 Mbit/s.
        assert_eq!(bbr(LINK, loss("1%")), Some(BitRate::from_bps(9_900_000_000)));
        assert_eq!(bbr(LINK, LossRatio::NONE), Some(LINK));
        assert_eq!(bbr(LINK, loss("20%")), Some(BitRate::from_bps(8_000_000_000)));
        assert_eq!(bbr(LINK, loss("20.1%")), None);
    }

    #[test]
    fn probing_the_rtt_takes_a_few_percent() {
        for (ms, share) in [(1, 0.02005), (100, 0.025), (200, 0.03), (400, 0.06), (60_000, 0.5)] {
            let got = bbr_probe_rtt_share(Rtt::from_micros(ms * 1_000));
            assert!((got - share).abs() < 1e-9, "{ms}: {got}");
        }
    }

    #[test]
    fn budgets_end_at_the_model() {
        let budget = |bps| loss_budget_bbr(BitRate::from_bps(bps), LINK);
        assert_eq!(budget(9_900_000_000), Some(loss("1%")));
        assert_eq!(budget(1_000_000_000), Some(loss("20%")));
        assert_eq!(budget(10_000_000_001), None);
        assert_eq!(loss_budget_bbr(LINK, BitRate::ZERO), None);
    }

    #[test]
    fn two_products_are_in_flight() {
        assert_eq!(
            bbr_inflight(LINK, Rtt::from_micros(100_000)),
            ByteCount::from_bytes(250_000_000)
        );
        assert!((BBR_STARTUP_GAIN - 2.885).abs() < 1e-3);
    }

    proptest::proptest! {
        #[test]
        fn it_falls_with_loss_and_a_budget_inverts_it(link in 1_000_000u64..1_000_000_000_000,
                                                      a in 0.0..0.2_f64, b in 0.0..0.2_f64) {
            let link = BitRate::from_bps(link);
            let (less, more) = (a.min(b), a.max(b));
            let at = |p| bbr(link, loss_from_fraction(p).unwrap()).unwrap();
            proptest::prop_assert!(at(less) >= at(more));
            let back = loss_budget_bbr(at(more), link).unwrap().fraction();
            proptest::prop_assert!((back - more).abs() < 1e-5);
        }
    }
}
