//! Where lines go, and what stands before them.

use super::args::Iperf3Args;
use crate::failure::Failure;
use host::{calendar, clock};
use std::fs::File;
use std::io::{self, Write};

/// Standard output, or the log file.
#[derive(Debug)]
pub(crate) struct Output {
    log: Option<File>,
    timestamps: Option<String>,
    title: Option<String>,
}

impl Output {
    /// Opens the log file where there is one.
    pub(crate) fn open(args: &Iperf3Args) -> Result<Self, Failure> {
        let log = args.common.logfile.as_ref().map(|path| {
            File::options().append(true).create(true).open(path).map_err(|error| {
                Failure::work(format!("cannot open the log file {}: {error}", path.display()))
            })
        });
        Ok(Output {
            log: log.transpose()?,
            timestamps: args.common.timestamps.clone(),
            title: args.client_flags.title.clone(),
        })
    }

    fn now(&self) -> String {
        let form = self.timestamps.as_deref();
        form.map(|form| calendar::local(clock::unix_seconds(), form)).unwrap_or_default()
    }

    /// Lines of text, each with the time and the title before it.
    pub(crate) fn lines(&mut self, lines: &[String]) {
        let mut text = String::new();
        for line in lines {
            let title = self.title.as_ref().map(|title| format!("{title}:  ")).unwrap_or_default();
            text += &format!("{}{title}{line}\n", self.now());
        }
        self.write(&text);
    }

    /// A document, or a line of a stream, as it is.
    pub(crate) fn whole(&mut self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    /// What went wrong.
    pub(crate) fn complain(&mut self, what: &str) {
        let line = format!("{}iperf3: {what}\n", self.now());
        match &mut self.log {
            Some(log) => drop(log.write_all(line.as_bytes())),
            None => drop(io::stderr().write_all(line.as_bytes())),
        }
    }

    /// What should be known all the same.
    pub(crate) fn warn(&self, what: &str) {
        drop(io::stderr().write_all(format!("warning: {what}\n").as_bytes()));
    }

    /// A reader that went away (`| head`) is no error: the test goes on.
    fn write(&mut self, text: &str) {
        match &mut self.log {
            Some(log) => drop(log.write_all(text.as_bytes())),
            None => {
                let mut out = io::stdout().lock();
                drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
            }
        }
    }
}
