//! What a study's plan comes to.

use serde::{Deserialize, Serialize};

/// The version of [`StudyPlanReport`] in JSON.
pub const STUDY_PLAN_SCHEMA: &str = "longhaul.study-plan/1";

/// A plan, checked: what would run, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyPlanReport {
    /// [`STUDY_PLAN_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that checked it.
    pub version: String,
    /// The question.
    pub question: String,
    /// What varies, in the order of the plan.
    pub factors: Vec<StudyFactor>,
    /// What is fixed: keys of the path, and settings of the test.
    pub fixed: Vec<StudyFactor>,
    /// The number of combinations of the factors' values.
    pub cells: usize,
    /// Tests of each cell.
    pub repeats: u32,
    /// Cells times repeats.
    pub tests: usize,
    /// The order of the tests: `random`, `blocked` or `plan`.
    pub order: String,
    /// Of the draws of the order and of the paths.
    pub seed: u64,
    /// About how long all tests take, in seconds.
    pub estimated_s: f64,
}

/// A setting with its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyFactor {
    /// Its name in the plan.
    pub name: String,
    /// Its values as text, as in the plan or as a range gives them.
    pub values: Vec<String>,
}
