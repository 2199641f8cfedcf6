//! One attempt at a run in a lab: the cell's lab, its flows, and what was measured.

use crate::captures::{CaptureFile, Captures, RunningCapture};
use crate::cell_plan::{self, Missing};
use crate::figures;
use crate::programs::Programs;
use crate::testbed::{Attempt, AttemptError, Testbed};
use crate::transfers;
use crate::window_share::{self, WindowShares};
use host::clock;
use host::confined::{Scratch, kill_all};
use host::cpu;
use lab::{Lab, LabReport, Options};
use perf::StopFlag;
use record::{Direction, FlowFigures, Measurement, PathReport, Protocol};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use study::{CellRun, Part, Test};
use topology::PathSpec;

/// The state that all runs of a study share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) shares: WindowShares,
    /// `None`: no flow has a program.
    pub(crate) programs: Option<Programs>,
    /// Where disks are mounted; `None`: no flow sends a file.
    pub(crate) scratch: Option<Arc<Scratch>>,
    pub(crate) missing: Missing,
    /// `None`: no captures are kept.
    pub(crate) captures: Option<Captures>,
}

impl Testbed for Shared {
    fn attempt(
        &self,
        test: &Test,
        seed: u64,
        capture: Option<CaptureFile>,
        stop: &StopFlag,
    ) -> Result<Attempt, AttemptError> {
        run(test, seed, self, capture, stop)
    }

    fn capture(&self, part: &Part, run: CellRun, attempt: u32) -> io::Result<Option<CaptureFile>> {
        match &self.captures {
            Some(captures) => captures.file(part, run, attempt),
            None => Ok(None),
        }
    }

    fn at_once(&self, allowed: u32) -> u32 {
        allowed
    }

    /// Waits for a machine on which a lab is more likely to be valid, for five seconds at most.
    fn settle(&self, stop: &StopFlag) {
        const BUSY: f64 = 0.3;
        for _ in 0..5 {
            let busy = cpu::machine_busy(Duration::from_secs(1));
            if stop.is_raised() || busy.is_none_or(|share| share < BUSY) {
                return;
            }
        }
    }

    /// Every lab is a new one.
    fn goes_on(&self, _: bool) -> bool {
        true
    }
}

/// Runs a test once, in a lab of its own whose draws are those of `seed`, beside a capture if
/// there is a file for one.
pub(crate) fn run(
    test: &Test,
    seed: u64,
    shared: &Shared,
    capture: Option<CaptureFile>,
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
    let lab = Arc::new(Lab::start(&plan, Options { shared: true, ..Options::default() })?);
    let capture = capture.map(|file| file.start(&lab)).transpose()?;
    let began = clock::now();
    let flows = transfers::run(&lab, &test, shared, stop);
    let took = began.elapsed();
    if test.has_foreign_programs() && !kill_all() {
        let why = "its processes could not be terminated".to_owned();
        return Err(AttemptError::Program { flow: "a program".to_owned(), why });
    }
    let path_report = path_report(lab.finish()?);
    capture.map_or(Ok(()), RunningCapture::finish)?;
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
        let measurement = Measurement { path: Some(path_report.clone()), ..flow.measurement };
        let (figures, measurement) = finished(&flow.name, began, measurement);
        let figures = match flow.reported {
            Some(reported) => figures::as_reported(figures, reported),
            None => figures,
        };
        (figures, measurement)
    });
    let disturbed = !path_report.valid;
    Ok(Attempt { reasons, disturbed, took, start_skew: None, flows: flows.collect() })
}

/// A flow's figures and its measurement; `began_s` is when its data began, since the first
/// flow's.
pub(crate) fn finished(
    name: &str,
    began_s: f64,
    measurement: Measurement,
) -> (FlowFigures, Measurement) {
    let finding = diagnose::explain(&diagnosed(&measurement));
    (figures::of(name, began_s, &measurement, &finding), measurement)
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

/// The measurement to diagnose: for a test in both directions, the client's.
fn diagnosed(measurement: &Measurement) -> Measurement {
    match measurement.spec.direction {
        Direction::Both => measurement.one_direction(false),
        Direction::Forward | Direction::Reverse => measurement.clone(),
    }
}
