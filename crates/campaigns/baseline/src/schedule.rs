//! The order of the tests. Each round tests every condition once, in an order of its own:
//! whatever changes over the minutes affects all conditions alike, and an interruption leaves
//! as many tests of each.

use model::statistics::shuffle;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use record::{AddressFamily, Direction, TestCondition};
use std::time::Duration;

/// Rounds, however long they take: with two tests there is no median to speak of.
pub const MIN_ROUNDS: u32 = 3;

/// Rounds at most, for tests of a fraction of a second.
const MAX_ROUNDS: u32 = 1_000;

/// Consecutive failures after which a condition is no longer tested.
const MAX_FAILURES: u32 = 2;

/// Duration of a test where time is left for it, and the shortest that is chosen. On long paths
/// a test of a second is mostly slow start.
const LONGEST_TEST: Duration = Duration::from_secs(8);
const SHORTEST_TEST: Duration = Duration::from_secs(1);

/// Steps in which a duration is chosen.
const TEST_STEP: Duration = Duration::from_millis(500);

/// The longest tests, up to 8 s, of which [`MIN_ROUNDS`] rounds fit `within`, or 1 s if none do.
/// `cost` is what tests of a duration cost.
#[must_use]
pub fn fitting_duration(
    conditions: &[TestCondition],
    within: Duration,
    cost: impl Fn(Duration) -> TestCost,
) -> Duration {
    let mut duration = LONGEST_TEST;
    let least = |duration| {
        let schedule = Schedule::new(conditions, 0, Duration::ZERO, cost(duration));
        schedule.remaining(&[], Duration::ZERO).time
    };
    while duration > SHORTEST_TEST && least(duration) > within {
        duration = duration.saturating_sub(TEST_STEP);
    }
    duration
}

/// Every condition of these IP versions: both directions, one stream and `streams`.
#[must_use]
pub fn conditions(families: &[AddressFamily], streams: u32) -> Vec<TestCondition> {
    let mut all = Vec::new();
    for family in families {
        for direction in [Direction::Forward, Direction::Reverse] {
            for streams in [1, streams] {
                all.push(TestCondition { family: *family, direction, streams });
            }
        }
    }
    all
}

/// Whether the RTT is measured around a test: with several streams, which fill a queue where
/// one cannot. The idle time around it would double the time of every other test.
#[must_use]
pub fn measures_latency(condition: &TestCondition) -> bool {
    condition.streams > 1
}

/// How long a test takes, as expected before the first one.
#[derive(Debug, Clone, Copy)]
pub struct TestCost {
    /// Without RTT probes.
    pub plain: Duration,
    /// With RTT probes before and after it.
    pub with_latency: Duration,
}

/// What is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// Tests.
    pub tests: u32,
    /// The time that they are expected to take.
    pub time: Duration,
}

/// A condition, and how its tests went.
#[derive(Debug, Clone)]
struct ConditionTimes {
    condition: TestCondition,
    tests: u32,
    took: Duration,
    failures: u32,
}

/// The rounds of a baseline.
#[derive(Debug, Clone)]
pub struct Schedule {
    all: Vec<ConditionTimes>,
    random: Pcg64,
    within: Duration,
    cost: TestCost,
    rounds: u32,
}

impl Schedule {
    /// Rounds over `conditions` that end `within` so much time, or after [`MIN_ROUNDS`].
    #[must_use]
    pub fn new(conditions: &[TestCondition], seed: u64, within: Duration, cost: TestCost) -> Self {
        let untested = |condition: &TestCondition| ConditionTimes {
            condition: *condition,
            tests: 0,
            took: Duration::ZERO,
            failures: 0,
        };
        let all = conditions.iter().map(untested).collect();
        Schedule { all, random: Pcg64::seed_from_u64(seed), within, cost, rounds: 0 }
    }

    /// Rounds begun.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The next round in its order, `elapsed` since the start; `None` if it would not fit, or
    /// if no condition is left.
    pub fn next_round(&mut self, elapsed: Duration) -> Option<Vec<TestCondition>> {
        let needed = self.rounds < MIN_ROUNDS;
        let fits = elapsed.saturating_add(self.round_time()) <= self.within;
        if self.all.is_empty() || self.rounds >= MAX_ROUNDS || !(needed || fits) {
            return None;
        }
        self.rounds += 1;
        let mut round: Vec<TestCondition> = self.all.iter().map(|one| one.condition).collect();
        shuffle(&mut round, || self.random.next_u64());
        Some(round)
    }

    /// A test ended.
    pub fn completed(&mut self, condition: &TestCondition, took: Duration) {
        if let Some(one) = self.all.iter_mut().find(|one| one.condition == *condition) {
            one.tests += 1;
            one.took = one.took.saturating_add(took);
            one.failures = 0;
        }
    }

    /// A test failed. Whether its condition is given up.
    pub fn failed(&mut self, condition: &TestCondition) -> bool {
        let Some(at) = self.all.iter().position(|one| one.condition == *condition) else {
            return false;
        };
        let Some(one) = self.all.get_mut(at) else { return false };
        one.failures += 1;
        let over = one.failures >= MAX_FAILURES;
        if over {
            self.all.remove(at);
        }
        over
    }

    /// No further test over this IP version.
    pub fn drop_family(&mut self, family: AddressFamily) {
        self.all.retain(|one| one.condition.family != family);
    }

    /// Whether no condition is left to test.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether the condition is still tested.
    #[must_use]
    pub fn has(&self, condition: &TestCondition) -> bool {
        self.all.iter().any(|one| one.condition == *condition)
    }

    /// What is left: `rest` of this round and the rounds that still fit.
    #[must_use]
    pub fn remaining(&self, rest: &[TestCondition], elapsed: Duration) -> Remaining {
        let rest: Vec<_> = rest.iter().filter(|condition| self.has(condition)).collect();
        let of_round = rest.iter().map(|condition| self.time(condition)).sum::<Duration>();
        let rounds = self.further_rounds(elapsed.saturating_add(of_round));
        let tests = rest.len() + self.all.len().saturating_mul(rounds as usize);
        let time = of_round.saturating_add(self.round_time().saturating_mul(rounds));
        Remaining { tests: u32::try_from(tests).unwrap_or(u32::MAX), time }
    }

    /// Rounds that still follow if the present one ends at `elapsed`.
    fn further_rounds(&self, elapsed: Duration) -> u32 {
        let needed = MIN_ROUNDS.saturating_sub(self.rounds);
        let round = self.round_time();
        if round.is_zero() {
            return needed;
        }
        let left = self.within.saturating_sub(elapsed).as_nanos() / round.as_nanos();
        let fit = u32::try_from(left).unwrap_or(u32::MAX);
        needed.max(fit).min(MAX_ROUNDS.saturating_sub(self.rounds))
    }

    fn round_time(&self) -> Duration {
        self.all.iter().map(|one| self.time(&one.condition)).sum()
    }

    /// A test of this condition: the mean of those so far, else as expected.
    fn time(&self, condition: &TestCondition) -> Duration {
        let measured = self.all.iter().find(|one| one.condition == *condition && one.tests > 0);
        match measured {
            Some(one) => one.took / one.tests,
            None if measures_latency(condition) => self.cost.with_latency,
            None => self.cost.plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AddressFamily::{Ipv4, Ipv6};

    const COST: TestCost =
        TestCost { plain: Duration::from_secs(9), with_latency: Duration::from_secs(13) };

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The rounds of a schedule whose tests take what they were expected to.
    fn run(schedule: &mut Schedule) -> Vec<Vec<TestCondition>> {
        let (mut elapsed, mut rounds) = (Duration::ZERO, Vec::new());
        while let Some(round) = schedule.next_round(elapsed) {
            for condition in &round {
                let took = if measures_latency(condition) { COST.with_latency } else { COST.plain };
                elapsed += took;
                schedule.completed(condition, took);
            }
            rounds.push(round);
        }
        rounds
    }

    #[test]
    fn both_ip_versions_fit_three_times_into_five_minutes_and_one_six_times() {
        let both = conditions(&[Ipv4, Ipv6], 4);
        assert_eq!(both.len(), 8);
        // 8 tests: 4 x 9 + 4 x 13 = 88 s; 300 / 88 = 3.4.
        assert_eq!(run(&mut Schedule::new(&both, 1, secs(300), COST)).len(), 3);
        // 44 s; 300 / 44 = 6.8.
        let one = conditions(&[Ipv4], 4);
        assert_eq!(run(&mut Schedule::new(&one, 1, secs(300), COST)).len(), 6);
        // Just enough for seven, and just not.
        assert_eq!(run(&mut Schedule::new(&one, 1, secs(308), COST)).len(), 7);
        assert_eq!(run(&mut Schedule::new(&one, 1, secs(307), COST)).len(), 6);
        // However little time there is.
        assert_eq!(run(&mut Schedule::new(&both, 1, secs(1), COST)).len(), 3);
    }

    #[test]
    fn tests_are_as_long_as_three_rounds_allow() {
        let second = Duration::from_secs(1);
        let cost =
            |duration| TestCost { plain: duration + second, with_latency: duration + second };
        let one = conditions(&[Ipv4], 4);
        // 12 tests: of 8 s and 1 s beside each, 108 s.
        assert_eq!(fitting_duration(&one, secs(108), cost), secs(8));
        assert_eq!(fitting_duration(&one, secs(107), cost), Duration::from_millis(7_500));
        assert_eq!(fitting_duration(&one, secs(50), cost), secs(3));
        assert_eq!(fitting_duration(&one, secs(1), cost), secs(1));
        assert_eq!(fitting_duration(&[], secs(0), cost), secs(8));
    }

    #[test]
    fn every_round_has_each_condition_once_in_an_order_of_the_seed() {
        let both = conditions(&[Ipv4, Ipv6], 4);
        let key = |c: &TestCondition| (c.family, c.direction as u8, c.streams);
        let rounds = run(&mut Schedule::new(&both, 7, secs(1_000), COST));
        assert!(rounds.len() > 10);
        let mut sorted = both.clone();
        sorted.sort_by_key(key);
        for round in &rounds {
            let mut of_round = round.clone();
            of_round.sort_by_key(key);
            assert_eq!(of_round, sorted);
        }
        assert!(rounds.windows(2).any(|pair| pair[0] != pair[1]));
        assert_eq!(rounds, run(&mut Schedule::new(&both, 7, secs(1_000), COST)));
        assert_ne!(rounds, run(&mut Schedule::new(&both, 8, secs(1_000), COST)));
        // Each condition is first in some round: no place is fixed.
        let first: Vec<_> = run(&mut Schedule::new(&both, 7, secs(20_000), COST))
            .iter()
            .map(|round| round[0])
            .collect();
        assert!(both.iter().all(|condition| first.contains(condition)));
    }

    #[test]
    fn what_remains_follows_from_how_long_the_tests_took() {
        let one = conditions(&[Ipv4], 4);
        let mut schedule = Schedule::new(&one, 1, secs(300), COST);
        let round = schedule.next_round(Duration::ZERO).unwrap();
        // This round and five more.
        let Remaining { tests, time } = schedule.remaining(&round, Duration::ZERO);
        assert_eq!((tests, time), (24, secs(6 * 44)));
        // Each test takes 20 s: 80 s a round, so that 300 s are enough for 3.
        round.iter().for_each(|condition| schedule.completed(condition, secs(20)));
        assert_eq!(schedule.remaining(&[], secs(80)), Remaining { tests: 8, time: secs(160) });
        assert!(
            schedule.next_round(secs(80)).is_some() && schedule.next_round(secs(160)).is_some()
        );
        assert_eq!(schedule.next_round(secs(240)), None);
        assert_eq!(schedule.rounds(), 3);
    }

    #[test]
    fn a_condition_that_fails_twice_in_succession_is_given_up() {
        let one = conditions(&[Ipv4], 4);
        let mut schedule = Schedule::new(&one, 1, secs(300), COST);
        assert!(!schedule.failed(&one[0]));
        schedule.completed(&one[0], secs(9));
        assert!(!schedule.failed(&one[0]) && schedule.failed(&one[0]));
        assert!(!schedule.next_round(Duration::ZERO).unwrap().contains(&one[0]));
        for condition in &one[1..] {
            assert!(!schedule.failed(condition) && schedule.failed(condition));
        }
        assert_eq!(schedule.next_round(Duration::ZERO), None);
    }
}
