//! Text of other tools, pasted or saved: `netstat -s` and `netstat -st` of Linux and
//! macOS, `nstat`, `ss -tin`, and `sysctl -a`. The format is recognised by its content.
//!
//! Pure, and bounded: at most [`MAX_LINES`] lines, of [`MAX_LINE`] bytes each, are read.

mod document;
mod netstat;
mod nstat;
mod ss;
mod sysctl;

pub use document::{PASTED_SCHEMA, PastedConnection, PastedCounter, PastedReport};
pub use sysctl::{is_sysctl, pasted_settings};
use tool_results::ss_details::is_details;

/// Lines read; `netstat -s` prints 200, `ss -tin` two for each connection.
const MAX_LINES: usize = 100_000;

/// Bytes of a line; a longer one is not explained.
const MAX_LINE: usize = 4_096;

/// A text in none of the formats.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found}; accepted: netstat -s and netstat -st of Linux and macOS, nstat and ss -tin of Linux"
)]
pub struct UnknownText {
    found: String,
}

/// The contents of a text.
///
/// # Errors
/// If it is in none of the formats.
pub fn pasted(text: &str) -> Result<PastedReport, UnknownText> {
    let lines: Vec<&str> =
        text.lines().take(MAX_LINES).filter(|line| line.len() <= MAX_LINE).collect();
    let mut report = PastedReport {
        schema: PASTED_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        format: String::new(),
        counters: Vec::new(),
        connections: Vec::new(),
        unread_lines: 0,
        notes: Vec::new(),
    };
    let is = |wanted: &str| lines.iter().any(|line| line.trim_end() == wanted);
    if lines.iter().any(|line| is_details(line)) {
        "ss -tin".clone_into(&mut report.format);
        ss::read(&lines, &mut report);
    } else if is("Tcp:") || is("TcpExt:") {
        "netstat of Linux".clone_into(&mut report.format);
        netstat::read(&lines, &netstat::LINUX, &mut report);
    } else if is("tcp:") {
        "netstat of macOS".clone_into(&mut report.format);
        netstat::read(&lines, &netstat::MACOS, &mut report);
    } else if nstat::is_nstat(&lines) {
        "nstat".clone_into(&mut report.format);
        nstat::read(&lines, &mut report);
    }
    if report.counters.is_empty() && report.connections.is_empty() {
        return Err(UnknownText { found: begins(&lines) });
    }
    if text.lines().nth(MAX_LINES).is_some() {
        report.notes.push(format!("only the first {MAX_LINES} lines were read"));
    }
    Ok(report)
}

/// The description of an unknown text, by its first line.
fn begins(lines: &[&str]) -> String {
    let first = lines.iter().map(|line| line.trim()).find(|line| !line.is_empty());
    match first {
        None => "the text is empty".to_owned(),
        Some(_) if lines.iter().any(|line| line.contains("TCP Statistics for IPv")) => {
            "this is netstat output from Windows".to_owned()
        }
        Some(line) => {
            let start: String = line.chars().take(40).collect();
            format!("the text is from an unknown tool or system: it begins with '{start}'")
        }
    }
}
