//! What limited a run, computed from its ground truth: one limit for each 100 ms, and the
//! limit that cost the most. `docs/design/ground-truth.md` defines both.

mod facts;
mod reductions;
mod rules;
mod segments;
mod windows;

use crate::Fallible;
use crate::case::Case;
use facts::Facts;
use record::Limit;
use serde::{Deserialize, Serialize};
use twin::TruthInterval;

/// The true limits of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Truth {
    /// The limit that cost the most.
    pub(crate) limit: Limit,
    /// Parts of the run with one limit, in the order of time.
    pub(crate) segments: Vec<TrueSegment>,
    /// Each limit's share of the cost, the largest first.
    pub(crate) shares: Vec<(Limit, f64)>,
    /// A boundary between segments is found within this, s: two RTTs, 0.3 s at least.
    pub(crate) near_s: f64,
}

/// A part of a run with one limit; times in seconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrueSegment {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) limit: Limit,
}

/// The true limits of a case that had this ground truth.
///
/// # Errors
/// The path is not valid.
pub(crate) fn label(case: &Case, intervals: &[TruthInterval]) -> Fallible<Truth> {
    let facts = Facts::of(case)?;
    let intervals = within(case, intervals);
    let limits = rules::limits(&facts, intervals);
    let segments = segments::merged(&limits, intervals, |limit| facts.shortest_segment_s(limit));
    Ok(segments::costs(&facts, segments, intervals))
}

/// Without the intervals that end after the transfer.
fn within<'a>(case: &Case, intervals: &'a [TruthInterval]) -> &'a [TruthInterval] {
    let end = intervals.partition_point(|interval| interval.to_s <= case.seconds + 0.05);
    &intervals[..end]
}
