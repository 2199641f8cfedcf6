//! Random numbers that are the same on every machine: a platform's `exp`, `ln` and `pow`
//! differ in the last bits, so these use those of the crate `libm`.

use rand_core::Rng;

/// A uniform draw from [0, 1), in steps of 2^-53.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
pub fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// An exponential draw with mean 1, at most 36.8 (by inversion).
pub fn exponential(rng: &mut impl Rng) -> f64 {
    -libm::log(1.0 - unit(rng))
}

/// A normal draw with mean 0 and variance 1, at most 8.6 from it (Box and Muller 1958).
pub fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (2.0 * exponential(rng)).sqrt();
    radius * libm::cos(std::f64::consts::TAU * unit(rng))
}

/// A draw from the Pareto distribution of shape 3 (the smallest whole number with a finite
/// variance), shifted and scaled: it begins at 0 and has mean 1 (by inversion).
pub fn pareto(rng: &mut impl Rng) -> f64 {
    (1.0 / libm::cbrt(1.0 - unit(rng)) - 1.0) * 2.0
}
