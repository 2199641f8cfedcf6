//! Two levels of a study's factor, all other factors equal.

use serde::{Deserialize, Serialize};

/// The goodput with one level of a factor over that with another one.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelComparison {
    /// The factor; of paired ones the first.
    pub factor: String,
    /// The levels, the faster one first; in the plan's order without a ratio.
    pub levels: [String; 2],
    /// The values of the other factors, such as `loss=1%`; empty without other factors; `None`:
    /// over all their values.
    pub at: Option<String>,
    /// Values of the other factors with a ratio, over which this one is; 1 unless `at` is `None`.
    pub conditions: u32,
    /// The cells of the levels; `None` over several conditions.
    pub cells: Option<[usize; 2]>,
    /// Valid runs of each level.
    pub runs: [u32; 2],
    /// The geometric mean of the first level's goodputs over that of the second one's; over
    /// several conditions that of their ratios. `None` where the levels cannot be compared.
    pub ratio: Option<f64>,
    /// Lower end of its 95 % confidence interval: Welch's, of the logarithms of the runs; over
    /// conditions Student's t, of the logarithms of their ratios. `None` with too few of them.
    pub ratio_low: Option<f64>,
    /// Its upper end.
    pub ratio_high: Option<f64>,
    /// The p-value of Welch's t-test of the logarithms; `None` over several conditions.
    pub p: Option<f64>,
    /// Whether the difference is significant, all comparisons of the part considered (Holm 1979);
    /// over several conditions whether the interval excludes 1.
    pub significant: Option<bool>,
    /// Why there is no ratio.
    pub no_ratio: Option<String>,
    /// The result in a sentence.
    pub verdict: String,
}
