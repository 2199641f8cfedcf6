//! Runs the tests of each step and changes the settings between them.

use super::{Environment, Prepared, Step, StepEvent, verdict, verdict::Runs};
use crate::VerifyError;
use crate::order::alternating;
use diagnose::repeats;
use perf::client::{ClientConfig, EndAfter};
use record::{
    Direction, FarEndChange, Finding, Measurement, RemedyPlace, RevertOutcome, RevertedSetting,
    StepVerdict, TuneApplied, TunePlan, VERIFY_SCHEMA, VerifyReport, VerifyStep,
};
use tune::{Decision, Lock, Tuner, TunerError};

pub(super) struct StepRun<'a> {
    prepared: &'a Prepared,
    tuner: &'a Tuner<'a>,
    lock: &'a Lock,
    environment: &'a mut dyn Environment,
    /// The finding of each direction's last test with the present settings.
    current: Vec<Finding>,
    first: Vec<Finding>,
    steps: Vec<VerifyStep>,
    notes: Vec<String>,
}

/// The end of a step's tests.
enum Tested {
    All,
    Stopped,
}

impl<'a> StepRun<'a> {
    pub(super) fn new(
        prepared: &'a Prepared,
        tuner: &'a Tuner<'a>,
        lock: &'a Lock,
        environment: &'a mut dyn Environment,
    ) -> Self {
        let notes = prepared.notes.clone();
        let (current, first, steps) = (Vec::new(), Vec::new(), Vec::new());
        StepRun { prepared, tuner, lock, environment, current, first, steps, notes }
    }

    pub(super) fn run(mut self) -> Result<VerifyReport, VerifyError> {
        let prepared = self.prepared;
        if prepared.steps.is_empty() {
            self.only_measure()?;
        }
        for (index, step) in prepared.steps.iter().enumerate() {
            if self.environment.is_stopped() {
                break;
            }
            let (name, settings) = (step.name, &*step.settings);
            let (number, of) = (index + 1, prepared.steps.len());
            self.environment.report(&StepEvent::Begins { number, of, name, settings });
            let done = self.attempt(step)?;
            self.environment.report(&StepEvent::Ended(&done));
            let stuck = done.verdict == StepVerdict::Stuck;
            self.steps.push(done);
            if stuck {
                break;
            }
        }
        let interrupted = self.environment.is_stopped();
        let far_end = self.far_end();
        Ok(VerifyReport {
            schema: VERIFY_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: prepared.job.client.host.clone(),
            goal: prepared.goal.clone(),
            repeats: prepared.job.repeats,
            seconds: prepared.seconds,
            first: self.first,
            last: self.current,
            steps: self.steps,
            far_end,
            interrupted,
            notes: self.notes,
        })
    }

    /// Nothing to change: one test per direction finds the limit.
    fn only_measure(&mut self) -> Result<(), VerifyError> {
        let directions = &self.prepared.job.directions;
        for (number, direction) in (1..).zip(directions) {
            let of = u32::try_from(directions.len()).unwrap_or(u32::MAX);
            let event = StepEvent::Test { with: false, direction: *direction, number, of };
            self.environment.report(&event);
            let measurement = self.measure(*direction)?;
            if self.environment.is_stopped() {
                break;
            }
            let found = self.prepared.explain(&measurement);
            self.environment.report(&StepEvent::Tested(&repeats::figures(&measurement)));
            self.first.push(found.clone());
            self.current.push(found);
        }
        Ok(())
    }

    fn attempt(&mut self, step: &Step) -> Result<VerifyStep, VerifyError> {
        let mut done = VerifyStep {
            name: step.name.to_owned(),
            settings: step.settings.clone(),
            written: Vec::new(),
            not_reverted: Vec::new(),
            directions: Vec::new(),
            verdict: StepVerdict::Skipped,
            because: String::new(),
            journal: None,
        };
        let plan = self.plan(step);
        if let Err(error) = self.tuner.dry_run(&plan, false) {
            return match error {
                TunerError::NotPermitted { .. } => {
                    done.because = problem::stored(error);
                    Ok(done)
                }
                other => Err(other.into()),
            };
        }
        let directions = self.prepared.job.directions.clone();
        let mut runs: Vec<Runs> = directions.iter().map(|_| Runs::default()).collect();
        // The last test of each direction without and with the step.
        let mut last = [self.current.clone(), Vec::new()];
        let mut applied = None;
        let tested = self.tests(&plan, &mut runs, &mut last, &mut applied, &mut done);
        let stopped = match tested {
            Ok(Tested::All) => false,
            Ok(Tested::Stopped) => true,
            Err(error) => {
                // Revert the step, whatever the error.
                let left = self.revert(&mut applied)?;
                return Err(if left.is_empty() { error } else { VerifyError::stuck(&left) });
            }
        };
        let keys: Vec<&str> = step.settings.iter().map(|setting| &*setting.key).collect();
        let key = "net.ipv4.tcp_congestion_control";
        let congestion = self.prepared.job.congestion.as_deref().filter(|_| keys.contains(&key));
        let ways = directions.iter().zip(runs);
        done.directions = ways
            .map(|(way, runs)| verdict::direction_result(*way, runs, &keys, congestion))
            .collect();
        (done.verdict, done.because) = if stopped {
            (StepVerdict::Interrupted, "Interrupted before its tests ended.".to_owned())
        } else {
            verdict::decide(&done.directions)
        };
        let [without, with] = last;
        if done.verdict == StepVerdict::Kept {
            if applied.is_none() {
                applied = self.apply(&plan, &mut done)?;
            }
            done.journal = applied.and_then(|applied| applied.journal);
            self.current = with;
            return Ok(done);
        }
        self.current = without;
        let journal = applied.as_ref().and_then(|applied| applied.journal.clone());
        done.not_reverted = self.revert(&mut applied)?;
        if !done.not_reverted.is_empty() {
            done.verdict = StepVerdict::Stuck;
            done.because = VerifyError::stuck(&done.not_reverted).to_string();
            done.journal = journal;
        }
        Ok(done)
    }

    fn tests(
        &mut self,
        plan: &TunePlan,
        runs: &mut [Runs],
        last: &mut [Vec<Finding>; 2],
        applied: &mut Option<TuneApplied>,
        done: &mut VerifyStep,
    ) -> Result<Tested, VerifyError> {
        let directions = self.prepared.job.directions.clone();
        let of = 2 * self.prepared.job.repeats * u32::try_from(runs.len()).unwrap_or(1);
        let mut number = 0;
        for with in alternating(self.prepared.job.repeats) {
            if self.environment.is_stopped() {
                return Ok(Tested::Stopped);
            }
            match (with, applied.is_some()) {
                (true, false) => *applied = self.apply(plan, done)?,
                (false, true) => {
                    let left = self.revert(applied)?;
                    if !left.is_empty() {
                        return Err(VerifyError::stuck(&left));
                    }
                }
                _ => {}
            }
            let mut found = Vec::new();
            for (direction, runs) in directions.iter().zip(runs.iter_mut()) {
                number += 1;
                self.environment.report(&StepEvent::Test {
                    with,
                    direction: *direction,
                    number,
                    of,
                });
                let measurement = self.measure(*direction)?;
                // A truncated test is not comparable.
                if self.environment.is_stopped() {
                    return Ok(Tested::Stopped);
                }
                let figures = repeats::figures(&measurement);
                self.environment.report(&StepEvent::Tested(&figures));
                let finding = self.prepared.explain(&measurement);
                if with {
                    self.note_congestion(&measurement, *direction);
                    runs.with.push(figures);
                } else {
                    runs.without.push(figures);
                    runs.found.get_or_insert_with(|| finding.clone());
                }
                found.push(finding);
            }
            if self.first.is_empty() {
                self.first.clone_from(&found);
            }
            last[usize::from(with)] = found;
        }
        Ok(Tested::All)
    }

    /// A route may set a congestion control (ip-route(8), `congctl`), which overrides the sysctl.
    fn note_congestion(&mut self, m: &Measurement, direction: Direction) {
        let Some(asked) = self.prepared.job.congestion.as_deref() else { return };
        if self.tuner.settings.read("net.ipv4.tcp_congestion_control").ok().as_deref()
            != Some(asked)
            || direction == Direction::Reverse
        {
            return;
        }
        let other = m
            .streams
            .iter()
            .find_map(|stream| stream.congestion.as_deref().filter(|used| *used != asked));
        if let Some(used) = other {
            let note = format!(
                "net.ipv4.tcp_congestion_control was {asked}, but connections used {used}: the \
                 route to the server sets it (ip route … congctl)"
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    fn plan(&self, step: &Step) -> TunePlan {
        let plan = &self.prepared.plan;
        let goal = format!("{}: {}, for {}", step.name, plan.goal, self.prepared.job.client.host);
        TunePlan { settings: step.settings.clone(), goal, ..plan.clone() }
    }

    fn measure(&mut self, direction: Direction) -> Result<Measurement, VerifyError> {
        let client = self.prepared.job.client.clone();
        let end = EndAfter::Seconds(self.prepared.seconds);
        let config = ClientConfig { end, direction, ..client };
        let first = self.environment.measure(&config);
        if first.is_ok() || self.environment.is_stopped() {
            return first.map_err(|source| self.test_failed(source));
        }
        // A server that runs one test at a time may not listen yet.
        self.environment.measure(&config).map_err(|source| self.test_failed(source))
    }

    fn test_failed(&self, source: perf::PerfError) -> VerifyError {
        let kept = self.steps.iter().filter(|step| step.verdict == StepVerdict::Kept).count();
        VerifyError::Test { source, kept }
    }

    fn apply(
        &self,
        plan: &TunePlan,
        done: &mut VerifyStep,
    ) -> Result<Option<TuneApplied>, VerifyError> {
        let tuner = Tuner { now_s: host::clock::unix_seconds(), ..self.tuner.clone() };
        let applied = tuner.apply(self.lock, plan, false)?;
        done.written.clone_from(&applied.settings);
        // Without a journal nothing was changed, and nothing needs to be reverted.
        Ok(Some(applied))
    }

    /// Reverts the step's values; returns those that could not be reverted.
    fn revert(
        &self,
        applied: &mut Option<TuneApplied>,
    ) -> Result<Vec<RevertedSetting>, VerifyError> {
        if applied.take().is_none_or(|applied| applied.journal.is_none()) {
            return Ok(Vec::new());
        }
        let undone = self.tuner.undo(self.lock, false, &mut |_| Decision::Keep)?;
        let left = |one: &RevertedSetting| {
            matches!(one.state, RevertOutcome::Failed | RevertOutcome::Left) && !one.note.is_empty()
        };
        Ok(undone.settings.into_iter().filter(left).collect())
    }

    /// The settings that the other end needs, by the last tests.
    fn far_end(&self) -> Vec<FarEndChange> {
        let directions = self.prepared.job.directions.iter();
        let needs = directions.zip(&self.current).flat_map(|(direction, finding)| {
            let ours = verdict::place(*direction);
            let theirs = finding.remedies.iter().filter(move |remedy| {
                matches!(remedy.place, RemedyPlace::Sender | RemedyPlace::Receiver)
                    && remedy.place != ours
            });
            theirs.map(|remedy| FarEndChange {
                direction: *direction,
                command: remedy.command.to_string(),
                expects_bps: remedy.expects_bps,
                why: remedy.why.clone(),
            })
        });
        needs.collect()
    }
}
