//! Repeated tests.

use super::once::Measured;
use super::{TestEvent, TestRun};
use crate::{Fault, Problem, StopFlag};
use diagnose::repeats;
use record::{REPEAT_SCHEMA, RepeatReport, RunFigures};
use std::thread;
use std::time::Duration;

/// Pause between two tests: queues drain, and an iperf3 server listens again.
const PAUSE: Duration = Duration::from_millis(500);

impl TestRun<'_> {
    /// The same test `count` times. Fails if the first one does.
    pub(super) fn repeat(
        &self,
        count: u32,
        on_event: &mut dyn FnMut(TestEvent),
        stop: &StopFlag,
    ) -> Result<RepeatReport, Problem> {
        let (mut runs, mut notes, mut spec) = (Vec::new(), Vec::new(), None);
        for number in 1..=count {
            if number > 1 {
                thread::sleep(PAUSE);
            }
            if stop.is_raised() {
                break;
            }
            on_event(TestEvent::Repetition { number, count });
            let measured = self.measure(on_event, stop);
            match measured.and_then(Measured::complete) {
                Ok(measured) => {
                    spec.get_or_insert_with(|| measured.measurement.spec.clone());
                    add(&measured, stop, &mut runs, &mut notes);
                }
                Err(problem) if spec.is_none() => return Err(problem),
                Err(problem) => {
                    notes.push(format!("test {number} failed: {problem}"));
                    on_event(TestEvent::RepetitionFailed { number, problem });
                }
            }
        }
        let Some(spec) = spec else {
            let why = "interrupted before the first test ended; run it again";
            return Err(Problem::new(Fault::Interrupted, why));
        };
        if stop.is_raised() && runs.len() < count as usize {
            notes.push(format!("interrupted after {} of {count} tests", runs.len()));
        }
        let earlier = self.request.compare.as_ref();
        Ok(RepeatReport {
            schema: REPEAT_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            spec,
            asked: count,
            summary: repeats::summary(&runs),
            comparison: earlier.map(|earlier| repeats::compare(&earlier.runs, &runs)),
            runs,
            notes,
        })
    }
}

/// Adds the figures of a test, unless it was interrupted.
fn add(measured: &Measured, stop: &StopFlag, runs: &mut Vec<RunFigures>, notes: &mut Vec<String>) {
    if stop.is_raised() && measured.measurement.notes.iter().any(|n| n.starts_with("interrupted")) {
        notes.push("the interrupted test is not counted".to_owned());
        return;
    }
    let mut run = repeats::figures(&measured.measurement);
    run.other_bytes = measured.cross_traffic;
    runs.push(run);
}
