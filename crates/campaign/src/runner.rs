//! Runs what is not stored yet, in the plan's order.

use crate::cell_lab::{self, Attempt, AttemptError, WindowShares};
use crate::store::Measured;
use crate::{CampaignError, Store};
use host::{clock, cpu};
use perf::{Interval, StopFlag};
use record::{RunStatus, StudyRun};
use std::time::Duration;
use study::{Part, Run, Study, Test, Traffic};

/// How a study is run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How often a run is tried until it is valid.
    pub attempts: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options { attempts: 3 }
    }
}

/// How far a study is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Runs that are stored.
    pub done: usize,
    /// Runs in all.
    pub all: usize,
    /// About how long the others take.
    pub left: Duration,
}

/// What happens, in order.
#[derive(Debug)]
pub enum Event<'a> {
    /// A run begins, or is tried again.
    Begins {
        /// Before it.
        progress: Progress,
        /// Its part.
        part: &'a Part,
        /// Which run.
        run: Run,
        /// From 1.
        attempt: u32,
        /// How long it sends.
        planned: Duration,
    },
    /// A report interval of a flow.
    Interval(&'a Traffic, Interval),
    /// A run is stored.
    Ended {
        /// After it.
        progress: Progress,
        /// Its part.
        part: &'a Part,
        /// Its figures.
        run: &'a StudyRun,
    },
}

/// Time beside a run's own until there is a measured one.
const OVERHEAD: Duration = Duration::from_millis(500);

/// Runs every run of a study that is not in its store. Needs the privileges of a sandbox
/// ([`host::sandbox`]).
///
/// # Errors
/// The store cannot be written, or `stop` was raised; what was measured before is stored.
pub fn run(
    study: &Study,
    store: &mut Store,
    options: Options,
    observe: &mut (dyn FnMut(Event<'_>) + Send),
    stop: &StopFlag,
) -> Result<(), CampaignError> {
    let mut queue = Vec::new();
    for part in &study.parts {
        let done = store.done(&part.name)?;
        let runs = part.plan.runs().into_iter().filter(|run| !done.contains(run));
        queue.extend(runs.map(|run| (part, run)));
    }
    let mut timing = Timing::new(study.runs(), &queue);
    let mut shares = WindowShares::default();
    for (part, run) in queue {
        // A plan is checked as a whole before it runs.
        let Ok(test) = part.plan.test(&part.plan.cell(run.cell)) else { continue };
        let planned = test.planned();
        let began = clock::now();
        let started_unix_s = clock::unix_time().as_secs();
        let mut attempts = 0;
        let last = loop {
            attempts += 1;
            observe(Event::Begins {
                progress: timing.progress(),
                part,
                run,
                attempt: attempts,
                planned,
            });
            let seed = part.plan.seed(run);
            let attempt = one_attempt(&test, seed, &mut shares, observe, stop);
            let is_valid = attempt.as_ref().is_ok_and(|attempt| attempt.reasons.is_empty());
            match attempt {
                Err(AttemptError::Interrupted) => return Err(CampaignError::Interrupted),
                _ if stop.is_raised() => return Err(CampaignError::Interrupted),
                other if is_valid || attempts >= options.attempts => break other,
                _ => wait_for_idle_machine(stop),
            }
        };
        let took = began.elapsed();
        let measured = measured(run, attempts, started_unix_s, took, last);
        store.add(&part.name, &measured)?;
        timing.ended(planned, took);
        observe(Event::Ended { progress: timing.progress(), part, run: &measured.run });
    }
    Ok(())
}

fn one_attempt(
    test: &Test,
    seed: u64,
    shares: &mut WindowShares,
    observe: &mut (dyn FnMut(Event<'_>) + Send),
    stop: &StopFlag,
) -> Result<Attempt, AttemptError> {
    let observe = std::sync::Mutex::new(observe);
    let forward = |traffic: &Traffic, interval| {
        (host::lock::lock(&observe))(Event::Interval(traffic, interval));
    };
    cell_lab::run(test, seed, shares, &forward, stop)
}

fn measured(
    run: Run,
    attempts: u32,
    started_unix_s: u64,
    took: Duration,
    last: Result<Attempt, AttemptError>,
) -> Measured {
    let (status, reason, flows) = match last {
        Ok(attempt) if attempt.reasons.is_empty() => {
            (RunStatus::Valid, String::new(), attempt.flows)
        }
        Ok(attempt) => (RunStatus::Invalid, attempt.reasons.join("; "), attempt.flows),
        Err(error) => (RunStatus::Failed, error.to_string(), Vec::new()),
    };
    let (flows, measurements) = flows.into_iter().unzip();
    let run = StudyRun {
        cell: run.cell,
        repeat: run.repeat,
        status,
        attempts,
        started_unix_s,
        took_s: took.as_secs_f64(),
        reason,
        flows,
    };
    Measured { run, measurements }
}

/// Waits for a machine on which a lab is more likely to be valid, for five seconds at most.
fn wait_for_idle_machine(stop: &StopFlag) {
    const BUSY: f64 = 0.3;
    for _ in 0..5 {
        let busy = cpu::machine_busy(Duration::from_secs(1));
        if stop.is_raised() || busy.is_none_or(|share| share < BUSY) {
            return;
        }
    }
}

/// What is done, and how long the rest takes.
struct Timing {
    all: usize,
    done: usize,
    /// Time that the runs to come send.
    planned: Duration,
    /// Runs of this time, and the time beside what they sent.
    runs: u32,
    overhead: Duration,
}

impl Timing {
    fn new(all: usize, queue: &[(&Part, Run)]) -> Self {
        let planned = |part: &Part, run: &Run| {
            part.plan.test(&part.plan.cell(run.cell)).map_or(Duration::ZERO, |test| test.planned())
        };
        Timing {
            all,
            done: all - queue.len(),
            planned: queue.iter().map(|(part, run)| planned(part, run)).sum(),
            runs: 0,
            overhead: Duration::ZERO,
        }
    }

    fn ended(&mut self, planned: Duration, took: Duration) {
        self.done += 1;
        self.planned = self.planned.saturating_sub(planned);
        self.runs += 1;
        self.overhead += took.saturating_sub(planned);
    }

    fn progress(&self) -> Progress {
        let each = self.overhead.checked_div(self.runs).unwrap_or(OVERHEAD);
        let to_come = u32::try_from(self.all - self.done).unwrap_or(u32::MAX);
        let left = self.planned + each * to_come;
        Progress { done: self.done, all: self.all, left }
    }
}
