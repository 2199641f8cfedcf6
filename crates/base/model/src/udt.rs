//! The rate increase of UDT's native congestion control, and its recovery after a loss:
//! Gu, Grossman, "UDT: UDP-based data transfer for high-speed wide area
//! networks", Computer Networks 51(7), 2007.

use crate::loss::loss_from_fraction;
use std::time::Duration;
use units::{BitRate, LossRatio};

/// The interval of rate increases, 10 ms (SYN).
pub const UDT_SYN_S: f64 = 0.01;

/// The parameter tau of the rate increase.
pub const UDT_TAU: i32 = 9;

/// The factor on the rate at a loss: the sending period grows by 1.125.
pub const UDT_DECREASE: f64 = 8.0 / 9.0;

/// Minimum increase in packets per SYN (UDT 4.11; draft-gg-udt-03 has 1/1500).
pub const UDT_MIN_INCREASE: f64 = 0.01;

/// `alpha = 10^(ceil(log10(L - C)) - tau) x 1500/S x 1/SYN` in packets/s, added
/// once per SYN: L is the link rate and C the sending rate in bit/s, S the packet size
/// in bytes. The minimum is [`UDT_MIN_INCREASE`] per SYN, also if C reaches L. `None`
/// for a packet size of zero.
#[must_use]
pub fn udt_alpha(link: BitRate, sending: BitRate, packet: u32) -> Option<f64> {
    let gap = link.as_f64() - sending.as_f64();
    alpha_of(gap, packet)
}

fn alpha_of(gap_bps: f64, packet: u32) -> Option<f64> {
    if packet == 0 {
        return None;
    }
    let least = UDT_MIN_INCREASE / UDT_SYN_S;
    if gap_bps < 1.0 {
        return Some(least);
    }
    let power = decade(gap_bps) - f64::from(UDT_TAU);
    Some((10f64.powf(power) * 1500.0 / f64::from(packet) / UDT_SYN_S).max(least))
}

/// `ceil(log10(gap))`, exact for powers of ten.
fn decade(gap_bps: f64) -> f64 {
    (gap_bps.log10() - 1e-12).ceil().max(0.0)
}

/// The rate increase in bit/s per second at a gap to the link rate.
fn growth_bps(gap_bps: f64, packet: u32) -> Option<f64> {
    alpha_of(gap_bps, packet).map(|alpha| alpha / UDT_SYN_S * f64::from(packet) * 8.0)
}

/// The time from one sending rate to another without loss, summed over the decades of
/// the gap. `None` for a packet size of zero, a target above the link rate, or on
/// overflow. From zero to 90 % of any link of at least 10 Mbit/s it is 7.5 s; on slower
/// links the minimum increase shortens it.
#[must_use]
pub fn udt_recovery(
    link: BitRate,
    from: BitRate,
    target: BitRate,
    packet: u32,
) -> Option<Duration> {
    if target > link {
        return None;
    }
    let mut gap = (link.as_f64() - from.as_f64()).max(0.0);
    let end = link.as_f64() - target.as_f64();
    let mut seconds = 0.0;
    // A 64-bit gap has at most 20 decades.
    for _ in 0..24 {
        if gap <= end {
            break;
        }
        // The increase is constant within a decade; the next one begins just below.
        let floor = if gap < 1.0 { 0.0 } else { 10f64.powf(decade(gap) - 1.0) };
        let next = if floor < 1.0 { end } else { floor.max(end) };
        seconds += (gap - next) / growth_bps(gap, packet)?;
        gap = next;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// The equilibrium rate under loss: each loss reduces the rate by 1/9, so `x = sqrt(9
/// alpha / (SYN p))` packets/s, at any RTT, capped at the link rate. `None` if loss or
/// packet size is zero.
#[must_use]
pub fn udt_under_loss(link: BitRate, packet: u32, loss: LossRatio) -> Option<BitRate> {
    if loss == LossRatio::NONE || packet == 0 {
        return None;
    }
    let even = |sending: f64| -> Option<f64> {
        let alpha = alpha_of(link.as_f64() - sending, packet)?;
        let packets = (9.0 * alpha / (UDT_SYN_S * loss.fraction())).sqrt();
        Some(packets * f64::from(packet) * 8.0)
    };
    // The rate that loss allows falls as the rate rises: bisect.
    let (mut low, mut high) = (0.0, link.as_f64());
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if even(middle)? > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(BitRate::from_bps_f64(f64::midpoint(low, high)))
}

/// The maximum loss at which [`udt_under_loss`] reaches `rate`; `None` if the link is too
/// slow, or packet size or rate is zero.
#[must_use]
pub fn loss_budget_udt(link: BitRate, packet: u32, rate: BitRate) -> Option<LossRatio> {
    if rate >= link || rate == BitRate::ZERO {
        return None;
    }
    let packets = rate.as_f64() / (f64::from(packet) * 8.0);
    let alpha = udt_alpha(link, rate, packet)?;
    loss_from_fraction(9.0 * alpha / (UDT_SYN_S * packets * packets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> BitRate {
        text.parse().unwrap()
    }

    #[test]
    fn increases_of_the_draft_at_1500_bytes() {
        // Packets per SYN for a gap to the link rate (draft-gg-udt-03).
        for (gap, packets) in [
            ("10gbit", 10.0),
            ("1gbit", 1.0),
            ("999mbit", 1.0),
            ("100mbit", 0.1),
            ("101mbit", 1.0),
            ("10mbit", 0.01),
            ("1mbit", 0.01),
            ("1bit", 0.01),
        ] {
            let alpha = udt_alpha(rate(gap), BitRate::ZERO, 1500).unwrap();
            assert!((alpha * UDT_SYN_S / packets - 1.0).abs() < 1e-9, "{gap}: {alpha}");
        }
        // A packet of half the size counts twice.
        let small = udt_alpha(rate("1gbit"), BitRate::ZERO, 750).unwrap();
        assert!((small - 200.0).abs() < 1e-9);
        assert_eq!(udt_alpha(rate("1gbit"), BitRate::ZERO, 0), None);
    }

    #[test]
    fn ninety_percent_take_seven_and_a_half_seconds() {
        for link in ["10mbit", "100mbit", "1gbit", "2.5gbit", "10gbit", "40gbit"] {
            let link = rate(link);
            let time = udt_recovery(link, BitRate::ZERO, link.scaled(0.9), 1500).unwrap();
            assert!((time.as_secs_f64() - 7.5).abs() < 0.01, "{link}: {time:?}");
        }
    }

    #[test]
    fn after_one_loss() {
        // 8/9 of 1 Gbit/s leave 111 Mbit/s: 11.1 at 120 Mbit/s each second and
        // 11 at 12 to 90 %, which 100 left are.
        let link = rate("1gbit");
        let time = udt_recovery(link, link.scaled(UDT_DECREASE), link.scaled(0.9), 1500).unwrap();
        assert!((time.as_secs_f64() - 11.111 / 120.0).abs() < 1e-4, "{time:?}");
        assert_eq!(udt_recovery(link, link, link.scaled(0.5), 1500), Some(Duration::ZERO));
        assert_eq!(udt_recovery(link, BitRate::ZERO, rate("2gbit"), 1500), None);
    }

    #[test]
    fn sparse_loss_on_a_gigabit() {
        for (p, mbit) in [("0.01%", 360.0), ("0.1%", 114.0), ("1%", 36.0)] {
            let rate = udt_under_loss(rate("1gbit"), 1500, p.parse().unwrap()).unwrap();
            assert!((rate.as_f64() / 1e6 / mbit - 1.0).abs() < 0.01, "{p}: {rate}");
        }
        assert_eq!(udt_under_loss(rate("1gbit"), 1500, LossRatio::NONE), None);
    }

    proptest::proptest! {
        #[test]
        fn any_numbers_are_answered(link: u64, from: u64, target: u64, packet: u32, p in 0.0..1.0_f64) {
            let [link, from, target] = [link, from, target].map(BitRate::from_bps);
            let _ = (udt_alpha(link, from, packet), udt_recovery(link, from, target, packet));
            let _ = udt_under_loss(link, packet, loss_from_fraction(p).unwrap());
            let _ = loss_budget_udt(link, packet, target);
        }

        #[test]
        fn alpha_never_rises_and_time_adds_up(a in 0.0..0.99_f64, b in 0.0..0.99_f64, mbit in 1u64..100_000) {
            let link = BitRate::from_bps(mbit * 1_000_000);
            let (low, high) = (link.scaled(a.min(b)), link.scaled(a.max(b)));
            let alpha = |c| udt_alpha(link, c, 1500).unwrap();
            proptest::prop_assert!(alpha(low) >= alpha(high));
            let time = |from, to| udt_recovery(link, from, to, 1500).unwrap().as_secs_f64();
            let (all, parts) = (time(BitRate::ZERO, high), time(BitRate::ZERO, low) + time(low, high));
            proptest::prop_assert!((all - parts).abs() < 1e-6 + all * 1e-6);
        }

        #[test]
        fn more_loss_less_rate(a in 1e-6..0.5_f64, b in 1e-6..0.5_f64, mbit in 1u64..100_000) {
            let at = |p| {
                let p = loss_from_fraction(p).unwrap();
                udt_under_loss(BitRate::from_bps(mbit * 1_000_000), 1500, p).unwrap()
            };
            proptest::prop_assert!(at(a.min(b)) >= at(a.max(b)));
        }
    }
}
