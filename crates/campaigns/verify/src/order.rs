//! The order in which two kinds of runs alternate.

/// `A B B A A B …`, false for A: a linear drift of the path affects both kinds equally.
pub(crate) fn alternating(repeats: u32) -> impl Iterator<Item = bool> {
    (0..2 * repeats).map(|run| matches!(run % 4, 1 | 2))
}

#[cfg(test)]
mod tests {
    use super::alternating;

    #[test]
    fn linear_drift_is_no_gain() {
        for repeats in [2, 3, 4, 5] {
            let kinds: Vec<bool> = alternating(repeats).collect();
            let at = |kind: bool| -> Vec<i32> {
                (0..).zip(&kinds).filter(|(_, with)| **with == kind).map(|(at, _)| at).collect()
            };
            let (without, with) = (at(false), at(true));
            assert_eq!(without.len(), with.len());
            // The sums of their moments differ by one test at most.
            let drift = with.iter().sum::<i32>() - without.iter().sum::<i32>();
            assert!(drift.abs() <= i32::from(repeats % 2 == 1), "{kinds:?}");
            assert!(!kinds[0], "the host as it was comes first");
        }
    }
}
