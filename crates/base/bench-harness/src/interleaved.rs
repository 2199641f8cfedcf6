//! Figures of programs that took turns: a ratio of each round, as single rounds are comparable and
//! different minutes of a shared machine are not.

use crate::{Fallible, median};
use std::fmt;

/// Ratios of as many rounds.
#[derive(Debug)]
pub struct Ratios(Vec<f64>);

impl Ratios {
    /// Of each round's figure to another one of the same round.
    #[must_use]
    pub fn of(figures: &[f64], others: &[f64]) -> Self {
        Ratios(figures.iter().zip(others).map(|(figure, other)| figure / other).collect())
    }

    /// The median of the rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        median(&self.0)
    }
}

/// The median, and the least and the largest ratio: an interval that holds the median with a
/// probability of 94 % for five rounds (1 - 2 / 2^5), of 75 % for three.
impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = self.0.iter().copied().fold(f64::MAX, f64::min);
        let most = self.0.iter().copied().fold(f64::MIN, f64::max);
        write!(f, "{:.2} [{least:.2}, {most:.2}]", self.median())
    }
}

/// The figures of `programs` in `rounds` rounds, by program; `run` is given the program and the
/// number of the round. Each round begins with another one: none always has the quietest moment,
/// or the warmest caches.
///
/// # Errors
/// A run failed.
pub fn rounds<P, T>(
    programs: &[P],
    rounds: usize,
    mut run: impl FnMut(&P, usize) -> Fallible<T>,
) -> Fallible<Vec<Vec<T>>> {
    let mut figures: Vec<Vec<T>> = programs.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..programs.len() {
            let at = (round + turn) % programs.len();
            figures[at].push(run(&programs[at], round)?);
        }
    }
    Ok(figures)
}

/// The best of several programs in each round.
#[must_use]
pub fn best(programs: &[Vec<f64>], better: fn(f64, f64) -> f64) -> Vec<f64> {
    let rounds = programs.iter().map(Vec::len).min().unwrap_or(0);
    let of_round = |round| programs.iter().map(|figures| figures[round]).reduce(better);
    (0..rounds).filter_map(of_round).collect()
}
