//! How often cells are measured, and in what order.

use model::statistics;

/// How often each cell is measured, and in what order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeats {
    /// Tests of each cell.
    pub count: u32,
    /// Of the draws of paths and of the order.
    pub seed: u64,
    /// In what order.
    pub order: Order,
    /// When a cell is measured more often.
    pub until: Option<Until>,
}

/// Until when tests are added to a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// Half the confidence interval of its mean goodput, over the mean.
    pub within: f64,
    /// Tests of it in all.
    pub most: u32,
}

/// The order of the tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// All repeats of all cells at random: what drifts over time is in no factor.
    #[default]
    Random,
    /// One repeat of every cell at random, then the next.
    Blocked,
    /// As in the plan, the first factor outermost, its repeats together.
    Plan,
}

impl Order {
    pub(super) const ALL: [Order; 3] = [Order::Random, Order::Blocked, Order::Plan];

    /// As in plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Order::Random => "random",
            Order::Blocked => "blocked",
            Order::Plan => "plan",
        }
    }
}

impl Repeats {
    /// Those of a plan that says nothing: one test of each cell.
    pub(super) const ONCE: Repeats =
        Repeats { count: 1, seed: 1, order: Order::Random, until: None };

    /// Tests to be added to a cell of which `done` are stored, the valid ones with these
    /// goodputs. As many as the interval needs if the deviation stays as it is, but at most
    /// twice as many as there are: an early deviation is a poor estimate.
    #[must_use]
    pub fn to_add(&self, done: u32, goodputs: &[f64]) -> u32 {
        let Some(until) = self.until.filter(|until| done >= self.count && done < until.most) else {
            return 0;
        };
        let interval = statistics::mean_interval(goodputs, CONFIDENCE);
        let wanted = match interval.zip(statistics::mean(goodputs)) {
            // Without a mean above zero no interval is a share of it.
            Some((_, mean)) if mean <= 0.0 => return 0,
            Some((interval, mean)) => {
                let half = (interval.high - interval.low) / 2.0 / mean;
                if half <= until.within {
                    return 0;
                }
                // The interval shrinks with the root of their number.
                let needed = goodputs.len() as f64 * (half / until.within).powi(2);
                needed.min(f64::from(until.most)) as u32
            }
            // Two valid ones have an interval.
            None => 2,
        };
        let have = u32::try_from(goodputs.len()).unwrap_or(u32::MAX);
        wanted.saturating_sub(have).clamp(1, done.max(1)).min(until.most - done)
    }
}

/// Of the intervals.
const CONFIDENCE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REPEATS: Repeats =
        Repeats { until: Some(Until { within: 0.05, most: 20 }), count: 3, ..Repeats::ONCE };

    #[test]
    fn tests_are_added_until_the_interval_is_narrow() {
        assert_eq!(REPEATS.to_add(2, &[10.0, 20.0]), 0, "the first ones are not done");
        assert_eq!(REPEATS.to_add(3, &[10.0, 10.01, 9.99]), 0, "narrow enough");
        assert_eq!(REPEATS.to_add(3, &[10.0, 11.0, 9.0]), 3, "twice as many at most");
        assert_eq!(REPEATS.to_add(3, &[10.0]), 1, "the others were not valid");
        assert_eq!(REPEATS.to_add(3, &[]), 2);
        assert_eq!(REPEATS.to_add(19, &[10.0, 20.0]), 1);
        assert_eq!(REPEATS.to_add(20, &[10.0, 20.0]), 0, "as many as allowed");
        assert_eq!(REPEATS.to_add(3, &[0.0, 0.0, 0.0]), 0);
        assert_eq!(Repeats { until: None, ..REPEATS }.to_add(3, &[10.0, 20.0, 30.0]), 0);
    }

    proptest! {
        #[test]
        fn any_goodputs_end_at_the_limit(rates in proptest::collection::vec(0.0..1e12f64, 0..30)) {
            let done = rates.len() as u32;
            let added = REPEATS.to_add(done, &rates);
            prop_assert!(added == 0 || done + added <= 20);
        }
    }
}
