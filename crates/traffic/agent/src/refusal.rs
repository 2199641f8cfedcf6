//! Requests that an agent cannot carry out.

use perf::PerfError;
use problem::Problem;
use std::io;
use tune::{LockError, TunerError};

/// The reason that an agent replies with; it goes on answering.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// There is no place for the journals of what it sets.
    #[error(transparent)]
    Journals(#[from] Problem),
    /// Another program changes settings.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A setting cannot be changed or reverted.
    #[error(transparent)]
    Tuner(#[from] TunerError),
    /// A setting that no study changes.
    #[error("{key} = {value}: not a sysctl, or not a value, that longhaul sets")]
    NotTuned { key: String, value: String },
    /// This host lacks a setting that the study needs.
    #[error("{key}: {note}")]
    NotSet { key: String, note: String },
    /// One server is all that a study needs.
    #[error("it serves tests already")]
    AlreadyServing,
    /// The server cannot listen.
    #[error(transparent)]
    Server(#[from] PerfError),
    /// The system gives it no thread.
    #[error(transparent)]
    Thread(io::Error),
}
