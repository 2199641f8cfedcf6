//! Which run begins when: two light ones at once, any other alone.
//!
//! The machine that emulates the path also runs the hosts. Two runs at a time are allowed
//! where both together load it lightly, and no longer once that made runs invalid.

use crate::testbed::AttemptError;
use host::lock::lock;
use perf::StopFlag;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;
use study::{CellRun, Part, Test};

/// Runs that were not valid beside another one, after which all run alone.
const TOLERATED: u32 = 3;

/// How often a waiting thread looks for an interruption.
const POLL: Duration = Duration::from_millis(100);

/// A run that is not stored.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) part: &'a Part,
    pub(crate) run: CellRun,
    pub(crate) test: Test,
}

/// The runs to come, shared by the threads that run them.
#[derive(Debug)]
pub(crate) struct Schedule<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<'a> {
    queue: VecDeque<Job<'a>>,
    /// Runs under way.
    running: u32,
    /// Whether one of them runs alone.
    alone: bool,
    /// Disturbed runs that wait to be repeated alone.
    waiting: u32,
    /// Runs that were not valid beside another one.
    disturbed: u32,
}

/// A run under way; its end is noted when this is dropped.
pub(crate) struct Slot<'s, 'a> {
    schedule: &'s Schedule<'a>,
    alone: bool,
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(queue: VecDeque<Job<'a>>) -> Self {
        let state = State { queue, running: 0, alone: false, waiting: 0, disturbed: 0 };
        Schedule { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The next run, as soon as it may begin; `None` after the last one, or when interrupted.
    pub(crate) fn next(&self, stop: &StopFlag) -> Option<(Job<'a>, Slot<'_, 'a>)> {
        let mut state = lock(&self.state);
        loop {
            if stop.is_raised() {
                return None;
            }
            let light = state.queue.front()?.test.is_light() && state.disturbed < TOLERATED;
            let free = !state.alone && state.waiting == 0;
            if free && (state.running == 0 || light) {
                let job = state.queue.pop_front()?;
                state.running += 1;
                state.alone = !light;
                return Some((job, Slot { schedule: self, alone: !light }));
            }
            state = self.wait(state);
        }
    }

    fn wait<'g>(&self, state: MutexGuard<'g, State<'a>>) -> MutexGuard<'g, State<'a>> {
        match self.changed.wait_timeout(state, POLL) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }
}

impl Slot<'_, '_> {
    /// Waits until the other run has ended, for another attempt at one that was disturbed.
    pub(crate) fn run_alone(&mut self, stop: &StopFlag) -> Result<(), AttemptError> {
        if self.alone {
            return Ok(());
        }
        let mut state = lock(&self.schedule.state);
        if state.running > 1 {
            state.disturbed += 1;
        }
        // Its place is free for another one that waits for the same.
        state.running -= 1;
        state.waiting += 1;
        self.schedule.changed.notify_all();
        while state.running > 0 && !stop.is_raised() {
            state = self.schedule.wait(state);
        }
        state.waiting -= 1;
        state.running += 1;
        state.alone = true;
        self.alone = true;
        if stop.is_raised() { Err(AttemptError::Interrupted) } else { Ok(()) }
    }
}

impl Drop for Slot<'_, '_> {
    fn drop(&mut self) {
        let mut state = lock(&self.schedule.state);
        state.running -= 1;
        if self.alone {
            state.alone = false;
        }
        drop(state);
        self.schedule.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::Study;

    fn jobs(study: &Study) -> VecDeque<Job<'_>> {
        let part = &study.parts[0];
        let job = |run: CellRun| {
            let test = part.plan.test(&part.plan.cell(run.cell)).unwrap();
            Job { part, run, test }
        };
        part.plan.runs().into_iter().map(job).collect()
    }

    fn study(rates: &str) -> Study {
        let text = format!(
            "question = \"?\"\n[path]\nrtt = \"10ms\"\n[factors]\nrate = {rates}\n\
             [traffic]\nduration = \"1s\"\n[repeats]\norder = \"plan\""
        );
        Study::of_plan("s", &text, false).unwrap()
    }

    #[test]
    fn light_runs_are_two_at_once_and_others_alone() {
        let study = study("[\"10mbit\", \"20mbit\", \"1gbit\", \"30mbit\"]");
        let (schedule, stop) = (Schedule::new(jobs(&study)), StopFlag::new());
        let first = schedule.next(&stop).unwrap();
        let second = schedule.next(&stop).unwrap();
        assert_eq!((first.0.run.cell, second.0.run.cell), (0, 1));
        std::thread::scope(|scope| {
            let third = scope.spawn(|| {
                let third = schedule.next(&stop).unwrap();
                // The first two have ended, and no other one has begun.
                assert_eq!((third.0.run.cell, lock(&schedule.state).running), (2, 1));
            });
            drop(first);
            drop(second);
            third.join().unwrap();
        });
        assert_eq!(schedule.next(&stop).unwrap().0.run.cell, 3);
        assert!(schedule.next(&stop).is_none());
    }

    #[test]
    fn disturbed_runs_are_repeated_alone_and_after_some_all_run_alone() {
        let study = study("[\"10mbit\", \"20mbit\", \"30mbit\", \"40mbit\"]");
        let (schedule, stop) = (Schedule::new(jobs(&study)), StopFlag::new());
        let (_, mut first) = schedule.next(&stop).unwrap();
        let (_, mut second) = schedule.next(&stop).unwrap();
        std::thread::scope(|scope| {
            // Both were disturbed: one after the other.
            let other = scope.spawn(|| {
                second.run_alone(&stop).unwrap();
                assert_eq!(lock(&schedule.state).running, 1);
                drop(second);
            });
            first.run_alone(&stop).unwrap();
            assert_eq!(lock(&schedule.state).running, 1);
            drop(first);
            other.join().unwrap();
        });
        lock(&schedule.state).disturbed = TOLERATED;
        let _third = schedule.next(&stop).unwrap();
        assert!(lock(&schedule.state).alone);
    }

    #[test]
    fn an_interruption_ends_every_wait() {
        let study = study("[\"1gbit\", \"2gbit\"]");
        let (schedule, stop) = (Schedule::new(jobs(&study)), StopFlag::new());
        let _first = schedule.next(&stop).unwrap();
        stop.raise();
        assert!(schedule.next(&stop).is_none());
    }
}
