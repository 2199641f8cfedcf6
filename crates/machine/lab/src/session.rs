//! Runs programs on the hosts of a lab.

mod jobs;

pub use jobs::{End, Job, Streams};

use crate::listen::{self, Listening};
use crate::{Lab, LabError};
use host::clock;
use host::lock::lock;
use host::program::{ExitCode, Program, Reaper};
use jobs::Running;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use topology::plan::{ChangePlan, Wait};

/// Time a server may take until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);

/// The same for a background program, which may not be a server.
const BRIEF_LISTEN_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// Time a background program may take to exit by itself once the others have: a
/// one-off server does.
const BACKGROUND_GRACE: Duration = Duration::from_millis(500);

/// Poll interval for due events.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const TERM: i32 = 15;
const KILL: i32 = 9;

/// The programs to run in a lab, changes, and the duration.
#[derive(Debug, Default)]
pub struct Session {
    /// Programs; those with the same start time start in this order.
    pub jobs: Vec<Job>,
    /// Changes of links, earliest first.
    pub changes: Vec<ChangePlan>,
    /// Duration. `None`: until every foreground program has exited, or, without
    /// one, until a signal.
    pub duration: Option<Duration>,
}

/// Events of a running session.
#[derive(Debug)]
pub enum SessionEvent<'a> {
    /// All servers listen; the lab's clock starts.
    Begun,
    /// A program is not listening after that time; the session continues.
    NotListening(&'a Job, Duration),
    /// A program was started.
    Started(&'a Job),
    /// A program wrote a line ([`Streams::Lines`]).
    Line(&'a Job, &'a str),
    /// A program exited by itself.
    Ended(&'a Job, ExitCode),
    /// A link's settings were changed.
    Changed(&'a ChangePlan),
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Every foreground program exited.
    Done,
    /// The duration has passed.
    Duration,
    /// A signal.
    Signal(i32),
    /// The program with that index in [`Session::jobs`] failed.
    Failed(usize),
    /// The emulation failed; [`Lab::finish`] returns the error.
    Broken,
}

/// How a session ended.
#[derive(Debug)]
pub struct SessionEnd {
    /// Why.
    pub why: EndReason,
    /// How each job ended, in order; `None` if it was never started.
    pub ends: Vec<Option<End>>,
}

/// The signal that ends a session, and the programs to forward it to.
#[derive(Debug, Clone, Default)]
pub struct EndSignal {
    known: Arc<Mutex<SignalState>>,
}

#[derive(Debug, Default)]
struct SignalState {
    programs: Vec<Program>,
    /// Whether a session polls the signal.
    session_runs: bool,
    signal: Option<i32>,
}

impl EndSignal {
    fn state(&self) -> MutexGuard<'_, SignalState> {
        lock(&self.known)
    }

    /// The signal, once received.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.state().signal
    }

    /// Records a signal, and forwards it to the programs if it came `from_program`;
    /// a terminal signals them itself. False if no session runs yet.
    #[must_use]
    pub fn on_signal(&self, signal: i32, from_program: bool) -> bool {
        let mut known = self.state();
        known.signal = Some(signal);
        if from_program {
            known.programs.iter().for_each(|program| program.signal(signal));
        }
        known.session_runs
    }

    /// Adds a program; one that starts while the lab is ending gets the signal.
    fn add(&self, program: &Program) {
        let mut known = self.state();
        if let Some(signal) = known.signal {
            program.signal(signal);
        }
        known.programs.push(program.clone());
    }
}

impl Session {
    /// Runs the session; all programs have ended when it returns.
    ///
    /// # Errors
    /// If a program cannot be started, or a server exits before it listens.
    pub fn run(
        self,
        lab: &Lab,
        reaper: &Reaper,
        end_signal: &EndSignal,
        observe: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<SessionEnd, LabError> {
        end_signal.state().session_runs = true;
        let mut run = SessionRun {
            running: self.jobs.iter().map(|_| None).collect(),
            session: self,
            lab,
            reaper,
            end_signal,
            observe,
            changed: 0,
        };
        let why = run.start_servers().and_then(|()| run.run_to_end());
        run.end_all(matches!(why, Ok(EndReason::Done)));
        let why = why?;
        let ends = run.running.into_iter().map(|running| Some(running?.into_end())).collect();
        Ok(SessionEnd { why, ends })
    }
}

struct SessionRun<'a> {
    session: Session,
    lab: &'a Lab,
    reaper: &'a Reaper,
    end_signal: &'a EndSignal,
    observe: &'a mut dyn FnMut(SessionEvent<'_>),
    /// Of each job, once it was started.
    running: Vec<Option<Running>>,
    /// Changes made so far.
    changed: usize,
}

impl SessionRun<'_> {
    /// Starts the programs that the clock waits for, and waits.
    fn start_servers(&mut self) -> Result<(), LabError> {
        for index in 0..self.session.jobs.len() {
            let job = &self.session.jobs[index];
            let timeout = match job.wait {
                Wait::No => continue,
                Wait::Briefly => BRIEF_LISTEN_TIMEOUT,
                Wait::UntilListening => LISTEN_TIMEOUT,
            };
            let must = job.wait == Wait::UntilListening;
            let host = self.lab.host(&job.host)?;
            let before = listen::waiting_sockets(host)?;
            self.start(index)?;
            let Some(running) = &self.running[index] else { continue };
            let state = listen::wait_until_listening(host, &running.program, before, timeout)?;
            if self.end_signal.signal().is_some() {
                break;
            }
            let job = &self.session.jobs[index];
            match state {
                Listening::Yes => {}
                Listening::NotYet => (self.observe)(SessionEvent::NotListening(job, timeout)),
                // A background program may have finished its work already.
                Listening::Ended(0) if !must => {}
                Listening::Ended(code) => {
                    self.read_last_lines(index);
                    return Err(self.exited_before_listening(index, code));
                }
            }
        }
        self.lab.begin();
        (self.observe)(SessionEvent::Begun);
        Ok(())
    }

    fn exited_before_listening(&self, index: usize, code: ExitCode) -> LabError {
        let job = &self.session.jobs[index];
        let last = self.running[index].as_ref().map(Running::last_line).unwrap_or_default();
        LabError::ExitedBeforeListening {
            host: job.host.clone(),
            command: job.words.clone(),
            code,
            last,
        }
    }

    fn start(&mut self, index: usize) -> Result<(), LabError> {
        let job = &self.session.jobs[index];
        let running = Running::start(job, self.lab.host(&job.host)?, self.reaper)?;
        self.end_signal.add(&running.program);
        self.running[index] = Some(running);
        (self.observe)(SessionEvent::Started(job));
        Ok(())
    }

    /// From the start of the clock to the end.
    fn run_to_end(&mut self) -> Result<EndReason, LabError> {
        let zero = clock::now();
        let rests = self.session.jobs.iter().all(|job| job.background);
        loop {
            let now = zero.elapsed();
            self.lab.omit_when_due()?;
            if self.end_signal.signal().is_none() {
                self.start_due(now)?;
                self.stop_due(now);
                self.change_due(now)?;
            }
            if let Some(failed) = self.poll() {
                return Ok(EndReason::Failed(failed));
            }
            if !self.lab.is_emulating() {
                return Ok(EndReason::Broken);
            }
            let signal = self.end_signal.signal();
            let all_ended = self.session.jobs.iter().zip(&self.running).all(|(job, running)| {
                // A program not started before the signal is never started.
                let never = || signal.is_some();
                job.background
                    || running.as_ref().map_or_else(never, |running| running.code.is_some())
            });
            match (signal, rests) {
                // Programs at a terminal handle the signal themselves; `lab run`
                // ends with its command.
                (Some(_), _) if self.at_terminal() && !all_ended => {}
                (Some(signal), _) => return Ok(EndReason::Signal(signal)),
                (None, false) if all_ended => return Ok(EndReason::Done),
                (None, _) => {}
            }
            if self.session.duration.is_some_and(|duration| now >= duration) {
                return Ok(EndReason::Duration);
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
                running.request_stop(TERM_GRACE);
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

    /// Collects exits and output; returns a program that failed.
    fn poll(&mut self) -> Option<usize> {
        for index in 0..self.running.len() {
            self.read_lines(index);
            let Some(running) = &mut self.running[index] else { continue };
            let Some(code) = running.has_ended() else { continue };
            // Its last output arrives after its exit.
            self.read_last_lines(index);
            let job = &self.session.jobs[index];
            if self.running[index].as_ref().is_some_and(|running| running.stopped) {
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

    /// Waits for the exit of a program, or one poll interval.
    fn wait(&self) {
        let first = self.running.iter().flatten().find(|running| running.code.is_none());
        match first {
            Some(running) => drop(running.program.wait_at_most(POLL_INTERVAL)),
            None => std::thread::sleep(POLL_INTERVAL),
        }
    }

    /// Ends all programs: SIGTERM, then SIGKILL.
    fn end_all(&mut self, all_done: bool) {
        let since = clock::now();
        let timeout = if all_done { BACKGROUND_GRACE } else { Duration::ZERO };
        while self.running.iter().flatten().any(|running| running.code.is_none()) {
            if since.elapsed() >= timeout {
                for running in self.running.iter_mut().flatten() {
                    running.request_stop(TERM_GRACE);
                }
            }
            if since.elapsed() > timeout + TERM_GRACE * 2 {
                return;
            }
            self.wait();
            self.poll();
        }
    }
}
