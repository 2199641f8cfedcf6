//! Mean rates of Reno and CUBIC under independent losses, alone and beside a window or a link.
//!
//! The published equations are those of one loss in every `1/p` packets ([`mathis`],
//! [`cubic_region`]). With independent losses the windows between them differ, of which the mean is
//! larger; Linux's CUBIC is Reno-friendly and lowers its plateau after losses in quick succession
//! (fast convergence: RFC 9438, sections 4.3 and 4.7). The constants here are those of a simulation
//! of these rules by rounds, which the tests repeat.

use crate::{Congestion, Transfer, cubic_region, mathis};
use units::{BitRate, LossRatio};

/// Mean rate under independent losses over that of [`cubic_region`]: 1.12 to 1.15.
const CUBIC_FACTOR: f64 = 1.14;

/// The same over that of [`mathis`]: 1.01 to 1.07.
const RENO_FACTOR: f64 = 1.04;

/// Exponent by which the two regions of CUBIC meet: where both have the same rate, the mean is 11 %
/// above it, as one is faster after a loss and the other one later.
const REGIONS: f64 = 6.0;

/// Exponents by which a mean rate meets a limit. A link of one BDP of queue: 17 % below both where
/// they are equal. A window, which keeps no queue for the time after a loss: 21 %.
const BESIDE_LINK: f64 = 4.0;
const BESIDE_WINDOW: f64 = 3.0;

/// The mean rate of one connection that nothing else limits. `None` for BBR, without loss, and for an
/// RTT or an MSS of zero.
pub(crate) fn free_rate(path: &Transfer, congestion: Congestion) -> Option<BitRate> {
    let &Transfer { mss, rtt, loss, .. } = path;
    if loss == LossRatio::NONE {
        return None;
    }
    let reno = mathis(mss, rtt, loss)?.scaled(RENO_FACTOR);
    match congestion {
        Congestion::Bbr => None,
        Congestion::Reno => Some(reno),
        Congestion::Cubic => {
            let own = cubic_region(mss, rtt, loss)?.scaled(CUBIC_FACTOR);
            let sum = own.as_f64().powf(REGIONS) + reno.as_f64().powf(REGIONS);
            let mean = BitRate::from_bps_f64(sum.powf(1.0 / REGIONS));
            // Rates beyond any link overflow the powers.
            Some(if sum.is_finite() { mean } else { own.max(reno) })
        }
    }
}

/// The goodput of `connections` with the mean `free` rate in sum, behind their windows and a link.
/// The sum of several varies less, by the square root of their number.
pub(crate) fn beside(
    free: BitRate,
    window: Option<BitRate>,
    link: BitRate,
    connections: u32,
) -> BitRate {
    let steadier = f64::from(connections.max(1)).sqrt();
    let behind = window.map_or(free, |window| meet(free, window, BESIDE_WINDOW * steadier));
    meet(behind, link, BESIDE_LINK * steadier)
}

/// `(a^-k + b^-k)^(-1/k)`, at most the smaller one.
fn meet(a: BitRate, b: BitRate, k: f64) -> BitRate {
    let (less, more) = (a.min(b), a.max(b));
    if less == BitRate::ZERO {
        return less;
    }
    let ratio = less.as_f64() / more.as_f64();
    less.scaled((1.0 + ratio.powf(k)).powf(-1.0 / k))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{ByteCount, Rtt};

    const MSS: ByteCount = ByteCount::from_bytes(1448);
    /// Parts of a round.
    const PARTS: f64 = 4.0;
    /// Linux's beta of CUBIC, 717/1024.
    const BETA: f64 = 717.0 / 1024.0;

    /// SplitMix64, as numbers from 0 to 1.
    fn next(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// What bounds the window of a simulated sender, segments.
    #[derive(Clone, Copy)]
    enum Beside {
        Nothing,
        /// A window of so many.
        Window(f64),
        /// A link with a BDP of so many, and a queue of as many.
        Link(f64),
    }

    /// The mean number of segments in an RTT of `rtt` s under random loss of `p`, by rounds in parts.
    fn simulated(congestion: Congestion, rtt: f64, p: f64, beside: Beside) -> f64 {
        let is_cubic = congestion == Congestion::Cubic;
        let (mut state, mut sent, mut time) = (7, 0.0, 0.0);
        let (mut window, mut plateau, mut friendly) = (10.0_f64, 0.0_f64, 0.0_f64);
        let (mut since, mut k, mut recovery) = (None, 0.0, 0.0);
        for _ in 0..120_000 {
            let queueing = match beside {
                Beside::Link(bdp) => (window / bdp).max(1.0),
                _ => 1.0,
            };
            let part = window / PARTS;
            sent += part;
            time += rtt * queueing / PARTS;
            if recovery > 0.0 {
                recovery -= 1.0;
                continue;
            }
            let overflows = matches!(beside, Beside::Link(bdp) if window >= 2.0 * bdp);
            if overflows || next(&mut state) < 1.0 - (1.0 - p).powf(part) {
                let is_soon = is_cubic && window < plateau;
                plateau = if is_soon { window * (1.0 + BETA) / 2.0 } else { window };
                window = (window * if is_cubic { BETA } else { 0.5 }).max(2.0);
                (since, recovery) = (None, PARTS);
                continue;
            }
            if matches!(beside, Beside::Window(most) if window >= most) {
                continue;
            }
            if is_cubic {
                let elapsed = match since {
                    Some(elapsed) => elapsed + rtt * queueing / PARTS,
                    None => {
                        k = ((plateau - window).max(0.0) / crate::CUBIC_C).cbrt();
                        (plateau, friendly) = (plateau.max(window), window);
                        rtt * queueing / PARTS
                    }
                };
                since = Some(elapsed);
                let target = plateau + crate::CUBIC_C * (elapsed + rtt - k).powi(3);
                let step = (target - window).min(window / 2.0) / PARTS;
                window += if step > 0.0 { step } else { part / (100.0 * window) };
                friendly += part / (window * 15.0 / 8.0);
                window = window.max(friendly);
            } else {
                window += part / window;
            }
        }
        sent / time * rtt
    }

    fn path(rtt: f64, p: f64) -> Transfer {
        Transfer {
            size: ByteCount::ZERO,
            link: BitRate::from_bps(u64::MAX),
            rtt: Rtt::from_micros((rtt * 1e6) as u64),
            loss: crate::loss_from_fraction(p).unwrap(),
            mss: MSS,
            window: None,
            initial: 10,
        }
    }

    /// Segments in an RTT.
    fn segments(rate: BitRate, rtt: f64) -> f64 {
        rate.as_f64() * rtt / (8.0 * MSS.as_f64())
    }

    #[test]
    fn the_mean_is_that_of_the_rules_by_rounds() {
        for rtt in [0.02, 0.05, 0.1, 0.173, 0.25] {
            for p in [1e-4, 1e-3, 3e-3, 1e-2] {
                for congestion in [Congestion::Reno, Congestion::Cubic] {
                    let found = segments(free_rate(&path(rtt, p), congestion).unwrap(), rtt);
                    let expected = simulated(congestion, rtt, p, Beside::Nothing);
                    let off = found / expected - 1.0;
                    assert!(off.abs() < 0.07, "{congestion:?} {rtt} {p}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn a_limit_that_is_near_lowers_the_mean() {
        let (rtt, p) = (0.173, 1e-3);
        for congestion in [Congestion::Reno, Congestion::Cubic] {
            let free = free_rate(&path(rtt, p), congestion).unwrap();
            for share in [0.5, 0.7, 1.0, 1.4, 2.0, 4.0] {
                let limit = free.scaled(1.0 / share);
                let most = segments(limit, rtt);
                let beyond = BitRate::from_bps(u64::MAX / 2);
                for (found, simulated_beside) in [
                    (beside(free, None, limit, 1), Beside::Link(most)),
                    (beside(free, Some(limit), beyond, 1), Beside::Window(most)),
                ] {
                    let found = segments(found, rtt);
                    let expected = simulated(congestion, rtt, p, simulated_beside);
                    let off = found / expected - 1.0;
                    assert!(off.abs() < 0.09, "{congestion:?} {share}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn no_limit_is_exceeded() {
        let rate = |mbit: u64| BitRate::from_bps(mbit * 1_000_000);
        assert_eq!(beside(rate(0), Some(rate(1)), rate(1), 1), rate(0));
        assert!(beside(rate(10), Some(rate(10)), rate(100), 1) < rate(8));
        assert!(beside(rate(10), Some(rate(10)), rate(100), 16) > rate(9));
        assert!(beside(rate(1000), Some(rate(10)), rate(100), 1) <= rate(10));
        assert_eq!(free_rate(&path(0.1, 0.0), Congestion::Cubic), None);
        assert_eq!(free_rate(&path(0.1, 0.01), Congestion::Bbr), None);
    }
}
