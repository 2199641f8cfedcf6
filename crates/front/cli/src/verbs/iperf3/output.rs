//! Destination and prefix of output lines.

use super::args::Iperf3Args;
use crate::console;
use crate::failure::Failure;
use host::{calendar, clock, output_file};
use report::untrusted;
use std::fs::File;
use std::io::{self, Write};

/// Standard output, the log file, or nowhere. All text is filtered by
/// [`report::untrusted`], since it contains text from peers.
#[derive(Debug)]
pub(crate) struct Output {
    to: To,
    timestamps: Option<String>,
    title: Option<String>,
}

#[derive(Debug)]
enum To {
    Terminal,
    Log(File),
    Nowhere,
}

impl Output {
    /// Opens the log file if one was given.
    pub(crate) fn open(args: &Iperf3Args) -> Result<Self, Failure> {
        let log = args.common.logfile.as_ref().map(|path| {
            output_file::append(path).map_err(|error| {
                Failure::work(format!("cannot open the log file {}: {error}", path.display()))
            })
        });
        Ok(Output {
            to: log.transpose()?.map_or(To::Terminal, To::Log),
            timestamps: args.common.timestamps.clone(),
            title: args.client_flags.title.clone(),
        })
    }

    /// An output that discards everything.
    pub(crate) const fn nowhere() -> Self {
        Output { to: To::Nowhere, timestamps: None, title: None }
    }

    /// Returns true if it is not discarded.
    pub(crate) const fn is_shown(&self) -> bool {
        !matches!(self.to, To::Nowhere)
    }

    fn now(&self) -> String {
        let form = self.timestamps.as_deref();
        form.map(|form| calendar::local(clock::unix_seconds(), form)).unwrap_or_default()
    }

    /// Prints lines, each with the time and the title as prefix.
    pub(crate) fn lines(&mut self, lines: &[String]) {
        let mut text = String::new();
        for line in lines {
            let title = self.title.as_ref().map(|title| format!("{title}:  ")).unwrap_or_default();
            text += &format!("{}{title}{line}\n", self.now());
        }
        self.write(&untrusted::shown(&text, false));
    }

    /// Prints a JSON document, or a line of a JSON stream.
    pub(crate) fn whole(&mut self, text: &str) {
        self.write(&format!("{}\n", untrusted::json(text)));
    }

    /// Prints an error.
    pub(crate) fn complain(&mut self, what: &str) {
        let line = untrusted::line(&format!("{}iperf3: {what}", self.now()), false);
        match &mut self.to {
            To::Log(log) => drop(log.write_all(format!("{line}\n").as_bytes())),
            To::Terminal => console::note(&line),
            To::Nowhere => {}
        }
    }

    /// Prints a warning to standard error.
    pub(crate) fn warn(&self, what: &str) {
        if self.is_shown() {
            console::note(&format!("warning: {what}"));
        }
    }

    /// A closed pipe (`| head`) is not an error: the test continues.
    fn write(&mut self, text: &str) {
        match &mut self.to {
            To::Log(log) => drop(log.write_all(text.as_bytes())),
            To::Terminal => {
                let mut out = io::stdout().lock();
                drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
            }
            To::Nowhere => {}
        }
    }
}
