//! `longhaul study report` and `export`: the results of a study that ran, or is running.

use super::pages;
use crate::console::{self, Console};
use crate::failure::{Code, DONE, FAILED, Failure, NOT_VALID, Outcome};
use crate::output_path::OutputPath;
use crate::test_report;
use campaign::{ParquetExportError, Store};
use clap::Args;
use record::{StudyReport, StudyRun};
use report::terminal::{self, Style};
use std::path::{Path, PathBuf};
use study::Study;

/// Report on a study, finished or not: on the terminal, as a page, or as JSON
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study report edge-cloud.study
  longhaul study report edge-cloud.study --html page.html")]
pub(super) struct ReportArgs {
    /// The directory of its results
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
    /// Print the report as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

/// Compare two studies: the statistics of the difference, cell by cell
///
/// Cells are compared that have the same values of the same factors; what the plans fix may
/// differ, such as the congestion control. Differences are tested with Welch's t-test over the
/// valid runs, and called significant with Holm's correction for the number of cells.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study compare cubic.study bbr.study")]
pub(super) struct CompareArgs {
    /// The directory of the first study's results
    #[arg(value_name = "DIR")]
    first: PathBuf,
    /// The directory of the second study's results
    #[arg(value_name = "DIR")]
    second: PathBuf,
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
    /// Print the comparison as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

/// Export the runs of a study as a table (its factors, the repeat, and every figure), or its
/// plots
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study export window.study --csv > runs.csv
  longhaul study export window.study --parquet runs
  longhaul study export window.study --svg plots")]
pub(super) struct ExportArgs {
    /// The directory of its results
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// The form of an export.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Form {
    /// Comma-separated values with a header line
    #[arg(long)]
    csv: bool,
    /// A JSON object for each run, one per line
    #[arg(long)]
    json: bool,
    /// Parquet files in a new directory, partitioned as by Hive: by part and first factor
    #[arg(long, value_name = "DIR")]
    parquet: Option<OutputPath>,
    /// An SVG file for each plot of the report in a new directory, for papers and slides
    #[arg(long, value_name = "DIR")]
    svg: Option<OutputPath>,
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
    pub(super) fn of(study: Study, store: &Store) -> Result<Self, Failure> {
        let runs = study.parts.iter().map(|part| store.runs(&part.name));
        let runs: Vec<Vec<StudyRun>> = runs.collect::<Result<_, _>>().map_err(Failure::work)?;
        let report = StudyReport {
            not_set: store.not_set().map_err(Failure::work)?,
            hosts: store.hosts().map_err(Failure::work)?,
            ..study.report(&runs, study::trends(&study, &runs))
        };
        let host = store.property("host").map_err(Failure::work)?;
        Ok(Results { study, runs, report, host })
    }

    /// The study of a directory.
    fn read(folder: &Path) -> Result<(Self, Store), Failure> {
        let store = Store::read(folder).map_err(Failure::usage)?;
        let study = store.study().map_err(Failure::usage)?;
        Ok((Results::of(study, &store)?, store))
    }

    pub(super) fn shown(&self, json: bool, style: &Style) -> Result<String, Failure> {
        if json { console::json(&self.report) } else { Ok(terminal::study(&self.report, style)) }
    }

    /// A trend that fails is a failure; cells without a valid run are not valid, and so is a study
    /// whose runs are all done and do not show a trend.
    pub(super) fn code(&self) -> Code {
        let report = &self.report;
        let is_done = |holds: fn(&record::StudyCell) -> bool| {
            report.parts.iter().flat_map(|part| &part.cells).all(holds)
        };
        let unmeasured =
            report.done >= report.runs && report.trends.iter().any(|trend| trend.holds.is_none());
        if report.trends.iter().any(|trend| trend.holds == Some(false)) {
            FAILED
        } else if !is_done(|cell| cell.done == 0 || cell.valid > 0) || unmeasured {
            NOT_VALID
        } else {
            DONE
        }
    }
}

pub(super) fn report(args: &ReportArgs, console: &mut Console) -> Outcome {
    let (results, _) = Results::read(&args.folder)?;
    if let Some(file) = &args.html {
        pages::write_report(&results, file)?;
        console.say(&format!("page written to {}", file.display()));
    }
    console.print(&results.shown(args.json, &console.out)?);
    Ok(results.code())
}

pub(super) fn compare(args: &CompareArgs, console: &mut Console) -> Outcome {
    test_report::check_writable(args.html.as_deref())?;
    let ((first, _), (second, _)) = (Results::read(&args.first)?, Results::read(&args.second)?);
    let comparison = study::compare((&first.study, &first.runs), (&second.study, &second.runs));
    let mut comparison = comparison.map_err(Failure::usage)?;
    let folders = [&args.first, &args.second].map(|folder| folder.display().to_string());
    // Two runs of one plan have one name.
    if comparison.names[0] == comparison.names[1] {
        comparison.names = folders;
    }
    if let Some(file) = &args.html {
        let page = report::html::study_comparison_page(&comparison);
        store::write(file, page.as_bytes()).map_err(Failure::work)?;
        console.say(&format!("page written to {}", file.display()));
    }
    console.print(&if args.json {
        console::json(&comparison)?
    } else {
        terminal::study_comparison(&comparison, &console.out)
    });
    Ok(DONE)
}

pub(super) fn export(args: &ExportArgs, console: &mut Console) -> Outcome {
    let (results, _) = Results::read(&args.folder)?;
    if let Some(folder) = &args.form.parquet {
        let files = campaign::parquet(&results.study, &results.runs, folder);
        let files = files.map_err(|error| match error {
            ParquetExportError::Exists(_) => Failure::usage(error),
            other => Failure::work(other),
        })?;
        console.say(&format!("{files} files written below {}", folder.display()));
        return Ok(DONE);
    }
    if let Some(folder) = &args.form.svg {
        let files = pages::write_plots(&results, folder)?;
        console.say(&format!("{files} plots written to {}", folder.display()));
        return Ok(DONE);
    }
    let text = if args.form.csv {
        campaign::csv(&results.study, &results.runs)
    } else {
        campaign::json_lines(&results.study, &results.runs)
    };
    console.print(&text);
    Ok(DONE)
}
