//! Explains the result of another tool: iperf3, iperf 2, `ss`, ndt7 or flent.

use super::ExplainArgs;
use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use crate::test_report;
use host::file;
use record::{Measurement, ToolResult};
use report::untrusted;
use std::io::Read;
use std::path::Path;

/// Transfers that are explained one after the other.
const MAX: usize = 5;

/// Bytes at the beginning of a file that show what it is not.
const BEGINNING: u64 = 4096;

/// Whether it is no document of longhaul's, which names its schema: at the beginning, unless
/// another program sorted its keys.
pub(super) fn is_candidate(path: &Path) -> bool {
    const SCHEMA: &str = "\"longhaul.";
    let Some(beginning) = beginning(path) else { return false };
    let text = String::from_utf8_lossy(&beginning);
    if text.contains(SCHEMA) {
        return false;
    }
    let is_json = text.trim_start().starts_with('{');
    let whole = || file::read_bounded(path, tool_results::MAX_SIZE);
    !is_json || whole().is_ok_and(|bytes| !String::from_utf8_lossy(&bytes).contains(SCHEMA))
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut beginning = Vec::new();
    let file = file::open_regular(path).ok()?;
    file.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    Some(beginning)
}

/// Explains every transfer of the file, or the one that `--connection` names.
pub(super) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    let shown = args.file.display();
    let bytes = file::read_bounded(&args.file, tool_results::MAX_SIZE)
        .map_err(|error| Failure::work(format!("cannot read {shown}: {error}")))?;
    let all = tool_results::read(&bytes)
        .map_err(|error| Failure::work(format!("cannot explain {shown}: {error}")))?;
    drop(bytes);
    let chosen: Vec<&Measurement> = match &args.connection {
        Some(which) => vec![select(&all, which)?],
        None => all.iter().take(MAX).collect(),
    };
    let is_single = args.forms.json || args.forms.html.is_some();
    if is_single && chosen.len() > 1 {
        let first = chosen.first().map_or("", |one| transfer(one));
        console.say(&format!("{first}, the first of {}; --connection selects another", all.len()));
    }
    for measurement in chosen.iter().take(if is_single { 1 } else { MAX }) {
        if chosen.len() > 1 && !is_single {
            console.print(&format!("{}\n", untrusted::clean(transfer(measurement))));
        }
        let mut measurement = (*measurement).clone();
        if let Some(tool) = &measurement.tool {
            measurement.notes.extend(notes(tool));
        }
        test_report::print(console, &measurement, &args.forms, &measurement.notes)?;
    }
    if args.connection.is_none() && all.len() > MAX && !is_single {
        console.say(&format!(
            "{} more transfers; --connection NUMBER explains one of {}",
            all.len() - MAX,
            all.len()
        ));
    }
    Ok(DONE)
}

fn transfer(measurement: &Measurement) -> &str {
    measurement.tool.as_ref().map_or("", |tool| &tool.transfer)
}

/// The transfer by its number, from 1, or its name.
fn select<'a>(all: &'a [Measurement], which: &str) -> Result<&'a Measurement, Failure> {
    let number = which.parse().ok().and_then(|number: usize| all.get(number.checked_sub(1)?));
    number.or_else(|| all.iter().find(|one| transfer(one) == which)).ok_or_else(|| {
        let which = untrusted::excerpt(which, 60);
        Failure::usage(format!(
            "the file has no transfer '{which}'; give a number from 1 to {}",
            all.len()
        ))
    })
}

/// The source, what it does not say, and the test that would.
fn notes(tool: &ToolResult) -> Vec<String> {
    let lacking: Vec<&str> = tool.unavailable.iter().map(|one| one.meaning()).collect();
    let mut source = format!("from {}", tool.tool);
    if !tool.transfer.is_empty() {
        source += &format!(" ({})", tool.transfer);
    }
    if !lacking.is_empty() {
        source += &format!(", which does not report: {}", lacking.join("; "));
    }
    let mut notes = vec![source];
    notes.push(format!("to learn more, with `longhaul server` at the far end: {}", tool.next_test));
    notes
}
