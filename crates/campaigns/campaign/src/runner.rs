//! Runs what is not stored yet, in the plan's order.

use crate::captures::{CaptureOptions, Captures};
use crate::cell_lab::Shared;
use crate::host_testbed::{HostAccess, HostTestbed};
use crate::missing;
use crate::pending::{self, Selection};
use crate::programs::Programs;
use crate::schedule::{Job, Schedule, Slot};
use crate::simulated_cell;
use crate::simulated_study;
use crate::store::Measured;
use crate::testbed::{Attempt, AttemptError, Testbed};
use crate::timing::{Progress, Timing};
use crate::window_share::WindowShares;
use crate::{CampaignError, Store};
use host::clock;
use host::confined::Scratch;
use perf::StopFlag;
use record::{RunStatus, StudyRun, StudyTestbed};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;
use study::{CellRun, Part, Shard, Study};
use units::ByteCount;

/// Files of all programs under way.
const MAX_FILES: ByteCount = ByteCount::from_bytes(64 << 20);
/// The same where some of them cache what they fetch.
const MAX_CACHED: ByteCount = ByteCount::from_bytes(512 << 20);

/// How a study is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often a run is tried until it is valid.
    pub attempts: u32,
    /// Runs at once: in labs as long as they are light, in the simulator threads.
    pub parallel: u32,
    /// The cells to run; `None`: all of them.
    pub shard: Option<Shard>,
    /// True to leave out the cells that the simulator cannot run.
    pub skip_unsupported: bool,
    /// Captures of labs to keep; `None` for none.
    pub captures: Option<CaptureOptions>,
}

impl Default for Options {
    fn default() -> Self {
        Options { attempts: 3, parallel: 2, shard: None, skip_unsupported: false, captures: None }
    }
}

/// What happens, in order.
#[derive(Debug)]
pub enum Event<'a> {
    /// An attempt at a run begins.
    Begins {
        /// Before it.
        progress: Progress,
        /// Its part.
        part: &'a Part,
        /// Which run.
        run: CellRun,
        /// From 1.
        attempt: u32,
    },
    /// An attempt was not valid or failed; the run is tried again.
    Retried {
        /// Its part.
        part: &'a Part,
        /// Which run.
        run: CellRun,
        /// Why.
        reason: &'a str,
    },
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

/// What the threads that run the tests report to the one that stores the results.
enum Message<'a> {
    Begins {
        part: &'a Part,
        run: CellRun,
        attempt: u32,
    },
    Retried {
        part: &'a Part,
        run: CellRun,
        reason: String,
    },
    Ended {
        part: &'a Part,
        planned: Duration,
        measured: Box<Measured>,
    },
    /// The study cannot go on.
    GivenUp(CampaignError),
}

/// Runs every run of a study that is not in its store, on the store's testbed. Labs need the
/// privileges of a sandbox ([`host::sandbox`]); `access` is for real hosts.
///
/// # Errors
/// The store cannot be written, a real host cannot be used, the simulator cannot run a cell, or
/// `stop` was raised; what was measured before is stored.
pub fn run(
    study: &Study,
    store: &mut Store,
    options: &Options,
    access: &HostAccess,
    observe: &mut dyn FnMut(Event<'_>),
    stop: &StopFlag,
) -> Result<(), CampaignError> {
    if store.testbed()? == StudyTestbed::Simulator {
        return simulate(study, store, options, observe, stop);
    }
    let selection = Selection { shard: options.shard, simulated: false };
    if let Some(hosts) = study.real_hosts() {
        if pending::queue(study, store, selection)?.is_empty() {
            return Ok(());
        }
        let testbed = HostTestbed::connect(hosts, access, stop)?;
        store.set_hosts(&testbed.facts())?;
        return rounds(study, store, options, &testbed, observe, stop);
    }
    let shared = shared(study, options)?;
    store.set_not_set(&shared.missing)?;
    rounds(study, store, options, &shared, observe, stop)
}

/// Runs a study in the simulator.
fn simulate(
    study: &Study,
    store: &mut Store,
    options: &Options,
    observe: &mut dyn FnMut(Event<'_>),
    stop: &StopFlag,
) -> Result<(), CampaignError> {
    if !options.skip_unsupported
        && let Some(unsupported) = simulated_cell::unsupported(study)
    {
        return Err(CampaignError::Unsupported(unsupported));
    }
    // It has no sysctls at all.
    let optional = study.parts.iter().flat_map(|part| &part.plan.optional);
    store.set_not_set(&optional.map(|one| one.name.clone()).collect())?;
    let selection = Selection { shard: options.shard, simulated: true };
    loop {
        // What a round gave decides whether runs are added to its cells.
        let queue = pending::queue(study, store, selection)?;
        if queue.is_empty() {
            return Ok(());
        }
        simulated_study::round(queue, store, options.parallel, observe, stop)?;
    }
}

fn rounds(
    study: &Study,
    store: &mut Store,
    options: &Options,
    testbed: &dyn Testbed,
    observe: &mut dyn FnMut(Event<'_>),
    stop: &StopFlag,
) -> Result<(), CampaignError> {
    loop {
        // What a round measured decides whether tests are added to its cells.
        let selection = Selection { shard: options.shard, simulated: false };
        let queue = pending::queue(study, store, selection)?;
        if queue.is_empty() {
            return Ok(());
        }
        round(queue, store, options, testbed, observe, stop)?;
    }
}

/// Runs what is queued.
fn round(
    queue: VecDeque<Job<'_>>,
    store: &mut Store,
    options: &Options,
    testbed: &dyn Testbed,
    observe: &mut dyn FnMut(Event<'_>),
    stop: &StopFlag,
) -> Result<(), CampaignError> {
    let workers = testbed.at_once(options.parallel).max(1);
    let at_once = |job: &Job<'_>| if job.test.is_light() { workers } else { 1 };
    let planned = queue.iter().map(|job| (job.test.planned(), at_once(job)));
    let mut timing = Timing::new(store.count()?, planned);
    let schedule = Schedule::new(queue);
    let (sender, messages) = mpsc::channel();
    let stored = thread::scope(|scope| {
        for _ in 0..workers {
            let worker = Worker { options, testbed, stop, report: sender.clone() };
            let schedule = &schedule;
            scope.spawn(move || worker.work(schedule));
        }
        drop(sender);
        for message in messages {
            if let Err(error) = handle(message, store, &mut timing, observe) {
                // Nothing more can be stored.
                stop.raise();
                return Err(error);
            }
        }
        Ok(())
    });
    stored?;
    if stop.is_raised() { Err(CampaignError::Interrupted) } else { Ok(()) }
}

/// What the runs share. Only a study with programs or disks mounts a directory for them.
fn shared(study: &Study, options: &Options) -> Result<Shared, CampaignError> {
    let programs = study.programs();
    let has_programs = !programs.is_empty();
    let is_cached = programs.iter().any(|program| program.origin.is_some());
    let size = if is_cached { MAX_CACHED } else { MAX_FILES };
    let mount = || Scratch::mount(size).map(Arc::new);
    let scratch = (has_programs || study.sends_files()).then(mount).transpose();
    let scratch = scratch.map_err(CampaignError::system("mounting a directory for files"))?;
    let programs = scratch.clone().filter(|_| has_programs).map(Programs::new);
    Ok(Shared {
        shares: WindowShares::default(),
        programs,
        scratch,
        missing: missing::names(study)?,
        captures: options.captures.as_ref().map(Captures::open).transpose()?,
    })
}

fn handle(
    message: Message<'_>,
    store: &mut Store,
    timing: &mut Timing,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<(), CampaignError> {
    match message {
        Message::Begins { part, run, attempt } => {
            observe(Event::Begins { progress: timing.progress(), part, run, attempt });
        }
        Message::Retried { part, run, reason } => {
            observe(Event::Retried { part, run, reason: &reason });
        }
        Message::GivenUp(error) => return Err(error),
        Message::Ended { part, planned, measured } => {
            store.add(&part.name, &measured)?;
            timing.ended(planned);
            observe(Event::Ended { progress: timing.progress(), part, run: &measured.run });
        }
    }
    Ok(())
}

/// A thread that runs tests.
struct Worker<'s, 'a> {
    options: &'s Options,
    testbed: &'s dyn Testbed,
    stop: &'s StopFlag,
    report: Sender<Message<'a>>,
}

impl<'a> Worker<'_, 'a> {
    fn work(&self, schedule: &Schedule<'a>) {
        while let Some((job, mut slot)) = schedule.next(self.stop) {
            let (part, planned) = (job.part, job.test.planned());
            let measured = match self.run(&job, &mut slot) {
                Ok(measured) => measured,
                // The caller knows of an interruption.
                Err(AttemptError::Interrupted) => return,
                Err(error) => return self.say(Message::GivenUp(error.into())),
            };
            self.say(Message::Ended { part, planned, measured: Box::new(measured) });
        }
    }

    /// After an error of the store nobody listens.
    fn say(&self, message: Message<'a>) {
        let _ = self.report.send(message);
    }

    fn run(&self, job: &Job<'a>, slot: &mut Slot<'_, '_>) -> Result<Measured, AttemptError> {
        let Job { part, run, test } = job;
        let (part, run) = (*part, *run);
        let (began, started_unix_s) = (clock::now(), clock::unix_time().as_secs());
        let mut attempts = 0;
        let last = loop {
            attempts += 1;
            self.say(Message::Begins { part, run, attempt: attempts });
            let attempt = self.testbed.capture(part, run, attempts).map_err(AttemptError::from);
            let attempt = attempt.and_then(|capture| {
                self.testbed.attempt(test, part.plan.seed(run), capture, self.stop)
            });
            if self.stop.is_raised() {
                return Err(AttemptError::Interrupted);
            }
            let Some(reason) = why(&attempt).filter(|_| attempts < self.options.attempts) else {
                break attempt;
            };
            self.say(Message::Retried { part, run, reason });
            // Another window needs no quieter machine.
            if attempt.is_err() || attempt.is_ok_and(|attempt| attempt.disturbed) {
                slot.run_alone(self.stop)?;
                self.testbed.settle(self.stop);
            }
        };
        let goes_on = self.testbed.goes_on(last.is_ok());
        let last = match last {
            Err(error) if !goes_on => return Err(error),
            last => last,
        };
        let test_s = last.as_ref().map_or(0.0, |attempt| attempt.took.as_secs_f64());
        let reason = why(&last);
        let start_skew = last.as_ref().ok().and_then(|attempt| attempt.start_skew);
        let (status, flows) = match last {
            Ok(attempt) if reason.is_none() => (RunStatus::Valid, attempt.flows),
            Ok(attempt) => (RunStatus::Invalid, attempt.flows),
            Err(_) => (RunStatus::Failed, Vec::new()),
        };
        let (flows, measurements) = flows.into_iter().unzip();
        let CellRun { cell, repeat } = run;
        let took_s = began.elapsed().as_secs_f64();
        let run = StudyRun {
            cell,
            repeat,
            status,
            attempts,
            started_unix_s,
            took_s,
            test_s,
            reason: reason.unwrap_or_default(),
            start_skew,
            flows,
        };
        Ok(Measured { run, measurements })
    }
}

/// Why an attempt is no valid run; `None` if it is.
fn why(attempt: &Result<Attempt, AttemptError>) -> Option<String> {
    match attempt {
        Ok(attempt) => Some(attempt.reasons.join("; ")).filter(|reason| !reason.is_empty()),
        Err(error) => Some(problem::stored(error)),
    }
}
