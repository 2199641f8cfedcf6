//! The comparisons of levels that a report begins with.

use record::LevelComparison;

/// Of each factor the first `most` that have a ratio: the most important ones.
pub(crate) fn foremost(all: &[LevelComparison], most: usize) -> Vec<&LevelComparison> {
    let by_factor = all.chunk_by(|a, b| a.factor == b.factor);
    by_factor.flat_map(|of| of.iter().filter(|one| one.ratio.is_some()).take(most)).collect()
}

/// Verdicts of each factor that a report of so many parts begins with.
pub(crate) const fn of_each_factor(parts: usize) -> usize {
    if parts > 1 { 1 } else { 3 }
}
