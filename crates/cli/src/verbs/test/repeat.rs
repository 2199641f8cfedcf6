//! Several tests that ask the same (`--repeat`).

use super::{Measured, TestArgs, measure};
use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use diagnose::repeats;
use probe::StopFlag;
use record::{REPEAT_SCHEMA, RepeatReport, RunFigures};
use report::terminal;
use std::thread;
use std::time::Duration;

/// Between two tests: queues run empty, and an iperf3 server listens again.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) fn run(
    args: &TestArgs,
    asked: u32,
    baseline: Option<&[RunFigures]>,
    console: &mut Console,
) -> Outcome {
    let stop = stop::on_signals();
    let (mut runs, mut notes, mut spec) = (Vec::new(), Vec::new(), None);
    for number in 1..=asked {
        if number > 1 {
            thread::sleep(PAUSE);
        }
        if stop.is_raised() {
            break;
        }
        console.step(&format!("Test {number} of {asked}"));
        match measure(args, console, &stop) {
            Ok(measured) => {
                spec.get_or_insert_with(|| measured.measurement.spec.clone());
                keep(&measured, &stop, &mut runs, &mut notes);
            }
            Err(failure) if spec.is_none() => return Err(failure),
            Err(failure) => {
                console.say(&format!("test {number} failed: {failure}"));
                notes.push(format!("test {number} failed: {failure}"));
            }
        }
    }
    let Some(spec) = spec else {
        return Err(Failure::work("interrupted before the first test: start it again"));
    };
    let summary = repeats::summary(&runs);
    let comparison = baseline.map(|baseline| repeats::compare(baseline, &runs));
    let whole = runs.len() == asked as usize;
    if stop.is_raised() && !whole {
        notes.push(format!("interrupted after {} of {asked} tests", runs.len()));
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let schema = REPEAT_SCHEMA.to_owned();
    let report = RepeatReport { schema, version, spec, asked, runs, summary, comparison, notes };
    if let Some(file) = &args.save {
        store::save_repeat(file, &report).map_err(Failure::work)?;
        console.say(&format!("{} tests kept in {}", report.runs.len(), file.display()));
    }
    let text = if args.forms.json {
        serde_json::to_string_pretty(&report).map_err(Failure::work)? + "\n"
    } else {
        let style = console.out;
        let compared = report.comparison.as_ref();
        let compared = compared.map_or(String::new(), |c| terminal::comparison(c, &style));
        let repeats = terminal::repeats(&report.runs, &report.summary, &style);
        format!("\n{repeats}{compared}{}", terminal::notes(&report.notes, &style))
    };
    console.print(&text);
    Ok(if whole { DONE } else { FAILED })
}

/// A test that was cut short is not one of those that ask the same.
fn keep(measured: &Measured, stop: &StopFlag, runs: &mut Vec<RunFigures>, notes: &mut Vec<String>) {
    if stop.is_raised() && measured.measurement.notes.iter().any(|n| n.starts_with("interrupted")) {
        notes.push("the test that was interrupted does not count".to_owned());
        return;
    }
    let mut run = repeats::figures(&measured.measurement);
    run.other_bytes = measured.others;
    runs.push(run);
}
