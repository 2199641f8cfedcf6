//! Runs studies: every cell of a plan in a lab of its own, or between real hosts; the results
//! in a store.
//!
//! ```text
//!  study::Study ──> run ──> testbed: lab, or hosts ──> figures ──> Store (SQLite)
//!                    ^                                               │
//!                    └───────── runs that are stored ────────────────┘
//! ```
//!
//! A run is stored before the next one begins, so a study that was killed resumes with the run
//! that it was in.

mod captures;
mod cell_lab;
mod cell_plan;
mod disks;
mod error;
mod export;
mod figures;
mod host_testbed;
mod missing;
mod numeric_twin;
mod parquet;
mod programs;
mod runner;
mod schedule;
mod store;
mod testbed;
mod timing;
mod transfers;
mod watched;
mod window_share;

pub use captures::{CaptureOptions, MAX_CAPTURES, captures_folder};
pub use error::CampaignError;
pub use export::{csv, json_lines};
pub use host_testbed::HostAccess;
pub use parquet::{ParquetExportError, parquet};
pub use runner::{Event, Options, run};
pub use store::{Measured, Store, untrusted};
pub use timing::Progress;
