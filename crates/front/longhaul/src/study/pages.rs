//! The pages of a study: its report, and one for each cell.

use super::request;
use super::results::Results;
use crate::explain::page_run;
use crate::{Fault, Problem};
use campaign::Store;
use host::directory::{Directory, Trust};
use host::output_file;
use record::{Finding, Measurement, RunStatus, StudyRun, StudyTestbed};
use report::html::{self, Page, StudyPage};
use std::io::ErrorKind;
use std::path::Path;
use study::{CellRun, Part};

/// Cells of a part that have a page: of a larger part the first ones.
const MAX_PAGES: usize = 200;

fn failed(error: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Internal, error)
}

/// Writes the pages of the cells and the report into the study's directory.
pub(super) fn write_all(results: &Results, store: &Store, folder: &Path) -> Result<(), Problem> {
    let cells = std::path::absolute(folder.join("cells"))
        .and_then(|cells| Directory::create(&cells, Trust::Owner));
    cells.map_err(|error| failed(format!("cannot create cells: {error}")))?;
    for (part, runs) in results.study.parts.iter().zip(&results.runs) {
        for run in shown(runs) {
            let file = folder.join(html::cell_page(&part.name, run.cell));
            if let Some(page) = cell(part, run, store)? {
                store::write(&file, page.as_bytes()).map_err(failed)?;
            }
        }
    }
    write_report(results, &request::page(folder))
}

/// Writes the report, with links to the pages of cells that are beside it.
pub(super) fn write_report(results: &Results, file: &Path) -> Result<(), Problem> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let has_page =
        |part: &Part, run: &StudyRun| folder.join(html::cell_page(&part.name, run.cell)).is_file();
    let parts = results.study.parts.iter().zip(&results.runs);
    let pages: Vec<Vec<usize>> = parts
        .map(|(part, runs)| {
            shown(runs).filter(|run| has_page(part, run)).map(|run| run.cell).collect()
        })
        .collect();
    let plans: Vec<String> = results.study.parts.iter().map(|part| part.text.clone()).collect();
    let page = html::study(&StudyPage {
        report: &results.report,
        runs: &results.runs,
        plans: &plans,
        command: &command(results),
        host: &results.host,
        pages: &pages,
    });
    store::write(file, page.as_bytes()).map_err(failed)
}

/// Writes each plot of the report as an SVG file into a new directory; how many.
pub(super) fn write_plots(results: &Results, folder: &Path) -> Result<usize, Problem> {
    let files = html::study_plots(&results.report, &results.runs);
    if files.is_empty() {
        return Err(Problem::new(
            Fault::Request,
            "there is nothing to plot: the study has no valid run yet, or none with the figures of its plots",
        ));
    }
    output_file::create_directory(folder).map_err(|error| {
        let folder = folder.display();
        if error.kind() == ErrorKind::AlreadyExists {
            Problem::new(Fault::Request, format!("{folder} exists; give a new directory"))
        } else {
            failed(format!("cannot create {folder}: {error}"))
        }
    })?;
    for file in &files {
        store::write(&folder.join(&file.name), file.svg.as_bytes()).map_err(failed)?;
    }
    Ok(files.len())
}

/// The first valid run of each cell, or its first one.
fn shown(runs: &[StudyRun]) -> impl Iterator<Item = &StudyRun> {
    let of_cell = runs.chunk_by(|a, b| a.cell == b.cell);
    let best = |runs: &'_ [StudyRun]| {
        runs.iter().position(|run| run.status == RunStatus::Valid).unwrap_or(0)
    };
    of_cell.filter_map(move |runs| runs.get(best(runs))).take(MAX_PAGES)
}

/// The page of a run, with each of its flows; `None` if it failed.
fn cell(part: &Part, run: &StudyRun, store: &Store) -> Result<Option<String>, Problem> {
    let key = CellRun { cell: run.cell, repeat: run.repeat };
    let mut flows: Vec<(&str, Measurement, Finding)> = Vec::new();
    for flow in &run.flows {
        let found = store.measurement(&part.name, key, &flow.name).map_err(failed)?;
        if let Some(measurement) = found {
            let finding = diagnose::explain(&measurement);
            flows.push((&flow.name, measurement, finding));
        }
    }
    let Some((_, _, first)) = flows.first() else { return Ok(None) };
    let runs =
        flows.iter().map(|(label, measurement, finding)| page_run(label, measurement, finding));
    let page = Page {
        title: part.plan.label(&part.plan.cell(run.cell)),
        lead: first.sentence.clone(),
        path: None,
        runs: runs.collect(),
        decision: None,
        plan: &[],
        gain: None,
        back: Some("../index.html"),
        ..Page::default()
    };
    Ok(Some(html::page(&page)))
}

/// The command that runs the study again.
fn command(results: &Results) -> String {
    let study = &results.study;
    let plan = if results.report.trends.is_empty() {
        format!("{}.toml", study.name)
    } else {
        study.name.clone()
    };
    let quick = if study.quick { " --quick" } else { "" };
    let testbed = match results.report.testbed {
        StudyTestbed::Lab | StudyTestbed::Hosts => "",
        StudyTestbed::Simulator => " --in sim",
    };
    format!("longhaul study run {plan}{quick}{testbed}")
}
