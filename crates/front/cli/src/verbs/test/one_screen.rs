//! `--brief`: the result on one screen, with the fix as a command where the finding has a remedy.

use super::TestArgs;
use crate::console::Console;
use crate::failure::Code;
use crate::test_report;
use longhaul::test::{TestResult, fix};
use report::terminal;

/// Says what runs, as there are no interval reports.
pub(super) fn announce(args: &TestArgs, console: &mut Console) {
    if args.modes.brief {
        console.live(&format!("Measuring throughput and RTT to {}", args.host));
    }
}

/// Prints the result of a test.
pub(super) fn print(console: &mut Console, result: &TestResult, notes: &[String]) -> Code {
    let TestResult { report, measurement } = result;
    let fix = fix(&report.finding, &measurement.spec);
    let compared = report.comparison.as_ref().map(|found| found.sentence.clone());
    let notes: Vec<String> = compared.into_iter().chain(notes.iter().cloned()).collect();
    let style = console.out;
    console.print(&terminal::one_screen(measurement, &report.finding, &fix, &notes, &style));
    test_report::code(measurement)
}
