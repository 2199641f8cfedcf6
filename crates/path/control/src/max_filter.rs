//! The maximum over a window of rounds.

/// Rounds of BBR's bandwidth filter: a gain cycle and two more.
pub(crate) const ROUNDS: u64 = 10;

/// One entry for each round of the window, and the current one.
const CAPACITY: usize = ROUNDS as usize + 1;

/// Candidates for the maximum: later ones are smaller. Old ones leave when a sample is
/// added, so that the maximum stays while there are none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MaxFilter {
    /// Round and value.
    candidates: [(u64, f64); CAPACITY],
    count: usize,
}

impl MaxFilter {
    pub(crate) const fn new() -> Self {
        MaxFilter { candidates: [(0, 0.0); CAPACITY], count: 0 }
    }

    /// The maximum; zero before the first sample.
    pub(crate) const fn max(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.candidates[0].1 }
    }

    /// Adds a sample of a round; rounds never go back.
    pub(crate) fn add(&mut self, round: u64, value: f64) {
        let kept = &self.candidates[..self.count];
        let expired = kept.iter().take_while(|(at, _)| at + ROUNDS < round).count();
        let larger = kept.iter().take_while(|(_, other)| *other > value).count();
        self.candidates.copy_within(expired..self.count, 0);
        let larger = larger.saturating_sub(expired);
        // One candidate a round: the larger one, which came first.
        let same_round = larger > 0 && self.candidates[larger - 1].0 == round;
        self.count = larger;
        if !same_round {
            self.candidates[larger] = (round, value);
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_maximum_of_the_window(
            samples in prop::collection::vec((0u64..4, 0u32..100), 1..200),
        ) {
            let mut filter = MaxFilter::new();
            let (mut round, mut all) = (0, Vec::new());
            for (step, value) in samples {
                round += step;
                all.push((round, f64::from(value)));
                filter.add(round, f64::from(value));
                let window = all.iter().filter(|(at, _)| at + ROUNDS >= round);
                let expected = window.map(|(_, value)| *value).fold(0.0, f64::max);
                prop_assert_eq!(filter.max(), expected);
            }
        }
    }
}
