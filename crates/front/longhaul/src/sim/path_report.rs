//! The path of a simulation, as measurements in a lab have it.

use super::prepared::Prepared;
use record::{PathReport, RequestedPath};
use topology::PathSpec;
use twin::Outcome;

/// The path that was asked for, with its changes, and what both links counted.
pub(super) fn of(path: &PathSpec, prepared: &Prepared, outcome: &Outcome) -> PathReport {
    let report = twin::path_report(path, prepared.seed, outcome);
    let changes = prepared.changes.clone();
    PathReport { asked: RequestedPath { changes, ..report.asked }, ..report }
}
