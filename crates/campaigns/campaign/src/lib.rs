//! Runs studies: every cell of a plan in a lab of its own, between real hosts, or in the simulator;
//! the results in a store.
//!
//! ```text
//!  study::Study ──> run ──> testbed: lab, hosts or simulator ──> figures ──> Store (SQLite)
//!                    ^                                                         │
//!                    └────────────── runs that are stored ─────────────────────┘
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
mod merge;
mod missing;
mod numeric_twin;
mod parquet;
mod pending;
mod programs;
mod runner;
mod schedule;
mod simulated_cell;
mod simulated_study;
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
pub use merge::{MAX_MERGED, Merged, merge};
pub use parquet::{ParquetExportError, parquet};
pub use runner::{Event, Options, run};
pub use simulated_cell::{NotSimulated, Unsupported, unsupported};
pub use store::{Measured, Store, untrusted};
pub use timing::Progress;
