//! Runs as files.

use bench_harness::Fallible;
use record::{Limit, Measurement};
use serde::{Deserialize, Serialize};
use simulator::{Scenario, TrueSegment, Truth, Vantage};
use std::path::{Path, PathBuf};
use twin::TruthInterval;

/// A run, with what its label is computed from: another definition of the labels needs no
/// new run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) number: usize,
    /// The case in words: shows whether the families still draw it.
    pub(crate) case: String,
    pub(crate) intervals: Vec<TruthInterval>,
    /// A thread of the test was CPU-limited for most of it.
    pub(crate) cpu_limited: bool,
    pub(crate) measurement: Measurement,
    /// What captures at the sender and at the receiver show.
    #[serde(default)]
    pub(crate) captured: Option<[Measurement; 2]>,
}

impl Run {
    /// What limited it.
    ///
    /// # Errors
    /// The path of the case is not valid.
    pub(crate) fn truth(&self, case: &Scenario) -> Fallible<Truth> {
        let truth = Truth::of(case, &self.intervals)?;
        if !self.cpu_limited {
            return Ok(truth);
        }
        let whole = TrueSegment { from_s: 0.0, to_s: case.seconds, limit: Limit::Cpu };
        let (limit, shares) = (Limit::Cpu, vec![(Limit::Cpu, 1.0)]);
        Ok(Truth { limit, segments: vec![whole], shares, near_s: truth.near_s })
    }

    /// The run as seen from a vantage point.
    ///
    /// # Errors
    /// The run has no captures.
    pub(crate) fn seen_from(&self, vantage: Vantage) -> Fallible<Measurement> {
        let seen = vantage.view(&self.measurement, self.captured.as_ref());
        Ok(seen.ok_or("the run was stored without captures")?)
    }
}

/// Writes a run into a folder, which is created if it does not exist.
///
/// # Errors
/// It cannot be written.
pub(crate) fn save(folder: &Path, run: &Run) -> Fallible<()> {
    std::fs::create_dir_all(folder)?;
    let name = format!("{}-{:05}.json", run.seed, run.number);
    std::fs::write(folder.join(name), serde_json::to_vec(run)?)?;
    Ok(())
}

/// The runs of a folder, in the order of their names.
///
/// # Errors
/// One cannot be read.
pub(crate) fn load(folder: &Path) -> Fallible<Vec<Run>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut names = entries.collect::<Fallible<Vec<PathBuf>>>()?;
    names.sort();
    let read = |name: &PathBuf| Ok(serde_json::from_slice(&std::fs::read(name)?)?);
    names.iter().map(read).collect()
}
