//! Where the cells of a study run: labs in this machine, or real hosts.

use crate::CampaignError;
use crate::captures::CaptureFile;
use perf::StopFlag;
use record::{FlowFigures, Measurement, StartSkew};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use study::{CellRun, Part, Test};

/// Where the cells of a study run.
pub(crate) trait Testbed: Sync {
    /// Runs a test once; what a lab draws is of `seed`. A lab's packets go to `capture`.
    fn attempt(
        &self,
        test: &Test,
        seed: u64,
        capture: Option<CaptureFile>,
        stop: &StopFlag,
    ) -> Result<Attempt, AttemptError>;

    /// The file for a capture of an attempt at a run, if one is kept.
    fn capture(&self, part: &Part, run: CellRun, attempt: u32) -> io::Result<Option<CaptureFile>>;

    /// Runs that may be under way at once, of those that the user allows.
    fn at_once(&self, allowed: u32) -> u32;

    /// Waits until another attempt is more likely to give a valid run.
    fn settle(&self, stop: &StopFlag);

    /// Returns true if the study goes on after a run without a result, which is stored as failed
    /// then. Called after each run.
    fn goes_on(&self, has_result: bool) -> bool;
}

/// The result of one attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Why it is not what the plan asks for; empty if it is.
    pub(crate) reasons: Vec<String>,
    /// True if the machine disturbed it: it is repeated alone.
    pub(crate) disturbed: bool,
    /// From the first flow's first packet to the last one's result.
    pub(crate) took: Duration,
    pub(crate) start_skew: Option<StartSkew>,
    pub(crate) flows: Vec<(FlowFigures, Measurement)>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    #[error("{flow}: {source}")]
    Flow { flow: String, source: perf::PerfError },
    #[error("{flow}: {why}")]
    Program { flow: String, why: String },
    #[error(
        "not run: {flow} sends a file from a slow disk, which needs FUSE: {source}; load it with \
         modprobe fuse, or give the container /dev/fuse"
    )]
    Disk { flow: String, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Capture { path: PathBuf, source: io::Error },
    #[error("cannot enter a host of the lab: {0}")]
    Host(#[from] io::Error),
    #[error("{0}")]
    Path(String),
    #[error("cannot create a token for the servers: {0}")]
    Token(io::Error),
    #[error(transparent)]
    Remote(#[from] remote::RemoteError),
    #[error("interrupted")]
    Interrupted,
}

impl From<AttemptError> for CampaignError {
    fn from(error: AttemptError) -> Self {
        match error {
            AttemptError::Interrupted | AttemptError::Remote(remote::RemoteError::Interrupted) => {
                CampaignError::Interrupted
            }
            other => CampaignError::Hosts(other.to_string()),
        }
    }
}
