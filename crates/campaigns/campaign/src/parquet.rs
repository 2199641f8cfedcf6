//! The runs of a study as Parquet files, in directories that name their partition as Hive does:
//!
//! ```text
//! study=NAME/part=PART/factor=FACTOR/value=VALUE/runs.parquet
//! ```
//!
//! A part is divided by the values of its first factor. Each file has the columns of the other
//! exports, the factors among them.

use crate::export::{Column, ColumnKind, columns};
use host::output_file;
use parquet_file::{Values, Writer};
use record::StudyRun;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use study::{Part, Study};

/// Why there are no Parquet files.
#[derive(Debug, thiserror::Error)]
pub enum ParquetExportError {
    /// The directory is there, perhaps with other files.
    #[error("{} exists; give a new directory", .0.display())]
    Exists(PathBuf),
    /// A file or a directory cannot be written.
    #[error("cannot write {}: {source}", file.display())]
    Write {
        /// Which.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Writes the runs of each part below a new directory; the number of files.
///
/// # Errors
/// The directory exists, or cannot be written.
pub fn parquet(
    study: &Study,
    runs: &[Vec<StudyRun>],
    folder: &Path,
) -> Result<usize, ParquetExportError> {
    // The part is in the name of the directory.
    let columns: Vec<Column> =
        columns(study).into_iter().filter(|column| column.name != "part").collect();
    let write = |file: &Path| {
        let file = file.to_owned();
        move |source| ParquetExportError::Write { file, source }
    };
    match output_file::create_directory(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(ParquetExportError::Exists(folder.to_owned()));
        }
        other => other.map_err(write(folder))?,
    }
    let mut files = 0;
    for (part, runs) in study.parts.iter().zip(runs) {
        for (directory, runs) in partitions(study, part, runs) {
            let path = folder.join(&directory).join("runs.parquet");
            let file = begin(folder, &directory).map_err(write(&path))?;
            table(file, &columns, part, &runs).map_err(write(&path))?;
            files += 1;
        }
    }
    Ok(files)
}

/// Begins the file of a partition below `folder`, in directories that may be there.
fn begin(folder: &Path, partition: &Path) -> io::Result<File> {
    let mut directory = folder.to_owned();
    for name in partition {
        directory.push(name);
        match output_file::create_directory(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    output_file::create_readable(&directory.join("runs.parquet"))
}

/// The runs of a part by the value of its first factor, each with its directory.
fn partitions<'a>(
    study: &Study,
    part: &Part,
    runs: &'a [StudyRun],
) -> BTreeMap<PathBuf, Vec<&'a StudyRun>> {
    let mut all: BTreeMap<PathBuf, Vec<&StudyRun>> = BTreeMap::new();
    let factor = part.plan.factors.first();
    for run in runs {
        let cell = part.plan.cell(run.cell);
        let keys = [
            ("study", study.name.clone()),
            ("part", if part.name.is_empty() { "all".to_owned() } else { part.name.clone() }),
            ("factor", factor.map_or(String::new(), |factor| factor.setting.to_string())),
            ("value", cell.levels.first().map_or(String::new(), |level| level.text.clone())),
        ];
        let directory = keys.iter().map(|(key, value)| format!("{key}={}", escaped(value)));
        all.entry(directory.collect()).or_default().push(run);
    }
    all
}

/// A value as part of a directory's name; what is no letter or digit, and not one of `-_.`, is
/// percent-encoded, as Hive does.
fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let byte = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    value.bytes().map(byte).collect()
}

fn table(file: File, columns: &[Column], part: &Part, runs: &[&StudyRun]) -> io::Result<()> {
    let values = columns.iter().map(|column| {
        let values = runs.iter().map(|run| (column.value)(part, run));
        values_of(column.kind, values)
    });
    let values: Vec<Values> = values.collect();
    let columns = columns.iter().zip(&values).map(|(column, values)| parquet_file::Column {
        name: column.name.clone(),
        kind: values.kind(),
    });
    let mut writer = Writer::new(BufWriter::new(file), columns.collect())?;
    writer.group(&values)?;
    writer.finish()?;
    Ok(())
}

fn values_of(kind: ColumnKind, values: impl Iterator<Item = Value>) -> Values {
    match kind {
        ColumnKind::Text => {
            Values::Text(values.map(|value| value.as_str().map(str::to_owned)).collect())
        }
        ColumnKind::Whole => Values::Whole(values.map(|value| value.as_i64()).collect()),
        ColumnKind::Real => Values::Real(values.map(|value| value.as_f64()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_within_their_directory() {
        assert_eq!(escaped("64KiB"), "64KiB");
        assert_eq!(escaped("../a b=ü"), "..%2Fa%20b%3D%C3%BC");
    }
}
