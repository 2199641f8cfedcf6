//! One program of a session.

use super::{KILL, TERM};
use crate::{LabError, LabHost};
use host::clock;
use host::program::{self, ExitCode, Program, Reaper};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use topology::plan::Wait;

/// Lines that are kept of what a program wrote, for when it fails.
const LAST: usize = 10;

/// Bytes of a line that are told; the rest of it is a line of its own.
const LONGEST_LINE: u64 = 8 * 1024;

/// How long the last lines of an ended program may take to be read.
const MOMENT: Duration = Duration::from_millis(500);

/// Lines that wait to be told; a program that writes faster waits.
const LINES: usize = 1000;

/// A program to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// On which host.
    pub host: String,
    /// The program first.
    pub arguments: Vec<OsString>,
    /// As it was written, for what is said about it.
    pub words: String,
    /// Whether the lab may end while it runs.
    pub background: bool,
    /// Whether the lab's clock waits for it.
    pub wait: Wait,
    /// When it starts.
    pub start: Duration,
    /// When it is told to end.
    pub stop: Option<Duration>,
    /// Where what it writes goes.
    pub streams: Streams,
}

/// Where a program reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// It has the terminal, or whatever the lab itself was given.
    Terminal,
    /// It reads nothing; all it writes goes to standard error.
    Errors,
    /// It reads nothing; what it writes is told line by line.
    Lines,
}

/// How a program ended.
#[derive(Debug, Clone)]
pub struct End {
    /// Its exit code; `None` where it could not be made to end.
    pub code: Option<ExitCode>,
    /// Whether it was told to end.
    pub told: bool,
    /// The last lines it wrote, where they were told.
    pub last_lines: Vec<String>,
}

/// A program at work, or done.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) program: Program,
    pub(super) code: Option<ExitCode>,
    /// Whether it was told to end.
    pub(super) told: bool,
    told_at: Option<Instant>,
    killed: bool,
    lines: Option<Receiver<String>>,
    last: VecDeque<String>,
}

impl Running {
    pub(super) fn start(job: &Job, host: &LabHost, reaper: &Reaper) -> Result<Self, LabError> {
        let failed = |source| LabError::Start {
            program: job
                .arguments
                .first()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            host: job.host.clone(),
            source,
        };
        let (streams, lines) = match job.streams {
            Streams::Terminal => (program::Streams::Ours, None),
            Streams::Errors => (program::Streams::Errors, None),
            Streams::Lines => {
                let (reader, writer) = std::io::pipe().map_err(failed)?;
                (program::Streams::Pipe(writer), Some(read_lines(reader)))
            }
        };
        let program =
            reaper.start_program(&host.namespace, &job.arguments, streams).map_err(failed)?;
        Ok(Running {
            program,
            code: None,
            told: false,
            told_at: None,
            killed: false,
            lines,
            last: VecDeque::new(),
        })
    }

    /// Its exit code, once: when it is first seen to have ended.
    pub(super) fn has_ended(&mut self) -> Option<ExitCode> {
        if self.code.is_some() {
            return None;
        }
        self.code = self.program.ended();
        self.code
    }

    /// Asks it to end, and makes it after `grace`.
    pub(super) fn tell_to_end(&mut self, grace: Duration) {
        if self.code.is_some() {
            return;
        }
        match self.told_at {
            None => {
                self.told = true;
                self.told_at = Some(clock::now());
                self.program.signal(TERM);
            }
            Some(told_at) if !self.killed && told_at.elapsed() > grace => {
                self.killed = true;
                self.program.signal(KILL);
            }
            Some(_) => {}
        }
    }

    /// What it wrote since this was last asked.
    pub(super) fn new_lines(&mut self) -> Vec<String> {
        let Some(lines) = &self.lines else { return Vec::new() };
        let new: Vec<String> = lines.try_iter().take(LINES).collect();
        self.remember(&new);
        new
    }

    /// All that an ended program wrote and was not told yet. An orphan of its
    /// that goes on writing is not waited for.
    pub(super) fn rest_of_lines(&mut self) -> Vec<String> {
        let Some(lines) = &self.lines else { return Vec::new() };
        let since = clock::now();
        let mut rest = Vec::new();
        while let Some(left) = MOMENT.checked_sub(since.elapsed())
            && let Ok(line) = lines.recv_timeout(left)
        {
            rest.push(line);
        }
        self.remember(&rest);
        rest
    }

    fn remember(&mut self, lines: &[String]) {
        self.last.extend(lines.iter().rev().take(LAST).rev().cloned());
        while self.last.len() > LAST {
            self.last.pop_front();
        }
    }

    /// The last line it wrote.
    pub(super) fn last_words(&self) -> String {
        self.last.back().cloned().unwrap_or_default()
    }

    pub(super) fn into_end(self) -> End {
        End { code: self.code, told: self.told, last_lines: self.last.into() }
    }
}

/// Reads lines on a thread of their own until the last writer has gone.
fn read_lines(reader: PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            if !matches!(read, Ok(length) if length > 0) {
                return;
            }
            let text = String::from_utf8_lossy(&line);
            if sender.send(text.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}
