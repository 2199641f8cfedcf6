//! The tests of each step, in their order, and the settings between them.

use super::{Prepared, Step, StepEvent, World, verdict, verdict::Runs};
use crate::VerifyError;
use diagnose::repeats;
use probe::client::ClientConfig;
use record::{
    Direction, FarEndNeeds, Finding, Measurement, RemedyPlace, State, StepVerdict, TuneApplied,
    TunePlan, Undone, VERIFY_SCHEMA, VerifyReport, VerifyStep,
};
use tune::{Decision, Ledger, LedgerError, Lock};

pub(super) struct Course<'a> {
    prepared: &'a Prepared,
    ledger: &'a Ledger<'a>,
    lock: &'a Lock,
    world: &'a mut dyn World,
    /// What each direction's last test said, with the settings as they stand.
    stands: Vec<Finding>,
    first: Vec<Finding>,
    steps: Vec<VerifyStep>,
    notes: Vec<String>,
}

/// The end of a step's tests.
enum Tested {
    All,
    Stopped,
}

/// `A B B A A B …`: where the path drifts evenly, both kinds see the same of it.
fn order(repeats: u32) -> impl Iterator<Item = bool> {
    (0..2 * repeats).map(|test| matches!(test % 4, 1 | 2))
}

impl<'a> Course<'a> {
    pub(super) fn new(
        prepared: &'a Prepared,
        ledger: &'a Ledger<'a>,
        lock: &'a Lock,
        world: &'a mut dyn World,
    ) -> Self {
        let notes = prepared.notes.clone();
        let (stands, first, steps) = (Vec::new(), Vec::new(), Vec::new());
        Course { prepared, ledger, lock, world, stands, first, steps, notes }
    }

    pub(super) fn run(mut self) -> Result<VerifyReport, VerifyError> {
        let prepared = self.prepared;
        if prepared.steps.is_empty() {
            self.only_measure()?;
        }
        for (index, step) in prepared.steps.iter().enumerate() {
            if self.world.is_stopped() {
                break;
            }
            let (name, settings) = (step.name, &*step.settings);
            let (number, of) = (index + 1, prepared.steps.len());
            self.world.tell(&StepEvent::Begins { number, of, name, settings });
            let done = self.attempt(step)?;
            self.world.tell(&StepEvent::Ended(&done));
            let stuck = done.verdict == StepVerdict::Stuck;
            self.steps.push(done);
            if stuck {
                break;
            }
        }
        let interrupted = self.world.is_stopped();
        let far_end = self.far_end();
        Ok(VerifyReport {
            schema: VERIFY_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: prepared.job.client.host.clone(),
            goal: prepared.goal.clone(),
            repeats: prepared.job.repeats,
            seconds: prepared.seconds,
            first: self.first,
            last: self.stands,
            steps: self.steps,
            far_end,
            interrupted,
            notes: self.notes,
        })
    }

    /// Nothing to change: one test of each direction tells what holds it.
    fn only_measure(&mut self) -> Result<(), VerifyError> {
        let directions = &self.prepared.job.directions;
        for (number, direction) in (1..).zip(directions) {
            let of = u32::try_from(directions.len()).unwrap_or(u32::MAX);
            let event = StepEvent::Test { with: false, direction: *direction, number, of };
            self.world.tell(&event);
            let measurement = self.measure(*direction)?;
            if self.world.is_stopped() {
                break;
            }
            let found = self.prepared.explain(&measurement);
            self.world.tell(&StepEvent::Tested(&repeats::figures(&measurement)));
            self.first.push(found.clone());
            self.stands.push(found);
        }
        Ok(())
    }

    fn attempt(&mut self, step: &Step) -> Result<VerifyStep, VerifyError> {
        let mut done = VerifyStep {
            name: step.name.to_owned(),
            settings: step.settings.clone(),
            written: Vec::new(),
            not_put_back: Vec::new(),
            ways: Vec::new(),
            verdict: StepVerdict::Skipped,
            because: String::new(),
            journal: None,
        };
        let plan = self.plan(step);
        if let Err(error) = self.ledger.rehearse(&plan, false) {
            return match error {
                LedgerError::NotPermitted { .. } => {
                    done.because = error.to_string();
                    Ok(done)
                }
                other => Err(other.into()),
            };
        }
        let directions = self.prepared.job.directions.clone();
        let mut runs: Vec<Runs> = directions.iter().map(|_| Runs::default()).collect();
        // The last test of each direction without and with the step.
        let mut last = [self.stands.clone(), Vec::new()];
        let mut applied = None;
        let tested = self.tests(&plan, &mut runs, &mut last, &mut applied, &mut done);
        let stopped = match tested {
            Ok(Tested::All) => false,
            Ok(Tested::Stopped) => true,
            Err(error) => {
                // Whatever it was, the step must not stay half tried.
                let left = self.put_back(&mut applied)?;
                return Err(if left.is_empty() { error } else { VerifyError::stuck(&left) });
            }
        };
        let keys: Vec<&str> = step.settings.iter().map(|setting| &*setting.key).collect();
        let key = "net.ipv4.tcp_congestion_control";
        let congestion = self.prepared.job.congestion.as_deref().filter(|_| keys.contains(&key));
        let ways = directions.iter().zip(runs);
        done.ways = ways.map(|(way, runs)| verdict::way(*way, runs, &keys, congestion)).collect();
        (done.verdict, done.because) = if stopped {
            (StepVerdict::Interrupted, "It was stopped while it was tried.".to_owned())
        } else {
            verdict::decide(&done.ways)
        };
        let [without, with] = last;
        if done.verdict == StepVerdict::Kept {
            if applied.is_none() {
                applied = self.apply(&plan, &mut done)?;
            }
            done.journal = applied.and_then(|applied| applied.journal);
            self.stands = with;
            return Ok(done);
        }
        self.stands = without;
        let journal = applied.as_ref().and_then(|applied| applied.journal.clone());
        done.not_put_back = self.put_back(&mut applied)?;
        if !done.not_put_back.is_empty() {
            done.verdict = StepVerdict::Stuck;
            done.because = VerifyError::stuck(&done.not_put_back).to_string();
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
        for with in order(self.prepared.job.repeats) {
            if self.world.is_stopped() {
                return Ok(Tested::Stopped);
            }
            match (with, applied.is_some()) {
                (true, false) => *applied = self.apply(plan, done)?,
                (false, true) => {
                    let left = self.put_back(applied)?;
                    if !left.is_empty() {
                        return Err(VerifyError::stuck(&left));
                    }
                }
                _ => {}
            }
            let mut found = Vec::new();
            for (direction, runs) in directions.iter().zip(runs.iter_mut()) {
                number += 1;
                self.world.tell(&StepEvent::Test { with, direction: *direction, number, of });
                let measurement = self.measure(*direction)?;
                // One that was cut short is not one of those that ask the same.
                if self.world.is_stopped() {
                    return Ok(Tested::Stopped);
                }
                let figures = repeats::figures(&measurement);
                self.world.tell(&StepEvent::Tested(&figures));
                let finding = self.prepared.explain(&measurement);
                if with {
                    self.see_congestion(&measurement, *direction);
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

    /// A route may name a congestion control (ip-route(8), `congctl`), which
    /// then counts more than the setting.
    fn see_congestion(&mut self, m: &Measurement, direction: Direction) {
        let Some(asked) = self.prepared.job.congestion.as_deref() else { return };
        if self.ledger.settings.read("net.ipv4.tcp_congestion_control").ok().as_deref()
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
                "net.ipv4.tcp_congestion_control was {asked}, and connections used {used} all the \
                 same: the route to the server names it (ip route … congctl)"
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
        let config = ClientConfig { seconds: self.prepared.seconds, direction, ..client };
        let first = self.world.measure(&config);
        if first.is_ok() || self.world.is_stopped() {
            return first.map_err(|source| self.test_failed(source));
        }
        // A server of one test at a time may not listen yet.
        self.world.measure(&config).map_err(|source| self.test_failed(source))
    }

    fn test_failed(&self, source: probe::ProbeError) -> VerifyError {
        let kept = self.steps.iter().filter(|step| step.verdict == StepVerdict::Kept).count();
        VerifyError::Test { source, kept }
    }

    fn apply(
        &self,
        plan: &TunePlan,
        done: &mut VerifyStep,
    ) -> Result<Option<TuneApplied>, VerifyError> {
        let ledger = Ledger { now_s: host::clock::unix_seconds(), ..self.ledger.clone() };
        let applied = ledger.apply(self.lock, plan, false)?;
        done.written.clone_from(&applied.settings);
        // What needs no journal changed nothing, and has nothing to put back.
        Ok(Some(applied))
    }

    /// Puts the step's values back; gives those that could not be.
    fn put_back(&self, applied: &mut Option<TuneApplied>) -> Result<Vec<Undone>, VerifyError> {
        if applied.take().is_none_or(|applied| applied.journal.is_none()) {
            return Ok(Vec::new());
        }
        let undone = self.ledger.undo(self.lock, false, &mut |_| Decision::Keep)?;
        let left =
            |one: &Undone| matches!(one.state, State::Failed | State::Left) && !one.note.is_empty();
        Ok(undone.settings.into_iter().filter(left).collect())
    }

    /// What the last tests say that the other end needs.
    fn far_end(&self) -> Vec<FarEndNeeds> {
        let directions = self.prepared.job.directions.iter();
        let needs = directions.zip(&self.stands).flat_map(|(direction, finding)| {
            let ours = verdict::place(*direction);
            let theirs = finding
                .remedies
                .iter()
                .filter(move |remedy| remedy.place != RemedyPlace::Call && remedy.place != ours);
            theirs.map(|remedy| FarEndNeeds {
                direction: *direction,
                command: remedy.command.clone(),
                expects_bps: remedy.expects_bps,
                why: remedy.why.clone(),
            })
        });
        needs.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn a_path_that_drifts_evenly_is_no_gain() {
        for repeats in [2, 3, 4, 5] {
            let kinds: Vec<bool> = order(repeats).collect();
            let at = |kind: bool| -> Vec<i32> {
                (0..).zip(&kinds).filter(|(_, with)| **with == kind).map(|(at, _)| at).collect()
            };
            let (without, with) = (at(false), at(true));
            assert_eq!(without.len(), with.len());
            // The sums of their moments differ by one test at most.
            let drift = with.iter().sum::<i32>() - without.iter().sum::<i32>();
            assert!(drift.abs() <= i32::from(repeats % 2 == 1), "{kinds:?}");
            assert!(!kinds[0], "the host as it was comes first");
        }
    }
}
