//! Measurements on disk, for machines and for years.
//!
//! A file is one JSON object whose `schema` names its version. It is written
//! beside its place and moved there when whole, so that a reader never sees
//! half of one, and an older file is lost only once the newer is complete.

mod place;
mod recording;

pub use place::{WriteError, write};
pub use recording::{Recorded, Recording, is_recording, load_recording};

use record::{MEASUREMENT_SCHEMA, Measurement, REPEAT_SCHEMA, RepeatReport};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes: a day at ten samples a second over
/// 128 streams is kept in less, as long series are thinned.
const MOST: u64 = 256 << 20;

/// Why a file does not give a measurement.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is far larger than any measurement.
    #[error("{path} is larger than 256 MiB, so it is no measurement of `longhaul test --save`")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is something else.
    #[error("{path} is no measurement ({why}); `longhaul test HOST --save FILE` writes them")]
    Other {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A line of a recording is none.
    #[error(
        "{path} is no recording: line {number}: {why}; `longhaul watch --record FILE` writes them"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// It is of another version.
    #[error(
        "{path} has schema '{schema}', which this version does not read; use the longhaul that wrote it"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The schema it names.
        schema: String,
    },
    /// It is nothing to compare with.
    #[error(
        "{path} has schema '{schema}', and only '{MEASUREMENT_SCHEMA}' and '{REPEAT_SCHEMA}' can be compared with; `longhaul test HOST --save FILE` writes them"
    )]
    NoBaseline {
        /// The file.
        path: PathBuf,
        /// The schema it names.
        schema: String,
    },
}

/// The schema before UDP: what it lacks has defaults that tell the truth.
const BEFORE_UDP: &str = "longhaul.measurement/1";

#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// Keeps a measurement in the file at `path`.
///
/// # Errors
/// [`WriteError`]; what was there before is still there.
pub fn save(path: &Path, measurement: &Measurement) -> Result<(), WriteError> {
    let mut json = serde_json::to_vec(measurement)
        .map_err(|source| WriteError { path: path.to_owned(), source: source.into() })?;
    json.push(b'\n');
    write(path, &json)
}

/// Reads a measurement back.
///
/// # Errors
/// [`LoadError`].
pub fn load(path: &Path) -> Result<Measurement, LoadError> {
    let text = read(path)?;
    let other = |error| other(path, &error);
    let Head { schema } = serde_json::from_slice(&text).map_err(other)?;
    if schema != MEASUREMENT_SCHEMA && schema != BEFORE_UDP {
        return Err(LoadError::Version { path: path.to_owned(), schema: shown(&schema) });
    }
    serde_json::from_slice(&text).map_err(other)
}

/// What can be compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Baseline {
    /// One test.
    Measurement(Box<Measurement>),
    /// Several that asked the same.
    Repeat(Box<RepeatReport>),
}

/// Keeps several tests in the file at `path`.
///
/// # Errors
/// [`WriteError`]; what was there before is still there.
pub fn save_repeat(path: &Path, report: &RepeatReport) -> Result<(), WriteError> {
    let mut json = serde_json::to_vec(report)
        .map_err(|source| WriteError { path: path.to_owned(), source: source.into() })?;
    json.push(b'\n');
    write(path, &json)
}

/// Reads an earlier result, of one test or of several.
///
/// # Errors
/// [`LoadError`].
pub fn load_baseline(path: &Path) -> Result<Baseline, LoadError> {
    let text = read(path)?;
    let other = |error| other(path, &error);
    let Head { schema } = serde_json::from_slice(&text).map_err(other)?;
    match schema.as_str() {
        MEASUREMENT_SCHEMA | BEFORE_UDP => {
            serde_json::from_slice(&text).map(Baseline::Measurement).map_err(other)
        }
        REPEAT_SCHEMA => serde_json::from_slice(&text).map(Baseline::Repeat).map_err(other),
        _ => Err(LoadError::NoBaseline { path: path.to_owned(), schema: shown(&schema) }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let unreadable = |source| LoadError::Read { path: path.to_owned(), source };
    let mut text = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MOST {
        return Err(LoadError::TooLarge { path: path.to_owned() });
    }
    Ok(text)
}

fn other(path: &Path, error: &serde_json::Error) -> LoadError {
    let why = if error.is_data() { error.to_string() } else { format!("not JSON: {error}") };
    LoadError::Other { path: path.to_owned(), why }
}

/// A schema's name as an error may repeat it.
fn shown(schema: &str) -> String {
    schema.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests;
