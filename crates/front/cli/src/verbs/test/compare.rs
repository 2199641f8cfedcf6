//! The earlier result that a test is compared with (`--compare`).

use crate::failure::Failure;
use diagnose::repeats;
use record::RunFigures;
use std::path::Path;
use store::Baseline;

/// An earlier result.
pub(super) struct Earlier {
    pub(super) runs: Vec<RunFigures>,
    /// Whether its test limited unsent data on a short path; earlier versions never did.
    pub(super) limits_unsent: bool,
}

/// Reads an earlier result, before anything is sent.
pub(super) fn load(path: &Path) -> Result<Earlier, Failure> {
    let wrong = || {
        let path = path.display();
        Failure::usage(format!(
            "{path} has no runs to compare with; give a result of `longhaul test --save`"
        ))
    };
    let (runs, limits_unsent) = match store::load_baseline(path).map_err(Failure::usage)? {
        Baseline::Measurement(measurement) => {
            (vec![repeats::figures(&measurement)], measurement.spec.limits_unsent)
        }
        Baseline::Repeat(report) => (report.runs, report.spec.limits_unsent),
    };
    let sound = |run: &RunFigures| {
        run.blocks_bps.iter().all(|bps| bps.is_finite() && (0.0..1e15).contains(bps))
    };
    if runs.is_empty() || !runs.iter().all(sound) {
        Err(wrong())
    } else {
        Ok(Earlier { runs, limits_unsent })
    }
}
