//! Programs on a lab's hosts, from the first start to the last end.

mod jobs;

pub use jobs::{End, Job, Streams};

use crate::listen::{self, Listening};
use crate::{Lab, LabError};
use host::clock;
use host::program::{ExitCode, Program, Reaper};
use jobs::Running;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use topology::plan::{ChangePlan, Wait};

/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a program that nobody asked to be a server is waited for.
const MOMENT: Duration = Duration::from_secs(2);

/// How long a program may take to end after it is told to.
const GRACE: Duration = Duration::from_secs(2);

/// How long a program in the background may take to end by itself once the
/// others have: a server for one test does.
const FAREWELL: Duration = Duration::from_millis(500);

/// How often is looked whether something is due.
const GLANCE: Duration = Duration::from_millis(20);

const TERM: i32 = 15;
const KILL: i32 = 9;

/// What is to run in a lab, and for how long.
#[derive(Debug, Default)]
pub struct Session {
    /// In the order in which those are started that start at one time.
    pub jobs: Vec<Job>,
    /// What changes meanwhile, earliest first.
    pub changes: Vec<ChangePlan>,
    /// The end. `None`: when every program that is not in the background
    /// ended, or at a signal, where there is none.
    pub duration: Option<Duration>,
}

/// What happens while it runs.
#[derive(Debug)]
pub enum SessionEvent<'a> {
    /// All that is waited for listens; the lab's clock begins.
    Begun,
    /// A program does not listen yet; the lab goes on all the same.
    NotListening(&'a Job, Duration),
    /// A program was started.
    Started(&'a Job),
    /// A program wrote a line ([`Streams::Lines`]).
    Line(&'a Job, &'a str),
    /// A program ended by itself.
    Ended(&'a Job, ExitCode),
    /// A link's settings were changed.
    Changed(&'a ChangePlan),
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Every program that is not in the background ended.
    Done,
    /// Its time was up.
    Duration,
    /// A signal asked for it.
    Signal(i32),
    /// The program of that place in [`Session::jobs`] failed.
    Failed(usize),
    /// The emulation broke off; [`Lab::finish`] says why.
    Broken,
}

/// How a session ended.
#[derive(Debug)]
pub struct SessionEnd {
    /// Why.
    pub why: Why,
    /// How each job ended, in their order; `None` for one that was never started.
    pub ends: Vec<Option<End>>,
}

/// The signal that ends a session, once it came, and the programs it goes on to.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    programs: Vec<Program>,
    /// Whether a session looks at the signal.
    heard: bool,
    signal: Option<i32>,
}

impl Ending {
    fn hold(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The signal, once it came.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.hold().signal
    }

    /// A signal came. It goes on to the programs where it came `from_program`;
    /// a terminal has told them already. False where no session runs yet.
    #[must_use]
    pub fn came(&self, signal: i32, from_program: bool) -> bool {
        let mut known = self.hold();
        known.signal = Some(signal);
        if from_program {
            known.programs.iter().for_each(|program| program.signal(signal));
        }
        known.heard
    }

    /// A program that starts while the lab is ending is told at once.
    fn add(&self, program: &Program) {
        let mut known = self.hold();
        if let Some(signal) = known.signal {
            program.signal(signal);
        }
        known.programs.push(program.clone());
    }
}

impl Session {
    /// Runs it in `lab` to its end; every program has ended then.
    ///
    /// # Errors
    /// Where a program cannot be started, or one that must listen does not.
    pub fn run(
        self,
        lab: &Lab,
        reaper: &Reaper,
        ending: &Ending,
        observe: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<SessionEnd, LabError> {
        ending.hold().heard = true;
        let mut at_work = AtWork {
            running: self.jobs.iter().map(|_| None).collect(),
            session: self,
            lab,
            reaper,
            ending,
            observe,
            changed: 0,
        };
        let why = at_work.start_servers().and_then(|()| at_work.go_on());
        at_work.end_all(matches!(why, Ok(Why::Done)));
        let why = why?;
        let ends = at_work.running.into_iter().map(|running| Some(running?.into_end())).collect();
        Ok(SessionEnd { why, ends })
    }
}

struct AtWork<'a> {
    session: Session,
    lab: &'a Lab,
    reaper: &'a Reaper,
    ending: &'a Ending,
    observe: &'a mut dyn FnMut(SessionEvent<'_>),
    /// Of each job, once it was started.
    running: Vec<Option<Running>>,
    /// Changes made so far.
    changed: usize,
}

impl AtWork<'_> {
    /// Starts what the clock waits for, and waits.
    fn start_servers(&mut self) -> Result<(), LabError> {
        for index in 0..self.session.jobs.len() {
            let job = &self.session.jobs[index];
            let patience = match job.wait {
                Wait::No => continue,
                Wait::AMoment => MOMENT,
                Wait::UntilListening => PATIENCE,
            };
            let must = job.wait == Wait::UntilListening;
            let host = self.lab.host(&job.host)?;
            let before = listen::waiting_sockets(host)?;
            self.start(index)?;
            let Some(running) = &self.running[index] else { continue };
            let came = listen::wait_until_listening(host, &running.program, before, patience)?;
            if self.ending.signal().is_some() {
                break;
            }
            let job = &self.session.jobs[index];
            match came {
                Listening::Yes => {}
                Listening::NotYet => (self.observe)(SessionEvent::NotListening(job, patience)),
                // A moment's guest may have done its work already.
                Listening::Ended(0) if !must => {}
                Listening::Ended(code) => {
                    self.read_last_lines(index);
                    return Err(self.never_listened(index, code));
                }
            }
        }
        self.lab.begin();
        (self.observe)(SessionEvent::Begun);
        Ok(())
    }

    fn never_listened(&self, index: usize, code: ExitCode) -> LabError {
        let job = &self.session.jobs[index];
        let last = self.running[index].as_ref().map(Running::last_words).unwrap_or_default();
        LabError::NeverListened { host: job.host.clone(), command: job.words.clone(), code, last }
    }

    fn start(&mut self, index: usize) -> Result<(), LabError> {
        let job = &self.session.jobs[index];
        let running = Running::start(job, self.lab.host(&job.host)?, self.reaper)?;
        self.ending.add(&running.program);
        self.running[index] = Some(running);
        (self.observe)(SessionEvent::Started(job));
        Ok(())
    }

    /// From the clock's beginning to the end.
    fn go_on(&mut self) -> Result<Why, LabError> {
        let zero = clock::now();
        let rests = self.session.jobs.iter().all(|job| job.background);
        loop {
            let now = zero.elapsed();
            if self.ending.signal().is_none() {
                self.start_due(now)?;
                self.stop_due(now);
                self.change_due(now)?;
            }
            if let Some(failed) = self.look() {
                return Ok(Why::Failed(failed));
            }
            if !self.lab.is_carried() {
                return Ok(Why::Broken);
            }
            let signal = self.ending.signal();
            let all_ended = self.session.jobs.iter().zip(&self.running).all(|(job, running)| {
                // What was not started when a signal came never will be.
                let never = || signal.is_some();
                job.background
                    || running.as_ref().map_or_else(never, |running| running.code.is_some())
            });
            match (signal, rests) {
                // Programs at a terminal end as they choose to; `lab run` ends
                // as its command does.
                (Some(_), _) if self.at_terminal() && !all_ended => {}
                (Some(signal), _) => return Ok(Why::Signal(signal)),
                (None, false) if all_ended => return Ok(Why::Done),
                (None, _) => {}
            }
            if self.session.duration.is_some_and(|duration| now >= duration) {
                return Ok(Why::Duration);
            }
            self.wait();
        }
    }

    fn at_terminal(&self) -> bool {
        self.session.jobs.iter().any(|job| job.streams == Streams::Terminal)
    }

    fn start_due(&mut self, now: Duration) -> Result<(), LabError> {
        for index in 0..self.session.jobs.len() {
            if self.running[index].is_none() && self.session.jobs[index].start <= now {
                self.start(index)?;
            }
        }
        Ok(())
    }

    fn stop_due(&mut self, now: Duration) {
        for (job, running) in self.session.jobs.iter().zip(&mut self.running) {
            if let Some(running) = running
                && job.stop.is_some_and(|stop| stop <= now)
            {
                running.tell_to_end(GRACE);
            }
        }
    }

    fn change_due(&mut self, now: Duration) -> Result<(), LabError> {
        while let Some(change) = self.session.changes.get(self.changed)
            && change.at <= now
        {
            self.lab.change(change.link, change.path.clone(), &change.set)?;
            (self.observe)(SessionEvent::Changed(change));
            self.changed += 1;
        }
        Ok(())
    }

    /// Looks who ended and what was written; gives one that failed.
    fn look(&mut self) -> Option<usize> {
        for index in 0..self.running.len() {
            self.read_lines(index);
            let Some(running) = &mut self.running[index] else { continue };
            let Some(code) = running.has_ended() else { continue };
            // What it wrote last comes after its end.
            self.read_last_lines(index);
            let job = &self.session.jobs[index];
            if self.running[index].as_ref().is_some_and(|running| running.told) {
                continue;
            }
            (self.observe)(SessionEvent::Ended(job, code));
            if code != 0 && job.streams == Streams::Lines {
                return Some(index);
            }
        }
        None
    }

    fn read_lines(&mut self, index: usize) {
        let Some(running) = &mut self.running[index] else { return };
        let job = &self.session.jobs[index];
        for line in running.new_lines() {
            (self.observe)(SessionEvent::Line(job, &line));
        }
    }

    fn read_last_lines(&mut self, index: usize) {
        let Some(running) = &mut self.running[index] else { return };
        let job = &self.session.jobs[index];
        for line in running.rest_of_lines() {
            (self.observe)(SessionEvent::Line(job, &line));
        }
    }

    /// Waits for a program's end, or a glance.
    fn wait(&self) {
        let first = self.running.iter().flatten().find(|running| running.code.is_none());
        match first {
            Some(running) => drop(running.program.wait_at_most(GLANCE)),
            None => std::thread::sleep(GLANCE),
        }
    }

    /// A program that has not ended by itself is asked to, then made to.
    fn end_all(&mut self, in_peace: bool) {
        let since = clock::now();
        let patience = if in_peace { FAREWELL } else { Duration::ZERO };
        while self.running.iter().flatten().any(|running| running.code.is_none()) {
            if since.elapsed() >= patience {
                for running in self.running.iter_mut().flatten() {
                    running.tell_to_end(GRACE);
                }
            }
            if since.elapsed() > patience + GRACE * 2 {
                return;
            }
            self.wait();
            self.look();
        }
    }
}
