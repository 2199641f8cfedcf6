//! A policer drops what exceeds its rate where a link would queue it: the largest delivery rate is
//! then that of its full bucket, and a sender that paces at it loses what the bucket cannot take.
//! Two intervals in turn that lose a fifth of their packets, and deliver at nearly the same rate,
//! show one; that rate is held for 48 rounds, then the path is probed again (Cardwell et al.: "BBR
//! congestion control", IETF 97, "policer detection").

use crate::Ack;
use units::Nanos;

/// Rounds of an interval: at least, and after which it is given up.
const ROUNDS: std::ops::RangeInclusive<u32> = 4..=16;
/// Packets lost in an interval, as a share of those delivered in it.
const LOST: f64 = 50.0 / 256.0;
/// Two rates are the same within this share of the first, or within this many packets a second.
const SAME: f64 = 0.125;
const SAME_BYTES_A_SECOND: f64 = 500.0;
/// Shorter than this an interval has no rate, ns.
const SHORTEST_NS: u64 = 1_000_000;
/// Rounds for which the rate is held.
const HELD: u32 = 48;

/// What is known of a policer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Policer {
    /// Packets lost since the connection began.
    lost: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum State {
    /// No loss begins an interval yet.
    #[default]
    Idle,
    /// An interval runs, after one with that rate.
    Sampling { interval: Interval, before: Option<f64> },
    /// The rate, packets a second, and the rounds for which it has been held.
    Held { rate: f64, rounds: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Interval {
    at: Nanos,
    delivered: u64,
    lost: u64,
    rounds: u32,
}

impl Policer {
    /// The policer's rate, packets a second, where there seems to be one.
    pub(super) const fn rate(&self) -> Option<f64> {
        match self.state {
            State::Held { rate, .. } => Some(rate),
            State::Idle | State::Sampling { .. } => None,
        }
    }

    /// The losses were spurious.
    pub(super) fn forget(&mut self) {
        self.state = State::Idle;
    }

    /// Takes an acknowledgement; `true` where the path is to be probed again. `probing`: whether the
    /// sender probes for bandwidth.
    pub(super) fn on_ack(
        &mut self,
        ack: &Ack,
        mss: u64,
        (round_start, app_limited, probing): (bool, bool, bool),
    ) -> bool {
        self.lost += ack.newly_lost;
        let has_losses = ack.newly_lost > 0;
        match self.state {
            State::Held { rate, rounds } => {
                let rounds = rounds + u32::from(round_start && probing);
                let is_over = rounds >= HELD;
                self.state = if is_over { State::Idle } else { State::Held { rate, rounds } };
                return is_over;
            }
            State::Idle if has_losses => {
                let interval = self.interval(ack);
                self.state = State::Sampling { interval, before: None };
            }
            State::Idle => return false,
            State::Sampling { .. } => {}
        }
        if let State::Sampling { interval, before } = self.state {
            let rounds = interval.rounds + u32::from(round_start);
            let interval = Interval { rounds, ..interval };
            self.state = if app_limited || rounds > *ROUNDS.end() {
                State::Idle
            } else if has_losses && ROUNDS.contains(&rounds) {
                self.ended(interval, before, ack, mss)
            } else {
                State::Sampling { interval, before }
            };
        }
        false
    }

    fn interval(&self, ack: &Ack) -> Interval {
        Interval { at: ack.now, delivered: ack.delivered, lost: self.lost, rounds: 0 }
    }

    /// The state where a loss may end the interval.
    fn ended(&self, interval: Interval, before: Option<f64>, ack: &Ack, mss: u64) -> State {
        let delivered = ack.delivered.saturating_sub(interval.delivered) as f64;
        let lost = self.lost.saturating_sub(interval.lost) as f64;
        let elapsed_ns = ack.now.nanos_since(interval.at);
        if delivered == 0.0 || lost < LOST * delivered || elapsed_ns < SHORTEST_NS {
            return State::Sampling { interval, before };
        }
        let rate = delivered * 1e9 / elapsed_ns as f64;
        let same = |before: &f64| {
            let least = SAME_BYTES_A_SECOND / mss as f64;
            (rate - before).abs() <= (SAME * before).max(least)
        };
        match before.filter(same) {
            Some(before) => State::Held { rate: f64::midpoint(rate, before), rounds: 0 },
            None => State::Sampling { interval: self.interval(ack), before: Some(rate) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;

    const MSS: u64 = 1448;

    /// An acknowledgement of a round of 100 ms in which that many packets were delivered and lost.
    fn round(policer: &mut Policer, clock: &mut (u64, u64), delivered: u64, lost: u64) -> bool {
        clock.0 += 100_000_000;
        clock.1 += delivered;
        let ack = Ack {
            now: Nanos(clock.0),
            newly_delivered: delivered,
            newly_lost: lost,
            delivered: clock.1,
            ..crate::driver::ack()
        };
        assert_eq!(ack.phase, Phase::Open);
        policer.on_ack(&ack, MSS, (true, false, true))
    }

    #[test]
    fn two_intervals_at_one_rate_with_many_losses_show_a_policer() {
        let (mut policer, mut clock) = (Policer::default(), (0, 0));
        let mut rounds = 0;
        while policer.rate().is_none() {
            assert!(!round(&mut policer, &mut clock, 100, 30));
            rounds += 1;
        }
        // The first loss begins an interval of four rounds, and its end another.
        assert_eq!((rounds, policer.rate()), (8, Some(1000.0)));
        let held = (1..).find(|_| round(&mut policer, &mut clock, 100, 0)).unwrap();
        assert_eq!((held, policer.rate()), (HELD, None), "the path is probed again");
    }

    #[test]
    fn rates_that_differ_and_few_losses_show_none() {
        let (mut policer, mut clock) = (Policer::default(), (0, 0));
        for index in 0..200u32 {
            let delivered = if index / 4 % 2 == 0 { 100 } else { 150 };
            round(&mut policer, &mut clock, delivered, delivered / 3);
        }
        assert_eq!(policer.rate(), None, "each interval has another rate");
        let (mut policer, mut clock) = (Policer::default(), (0, 0));
        for _ in 0..200 {
            round(&mut policer, &mut clock, 100, 15);
        }
        assert_eq!(policer.rate(), None, "fewer than a fifth are lost");
    }
}
