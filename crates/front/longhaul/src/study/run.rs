//! Runs a study.

use super::StudyRequest;
use super::pages;
use super::results::Results;
use crate::{Fault, Problem, StopFlag};
use campaign::{CampaignError, Event, Progress, Store};
use record::{StudyReport, StudyRun, StudyTestbed};
use serde::{Deserialize, Serialize};
use study::{CellRun, Part, Study};

/// The progress of a study.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StudyProgress {
    /// Runs that are stored.
    pub done: usize,
    /// Runs in all.
    pub all: usize,
    /// Estimated time of the others, in seconds.
    pub left_s: f64,
}

/// Events, in order. A run is named by its part and its cell's values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyEvent {
    /// The directory is open, and has no other study.
    Opened,
    /// An attempt at a run begins.
    Begins {
        /// The progress before it.
        progress: StudyProgress,
        /// The run.
        name: String,
        /// The number of the repeat within its cell, from 1.
        repeat: u32,
        /// From 1.
        attempt: u32,
    },
    /// An attempt was not valid or failed; the run is tried again.
    Retried {
        /// The run.
        name: String,
        /// The reason, in words that may be a program's.
        reason: String,
    },
    /// A run is stored.
    Ended {
        /// The progress after it.
        progress: StudyProgress,
        /// The run.
        name: String,
        /// Its figures.
        run: Box<StudyRun>,
    },
}

impl StudyEvent {
    fn of(event: &Event<'_>) -> Self {
        match event {
            Event::Begins { progress, part, run, attempt } => StudyEvent::Begins {
                progress: StudyProgress::of(progress),
                name: name(part, *run),
                repeat: run.repeat,
                attempt: *attempt,
            },
            Event::Retried { part, run, reason } => {
                StudyEvent::Retried { name: name(part, *run), reason: (*reason).to_owned() }
            }
            Event::Ended { progress, part, run } => StudyEvent::Ended {
                progress: StudyProgress::of(progress),
                name: name(part, CellRun { cell: run.cell, repeat: run.repeat }),
                run: Box::new((*run).clone()),
            },
        }
    }
}

impl StudyProgress {
    const fn of(progress: &Progress) -> Self {
        let Progress { done, all, left } = *progress;
        StudyProgress { done, all, left_s: left.as_secs_f64() }
    }
}

/// The run's part and its cell's values.
fn name(part: &Part, run: CellRun) -> String {
    let label = part.plan.label(&part.plan.cell(run.cell));
    if part.name.is_empty() { label } else { format!("{} {label}", part.name) }
}

/// Runs everything that is not stored yet, and writes the report's page and one for each cell.
///
/// A study in labs is to be called in a sandbox ([`host::sandbox::run`]) whose process has one
/// thread; [`crate::run`] does so.
///
/// # Errors
/// An invalid field, a directory of another study, a full disk, an interruption. What was
/// measured before is stored.
pub fn run(
    request: &StudyRequest,
    on_event: &mut dyn FnMut(StudyEvent),
    stop: &StopFlag,
) -> Result<StudyReport, Problem> {
    request.check()?;
    let study = request.plan.study(request.quick)?;
    let testbed = request.runs_in(&study);
    if testbed != StudyTestbed::Simulator {
        check_programs(&study)?;
    }
    let mut store = Store::open(&request.folder, &study, testbed)
        .map_err(|error| Problem::new(Fault::Request, error))?;
    on_event(StudyEvent::Opened);
    let (options, access) = (request.options(&study), request.access.access());
    let mut observe = |event: Event<'_>| on_event(StudyEvent::of(&event));
    campaign::run(&study, &mut store, &options, &access, &mut observe, stop).map_err(failed)?;
    let results = Results::of(study, &store)?;
    pages::write_all(&results, &store, &request.folder)?;
    Ok(results.report)
}

/// What is to be installed before anything runs. Paths relative to a program's directory, and those
/// of placeholders, are not known yet.
fn check_programs(study: &Study) -> Result<(), Problem> {
    let programs = study.programs();
    let names = programs.iter().flat_map(|program| program.executables());
    let is_known = |name: &&str| !name.contains(['{', '/']);
    let mut missing: Vec<&str> = names.filter(is_known).collect();
    missing.retain(|name| !host::confined::is_installed(name));
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    // The packages of the programs that come with longhaul, where their names differ.
    let packages: Vec<&str> = missing
        .iter()
        .map(|name| match *name {
            "nginx" => "nginx-light",
            same => same,
        })
        .collect();
    let message = format!(
        "the study needs {}, which this host does not have: install it (Debian, Ubuntu: apt install \
         {})",
        missing.join(" and "),
        packages.join(" ")
    );
    Err(Problem::new(Fault::Host, message))
}

/// Something failed while the study ran.
pub(super) fn failed(error: CampaignError) -> Problem {
    let fault = match error {
        CampaignError::Interrupted => Fault::Interrupted,
        CampaignError::Hosts(_) => Fault::Peer,
        CampaignError::Unsupported(_) => Fault::Request,
        _ => Fault::Internal,
    };
    Problem::new(fault, error)
}
