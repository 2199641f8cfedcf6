//! `longhaul study report` and `export`: the results of a study that ran, or is running.

use crate::console::{self, Console};
use crate::failure::{Code, DONE, FAILED, Failure, NOT_VALID, Outcome};
use crate::output_path::OutputPath;
use clap::Args;
use longhaul::study::{
    self, ExportForm, Exported, StudyCompareRequest, StudyExportRequest, StudyMergeRequest,
    StudyReportRequest,
};
use record::{StudyReport, StudyTrend};
use report::terminal::{self, Style};
use std::path::PathBuf;

/// Report on a study, finished or not: on the terminal, as a page, or as JSON
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study report edge-cloud.study
  longhaul study report edge-cloud.study --html page.html")]
pub(super) struct ReportArgs {
    /// Directory with the study's results
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
/// Compares cells with the same values of the same factors; settings that the plans fix, such
/// as the congestion control, may differ. Differences are tested with Welch's t-test over the
/// valid runs; significance includes Holm's correction for the number of cells.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study compare cubic.study bbr.study")]
pub(super) struct CompareArgs {
    /// Directory with the first study's results
    #[arg(value_name = "DIR")]
    first: PathBuf,
    /// Directory with the second study's results
    #[arg(value_name = "DIR")]
    second: PathBuf,
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
    /// Print the comparison as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

/// Join the results of a study's shards into a new directory
///
/// Runs are stored in the order in which one process would have run them. Directories of another
/// study, form, testbed or version, and runs that differ between two of them, are refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study merge zoo-1of2.study zoo-2of2.study --into zoo.study")]
pub(super) struct MergeArgs {
    /// Directories with the shards' results, 2 to 256
    #[arg(value_name = "DIR", required = true, num_args = 2..)]
    folders: Vec<PathBuf>,
    /// New directory for the joined results
    #[arg(long, value_name = "DIR")]
    into: OutputPath,
    /// Print the report as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

/// Export the runs of a study as a table, or its plots
///
/// The table has the factors, the repeat and every figure.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  longhaul study export window.study --csv > runs.csv
  longhaul study export window.study --parquet runs
  longhaul study export window.study --svg plots")]
pub(super) struct ExportArgs {
    /// Directory with the study's results
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

pub(super) fn shown(report: &StudyReport, json: bool, style: &Style) -> Result<String, Failure> {
    if json { console::json(report) } else { Ok(terminal::study(report, style)) }
}

/// A trend that fails is a failure, unless it is one that a lab need not show; cells without a valid run are not valid, and so is a study
/// whose runs are all done and do not show a trend.
pub(super) fn code(report: &StudyReport) -> Code {
    let is_done = |holds: fn(&record::StudyCell) -> bool| {
        report.parts.iter().flat_map(|part| &part.cells).all(holds)
    };
    let unmeasured =
        report.done >= report.runs && report.trends.iter().any(|trend| trend.holds.is_none());
    let fails = |trend: &StudyTrend| trend.holds == Some(false) && trend.not_reproduced.is_none();
    if report.trends.iter().any(fails) {
        FAILED
    } else if !is_done(|cell| cell.done == 0 || cell.valid > 0) || unmeasured {
        NOT_VALID
    } else {
        DONE
    }
}

fn page(file: &Option<OutputPath>) -> Option<PathBuf> {
    file.as_ref().map(|file| file.to_path_buf())
}

fn say_written(html: Option<&PathBuf>, console: &mut Console) {
    if let Some(file) = html {
        console.say(&format!("page written to {}", file.display()));
    }
}

pub(super) fn report(args: &ReportArgs, console: &mut Console) -> Outcome {
    let request = StudyReportRequest { folder: args.folder.clone(), html: page(&args.html) };
    let report = study::report(&request)?;
    say_written(request.html.as_ref(), console);
    console.print(&shown(&report, args.json, &console.out)?);
    Ok(code(&report))
}

pub(super) fn compare(args: &CompareArgs, console: &mut Console) -> Outcome {
    let folders = [args.first.clone(), args.second.clone()];
    let request = StudyCompareRequest { folders, html: page(&args.html) };
    let comparison = study::compare(&request)?;
    say_written(request.html.as_ref(), console);
    console.print(&if args.json {
        console::json(&comparison)?
    } else {
        terminal::study_comparison(&comparison, &console.out)
    });
    Ok(DONE)
}

pub(super) fn merge(args: &MergeArgs, console: &mut Console) -> Outcome {
    let request =
        StudyMergeRequest { folders: args.folders.clone(), into: args.into.to_path_buf() };
    let report = study::merge(&request)?;
    console.print(&shown(&report, args.json, &console.out)?);
    let (count, into) = (request.folders.len(), request.into.display());
    console.say(&format!("{count} directories merged into {into}"));
    Ok(code(&report))
}

pub(super) fn export(args: &ExportArgs, console: &mut Console) -> Outcome {
    let Form { csv, json: _, parquet, svg } = &args.form;
    let form = match (parquet, svg) {
        (Some(folder), _) => ExportForm::Parquet(folder.to_path_buf()),
        (None, Some(folder)) => ExportForm::Svg(folder.to_path_buf()),
        (None, None) if *csv => ExportForm::Csv,
        (None, None) => ExportForm::Json,
    };
    let request = StudyExportRequest { folder: args.folder.clone(), form };
    match (study::export(&request)?, &request.form) {
        (Exported::Text(text), _) => console.print(&text),
        (Exported::Files(files), ExportForm::Svg(folder)) => {
            console.say(&format!("{files} plots written to {}", folder.display()));
        }
        (Exported::Files(files), ExportForm::Parquet(folder)) => {
            console.say(&format!("{files} files written below {}", folder.display()));
        }
        (Exported::Files(_), ExportForm::Csv | ExportForm::Json) => {}
    }
    Ok(DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(trend: &str) -> Code {
        let text = format!(
            r#"{{"schema": "longhaul.study/1", "version": "0", "name": "s", "question": "?",
                "answer": [], "quick": true, "runs": 1, "done": 1, "valid": 1, "invalid": 0,
                "failed": 0, "took_s": 1, "test_s": 1, "parts": [],
                "trends": [{{"name": "t", "published": "p", "measured": "m", {trend}}}]}}"#
        );
        code(&serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn a_trend_that_is_not_reproduced_is_no_failure() {
        assert_eq!(ended(r#""holds": true"#), DONE);
        assert_eq!(ended(r#""holds": false"#), FAILED);
        assert_eq!(ended(r#""holds": false, "not_reproduced": "why""#), DONE);
        assert_eq!(ended(r#""holds": null"#), NOT_VALID);
    }
}
