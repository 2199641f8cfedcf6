//! The results of a study that ran, or is running.

use super::pages;
use super::run::failed;
use crate::{Fault, Problem};
use campaign::{ParquetExportError, Store};
use record::{StudyComparison, StudyReport, StudyRun};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use study::Study;

/// The report of a study, finished or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyReportRequest {
    /// Directory with the study's results.
    pub folder: PathBuf,
    /// A page to write (HTML).
    #[serde(default)]
    pub html: Option<PathBuf>,
}

/// Two studies, cell by cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyCompareRequest {
    /// The directories of their results.
    pub folders: [PathBuf; 2],
    /// A page to write (HTML).
    #[serde(default)]
    pub html: Option<PathBuf>,
}

/// The runs of a study as a table, or its plots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyExportRequest {
    /// Directory with the study's results.
    pub folder: PathBuf,
    /// The form.
    pub form: ExportForm,
}

/// The form of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportForm {
    /// Comma-separated values with a header line.
    Csv,
    /// A JSON object for each run, one per line.
    Json,
    /// Parquet files in a new directory, partitioned as by Hive: by part and first factor.
    Parquet(PathBuf),
    /// An SVG file for each plot of the report, in a new directory.
    Svg(PathBuf),
}

/// The result of an export.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Exported {
    /// The table.
    Text(String),
    /// The number of files in the new directory.
    Files(usize),
}

/// A study with its runs.
pub(super) struct Results {
    pub(super) study: Study,
    /// Of each part.
    pub(super) runs: Vec<Vec<StudyRun>>,
    pub(super) report: StudyReport,
    /// Kernel and cores of the host that measured.
    pub(super) host: String,
}

impl Results {
    pub(super) fn of(study: Study, store: &Store) -> Result<Self, Problem> {
        let runs = study.parts.iter().map(|part| store.runs(&part.name));
        let runs: Vec<Vec<StudyRun>> = runs.collect::<Result<_, _>>().map_err(failed)?;
        let report = StudyReport {
            not_set: store.not_set().map_err(failed)?,
            testbed: store.testbed().map_err(failed)?,
            hosts: store.hosts().map_err(failed)?,
            ..study.report(&runs, study::trends(&study, &runs))
        };
        let host = store.property("host").map_err(failed)?;
        Ok(Results { study, runs, report, host })
    }

    /// The study of a directory.
    fn read(folder: &Path) -> Result<Self, Problem> {
        let wrong = |error| Problem::new(Fault::Request, error);
        let store = Store::read(folder).map_err(wrong)?;
        let study = store.study().map_err(wrong)?;
        Results::of(study, &store)
    }
}

/// Reports on a study, finished or not.
///
/// # Errors
/// A directory without a study, or a page that cannot be written.
pub fn report(request: &StudyReportRequest) -> Result<StudyReport, Problem> {
    let results = Results::read(&request.folder)?;
    if let Some(file) = &request.html {
        pages::write_report(&results, file)?;
    }
    Ok(results.report)
}

/// Compares the cells that have the same values of the same factors.
///
/// # Errors
/// Directories without studies, studies without a common cell, a page that cannot be written.
pub fn compare(request: &StudyCompareRequest) -> Result<StudyComparison, Problem> {
    let unwritable = |error| Problem::new(Fault::Internal, error);
    if let Some(file) = &request.html {
        store::check_writable(file).map_err(unwritable)?;
    }
    let [first, second] = &request.folders;
    let (first, second) = (Results::read(first)?, Results::read(second)?);
    let comparison = study::compare((&first.study, &first.runs), (&second.study, &second.runs));
    let mut comparison = comparison.map_err(|error| Problem::new(Fault::Request, error))?;
    // Two runs of one plan have one name.
    if comparison.names[0] == comparison.names[1] {
        comparison.names = request.folders.each_ref().map(|folder| folder.display().to_string());
    }
    if let Some(file) = &request.html {
        let page = report::html::study_comparison_page(&comparison);
        store::write(file, page.as_bytes())
            .map_err(|error| Problem::new(Fault::Internal, error))?;
    }
    Ok(comparison)
}

/// Exports the runs of a study (its factors, the repeat, and every figure), or its plots.
///
/// # Errors
/// A directory without a study, or one to write to that exists.
pub fn export(request: &StudyExportRequest) -> Result<Exported, Problem> {
    let results = Results::read(&request.folder)?;
    Ok(match &request.form {
        ExportForm::Csv => Exported::Text(campaign::csv(&results.study, &results.runs)),
        ExportForm::Json => Exported::Text(campaign::json_lines(&results.study, &results.runs)),
        ExportForm::Parquet(folder) => {
            let files = campaign::parquet(&results.study, &results.runs, folder);
            Exported::Files(files.map_err(|error| match error {
                ParquetExportError::Exists(_) => Problem::new(Fault::Request, error),
                other => Problem::new(Fault::Internal, other),
            })?)
        }
        ExportForm::Svg(folder) => Exported::Files(pages::write_plots(&results, folder)?),
    })
}
