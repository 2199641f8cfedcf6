//! Output to the terminal: its capabilities, results, progress and errors.
//!
//! Results go to standard output; progress and notes go to standard error, so
//! that `--json` and pipes stay clean.
//!
//! Nothing else in this crate writes to either stream. All text is filtered by
//! [`report::untrusted`] here, so that no file and no peer can send an escape
//! sequence to the terminal (`front/cli/tests/tidy.rs` enforces it).

use crate::failure::{Failure, with_flags};
use anstream::AutoStream;
use anstream::ColorChoice;
use clap::ValueEnum;
use report::terminal::Style;
use report::untrusted;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use terminal_size::{Height, Width, terminal_size_of};

/// Columns where the stream is not a terminal.
const WIDTH: usize = 80;
/// Lines where the stream is not a terminal.
const HEIGHT: usize = 24;

/// The use of colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Standard output and standard error, and the style of each.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    /// Style of standard output.
    pub(crate) out: Style,
    /// Style of standard error.
    pub(crate) err: Style,
    /// True if standard error is a terminal that can overwrite lines.
    live: bool,
    /// The live line or block that is shown: its lines above the cursor's.
    open: Option<usize>,
    /// True if standard output is closed (EPIPE).
    closed: bool,
}

impl Console {
    /// Writes a file that is `what`, and says so.
    pub(crate) fn write(&mut self, what: &str, file: &Path, text: &str) -> Result<(), Failure> {
        store::write(file, text.as_bytes()).map_err(Failure::work)?;
        self.say(&format!("{what} written to {}", file.display()));
        Ok(())
    }

    pub(crate) fn new(colour: Colour) -> Self {
        let unicode = has_unicode();
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let width = |size: Option<(Width, _)>| size.map_or(WIDTH, |(Width(w), _)| w.max(1).into());
        let coloured = |choice| match colour {
            Colour::Auto => choice != ColorChoice::Never,
            Colour::Always => true,
            Colour::Never => false,
        };
        Console {
            out: Style {
                colour: coloured(AutoStream::choice(&stdout)),
                width: width(terminal_size_of(&stdout)),
                unicode,
            },
            err: Style {
                colour: coloured(AutoStream::choice(&stderr)),
                width: width(terminal_size_of(&stderr)),
                unicode,
            },
            live: stderr.is_terminal() && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
            open: None,
            closed: false,
        }
    }

    /// Current columns and lines of standard output's terminal.
    pub(crate) fn size() -> (usize, usize) {
        terminal_size_of(io::stdout()).map_or((WIDTH, HEIGHT), |(Width(w), Height(h))| {
            (usize::from(w).max(1), usize::from(h).max(1))
        })
    }

    /// Writes a part of the result. If the reader has closed the pipe (`| head`),
    /// output is discarded silently and the work continues: files are still to be
    /// written, and the exit code reports the outcome.
    pub(crate) fn print(&mut self, text: &str) {
        self.clear();
        if self.closed {
            return;
        }
        let text = untrusted::shown(text, self.out.colour);
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                complain(&format!("cannot write the result: {error}"));
                std::process::exit(1);
            }
        }
    }

    /// Returns true if standard output is still open, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed
    }

    /// Writes a log line to standard output. Errors are ignored: a server must
    /// outlive the reader of its log.
    pub(crate) fn log(&mut self, line: &str) {
        self.clear();
        let width = terminal_size_of(io::stdout());
        let line = folded(untrusted::line(&with_flags(line), self.out.colour), width);
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    /// Prints a line, or a block of lines, to standard error.
    pub(crate) fn say(&mut self, line: &str) {
        self.clear();
        write_err(&format!(
            "{}\n",
            on_stderr(untrusted::shown(&with_flags(line), self.err.colour))
        ));
    }

    /// Prints the title of the next step.
    pub(crate) fn step(&mut self, title: &str) {
        let bold = anstyle::Style::new().bold();
        let title =
            if self.err.colour { format!("{bold}{title}{bold:#}") } else { title.to_owned() };
        self.say(&format!("\n{title}"));
    }

    /// Shows a line that replaces the previous live line; on a terminal only.
    pub(crate) fn live(&mut self, line: &str) {
        if self.live {
            self.clear_block();
            write_err(&format!("\r{}\x1b[K", untrusted::line(line, self.err.colour)));
            self.open = Some(0);
        }
    }

    /// Shows a block of lines that replaces the previous live block, cut to the
    /// terminal's height; on a terminal only.
    pub(crate) fn frame(&mut self, block: &str) {
        if !self.live {
            return;
        }
        let height = terminal_size_of(io::stderr()).map_or(HEIGHT, |(_, Height(h))| h.into());
        let lines: Vec<&str> = block.lines().take(height.saturating_sub(1)).collect();
        let mut text = match self.open {
            Some(above) if above > 0 => format!("\r\x1b[{above}A"),
            _ => "\r".to_owned(),
        };
        for line in &lines {
            text.push_str(&untrusted::line(line, self.err.colour));
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        write_err(&text);
        self.open = Some(lines.len());
    }

    /// Erases the live line or block.
    pub(crate) fn clear(&mut self) {
        self.clear_block();
        if self.open.take().is_some() {
            write_err("\r\x1b[K");
        }
    }

    /// Erases a live block and moves the cursor to its start.
    fn clear_block(&mut self) {
        if let Some(above) = self.open.filter(|above| *above > 0) {
            write_err(&format!("\r\x1b[{above}A\x1b[J"));
            self.open = Some(0);
        }
    }
}

/// A JSON document for [`Console::print`], indented.
pub(crate) fn json(document: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::work)?;
    Ok(untrusted::json(&text) + "\n")
}

/// A JSON document on one line.
pub(crate) fn json_line(document: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(document).map_err(Failure::work)?;
    Ok(untrusted::json(&text) + "\n")
}

/// Prints a one-line error.
pub(crate) fn complain(line: &str) {
    note(&format!("longhaul: {line}"));
}

/// One line on standard error, for code that has no [`Console`].
pub(crate) fn note(line: &str) {
    write_err(&format!("{}\n", on_stderr(untrusted::line(&with_flags(line), false))));
}

/// Prints a prompt to standard error, without a newline.
pub(crate) fn ask(question: &str) {
    write_err(&on_stderr(untrusted::shown(question, false)));
}

/// Prints help or a version.
pub(crate) fn help(text: &str, colour: bool, to_error: bool) {
    let text = untrusted::shown(text, colour);
    if to_error {
        write_err(&text);
    } else {
        let mut out = io::stdout().lock();
        // A closed pipe (a pager that was quit) is not an error.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// Breaks a message between words where it is wider than the terminal on standard error; in a file
/// or a pipe, a message stays on one line.
fn on_stderr(text: String) -> String {
    folded(text, terminal_size_of(io::stderr()))
}

fn folded(text: String, size: Option<(Width, Height)>) -> String {
    match size {
        Some((Width(width), _)) if width > 0 => report::terminal::fold(&text, width.into()),
        _ => text,
    }
}

/// Writes to standard error; if it is closed, there is nowhere to report that.
fn write_err(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Returns true if the locale's encoding is UTF-8 (POSIX: the first of these that is set).
fn has_unicode() -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty())
        .is_some_and(|value| {
            let value = value.to_string_lossy().to_ascii_lowercase();
            value.contains("utf-8") || value.contains("utf8")
        })
}
