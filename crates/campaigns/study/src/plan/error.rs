//! What can be wrong with a plan, and where.

use std::fmt;
use std::ops::Range;

/// What is wrong with a plan: one line that names the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// Line and column, from 1; `None` for the plan as a whole.
    pub at: Option<(usize, usize)>,
    /// What is wrong.
    pub problem: String,
}

impl PlanError {
    /// At the first byte of `span` in `text`.
    pub(super) fn at(text: &str, span: &Range<usize>, problem: impl Into<String>) -> Self {
        let before = text.get(..span.start.min(text.len())).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().map_or(0, |rest| rest.chars().count());
        PlanError { at: Some((line, column)), problem: problem.into() }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for PlanError {}
