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

/// Last lines kept of the output of a program, shown if it fails.
const KEPT_LINES: usize = 10;

/// Longest line, bytes; the rest becomes a line of its own.
const MAX_LINE: u64 = 8 * 1024;

/// Timeout for reading the last lines of an exited program.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Buffered lines; a program that writes faster blocks.
const LINE_BUFFER: usize = 1000;

/// A program to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// On which host.
    pub host: String,
    /// The program first.
    pub arguments: Vec<OsString>,
    /// The command line, for messages.
    pub words: String,
    /// Whether the lab may end while it runs.
    pub background: bool,
    /// Whether the lab's clock waits for it.
    pub wait: Wait,
    /// When it starts.
    pub start: Duration,
    /// When it gets SIGTERM.
    pub stop: Option<Duration>,
    /// Its standard streams.
    pub streams: Streams,
}

/// The standard streams of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Those of the lab, such as the terminal.
    Terminal,
    /// No input; output goes to standard error.
    Errors,
    /// No input; output is reported line by line.
    Lines,
}

/// How a program ended.
#[derive(Debug, Clone)]
pub struct End {
    /// Its exit code; `None` if it could not be killed.
    pub code: Option<ExitCode>,
    /// Whether it was asked to stop.
    pub stopped: bool,
    /// Its last lines of output, with [`Streams::Lines`].
    pub last_lines: Vec<String>,
}

/// A started program.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) program: Program,
    pub(super) code: Option<ExitCode>,
    /// Whether it was asked to stop.
    pub(super) stopped: bool,
    stop_requested_at: Option<Instant>,
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
            stopped: false,
            stop_requested_at: None,
            killed: false,
            lines,
            last: VecDeque::new(),
        })
    }

    /// Its exit code, when its exit is first detected.
    pub(super) fn has_ended(&mut self) -> Option<ExitCode> {
        if self.code.is_some() {
            return None;
        }
        self.code = self.program.ended();
        self.code
    }

    /// Sends SIGTERM, and SIGKILL after `grace`.
    pub(super) fn request_stop(&mut self, grace: Duration) {
        if self.code.is_some() {
            return;
        }
        match self.stop_requested_at {
            None => {
                self.stopped = true;
                self.stop_requested_at = Some(clock::now());
                self.program.signal(TERM);
            }
            Some(stop_requested_at) if !self.killed && stop_requested_at.elapsed() > grace => {
                self.killed = true;
                self.program.signal(KILL);
            }
            Some(_) => {}
        }
    }

    /// Its output since the last call.
    pub(super) fn new_lines(&mut self) -> Vec<String> {
        let Some(lines) = &self.lines else { return Vec::new() };
        let new: Vec<String> = lines.try_iter().take(LINE_BUFFER).collect();
        self.remember(&new);
        new
    }

    /// The remaining output of an exited program. Orphans that keep writing are
    /// not waited for.
    pub(super) fn rest_of_lines(&mut self) -> Vec<String> {
        let Some(lines) = &self.lines else { return Vec::new() };
        let since = clock::now();
        let mut rest = Vec::new();
        while let Some(left) = DRAIN_TIMEOUT.checked_sub(since.elapsed())
            && let Ok(line) = lines.recv_timeout(left)
        {
            rest.push(line);
        }
        self.remember(&rest);
        rest
    }

    fn remember(&mut self, lines: &[String]) {
        self.last.extend(lines.iter().rev().take(KEPT_LINES).rev().cloned());
        while self.last.len() > KEPT_LINES {
            self.last.pop_front();
        }
    }

    /// The last line it wrote.
    pub(super) fn last_line(&self) -> String {
        self.last.back().cloned().unwrap_or_default()
    }

    pub(super) fn into_end(self) -> End {
        End { code: self.code, stopped: self.stopped, last_lines: self.last.into() }
    }
}

/// Reads lines on a thread until the last writer has closed the pipe.
fn read_lines(reader: PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINE_BUFFER);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
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
