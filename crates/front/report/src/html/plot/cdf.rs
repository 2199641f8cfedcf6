//! The empirical distribution of values.

/// Points of a curve; of more, some are left out.
const MAX_POINTS: usize = 400;

/// The corners of the empirical distribution of sorted values, as (value, share at or below it).
pub(in crate::html) fn cdf(values: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    let count = values.len();
    let step = count.div_ceil(MAX_POINTS).max(1);
    let share = move |rank: usize| rank as f64 / count as f64;
    let picked = values.iter().enumerate().filter(move |(at, _)| at % step == 0 || at + 1 == count);
    picked.flat_map(move |(at, value)| [(*value, share(at)), (*value, share(at + 1))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_rises_from_zero_to_one() {
        let corners: Vec<(f64, f64)> = cdf(&[1.0, 2.0, 4.0]).collect();
        let third = 1.0 / 3.0;
        assert_eq!(corners[..3], [(1.0, 0.0), (1.0, third), (2.0, third)]);
        assert_eq!(corners.last(), Some(&(4.0, 1.0)));
        let many: Vec<f64> = (0..100_000).map(f64::from).collect();
        assert!(cdf(&many).count() <= 2 * (MAX_POINTS + 1));
        assert_eq!(cdf(&many).last(), Some((99_999.0, 1.0)));
    }
}
