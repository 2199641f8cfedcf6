//! What limited a run, computed from its ground truth: one limit for each 100 ms, and the
//! limit that cost the most. `docs/design/ground-truth.md` defines both.

mod facts;
mod reductions;
mod rules;
mod segments;
mod windows;

use crate::Scenario;
use facts::Facts;
use record::Limit;
use serde::{Deserialize, Serialize};
use topology::PathError;
use twin::TruthInterval;

/// The true limits of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// The limit that cost the most.
    pub limit: Limit,
    /// Parts of the run with one limit, in the order of time.
    pub segments: Vec<TrueSegment>,
    /// Each limit's share of the cost, the largest first.
    pub shares: Vec<(Limit, f64)>,
    /// A boundary between segments is found within this, s: two RTTs, 0.3 s at least.
    pub near_s: f64,
}

/// A part of a run with one limit; times in seconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrueSegment {
    /// Its start.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// The limit.
    pub limit: Limit,
}

impl Truth {
    /// The true limits of a scenario whose run had these records: of the simulation, or of
    /// real hosts over an emulated path.
    ///
    /// # Errors
    /// The path is not valid.
    pub fn of(scenario: &Scenario, intervals: &[TruthInterval]) -> Result<Self, PathError> {
        let facts = Facts::of(scenario)?;
        let intervals = within(scenario, intervals);
        let limits = rules::limits(&facts, intervals);
        let segments = segments::merged(&limits, intervals, |it| facts.shortest_segment_s(it));
        Ok(segments::costs(&facts, segments, intervals))
    }
}

/// Without the intervals that end after the transfer.
fn within<'a>(scenario: &Scenario, intervals: &'a [TruthInterval]) -> &'a [TruthInterval] {
    let end = intervals.partition_point(|interval| interval.to_s <= scenario.seconds + 0.05);
    &intervals[..end]
}
