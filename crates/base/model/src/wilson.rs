//! Wilson's interval of a proportion (1927): near its nominal coverage also for few trials.

use crate::statistics::Interval;

/// The standard normal deviate of a two-sided 95 % interval.
const Z: f64 = 1.959_963_985;

/// The 95 % interval of the proportion of `successes` among `trials`; `None` without a trial, or
/// with more successes than trials.
#[must_use]
pub fn wilson_interval(successes: u64, trials: u64) -> Option<Interval> {
    if trials == 0 || successes > trials {
        return None;
    }
    let (k, n) = (successes as f64, trials as f64);
    let weight = n + Z * Z;
    let middle = (k + Z * Z / 2.0) / weight;
    let half = Z / weight * (k * (n - k) / n + Z * Z / 4.0).sqrt();
    Some(Interval { low: (middle - half).max(0.0), high: (middle + half).min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_intervals_are_met() {
        // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (k, n, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let interval = wilson_interval(k, n).unwrap();
            let is_near = (interval.low - low).abs() < 6e-5 && (interval.high - high).abs() < 6e-5;
            assert!(is_near, "{k} of {n}: {interval:?}");
        }
        assert_eq!((wilson_interval(0, 0), wilson_interval(2, 1)), (None, None));
    }
}
