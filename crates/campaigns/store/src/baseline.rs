//! Files of `longhaul baseline`.

use crate::{Head, LoadError, WriteError, read, save_json, shown};
use record::{BASELINE_SCHEMA, BaselineReport, RunFigures};
use std::path::Path;

/// Conditions and tests of one at most: more than any baseline has.
const MAX_CONDITIONS: usize = 64;
const MAX_RUNS: usize = 2_000;

/// A goodput that no test reaches, bit/s.
const TOO_FAST: f64 = 1e15;

/// Saves a baseline to the file at `path`.
///
/// # Errors
/// [`WriteError`]; the previous file is then unchanged.
pub fn save_baseline_report(path: &Path, report: &BaselineReport) -> Result<(), WriteError> {
    save_json(path, serde_json::to_vec_pretty(report))
}

/// Loads a baseline.
///
/// # Errors
/// [`LoadError`].
pub fn load_baseline_report(path: &Path) -> Result<BaselineReport, LoadError> {
    parse_baseline_report(path, &read(path)?)
}

/// Parses a baseline; `path` is only used in errors.
///
/// # Errors
/// [`LoadError`].
pub fn parse_baseline_report(path: &Path, text: &[u8]) -> Result<BaselineReport, LoadError> {
    let wrong = |why: String| LoadError::NoBaselineReport { path: path.to_owned(), why };
    let no_json = |error: serde_json::Error| {
        wrong(match error.is_data() {
            true => format!("it is not a baseline ({error})"),
            false => format!("it is not JSON ({error})"),
        })
    };
    let Head { schema } = serde_json::from_slice(text).map_err(no_json)?;
    if schema != BASELINE_SCHEMA {
        return Err(wrong(format!("its schema is '{}', not '{BASELINE_SCHEMA}'", shown(&schema))));
    }
    let report: BaselineReport = serde_json::from_slice(text).map_err(no_json)?;
    let runs = || report.conditions.iter().flat_map(|one| &one.runs);
    if report.conditions.len() > MAX_CONDITIONS || runs().count() > MAX_RUNS {
        return Err(wrong("it has too many tests for a baseline".to_owned()));
    }
    if runs().next().is_none() {
        return Err(wrong("it has no tests".to_owned()));
    }
    if !runs().all(is_sound) {
        return Err(wrong("it has a goodput that no test reaches".to_owned()));
    }
    Ok(report)
}

fn is_sound(run: &RunFigures) -> bool {
    let mut rates = run.blocks_bps.iter().copied().chain([run.throughput_bps.as_f64()]);
    rates.all(|bps| bps.is_finite() && (0.0..TOO_FAST).contains(&bps))
}
