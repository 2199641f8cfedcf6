//! Draws.

use rand_core::Rng;

/// A draw from [0, 1): every value that a double of 53 bits can tell apart.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
pub(crate) fn unit(chance: &mut impl Rng) -> f64 {
    (chance.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}
