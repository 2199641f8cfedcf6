//! Repeated tests (`--repeat`).

use super::{Measured, TestArgs, compare::Earlier, measure};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use diagnose::repeats;
use perf::StopFlag;
use record::{REPEAT_SCHEMA, RepeatReport, RunFigures};
use report::terminal;
use std::thread;
use std::time::Duration;

/// Pause between two tests: queues drain, and an iperf3 server listens again.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) fn run(
    args: &TestArgs,
    count: u32,
    earlier: Option<&Earlier>,
    console: &mut Console,
) -> Outcome {
    let stop = stop::on_signals();
    let (mut runs, mut notes, mut spec) = (Vec::new(), Vec::new(), None);
    for number in 1..=count {
        if number > 1 {
            thread::sleep(PAUSE);
        }
        if stop.is_raised() {
            break;
        }
        console.step(&format!("Test {number} of {count}"));
        let measured = measure(args, earlier, console, &stop);
        match measured.and_then(Measured::complete) {
            Ok(measured) => {
                spec.get_or_insert_with(|| measured.measurement.spec.clone());
                add(&measured, &stop, &mut runs, &mut notes);
            }
            Err(failure) if spec.is_none() => return Err(failure),
            Err(failure) => {
                console.say(&format!("test {number} failed: {failure}"));
                notes.push(format!("test {number} failed: {failure}"));
            }
        }
    }
    let Some(spec) = spec else {
        return Err(Failure::work("interrupted before the first test ended; run it again"));
    };
    let summary = repeats::summary(&runs);
    let comparison = earlier.map(|earlier| repeats::compare(&earlier.runs, &runs));
    let complete = runs.len() == count as usize;
    if stop.is_raised() && !complete {
        notes.push(format!("interrupted after {} of {count} tests", runs.len()));
    }
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let schema = REPEAT_SCHEMA.to_owned();
    let asked = count;
    let report = RepeatReport { schema, version, spec, asked, runs, summary, comparison, notes };
    if let Some(file) = &args.save {
        store::save_repeat(file, &report).map_err(Failure::work)?;
        console.say(&format!("{} tests saved to {}", report.runs.len(), file.display()));
    }
    if let Some(file) = &args.forms.html {
        store::write(file, report::html::repeats_page(&report).as_bytes())
            .map_err(Failure::work)?;
        console.say(&format!("page written to {}", file.display()));
    }
    let text = if args.forms.json {
        console::json(&report)?
    } else {
        let style = console.out;
        let compared = report.comparison.as_ref();
        let compared = compared.map_or(String::new(), |c| terminal::comparison(c, &style));
        let repeats = terminal::repeats(&report.runs, &report.summary, &style);
        format!("\n{repeats}{compared}{}", terminal::notes(&report.notes, &style))
    };
    console.print(&text);
    let code = if complete { DONE } else { FAILED };
    Ok(args.modes.regression.code_of(code, report.comparison.as_ref()))
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
