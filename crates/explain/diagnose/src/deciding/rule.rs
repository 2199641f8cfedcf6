//! How the result of a deciding test is read.

use super::Observation;
use units::{percent, significant};

/// A condition on the second test, given the first. The first cause of a pair if it
/// holds, the second if it clearly does not; between the two, nothing is decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The goodput is at least `from` times the first one; not so up to `up_to` times.
    Gains {
        /// Least ratio for the first cause.
        from: f64,
        /// Largest ratio for the second cause.
        up_to: f64,
    },
    /// Datagrams are lost at a rate like that of the first test's retransmissions: at
    /// least a third of it; not so up to a tenth. If fewer than three losses are expected,
    /// none is no evidence (probability 5 %).
    LosesAsMuch,
    /// The same of segments: they are retransmitted as much as in the first test.
    RetransmitsAsMuch,
    /// The same for datagrams that arrive late.
    ReordersAsMuch,
    /// Datagrams are lost in runs of at least `from` on average; not so up to `up_to`.
    /// Independent loss with a probability of p has runs of 1 / (1 - p).
    LosesInRuns {
        /// Least mean run for the first cause.
        from: f64,
        /// Largest mean run for the second cause.
        up_to: f64,
    },
    /// At least this share of segments is retransmitted; not so up to `up_to`.
    Retransmits {
        /// Least share for the first cause.
        from: f64,
        /// Largest share for the second cause.
        up_to: f64,
    },
}

/// The expected number of losses from which none is evidence: e^-3 is 5 %.
const ENOUGH: f64 = 3.0;

impl Rule {
    /// Whether it holds; `None` if that is open. And what was seen, as a clause.
    #[must_use]
    pub fn read(&self, first: &Observation, second: &Observation) -> (Option<bool>, String) {
        match *self {
            Rule::Gains { from, up_to } => {
                let ratio = second.goodput.as_f64() / first.goodput.as_f64();
                let times = significant(ratio, 2);
                let saw = format!("{} instead of {}", second.goodput, first.goodput);
                let saw = if ratio.is_finite() { format!("{saw}, {times} times") } else { saw };
                (between(ratio, from, up_to), saw)
            }
            Rule::LosesAsMuch => as_much("lost", second.lost, first, second),
            Rule::ReordersAsMuch => as_much("reordered", second.reordered, first, second),
            Rule::RetransmitsAsMuch => {
                let (before, after) = (percent(first.lost), percent(second.lost));
                let saw = format!("{after} of the segments were retransmitted instead of {before}");
                (remains(second.lost, first, second), saw)
            }
            Rule::LosesInRuns { from, up_to } => match second.run {
                Some(run) => {
                    let saw = format!("losses came in runs of {run:.1} datagrams on average");
                    (between(run, from, up_to), saw)
                }
                None => (None, "no datagram was lost".to_owned()),
            },
            Rule::Retransmits { from, up_to } => {
                let saw = format!("{} of the segments were retransmitted", percent(second.lost));
                (between(second.lost, from, up_to).filter(|_| second.packets > 0.0), saw)
            }
        }
    }
}

fn between(value: f64, from: f64, up_to: f64) -> Option<bool> {
    if value >= from {
        Some(true)
    } else if value <= up_to {
        Some(false)
    } else {
        None
    }
}

fn as_much(
    word: &str,
    share: f64,
    first: &Observation,
    second: &Observation,
) -> (Option<bool>, String) {
    let saw = format!(
        "{} of the datagrams were {word}, and the first test retransmitted {} of its segments",
        percent(share),
        percent(first.lost)
    );
    (remains(share, first, second), saw)
}

/// Whether a share is like that of the first test's retransmissions.
fn remains(share: f64, first: &Observation, second: &Observation) -> Option<bool> {
    let enough = first.lost * second.packets >= ENOUGH;
    between(share, first.lost / 3.0, first.lost / 10.0).filter(|_| enough)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::BitRate;

    fn seen(mbit: u64, packets: f64, lost: f64) -> Observation {
        Observation {
            goodput: BitRate::from_bps(mbit * 1_000_000),
            packets,
            lost,
            run: None,
            reordered: 0.0,
        }
    }

    #[test]
    fn a_gain_between_the_thresholds_decides_nothing() {
        let rule = Rule::Gains { from: 1.5, up_to: 1.15 };
        for (mbit, holds) in
            [(150, Some(true)), (149, None), (116, None), (115, Some(false)), (0, Some(false))]
        {
            let (got, saw) = rule.read(&seen(100, 1e4, 0.0), &seen(mbit, 1e4, 0.0));
            assert_eq!(got, holds, "{saw}");
        }
        let (_, saw) = rule.read(&seen(100, 1e4, 0.0), &seen(230, 1e4, 0.0));
        assert_eq!(saw, "230 Mbit/s instead of 100 Mbit/s, 2.3 times");
        assert_eq!(rule.read(&seen(0, 0.0, 0.0), &seen(0, 0.0, 0.0)).0, None);
    }

    #[test]
    fn retransmissions_are_compared_with_the_first_tests() {
        let first = seen(100, 1e5, 0.01);
        for (packets, lost, holds) in [
            (1e5, 0.009, Some(true)),
            (1e5, 0.002, None),
            (1e5, 0.0002, Some(false)),
            (200.0, 0.0, None),
        ] {
            let (got, saw) = Rule::RetransmitsAsMuch.read(&first, &seen(90, packets, lost));
            assert_eq!(got, holds, "{packets} {lost} {saw}");
        }
        let (_, saw) = Rule::RetransmitsAsMuch.read(&first, &seen(90, 1e5, 0.0));
        assert_eq!(saw, "0 % of the segments were retransmitted instead of 1 %");
    }

    #[test]
    fn losses_are_compared_with_the_first_tests() {
        let first = seen(100, 1e4, 0.003);
        for (packets, lost, holds) in [
            (1e4, 0.001, Some(true)),
            (1e4, 0.0009, None),
            (1e4, 0.0003, Some(false)),
            (1e4, 0.0, Some(false)),
            // Three losses in 1000 datagrams are expected, fewer are too few.
            (1_000.0, 0.0, Some(false)),
            (999.0, 0.0, None),
        ] {
            let (got, saw) = Rule::LosesAsMuch.read(&first, &seen(50, packets, lost));
            assert_eq!(got, holds, "{packets} {lost} {saw}");
        }
        let late = Observation { reordered: 0.003, ..seen(50, 1e4, 0.0) };
        assert_eq!(Rule::ReordersAsMuch.read(&first, &late).0, Some(true));
    }

    #[test]
    fn runs_and_retransmissions() {
        let runs = Rule::LosesInRuns { from: 1.5, up_to: 1.2 };
        let first = seen(10, 1e4, 0.01);
        for (run, holds) in [(Some(1.5), Some(true)), (Some(1.3), None), (Some(1.0), Some(false))] {
            let second = Observation { run, ..first };
            assert_eq!(runs.read(&first, &second).0, holds);
        }
        assert_eq!(runs.read(&first, &first).0, None);
        let retransmits = Rule::Retransmits { from: 0.02, up_to: 0.005 };
        for (lost, holds) in [(0.02, Some(true)), (0.01, None), (0.005, Some(false))] {
            assert_eq!(retransmits.read(&first, &seen(10, 1e4, lost)).0, holds);
        }
        assert_eq!(retransmits.read(&first, &seen(0, 0.0, 0.0)).0, None);
    }
}
