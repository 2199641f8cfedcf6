//! Draws that are the same for the same seed.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

pub(crate) struct Draws(Pcg64);

impl Draws {
    /// Those of one case.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        Draws(Pcg64::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number)))
    }

    /// Evenly between two values.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        // 53 bits are what a double holds.
        let share = (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        low + (high - low) * share
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.between(0.0, 1.0) < probability
    }

    pub(crate) fn one<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        let at = self.between(0.0, values.len() as f64) as usize;
        &values[at.min(values.len() - 1)]
    }
}
