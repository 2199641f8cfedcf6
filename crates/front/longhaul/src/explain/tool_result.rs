//! Explains the result of another tool: iperf3, iperf 2, `ss`, ndt7 or flent.

use super::{MAX_TRANSFERS, Transfer, Transfers, unreadable};
use crate::{Field, Problem};
use host::file;
use record::{Measurement, ToolResult};
use report::untrusted;
use std::io::Read;
use std::path::Path;

/// Bytes at the beginning of a file that show what it is not.
const BEGINNING: u64 = 4096;

/// Returns true if it is not longhaul's document, which names its schema: at the beginning, unless
/// another program sorted its keys.
pub(super) fn is_candidate(path: &Path) -> bool {
    let Some(beginning) = beginning(path) else { return false };
    let text = String::from_utf8_lossy(&beginning);
    if has_schema(&text) {
        return false;
    }
    let is_json = text.trim_start().starts_with('{');
    let whole = || file::read_bounded(path, tool_results::MAX_SIZE);
    !is_json || whole().is_ok_and(|bytes| !has_schema(&String::from_utf8_lossy(&bytes)))
}

/// Returns true if a text names a schema of longhaul.
pub(super) fn has_schema(text: &str) -> bool {
    text.contains("\"longhaul.")
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut beginning = Vec::new();
    let file = file::open_regular(path).ok()?;
    file.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    Some(beginning)
}

/// Explains the first transfers of the file, or the one that was selected.
pub(super) fn explain(path: &Path, which: Option<&str>) -> Result<Transfers, Problem> {
    let shown = path.display().to_string();
    let bytes = file::read_bounded(path, tool_results::MAX_SIZE)
        .map_err(|error| unreadable(format!("cannot read {shown}: {error}")))?;
    explain_bytes(&bytes, &shown, which)
}

/// As [`explain`]; `shown` is the name of what has the bytes.
pub(super) fn explain_bytes(
    bytes: &[u8],
    shown: &str,
    which: Option<&str>,
) -> Result<Transfers, Problem> {
    let all = tool_results::read(bytes)
        .map_err(|error| unreadable(format!("cannot explain {shown}: {error}")))?;
    let count = all.len();
    let chosen: Vec<Measurement> = match which {
        Some(which) => vec![select(&all, which)?.clone()],
        None => all.into_iter().take(MAX_TRANSFERS).collect(),
    };
    let transfers = chosen.into_iter().map(|mut measurement| {
        if let Some(tool) = &measurement.tool {
            measurement.notes.extend(notes(tool));
        }
        Transfer { name: transfer(&measurement).to_owned(), measurement }
    });
    let (notes, test) = (Vec::new(), Vec::new());
    Ok(Transfers { is_capture: false, transfers: transfers.collect(), count, notes, test })
}

fn transfer(measurement: &Measurement) -> &str {
    measurement.tool.as_ref().map_or("", |tool| &tool.transfer)
}

/// The transfer by its number, from 1, or its name.
fn select<'a>(all: &'a [Measurement], which: &str) -> Result<&'a Measurement, Problem> {
    let number = which.parse().ok().and_then(|number: usize| all.get(number.checked_sub(1)?));
    number.or_else(|| all.iter().find(|one| transfer(one) == which)).ok_or_else(|| {
        let which = untrusted::excerpt(which, 60);
        let message = format!("the file has no transfer '{which}'");
        Problem::field(Field::Connection, message, format!("a number from 1 to {}", all.len()))
    })
}

/// The source, the facts that it lacks, and the test that would have them.
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
