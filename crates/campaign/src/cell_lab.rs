//! One attempt at a run: the cell's lab, its flows, and what was measured.

use crate::cell_plan::{self, Missing};
use crate::figures;
use crate::programs::Programs;
use crate::transfers::{self, MeasuredFlow};
use crate::window_share::{self, WindowShares};
use host::clock;
use host::confined::{Scratch, kill_all};
use lab::{Lab, LabReport, Options};
use perf::{PerfError, StopFlag};
use record::{Direction, FlowFigures, Measurement, PathReport, Protocol};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use study::Test;
use topology::PathSpec;

/// What one attempt gave.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Why it is not what the plan asks for; empty if it is.
    pub(crate) reasons: Vec<String>,
    /// Whether the lab emulated the path.
    pub(crate) emulated: bool,
    /// From the first flow's first packet to the last one's result.
    pub(crate) took: Duration,
    pub(crate) flows: Vec<(FlowFigures, Measurement)>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    #[error("{flow}: {source}")]
    Flow { flow: String, source: PerfError },
    #[error("{flow}: {why}")]
    Program { flow: String, why: String },
    #[error(
        "not run: {flow} sends a file of a slow disk, which needs FUSE: {source}; load it with \
         modprobe fuse, or give the container /dev/fuse"
    )]
    Disk { flow: String, source: io::Error },
    #[error("cannot enter a host of the lab: {0}")]
    Host(#[from] io::Error),
    #[error("{0}")]
    Path(String),
    #[error("interrupted")]
    Interrupted,
}

/// What all runs of a study share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) shares: WindowShares,
    /// `None`: no flow has a program.
    pub(crate) programs: Option<Programs>,
    /// Where disks are mounted; `None`: no flow sends a file.
    pub(crate) scratch: Option<Arc<Scratch>>,
    pub(crate) missing: Missing,
}

/// Runs a test once, in a lab of its own whose draws are those of `seed`.
pub(crate) fn run(
    test: &Test,
    seed: u64,
    shared: &Shared,
    stop: &StopFlag,
) -> Result<Attempt, AttemptError> {
    let path: PathSpec = format!("{},seed={seed}", test.path)
        .parse()
        .map_err(|error: topology::PathError| AttemptError::Path(error.to_string()))?;
    let shares = &shared.shares;
    let buffer = test.window.map(|window| shares.buffer(&path, window, stop)).transpose()?;
    let mut test = test.clone();
    test.sysctls.extend(buffer.map(window_share::sysctl));
    let plan = cell_plan::of(&test, path.clone(), &shared.missing);
    let lab = Lab::start(&plan, Options { shared: true, ..Options::default() })?;
    let began = clock::now();
    let flows = transfers::run(&lab, &test, shared, stop);
    let took = began.elapsed();
    if test.has_foreign_programs() && !kill_all() {
        let why = "its processes could not be ended".to_owned();
        return Err(AttemptError::Program { flow: "a program".to_owned(), why });
    }
    let path_report = path_report(lab.finish()?);
    let flows = flows?;
    if stop.is_raised() {
        return Err(AttemptError::Interrupted);
    }
    let mut reasons = path_report.reasons.clone();
    if let (Some(window), Some(buffer)) = (test.window, buffer) {
        let tcp = flows.iter().filter(|flow| flow.measurement.spec.protocol == Protocol::Tcp);
        for flow in tcp {
            let Some(advertised) = window_share::advertised(&flow.measurement.streams) else {
                continue;
            };
            let streams = &flow.measurement.streams;
            if let Some(complaint) = window_share::complaint(window, advertised, streams) {
                shares.learn(&path, buffer, advertised);
                reasons.push(complaint);
            }
        }
    }
    let first = flows.iter().map(|flow| flow.began).min();
    let flows = flows.into_iter().map(|flow| {
        let began = first.map_or(0.0, |first| (flow.began - first).as_secs_f64());
        finished(flow, began, &path_report)
    });
    Ok(Attempt { reasons, emulated: path_report.valid, took, flows: flows.collect() })
}

/// A flow's figures and its measurement.
fn finished(flow: MeasuredFlow, began_s: f64, path: &PathReport) -> (FlowFigures, Measurement) {
    let measurement = Measurement { path: Some(path.clone()), ..flow.measurement };
    let finding = diagnose::explain(&diagnosed(&measurement));
    let figures = figures::of(&flow.name, began_s, &measurement, &finding);
    let figures = match flow.reported {
        Some(reported) => figures::as_reported(figures, reported),
        None => figures,
    };
    (figures, measurement)
}

/// The report on the test's link, valid if every link of the lab is.
fn path_report(report: LabReport) -> PathReport {
    let mut links: Vec<_> = report.links;
    let path = links.iter().position(|link| link.name == cell_plan::PATH).unwrap_or(0);
    let mut whole =
        if links.is_empty() { return PathReport::default() } else { links.remove(path).path };
    for link in links.into_iter().filter(|link| !link.path.valid) {
        whole.valid = false;
        whole.reasons.extend(link.path.reasons.iter().map(|why| format!("{}: {why}", link.name)));
    }
    whole
}

/// What is diagnosed: of a test in both directions, the client's.
fn diagnosed(measurement: &Measurement) -> Measurement {
    match measurement.spec.direction {
        Direction::Both => measurement.one_direction(false),
        Direction::Forward | Direction::Reverse => measurement.clone(),
    }
}
