//! Saves and loads measurements, results of repeated tests, and recordings.
//!
//! A file is one JSON object whose `schema` names its version. It is written to a
//! temporary file and renamed, so that a reader never sees a partial file, and the
//! previous file is replaced only once the new one is complete.

mod atomic_write;
mod baseline;
mod recording;

pub use atomic_write::{PendingFile, WriteError, check_writable, write};
pub use baseline::{load_baseline_report, parse_baseline_report, save_baseline_report};
pub use recording::{RecordedConnection, Recording, is_recording, load_recording, read_recording};

use host::file::{ReadError, read_bounded};
use problem::Field;
use record::{MEASUREMENT_SCHEMA, Measurement, REPEAT_SCHEMA, RepeatReport};
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// Maximum size of a file: a day at ten samples a second over 128 streams takes
/// less, as long series are thinned.
const MAX_SIZE: ByteCount = ByteCount::from_bytes(256 << 20);

/// Why a file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is larger than any measurement.
    #[error("{path} is not a measurement: it is larger than 256 MiB")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not a measurement.
    #[error(
        "{path} is not a measurement ({why}); `longhaul test HOST {} FILE` writes them",
        Field::Save
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A line of a recording is invalid.
    #[error(
        "{path} is not a recording: line {number}: {why}; `longhaul watch {} FILE` writes them",
        Field::Record
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// It has another version.
    #[error(
        "{path} has schema '{schema}', which this version cannot read; use the version of longhaul that wrote it"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The schema it names.
        schema: String,
    },
    /// It is no baseline, or one with values that no test has.
    #[error("cannot compare with {path}: {why}; `longhaul baseline HOST` writes baselines")]
    NoBaselineReport {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It is neither a measurement nor a result of repeated tests.
    #[error(
        "cannot compare with {path}: its schema is '{schema}', not '{MEASUREMENT_SCHEMA}' or '{REPEAT_SCHEMA}'; `longhaul test HOST {} FILE` writes them",
        Field::Save
    )]
    NoBaseline {
        /// The file.
        path: PathBuf,
        /// The schema it names.
        schema: String,
    },
}

/// Every schema of a measurement; the fields that earlier versions lack have defaults.
const MEASUREMENT_SCHEMAS: [&str; 3] =
    ["longhaul.measurement/1", "longhaul.measurement/2", MEASUREMENT_SCHEMA];

/// Every schema of repeated tests; a limit's former name is read as its present one.
const REPEAT_SCHEMAS: [&str; 2] = ["longhaul.repeat/1", REPEAT_SCHEMA];

#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// Saves a measurement to the file at `path`.
///
/// # Errors
/// [`WriteError`]; the previous file is then unchanged.
pub fn save(path: &Path, measurement: &Measurement) -> Result<(), WriteError> {
    save_json(path, serde_json::to_vec(measurement))
}

/// Loads a measurement.
///
/// # Errors
/// [`LoadError`].
pub fn load(path: &Path) -> Result<Measurement, LoadError> {
    parse(path, &read(path)?)
}

/// Parses a measurement; `path` is only used in errors.
///
/// # Errors
/// [`LoadError`].
pub fn parse(path: &Path, text: &[u8]) -> Result<Measurement, LoadError> {
    let other = |error| other(path, &error);
    let Head { schema } = serde_json::from_slice(text).map_err(other)?;
    if !MEASUREMENT_SCHEMAS.contains(&schema.as_str()) {
        return Err(LoadError::Version { path: path.to_owned(), schema: shown(&schema) });
    }
    serde_json::from_slice(text).map_err(other)
}

/// An earlier result to compare with.
#[derive(Debug, Clone, PartialEq)]
pub enum Baseline {
    /// One test.
    Measurement(Box<Measurement>),
    /// Several runs of the same test.
    Repeat(Box<RepeatReport>),
}

/// Saves the result of repeated tests to the file at `path`.
///
/// # Errors
/// [`WriteError`]; the previous file is then unchanged.
pub fn save_repeat(path: &Path, report: &RepeatReport) -> Result<(), WriteError> {
    save_json(path, serde_json::to_vec(report))
}

fn save_json(path: &Path, json: serde_json::Result<Vec<u8>>) -> Result<(), WriteError> {
    let mut json =
        json.map_err(|source| WriteError { path: path.to_owned(), source: source.into() })?;
    json.push(b'\n');
    write(path, &json)
}

/// Loads an earlier result, of one test or of several.
///
/// # Errors
/// [`LoadError`].
pub fn load_baseline(path: &Path) -> Result<Baseline, LoadError> {
    parse_baseline(path, &read(path)?)
}

/// Parses an earlier result; `path` is only used in errors.
///
/// # Errors
/// [`LoadError`].
pub fn parse_baseline(path: &Path, text: &[u8]) -> Result<Baseline, LoadError> {
    let other = |error| other(path, &error);
    let Head { schema } = serde_json::from_slice(text).map_err(other)?;
    match schema.as_str() {
        known if MEASUREMENT_SCHEMAS.contains(&known) => {
            serde_json::from_slice(text).map(Baseline::Measurement).map_err(other)
        }
        known if REPEAT_SCHEMAS.contains(&known) => {
            serde_json::from_slice(text).map(Baseline::Repeat).map_err(other)
        }
        _ => Err(LoadError::NoBaseline { path: path.to_owned(), schema: shown(&schema) }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    read_bounded(path, MAX_SIZE).map_err(|error| match error {
        ReadError::TooLarge { .. } => LoadError::TooLarge { path: path.to_owned() },
        other => LoadError::Read { path: path.to_owned(), source: other.into() },
    })
}

fn other(path: &Path, error: &serde_json::Error) -> LoadError {
    let why = if error.is_data() { error.to_string() } else { format!("not JSON: {error}") };
    LoadError::Other { path: path.to_owned(), why }
}

/// A schema's name, safe to print.
fn shown(schema: &str) -> String {
    schema.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests;
