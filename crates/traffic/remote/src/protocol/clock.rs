//! The difference of two hosts' clocks, from requests and their replies.
//!
//! A request that was sent at `a` and answered at `b`, with the agent's time `t` in the reply,
//! was answered by the agent some time between: the agent's clock is ahead by `t - (a + b) / 2`,
//! give or take `(b - a) / 2` (Cristian 1989, and NTP's clock filter, RFC 5905 section 10: the
//! exchange with the shortest round trip is the most precise one). Both clocks are monotonic, and
//! drift: the uncertainty of an older exchange grows.

use std::collections::VecDeque;
use std::time::Duration;

/// How fast two clocks may drift apart, as a share of time: twice the 50 ppm of a usual crystal.
const DRIFT: f64 = 100e-6;

/// Exchanges that are kept.
const KEPT: usize = 64;

/// One request and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// When the request was sent, by the clock here.
    pub sent: Duration,
    /// When the reply was there, by the clock here.
    pub received: Duration,
    /// The agent's clock in the reply.
    pub remote: Duration,
}

/// What the clock of an agent reads, compared with the one here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// The agent's clock minus the clock here, in ns.
    pub ns: i64,
    /// The most by which that can be wrong, in ns.
    pub uncertainty_ns: u64,
}

/// The exchanges with one agent.
#[derive(Debug, Clone, Default)]
pub struct Clock(VecDeque<Probe>);

impl Clock {
    /// Adds an exchange.
    pub fn add(&mut self, probe: Probe) {
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(probe);
    }

    /// The most precise estimate at `now`, by the clock here; `None` without an exchange, and if
    /// the agent's time makes no sense.
    #[must_use]
    pub fn offset(&self, now: Duration) -> Option<Offset> {
        let offsets = self.0.iter().filter_map(|probe| probe.offset(now));
        offsets.min_by_key(|offset| offset.uncertainty_ns)
    }

    /// The shortest round trip of an exchange.
    #[must_use]
    pub fn shortest(&self) -> Option<Duration> {
        self.0.iter().map(|probe| probe.received.saturating_sub(probe.sent)).min()
    }
}

impl Probe {
    fn offset(&self, now: Duration) -> Option<Offset> {
        let round_trip = self.received.checked_sub(self.sent)?;
        let middle = nanos(self.sent + round_trip / 2)?;
        let age = now.saturating_sub(self.received).as_secs_f64();
        let half = round_trip.as_secs_f64() / 2.0;
        Some(Offset {
            ns: nanos(self.remote)?.checked_sub(middle)?,
            // Half a nanosecond was lost above.
            uncertainty_ns: ((half + age * DRIFT) * 1e9).ceil() as u64 + 1,
        })
    }
}

impl Offset {
    /// The clock of one host against itself.
    pub const NONE: Offset = Offset { ns: 0, uncertainty_ns: 0 };

    /// A time here by the agent's clock; `None` before that began.
    #[must_use]
    pub fn to_remote(self, here: Duration) -> Option<Duration> {
        let ns = nanos(here)?.checked_add(self.ns)?;
        u64::try_from(ns).ok().map(Duration::from_nanos)
    }

    /// A time of the agent's clock by the clock here, in ns: negative before that began.
    #[must_use]
    pub fn to_here_ns(self, remote: Duration) -> Option<i64> {
        nanos(remote)?.checked_sub(self.ns)
    }
}

fn nanos(time: Duration) -> Option<i64> {
    i64::try_from(time.as_nanos()).ok()
}

/// When a flow began that was to begin at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// By how much it began later, in ns of the clock here.
    pub late_ns: i64,
    /// The most by which that can be wrong: the uncertainty of its host's clock.
    pub uncertainty_ns: u64,
}

/// How precisely flows began together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    /// How much later the last one began than the first one, in ns.
    pub ns: u64,
    /// The most by which that can be wrong, in ns.
    pub uncertainty_ns: u64,
}

/// How precisely flows began together; `None` for fewer than two.
#[must_use]
pub fn start_skew(started: &[Started]) -> Option<Skew> {
    let first = started.iter().min_by_key(|one| one.late_ns)?;
    let last = started.iter().max_by_key(|one| one.late_ns)?;
    (started.len() > 1).then(|| Skew {
        ns: last.late_ns.abs_diff(first.late_ns),
        uncertainty_ns: first.uncertainty_ns.saturating_add(last.uncertainty_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn probe(sent: u64, there: u64, back: u64, ahead: u64) -> Probe {
        let remote = ms(sent + there + ahead);
        Probe { sent: ms(sent), received: ms(sent + there + back), remote }
    }

    #[test]
    fn the_shortest_round_trip_decides_and_its_half_is_the_uncertainty() {
        let mut clock = Clock::default();
        assert_eq!(clock.offset(ms(0)), None);
        // An agent that is 5 s ahead; of the long ones, queues delayed one direction.
        clock.add(probe(0, 90, 10, 5000));
        clock.add(probe(200, 10, 10, 5000));
        clock.add(probe(300, 10, 70, 5000));
        let offset = clock.offset(ms(220)).unwrap();
        assert_eq!(offset.ns, 5000 * MS as i64);
        assert!((10 * MS..10 * MS + 10_000).contains(&offset.uncertainty_ns), "{offset:?}");
        assert_eq!(clock.shortest(), Some(ms(20)));
    }

    #[test]
    fn the_offset_is_within_its_uncertainty_however_the_directions_differ() {
        for there in 0..=40 {
            let mut clock = Clock::default();
            clock.add(probe(1000, there, 40 - there, 700));
            let offset = clock.offset(ms(1040)).unwrap();
            let wrong = offset.ns.abs_diff(700 * MS as i64);
            assert!(wrong <= offset.uncertainty_ns, "{there} ms there: {offset:?}");
        }
    }

    #[test]
    fn an_old_exchange_is_less_certain_than_a_new_one() {
        let mut clock = Clock::default();
        clock.add(probe(0, 1, 1, 0));
        let early = clock.offset(ms(2)).unwrap();
        let late = clock.offset(ms(3_600_000)).unwrap();
        // 100 ppm of an hour.
        assert!(early.uncertainty_ns < 2 * MS && late.uncertainty_ns > 360 * MS, "{late:?}");
        clock.add(probe(3_600_000, 20, 20, 0));
        assert!(clock.offset(ms(3_600_040)).unwrap().uncertainty_ns < 21 * MS);
    }

    #[test]
    fn times_are_converted_in_both_directions() {
        let offset = Offset { ns: -3 * MS as i64, uncertainty_ns: 0 };
        assert_eq!(offset.to_remote(ms(10)), Some(ms(7)));
        assert_eq!(offset.to_remote(ms(2)), None, "before the agent's clock began");
        assert_eq!(offset.to_here_ns(ms(7)), Some(10 * MS as i64));
        let absurd = Probe { sent: ms(1), received: ms(2), remote: Duration::MAX };
        let mut clock = Clock::default();
        clock.add(absurd);
        assert_eq!(clock.offset(ms(3)), None);
        for ns in [i64::MIN, i64::MAX] {
            let absurd = Offset { ns, uncertainty_ns: u64::MAX };
            let _ = absurd.to_remote(Duration::MAX);
            let _ = (absurd.to_remote(ms(1)), absurd.to_here_ns(ms(1)));
        }
    }

    #[test]
    fn the_skew_is_that_of_the_first_and_the_last() {
        let at = |late_ms: i64, uncertainty_ms: u64| Started {
            late_ns: late_ms * MS as i64,
            uncertainty_ns: uncertainty_ms * MS,
        };
        assert_eq!(start_skew(&[]), None);
        assert_eq!(start_skew(&[at(7, 1)]), None);
        let skew = start_skew(&[at(7, 1), at(-3, 2), at(5, 100)]).unwrap();
        assert_eq!(skew, Skew { ns: 10 * MS, uncertainty_ns: 3 * MS });
        let absurd =
            [i64::MIN, i64::MAX].map(|late_ns| Started { late_ns, uncertainty_ns: u64::MAX });
        assert_eq!(start_skew(&absurd).unwrap().uncertainty_ns, u64::MAX);
    }
}
