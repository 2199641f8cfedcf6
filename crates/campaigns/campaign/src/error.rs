//! Why a study could not be run or read.

use crate::merge::MAX_MERGED;
use crate::simulated_cell::Unsupported;
use problem::Field;
use record::StudyTestbed;
use std::io;
use std::path::PathBuf;

/// Why a study could not be run or read.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The directory cannot be used.
    #[error("cannot use {} for a study: {source}", folder.display())]
    Folder {
        /// The directory.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no study in it.
    #[error(
        "{} has no study (study.db); `longhaul study run PLAN {} DIR` writes one",
        folder.display(),
        Field::Out
    )]
    NoStudy {
        /// The directory.
        folder: PathBuf,
    },
    /// It has the results of another plan.
    #[error(
        "{} holds the results of another plan or form; give another directory with {}",
        folder.display(),
        Field::Out
    )]
    OtherPlan {
        /// The directory.
        folder: PathBuf,
    },
    /// Its results are of another testbed.
    #[error(
        "{} holds results of {}; give another directory with {}",
        folder.display(),
        match stored {
            StudyTestbed::Lab => "labs",
            StudyTestbed::Hosts => "real hosts",
            StudyTestbed::Simulator => "the simulator",
        },
        Field::Out
    )]
    OtherTestbed {
        /// The directory.
        folder: PathBuf,
        /// Where its runs took place.
        stored: StudyTestbed,
    },
    /// Another process is writing to it.
    #[error("{} is in use by another process that runs this study", file.display())]
    Busy {
        /// The store.
        file: PathBuf,
    },
    /// A later version of longhaul wrote it.
    #[error(
        "{} has study tables of version {version}, which this version cannot read; use the version \
         of longhaul that wrote it",
        file.display()
    )]
    Version {
        /// The store.
        file: PathBuf,
        /// Its version.
        version: i64,
    },
    /// There is no space left.
    #[error(
        "no space left for {}: everything measured so far is kept; free space and run the same \
         command again to resume",
        file.display()
    )]
    Full {
        /// The store.
        file: PathBuf,
    },
    /// It is not a study's store, or it is damaged.
    #[error("{} is not a readable study store: {why}", file.display())]
    Damaged {
        /// The store.
        file: PathBuf,
        /// The error.
        why: String,
    },
    /// The lab of a cell cannot be built.
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    /// The sandbox lacks something.
    #[error("{step} failed: {source}")]
    System {
        /// The step that failed.
        step: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel has a sysctl and refuses its value.
    #[error("the kernel refuses {name} = {value}: {source}")]
    Sysctl {
        /// The sysctl.
        name: String,
        /// The plan's value.
        value: String,
        /// The system's error.
        source: io::Error,
    },
    /// A real host cannot be used.
    #[error("{0}; everything measured so far is kept: run the same command again to resume")]
    Hosts(String),
    /// The simulator cannot run some of its cells.
    #[error("{0}")]
    Unsupported(Unsupported),
    /// A number of stores that cannot be joined at once.
    #[error("cannot merge {count} stores; give 2 to {MAX_MERGED}, and merge more step by step")]
    MergeCount {
        /// The stores given.
        count: usize,
    },
    /// The directory for a joined store exists.
    #[error("{} exists; give a new directory with {}", folder.display(), Field::Into)]
    Exists {
        /// The directory.
        folder: PathBuf,
    },
    /// Stores that are not of one study.
    #[error(
        "{} and {} differ in {what}; merge stores of one study only",
        folders[0].display(),
        folders[1].display()
    )]
    MergeDiffers {
        /// The directories.
        folders: [PathBuf; 2],
        /// What differs.
        what: &'static str,
    },
    /// A store of an earlier version.
    #[error(
        "{} has study tables of an earlier version, which can be read but not merged; run its \
         cells again",
        folder.display()
    )]
    MergeOld {
        /// The directory.
        folder: PathBuf,
    },
    /// A run that differs between two stores.
    #[error(
        "{} and {} have different results of {run}; merge each run once, and not runs of two labs",
        folders[0].display(),
        folders[1].display()
    )]
    MergeConflict {
        /// The run in words.
        run: String,
        /// The directories.
        folders: [PathBuf; 2],
    },
    /// Stopped by the user.
    #[error("interrupted; run the same command again to resume")]
    Interrupted,
}

impl CampaignError {
    pub(crate) fn system(step: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| CampaignError::System { step, source }
    }
}
