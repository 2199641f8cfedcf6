//! Random numbers.

use rand_core::Rng;

/// A uniform draw from [0, 1), in steps of 2^-53.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}
