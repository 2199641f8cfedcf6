//! The earlier result that a test is compared with.

use crate::{Fault, Field, Problem};
use diagnose::repeats;
use record::RunFigures;
use serde::{Deserialize, Serialize};
use std::path::Path;
use store::Baseline;

/// The figures of an earlier test, or of repeated ones.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// Of each test.
    pub runs: Vec<RunFigures>,
    /// True if its test limited unsent data on a short path; earlier versions never did.
    pub limits_unsent: bool,
}

impl Earlier {
    /// Reads the file of a measurement, or of repeated tests.
    ///
    /// # Errors
    /// A file that cannot be read, or has no figures.
    pub fn load(path: &Path) -> Result<Self, Problem> {
        let loaded = store::load_baseline(path);
        let loaded = loaded.map_err(|error| Problem::new(Fault::Request, error))?;
        let earlier = match loaded {
            Baseline::Measurement(measurement) => Earlier {
                runs: vec![repeats::figures(&measurement)],
                limits_unsent: measurement.spec.limits_unsent,
            },
            Baseline::Repeat(report) => {
                Earlier { runs: report.runs, limits_unsent: report.spec.limits_unsent }
            }
        };
        earlier.checked(|| path.display().to_string())
    }

    /// Checks that there are figures, all of them plausible.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let is_plausible = |run: &RunFigures| {
            run.blocks_bps.iter().all(|bps| bps.is_finite() && (0.0..1e15).contains(bps))
        };
        if !self.runs.is_empty() && self.runs.iter().all(is_plausible) {
            return Ok(());
        }
        let what = "the earlier result has no runs to compare with";
        Err(Problem::field(Field::Compare, what, "a saved test, or saved repeated tests"))
    }

    fn checked(self, name: impl FnOnce() -> String) -> Result<Self, Problem> {
        self.check().map_err(|problem| {
            let message = format!("{} has no runs to compare with", name());
            Problem { message, ..problem }
        })?;
        Ok(self)
    }
}
