//! A window over time: sent at the link rate, acknowledged an RTT later, and followed by the next one as
//! the acknowledgements arrive (RFC 9293, section 3.8; RFC 7323, section 1.1).
//!
//! Half of the RTT is each direction's. Without loss, queue or headers, and every byte is
//! acknowledged as it arrives.

use crate::bdp;
use units::{BitRate, ByteCount, Rtt};

/// Maximum number of windows in a drawing.
const MAX_ROUNDS: usize = 16;

/// Data in flight per RTT, as a window or a buffer bounds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowInFlight {
    /// Of all streams together.
    pub window: ByteCount,
    /// From a byte to its acknowledgement.
    pub rtt: Rtt,
}

/// The times of windows that a sender transmits one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlidingWindow {
    /// The time that the link takes for the window, in seconds.
    sending_s: f64,
    rtt_s: f64,
}

/// A time from one instant to another, in seconds since the first byte was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Its start.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
}

impl Span {
    /// The same, later.
    fn after(self, seconds: f64) -> Self {
        Span { from_s: self.from_s + seconds, to_s: self.to_s + seconds }
    }

    /// Its duration in seconds.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// What happens to one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowRound {
    /// The sender transmits, at most for an RTT: then it sends the next window.
    pub sent: Span,
    /// The data arrives, and the receiver acknowledges it.
    pub received: Span,
    /// The acknowledgements arrive.
    pub acknowledged: Span,
    /// The sender waits for the first acknowledgement; `None` if it arrives before the window
    /// has been sent.
    pub idle: Option<Span>,
}

impl SlidingWindow {
    /// A window on a link of `rate`; `None` if one of them, or the RTT, is zero.
    #[must_use]
    pub fn new(rate: BitRate, rtt: Rtt, window: ByteCount) -> Option<Self> {
        let is_valid = rate > BitRate::ZERO && rtt > Rtt::ZERO && window > ByteCount::ZERO;
        is_valid.then(|| SlidingWindow {
            sending_s: window.as_f64() * 8.0 / rate.as_f64(),
            rtt_s: rtt.secs_f64(),
        })
    }

    /// A window whose transmission takes a share of the RTT, for a link of unknown rate; `None` for
    /// an RTT of zero, and for a share that is no positive number.
    #[must_use]
    pub fn of_share(rtt: Rtt, share: f64) -> Option<Self> {
        let rtt_s = rtt.secs_f64();
        let is_valid = rtt > Rtt::ZERO && share > 0.0 && share.is_finite();
        is_valid.then_some(SlidingWindow { sending_s: share * rtt_s, rtt_s })
    }

    /// The time that the link takes for the window, in seconds.
    #[must_use]
    pub fn sending_s(&self) -> f64 {
        self.sending_s
    }

    /// The RTT in seconds.
    #[must_use]
    pub fn rtt_s(&self) -> f64 {
        self.rtt_s
    }

    /// The share of time in which the sender waits: `1 - window / BDP`, zero for a window of at
    /// least the BDP.
    #[must_use]
    pub fn idle_share(&self) -> f64 {
        (1.0 - self.sending_s / self.rtt_s).max(0.0)
    }

    /// The windows whose transmission begins before `until_s`, at most 16.
    #[must_use]
    pub fn rounds(&self, until_s: f64) -> Vec<WindowRound> {
        let busy = self.sending_s.min(self.rtt_s);
        let starts = (0u32..).map(|n| f64::from(n) * self.rtt_s).take_while(|at| *at < until_s);
        starts
            .take(MAX_ROUNDS)
            .map(|at| {
                let sent = Span { from_s: at, to_s: at + busy };
                let acknowledged = sent.after(self.rtt_s);
                let idle = Span { from_s: sent.to_s, to_s: acknowledged.from_s };
                WindowRound {
                    sent,
                    received: sent.after(self.rtt_s / 2.0),
                    acknowledged,
                    idle: Some(idle).filter(|_| self.sending_s < self.rtt_s),
                }
            })
            .collect()
    }
}

impl WindowInFlight {
    /// Its times on a link of `rate`; `None` if the link is not faster than the window allows.
    #[must_use]
    pub fn waiting(&self, rate: BitRate) -> Option<SlidingWindow> {
        let is_short = self.window < bdp(rate, self.rtt);
        SlidingWindow::new(rate, self.rtt, self.window).filter(|_| is_short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{window_for, window_rate};

    fn of(rate: &str, rtt: &str, window: u64) -> SlidingWindow {
        let window = ByteCount::from_bytes(window);
        SlidingWindow::new(rate.parse().unwrap(), rtt.parse().unwrap(), window).unwrap()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    #[test]
    fn frankfurt_to_las_vegas_waits_97_percent_of_the_time() {
        let it = of("100mbit", "173ms", 64 << 10);
        assert!((it.sending_s() - 0.005_242_88).abs() < 1e-12);
        assert!((it.idle_share() - (1.0 - 65_536.0 / 2_162_500.0)).abs() < 1e-12);
        let rounds = it.rounds(2.5 * 0.173);
        assert_eq!(rounds.len(), 3);
        let second = rounds[1];
        assert!(near(second.sent.from_s, 0.173) && near(second.sent.to_s, 0.178_242_88));
        assert!(near(second.received.from_s, 0.2595), "{second:?}");
        assert!(near(second.acknowledged.from_s, 0.346), "{second:?}");
        assert!(near(second.idle.unwrap().from_s, 0.178_242_88), "{second:?}");
    }

    #[test]
    fn twice_the_propagation_time_is_more_idle_time() {
        let [near, far] = ["173ms", "346ms"].map(|rtt| of("100mbit", rtt, 64 << 10));
        let idle = |it: &SlidingWindow| it.rounds(0.1)[0].idle.unwrap().length_s();
        assert!((idle(&far) - idle(&near) - 0.173).abs() < 1e-12);
        assert!(far.idle_share() > near.idle_share());
    }

    #[test]
    fn a_window_of_the_bdp_or_more_never_waits() {
        for window in [2_162_500, 2_162_501, 100_000_000] {
            let it = of("100mbit", "173ms", window);
            assert!(it.idle_share() == 0.0, "{window}");
            let rounds = it.rounds(0.5);
            assert!(rounds.iter().all(|round| round.idle.is_none()));
            let gapless = |pair: &[WindowRound]| near(pair[0].sent.to_s, pair[1].sent.from_s);
            assert!(rounds.windows(2).all(gapless), "{rounds:?}");
        }
        let full = WindowInFlight {
            window: ByteCount::from_bytes(2_162_500),
            rtt: "173ms".parse().unwrap(),
        };
        assert_eq!(full.waiting("100mbit".parse().unwrap()), None);
        assert!(full.waiting("101mbit".parse().unwrap()).is_some());
    }

    #[test]
    fn without_a_rate_a_window_or_an_rtt_there_is_nothing() {
        let (rate, rtt) = ("1mbit".parse().unwrap(), "1ms".parse().unwrap());
        let window = ByteCount::from_bytes(1);
        assert_eq!(SlidingWindow::new(BitRate::ZERO, rtt, window), None);
        assert_eq!(SlidingWindow::new(rate, Rtt::ZERO, window), None);
        assert_eq!(SlidingWindow::new(rate, rtt, ByteCount::ZERO), None);
        assert_eq!(SlidingWindow::of_share(Rtt::ZERO, 0.1), None);
        for share in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(SlidingWindow::of_share(rtt, share), None);
        }
        assert!((SlidingWindow::of_share(rtt, 0.25).unwrap().idle_share() - 0.75).abs() < 1e-12);
    }

    proptest::proptest! {
        /// Over whole RTTs, the sender transmits `window / RTT`, at most the rate, and the rest
        /// of the time is idle.
        #[test]
        fn the_times_are_those_of_the_equations(
            bps in 1_000u64..1_000_000_000_000, us in 1u64..100_000_000, bytes in 1u64..1 << 30,
        ) {
            let (rate, rtt) = (BitRate::from_bps(bps), Rtt::from_micros(us));
            let window = ByteCount::from_bytes(bytes);
            let it = SlidingWindow::new(rate, rtt, window).unwrap();
            let share = window.as_f64() * 8.0 / (rate.as_f64() * rtt.secs_f64());
            proptest::prop_assert!(near(it.idle_share(), (1.0 - share).max(0.0)));
            let rounds = it.rounds(3.5 * rtt.secs_f64());
            proptest::prop_assert_eq!(rounds.len(), 4);
            for (round, next) in rounds.iter().zip(&rounds[1..]) {
                let idle = round.idle.map_or(0.0, |idle| idle.length_s());
                proptest::prop_assert!(near(idle / rtt.secs_f64(), it.idle_share()));
                proptest::prop_assert!(near(round.sent.length_s() + idle, rtt.secs_f64()));
                // The first acknowledgement lets the next window go.
                proptest::prop_assert!(near(round.acknowledged.from_s, next.sent.from_s));
                let middle = (round.sent.from_s + round.acknowledged.from_s) / 2.0;
                proptest::prop_assert!(near(round.received.from_s, middle));
                let sent = rate.as_f64() * round.sent.length_s() / rtt.secs_f64();
                let allowed = window_rate(window, rtt).unwrap().as_f64().min(rate.as_f64());
                proptest::prop_assert!((sent - allowed).abs() <= 1.0 + 1e-9 * sent);
            }
            let waits = WindowInFlight { window, rtt }.waiting(rate).is_some();
            proptest::prop_assert!(!waits || it.idle_share() > 0.0);
            proptest::prop_assert!(waits || window.plus(ByteCount::from_bytes(1)) >= window_for(rate, rtt));
        }

        #[test]
        fn any_numbers_give_bounded_times(a: u64, b: u64, c: u64, until in proptest::num::f64::ANY) {
            let all = (BitRate::from_bps(a), Rtt::from_nanos(b), ByteCount::from_bytes(c));
            if let Some(it) = SlidingWindow::new(all.0, all.1, all.2) {
                proptest::prop_assert!(it.rounds(until).len() <= MAX_ROUNDS);
                proptest::prop_assert!((0.0..=1.0).contains(&it.idle_share()));
            }
        }
    }
}
