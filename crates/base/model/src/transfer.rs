//! The duration of a transfer: handshake, rounds of slow start, then the steady rate of
//! the congestion control.

use crate::{bbr, bdp, cubic, mathis, window_rate};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// The sender's congestion control.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681; steady rate: [`mathis`].
    Reno,
    /// RFC 9438; steady rate: [`cubic`].
    Cubic,
    /// Version 1; steady rate: [`bbr()`].
    Bbr,
}

impl Congestion {
    /// All of them.
    pub const ALL: [Congestion; 3] = [Congestion::Reno, Congestion::Cubic, Congestion::Bbr];

    /// Its name in Linux.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Congestion::Reno => "reno",
            Congestion::Cubic => "cubic",
            Congestion::Bbr => "bbr",
        }
    }

    /// Its steady rate: the model's, capped at the link's and the window's. `None` without
    /// a model (BBR above 20 % loss) or with an RTT of zero.
    #[must_use]
    pub fn steady(self, transfer: &Transfer) -> Option<BitRate> {
        let &Transfer { link, rtt, loss, mss, window, .. } = transfer;
        let free = match self {
            _ if loss == LossRatio::NONE => link,
            Congestion::Reno => mathis(mss, rtt, loss)?,
            Congestion::Cubic => cubic(mss, rtt, loss)?,
            Congestion::Bbr => bbr(link, loss)?,
        };
        let bound = match window {
            Some(window) => window_rate(window, rtt)?,
            None => BitRate::from_bps(u64::MAX),
        };
        Some(free.min(link).min(bound))
    }
}

/// A transfer and its path.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Payload to send.
    pub size: ByteCount,
    /// The link rate, in payload.
    pub link: BitRate,
    /// The RTT.
    pub rtt: Rtt,
    /// Random loss.
    pub loss: LossRatio,
    /// Payload of a full segment.
    pub mss: ByteCount,
    /// The receive window, if it limits the sender.
    pub window: Option<ByteCount>,
    /// Initial window in segments (RFC 6928: 10).
    pub initial: u32,
}

/// The phases of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct RampUp {
    /// RTTs of slow start.
    pub rounds: u32,
    /// Bytes sent in slow start.
    pub slow_start: ByteCount,
    /// The steady rate after it.
    pub steady: BitRate,
    /// Seconds from the first SYN to the last ACK.
    pub seconds: f64,
    /// Size over duration.
    pub mean: BitRate,
    /// Time in seconds and bytes acknowledged by then, for linear interpolation.
    pub points: Vec<(f64, f64)>,
}

/// Slow start doubles the window each RTT (RFC 5681, section 3.1; so does BBR's startup
/// at a gain of 2/ln 2) until it fills the path or the receive window, or, except with
/// BBR, until the expected first loss: `(1 - (1-p)^n) (1-p)/p + 1` of n packets (Cardwell, Savage,
/// Anderson, "Modeling TCP latency", INFOCOM 2000). Then the rate is
/// steady. `None` if a value is zero or there is no model.
#[must_use]
pub fn transfer(asked: &Transfer, congestion: Congestion) -> Option<RampUp> {
    let &Transfer { size, link, rtt, loss, mss, window, initial } = asked;
    let zero = [size, mss].contains(&ByteCount::ZERO) || rtt == Rtt::ZERO || initial == 0;
    if zero || link == BitRate::ZERO || window == Some(ByteCount::ZERO) {
        return None;
    }
    let steady = congestion.steady(asked).filter(|rate| *rate > BitRate::ZERO)?;
    let full = window.map_or(bdp(link, rtt), |window| window.min(bdp(link, rtt))).as_f64();
    let before_loss = match congestion {
        Congestion::Bbr => f64::INFINITY,
        Congestion::Reno | Congestion::Cubic => {
            packets_before_loss(size.as_f64() / mss.as_f64(), loss.fraction()) * mss.as_f64()
        }
    };
    let (round, total) = (rtt.secs_f64(), size.as_f64());
    let mut cwnd = f64::from(initial) * mss.as_f64();
    let (mut sent, mut rounds) = (0.0, 0u32);
    let mut points = vec![(0.0, 0.0), (round, 0.0)];
    let rate = loop {
        let left = (total - sent).min(before_loss - sent);
        if cwnd >= full || left <= 0.0 {
            break steady;
        }
        if cwnd >= total - sent && total <= before_loss {
            // The last window is only sent, without a further RTT.
            break link;
        }
        sent += cwnd.min(left);
        rounds += 1;
        cwnd *= 2.0;
        points.push((f64::from(rounds + 1) * round, sent));
    };
    let begins = f64::from(rounds + 1) * round;
    let takes = ((total - sent) * 8.0 / rate.as_f64()).max(0.0);
    let seconds = begins + takes + if sent < total { round } else { 0.0 };
    if sent < total {
        points.push((begins + round, sent));
        points.push((seconds, total));
    }
    let mean = BitRate::from_bps_f64(total * 8.0 / seconds);
    Some(RampUp { rounds, slow_start: ByteCount::from_f64(sent), steady, seconds, mean, points })
}

/// The expected number of packets up to and including the first loss, of `n`.
fn packets_before_loss(n: f64, p: f64) -> f64 {
    if p <= 0.0 {
        return f64::INFINITY;
    }
    let some_lost = -(n * (-p).ln_1p()).exp_m1();
    some_lost * (1.0 - p) / p + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(size: &str, link: &str, rtt: &str, loss: &str) -> Transfer {
        Transfer {
            size: size.parse().unwrap(),
            link: link.parse().unwrap(),
            rtt: rtt.parse().unwrap(),
            loss: loss.parse().unwrap(),
            mss: ByteCount::from_bytes(1448),
            window: None,
            initial: 10,
        }
    }

    #[test]
    fn a_small_one_is_all_slow_start() {
        // 14480 B go in the first window: handshake, then an RTT.
        let course = transfer(&asked("14480", "1gbit", "100ms", "0"), Congestion::Cubic).unwrap();
        assert_eq!(course.rounds, 0);
        assert!((course.seconds - 0.2).abs() < 1e-3, "{}", course.seconds);
        // One byte more takes another.
        let course = transfer(&asked("14481", "1gbit", "100ms", "0"), Congestion::Cubic).unwrap();
        assert_eq!(course.rounds, 1);
        assert!((course.seconds - 0.3).abs() < 1e-3, "{}", course.seconds);
    }

    #[test]
    fn a_clean_path_is_full_after_the_bdp() {
        // 100 Mbit/s x 173 ms: 8 rounds carry 14480 x 255 = 3.69 MB, then the link.
        let asked = asked("1GB", "100mbit", "173ms", "0");
        for congestion in Congestion::ALL {
            let course = transfer(&asked, congestion).unwrap();
            assert_eq!((course.rounds, course.slow_start.bytes()), (8, 14_480 * 255));
            let expected = 9.0 * 0.173 + (1e9 - 14_480.0 * 255.0) * 8e-8 + 0.173;
            assert!((course.seconds - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn a_window_of_64_kib_is_what_it_takes() {
        let asked = Transfer {
            window: Some(ByteCount::from_bytes(65_536)),
            ..asked("1GB", "100mbit", "173ms", "0")
        };
        let course = transfer(&asked, Congestion::Cubic).unwrap();
        assert_eq!(course.steady, BitRate::from_bps(3_030_566));
        assert!((2639.0..2641.0).contains(&course.seconds), "{}", course.seconds);
    }

    #[test]
    fn loss_ends_slow_start_but_not_bbrs() {
        let asked = asked("1GB", "1gbit", "100ms", "0.1%");
        let cubic = transfer(&asked, Congestion::Cubic).unwrap();
        // 1000 packets are expected before the first loss.
        assert_eq!(cubic.slow_start.bytes() / 1448, 1000);
        assert_eq!(cubic.steady, super::cubic(asked.mss, asked.rtt, asked.loss).unwrap());
        let bbr = transfer(&asked, Congestion::Bbr).unwrap();
        assert_eq!(bbr.steady, BitRate::from_bps(999_000_000));
        assert!(bbr.seconds * 50.0 < cubic.seconds);
        let none = Transfer { loss: "30%".parse().unwrap(), ..asked };
        assert_eq!(transfer(&none, Congestion::Bbr), None);
    }

    #[test]
    fn nothing_of_nothing() {
        let good = asked("1MB", "1gbit", "100ms", "0");
        for bad in [
            Transfer { size: ByteCount::ZERO, ..good },
            Transfer { link: BitRate::ZERO, ..good },
            Transfer { rtt: Rtt::ZERO, ..good },
            Transfer { mss: ByteCount::ZERO, ..good },
            Transfer { initial: 0, ..good },
            Transfer { window: Some(ByteCount::ZERO), ..good },
        ] {
            assert_eq!(transfer(&bad, Congestion::Reno), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_transfer_is_answered(size: u64, link: u64, rtt: u64, p in 0.0..1.0_f64, mss: u64,
                                    window: Option<u64>, initial: u32) {
            let asked = Transfer {
                size: ByteCount::from_bytes(size), link: BitRate::from_bps(link),
                rtt: Rtt::from_nanos(rtt), loss: crate::loss_from_fraction(p).unwrap(),
                mss: ByteCount::from_bytes(mss), window: window.map(ByteCount::from_bytes), initial,
            };
            for congestion in Congestion::ALL {
                if let Some(course) = transfer(&asked, congestion) {
                    proptest::prop_assert!(course.seconds.is_finite() && course.seconds > 0.0);
                    proptest::prop_assert!(course.points.iter().all(|p| p.0.is_finite() && p.1.is_finite()));
                    proptest::prop_assert!(course.points.windows(2).all(|p| p[0].0 <= p[1].0));
                }
            }
        }

        #[test]
        fn more_takes_longer(kb in 1u64..100_000_000, more in 1u64..1_000_000, ms in 1u64..1000,
                             p in 0.0..0.1_f64) {
            let path = Transfer {
                rtt: Rtt::from_micros(ms * 1000), loss: crate::loss_from_fraction(p).unwrap(),
                ..asked("1MB", "1gbit", "1ms", "0")
            };
            for congestion in Congestion::ALL {
                let time = |kb: u64, path: Transfer| {
                    let size = ByteCount::from_bytes(kb * 1000);
                    transfer(&Transfer { size, ..path }, congestion).unwrap().seconds
                };
                let clean = Transfer { loss: LossRatio::NONE, ..path };
                proptest::prop_assert!(time(kb, clean) <= time(kb + more, clean) + 1e-9);
                proptest::prop_assert!(time(kb, path) >= time(kb, clean) * 0.999);
            }
        }
    }
}
