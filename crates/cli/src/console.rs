//! The terminal at hand: what it can show, and writing to it.
//!
//! Results go to standard output. What is said while the work goes on goes to
//! standard error, so that `--json` and pipes stay clean.

use anstream::AutoStream;
use anstream::ColorChoice;
use clap::ValueEnum;
use report::terminal::Style;
use std::io::{self, IsTerminal, Write};
use terminal_size::{Height, Width, terminal_size_of};

/// Columns where there is no terminal to ask.
const WIDTH: usize = 80;
/// Lines likewise.
const HEIGHT: usize = 24;

/// When to write colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Both streams, and how each is drawn on.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    /// For what [`Console::print`] writes.
    pub(crate) out: Style,
    /// For what [`Console::say`] and [`Console::live`] write.
    pub(crate) err: Style,
    /// Whether lines on standard error can be written over.
    live: bool,
    /// What of that stands there: lines above the cursor's.
    open: Option<usize>,
    /// Whether standard output has lost its reader.
    unread: bool,
}

impl Console {
    pub(crate) fn new(colour: Colour) -> Self {
        let unicode = has_unicode();
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let width = |told: Option<(Width, _)>| told.map_or(WIDTH, |(Width(w), _)| w.max(1).into());
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
            unread: false,
        }
    }

    /// Columns and lines of standard output's terminal, as they are now.
    pub(crate) fn size() -> (usize, usize) {
        terminal_size_of(io::stdout()).map_or((WIDTH, HEIGHT), |(Width(w), Height(h))| {
            (usize::from(w).max(1), usize::from(h).max(1))
        })
    }

    /// Writes a part of the result. Where nobody reads any more (`| head`), the
    /// work goes on without a word: files are still to be written, and the exit
    /// code tells how it went.
    pub(crate) fn print(&mut self, text: &str) {
        self.clear();
        if self.unread {
            return;
        }
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.unread = true,
            Err(error) => {
                complain(&format!("cannot write the result: {error}"));
                std::process::exit(1);
            }
        }
    }

    /// Whether standard output still has a reader, as far as is known.
    pub(crate) fn is_read(&self) -> bool {
        !self.unread
    }

    /// Writes a line of a log to standard output. A server outlives its readers.
    pub(crate) fn log(&mut self, line: &str) {
        self.clear();
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    /// Says a line while the work goes on.
    pub(crate) fn say(&mut self, line: &str) {
        self.clear();
        tell(&format!("{line}\n"));
    }

    /// Says that the next step of several begins.
    pub(crate) fn step(&mut self, title: &str) {
        let bold = anstyle::Style::new().bold();
        let title =
            if self.err.colour { format!("{bold}{title}{bold:#}") } else { title.to_owned() };
        self.say(&format!("\n{title}"));
    }

    /// Shows a line in the place of the one before; only a terminal sees it.
    pub(crate) fn live(&mut self, line: &str) {
        if self.live {
            self.clear_block();
            tell(&format!("\r{line}\x1b[K"));
            self.open = Some(0);
        }
    }

    /// Shows a block of lines in the place of what was shown before; only a
    /// terminal sees it, and no more of it than fits.
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
            text.push_str(line);
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        tell(&text);
        self.open = Some(lines.len());
    }

    /// Takes the live line or block away.
    pub(crate) fn clear(&mut self) {
        self.clear_block();
        if self.open.take().is_some() {
            tell("\r\x1b[K");
        }
    }

    /// Takes a block away; the cursor stays where it began.
    fn clear_block(&mut self) {
        if let Some(above) = self.open.filter(|above| *above > 0) {
            tell(&format!("\r\x1b[{above}A\x1b[J"));
            self.open = Some(0);
        }
    }
}

/// One line of an error.
pub(crate) fn complain(line: &str) {
    tell(&format!("longhaul: {line}\n"));
}

/// Standard error may be closed; there is nobody left to tell.
fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether the locale writes UTF-8 (POSIX: the first of these that is set counts).
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
