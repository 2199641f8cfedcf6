//! Which second test tells two causes apart, and how its result is read.
//!
//! Each row of the table states the pair, the test, the rule and the reason. A result
//! between a rule's two thresholds decides nothing.

mod change;
mod observation;
mod rule;
mod table;
mod train;

pub use change::{Change, DecidingTest};
pub use observation::Observation;
pub use rule::Rule;
pub use train::{Growth, Train};

use record::{Limit, Measurement};
use table::{OVER_TCP, Row, TABLE};

/// The limits that drop exactly the same packets: only a [`Train`] tells them apart.
pub const DROPPING_ALIKE: [Limit; 2] = [Limit::Policer, Limit::ShallowQueue];

/// Whether only a [`Train`] tells a limit from another one.
#[must_use]
pub fn is_dropping_alike(limit: Limit) -> bool {
    DROPPING_ALIKE.contains(&limit)
}

/// Whether a train was sent after the test.
pub(crate) fn train_ran(m: &Measurement) -> bool {
    let between = m.decided.as_ref().map_or(&[][..], |decided| &decided.between);
    DROPPING_ALIKE.iter().all(|limit| between.contains(limit))
}

/// The limit that a train showed, and the one that it excluded.
pub(crate) fn told_by_train(m: &Measurement) -> Option<(Limit, Limit)> {
    let shown = m.decided.as_ref().filter(|_| train_ran(m))?.limit?;
    let [policer, queue] = DROPPING_ALIKE;
    match shown {
        Limit::Policer => Some((policer, queue)),
        Limit::ShallowQueue => Some((queue, policer)),
        _ => None,
    }
}

/// A second test that tells two causes apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The test.
    pub test: DecidingTest,
    /// The cause if the rule holds.
    pub if_so: Limit,
    /// The cause if it does not.
    pub otherwise: Limit,
    /// How the result is read.
    pub rule: Rule,
    /// Why the test decides.
    pub reason: &'static str,
}

/// The test that tells `first` from `second`; `None` if no second test does.
#[must_use]
pub fn deciding_test(first: Limit, second: Limit) -> Option<DecidingTest> {
    decision(first, second).map(|decision| decision.test)
}

/// The same, with its rule and reason.
#[must_use]
pub fn decision(first: Limit, second: Limit) -> Option<Decision> {
    among(TABLE, first, second).or_else(|| among(OVER_TCP, first, second))
}

/// The same of tests that need nothing but TCP.
#[must_use]
pub fn decision_over_tcp(first: Limit, second: Limit) -> Option<Decision> {
    let needs_udp = |decision: &Decision| {
        matches!(decision.test, DecidingTest::UdpBelow | DecidingTest::UdpAbove)
    };
    let usual = among(TABLE, first, second).filter(|decision| !needs_udp(decision));
    usual.or_else(|| among(OVER_TCP, first, second))
}

/// The decision of a table for a pair, in either order.
fn among(table: &[Row], first: Limit, second: Limit) -> Option<Decision> {
    let as_row = |one: Limit, other: Limit| {
        let row =
            table.iter().find(|row| row.if_so.contains(&one) && row.otherwise.contains(&other))?;
        let Row { test, rule, reason, .. } = *row;
        Some(Decision { test, if_so: one, otherwise: other, rule, reason })
    };
    as_row(first, second).or_else(|| as_row(second, first))
}

impl Decision {
    /// The cause that the second test shows, and why; `None` for the cause if it decides
    /// nothing.
    #[must_use]
    pub fn read(&self, first: &Observation, second: &Observation) -> (Option<Limit>, String) {
        let (holds, saw) = self.rule.read(first, second);
        let limit = holds.map(|holds| if holds { self.if_so } else { self.otherwise });
        (limit, format!("{saw}: {}", self.reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pair_is_in_two_rows_or_paired_with_itself() {
        for one in Limit::ALL {
            assert_eq!(decision(one, one), None, "{one:?}");
            for other in Limit::ALL {
                let has = |a: &[Limit], b: &[Limit]| a.contains(&one) && b.contains(&other);
                let rows = TABLE
                    .iter()
                    .filter(|row| has(row.if_so, row.otherwise) || has(row.otherwise, row.if_so));
                assert!(rows.count() <= 1, "{one:?} {other:?}");
                assert_eq!(decision(one, other), decision(other, one));
            }
        }
    }

    #[test]
    fn pacing_tells_random_loss_from_overflow_where_there_is_no_udp() {
        let observed = |lost: f64| Observation {
            goodput: units::BitRate::from_bps(90_000_000),
            packets: 50_000.0,
            lost,
            run: None,
            reordered: 0.0,
        };
        for overflow in [Limit::ShallowQueue, Limit::Policer] {
            for loss in [Limit::Loss, Limit::ClusteredLoss] {
                let decision = decision_over_tcp(overflow, loss).unwrap();
                assert_eq!(decision.test, DecidingTest::Paced);
                let read = |lost: f64| decision.read(&observed(0.01), &observed(lost)).0;
                assert_eq!(read(0.01), Some(loss));
                assert_eq!((read(0.0), read(0.0005)), (Some(overflow), Some(overflow)));
                assert_eq!(read(0.002), None);
            }
        }
        // What TCP decides by itself stays as it is; other pairs of UDP are not decided.
        let over_tcp = |one, other| decision_over_tcp(one, other).map(|decision| decision.test);
        assert_eq!(over_tcp(Limit::Aqm, Limit::Loss), Some(DecidingTest::Bbr));
        assert_eq!(over_tcp(Limit::AckPath, Limit::Loss), None);
        assert_eq!(over_tcp(Limit::ClusteredLoss, Limit::Loss), None);
        for one in Limit::ALL {
            for other in Limit::ALL {
                let is_udp = over_tcp(one, other).is_some_and(|test| {
                    [DecidingTest::UdpBelow, DecidingTest::UdpAbove].contains(&test)
                });
                assert!(!is_udp);
            }
        }
    }

    #[test]
    fn the_pairs_that_were_confused_most() {
        let test = |one, other| deciding_test(one, other);
        assert_eq!(test(Limit::Aqm, Limit::Loss), Some(DecidingTest::Bbr));
        assert_eq!(test(Limit::Policer, Limit::Loss), Some(DecidingTest::UdpBelow));
        assert_eq!(test(Limit::ShallowQueue, Limit::Loss), Some(DecidingTest::UdpBelow));
        assert_eq!(test(Limit::Loss, Limit::CongestionAvoidance), Some(DecidingTest::Longer));
        assert_eq!(test(Limit::PathRate, Limit::CongestionAvoidance), Some(DecidingTest::Streams));
        // Another flow's drops look like random loss to datagrams, too.
        assert_eq!(test(Limit::SharedBottleneck, Limit::Loss), None);
        assert_eq!(test(Limit::Unknown, Limit::Loss), None);
    }
}
