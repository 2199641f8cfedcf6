//! Runs what is queued in the simulator, on all cores, and stores it in the queue's order.
//!
//! The store is then the same whatever the number of threads.

use crate::runner::Event;
use crate::schedule::Job;
use crate::simulated_cell;
use crate::store::Measured;
use crate::timing::Timing;
use crate::{CampaignError, Store};
use host::lock::lock;
use perf::StopFlag;
use record::{RunStatus, StudyRun};
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;
use study::CellRun;

/// Runs for each thread that may have ended before the one that is stored next: what they measured
/// is kept in memory.
const AHEAD: usize = 8;

/// By how much a simulation is faster than the test, until runs have shown it: at 100 Mbit/s.
const SPEED: u32 = 20;

/// How often a waiting thread looks for an interruption.
const POLL: Duration = Duration::from_millis(100);

/// What the threads report to the one that stores the results.
enum Message {
    Begins(usize),
    Ended(usize, Box<Measured>),
}

/// The runs that are taken and stored, as numbers of the queue.
#[derive(Debug, Default)]
struct Progress {
    taken: usize,
    stored: usize,
}

/// The queue, shared by the threads.
struct Shared<'a> {
    queue: Vec<Job<'a>>,
    progress: Mutex<Progress>,
    changed: Condvar,
    /// See [`AHEAD`], of all threads.
    ahead: usize,
    stop: &'a StopFlag,
}

/// Runs what is queued on so many threads.
///
/// # Errors
/// The store cannot be written, or `stop` was raised; the runs before are stored.
pub(crate) fn round(
    queue: VecDeque<Job<'_>>,
    store: &mut Store,
    threads: u32,
    observe: &mut dyn FnMut(Event<'_>),
    stop: &StopFlag,
) -> Result<(), CampaignError> {
    let threads = threads.max(1);
    let planned = queue.iter().map(|job| (job.test.planned(), threads.saturating_mul(SPEED)));
    let mut timing = Timing::new(store.count()?, planned);
    let shared = Shared {
        queue: queue.into(),
        progress: Mutex::default(),
        changed: Condvar::new(),
        ahead: AHEAD * threads as usize,
        stop,
    };
    let (sender, messages) = mpsc::channel();
    let stored = thread::scope(|scope| {
        for _ in 0..threads {
            let (shared, sender) = (&shared, sender.clone());
            scope.spawn(move || shared.work(&sender));
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        for message in messages {
            let kept = shared.handle(message, &mut waiting, store, &mut timing, observe);
            if let Err(error) = kept {
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

impl Shared<'_> {
    /// Runs tests until there are no more; after an error of the store nobody listens.
    fn work(&self, report: &Sender<Message>) {
        while let Some((number, job)) = self.next() {
            let _ = report.send(Message::Begins(number));
            let Some(measured) = run(job, self.stop) else { return };
            let _ = report.send(Message::Ended(number, Box::new(measured)));
        }
    }

    /// The next run, once it is not too far ahead of what is stored.
    fn next(&self) -> Option<(usize, &Job<'_>)> {
        let mut progress = lock(&self.progress);
        loop {
            if self.stop.is_raised() {
                return None;
            }
            let number = progress.taken;
            let job = self.queue.get(number)?;
            if number < progress.stored + self.ahead {
                progress.taken += 1;
                return Some((number, job));
            }
            progress = match self.changed.wait_timeout(progress, POLL) {
                Ok((progress, _)) => progress,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Stores the runs whose turn it is.
    fn handle(
        &self,
        message: Message,
        waiting: &mut BTreeMap<usize, Box<Measured>>,
        store: &mut Store,
        timing: &mut Timing,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), CampaignError> {
        match message {
            Message::Begins(number) => {
                if let Some(job) = self.queue.get(number) {
                    let (part, run, progress) = (job.part, job.run, timing.progress());
                    observe(Event::Begins { progress, part, run, attempt: 1 });
                }
                return Ok(());
            }
            Message::Ended(number, measured) => waiting.insert(number, measured),
        };
        loop {
            let number = lock(&self.progress).stored;
            let (Some(measured), Some(job)) = (waiting.remove(&number), self.queue.get(number))
            else {
                return Ok(());
            };
            store.add(&job.part.name, &measured)?;
            timing.ended(job.test.planned());
            lock(&self.progress).stored = number + 1;
            self.changed.notify_all();
            let (part, run, progress) = (job.part, &measured.run, timing.progress());
            observe(Event::Ended { progress, part, run });
        }
    }
}

/// Simulates a run; `None`: stopped. Its times are virtual, so that the same run is the same on every
/// machine.
fn run(job: &Job<'_>, stop: &StopFlag) -> Option<Measured> {
    let Job { part, run, test } = job;
    let CellRun { cell, repeat } = *run;
    let attempt = simulated_cell::run(test, part.plan.seed(*run), stop)?;
    let took_s = attempt.took.as_secs_f64();
    let (flows, measurements) = attempt.flows.into_iter().unzip();
    let is_valid = attempt.reasons.is_empty();
    let run = StudyRun {
        cell,
        repeat,
        status: if is_valid { RunStatus::Valid } else { RunStatus::Invalid },
        attempts: 1,
        started_unix_s: 0,
        took_s,
        test_s: took_s,
        reason: attempt.reasons.join("; "),
        start_skew: None,
        flows,
    };
    Some(Measured { run, measurements })
}
