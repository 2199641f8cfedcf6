//! The program: started, asked, and ended.

use crate::output::Output;
use crate::records::{
    EVENT, EVENT_BELL, EVENT_WORDS, Event, HEADER, MAGIC, PROGRAM_VERSION, REPLY, REPLY_BELL,
    REPLY_WORDS, Reply, ReplyError, VERSION,
};
use host::clock;
use host::process_group::ProcessGroup;
use host::shared_page::SharedPage;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use units::Nanos;

/// Environment variable with the number of the page's descriptor.
const VARIABLE: &str = "LONGHAUL_CONTROL_FD";
/// Interval at which a program that has not answered is looked after.
const SLICE: Duration = Duration::from_millis(10);
/// How long a program may take to end once the simulation has.
const GRACE: Duration = Duration::from_millis(200);

/// A program that controls flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlProgram {
    /// Its file, or a name to be found in `PATH`.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// How long it may take from its start to its first answer.
    pub handshake_limit: Duration,
    /// How long it may take for each further answer.
    pub answer_limit: Duration,
}

impl ControlProgram {
    /// A program without arguments, which may take 5 s to start and 1 s for each answer.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        ControlProgram {
            path: path.into(),
            arguments: Vec::new(),
            handshake_limit: Duration::from_secs(5),
            answer_limit: Duration::from_secs(1),
        }
    }

    /// Its name: that of its file.
    #[must_use]
    pub fn name(&self) -> String {
        let file = self.path.file_name().unwrap_or(self.path.as_os_str());
        file.to_string_lossy().into_owned()
    }
}

/// What was wrong with a program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It could not be started.
    #[error("cannot start it: {0}; name an executable file")]
    Start(io::Error),
    /// It ended before the simulation did.
    #[error("it ended ({status}) instead of answering {at}{}", printed(.last_line.as_deref()))]
    Ended {
        /// How.
        status: ExitStatus,
        /// What it was told last.
        at: Moment,
        /// The last line that it printed.
        last_line: Option<String>,
    },
    /// It did not answer.
    #[error("no answer to {at} within {limit:?}; every event needs one{}", printed(.last_line.as_deref()))]
    Late {
        /// What it was told last.
        at: Moment,
        /// How long it was waited for.
        limit: Duration,
        /// The last line that it printed.
        last_line: Option<String>,
    },
    /// It was built with another version of the header.
    #[error(
        "it speaks version {0} of longhaul_control.h, and this longhaul version {VERSION}; build it with the header of this release"
    )]
    Version(u64),
    /// It answered without being asked.
    #[error("it answered {0} more than once; answer each event once")]
    Repeated(Moment),
    /// Its answer makes no sense.
    #[error("it answered {at} with {error}")]
    Reply {
        /// What it was told.
        at: Moment,
        /// What is wrong with the answer.
        error: ReplyError,
    },
    /// The caller wanted no answer any more.
    #[error("interrupted")]
    Interrupted,
    /// The system does not say how it is.
    #[error("cannot wait for it: {0}")]
    Wait(io::Error),
}

fn printed(last_line: Option<&str>) -> String {
    last_line.map_or_else(String::new, |line| format!("; it printed last: {line}"))
}

/// An event, as messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    name: &'static str,
    now: Nanos,
}

impl From<&Event<'_>> for Moment {
    fn from(event: &Event<'_>) -> Self {
        Moment { name: event.name(), now: event.now() }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.now {
            Nanos(0) => f.write_str(self.name),
            now => write!(f, "{} at {:.6} s", self.name, now.secs_f64()),
        }
    }
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Process {
    group: ProcessGroup,
    page: SharedPage,
    output: Output,
    /// Answers that it has given, modulo 2^32.
    heard: u32,
    answer_limit: Duration,
}

impl Process {
    /// Starts the program and tells it the first event. Returns its answer too. Waits for it until
    /// `is_stopped`.
    ///
    /// # Errors
    /// It cannot be started, does not answer, or `is_stopped` before it has answered.
    pub(crate) fn start(
        program: &ControlProgram,
        first: &Event<'_>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(Self, Reply), ProgramError> {
        let mut process = Process::spawn(program).map_err(ProgramError::Start)?;
        process.tell(first);
        process.wait(first, program.handshake_limit, is_stopped)?;
        let [version] = process.page.load::<{ HEADER + PROGRAM_VERSION }, 1>();
        if version != VERSION {
            return Err(ProgramError::Version(version));
        }
        let reply = process.reply(first)?;
        Ok((process, reply))
    }

    fn spawn(program: &ControlProgram) -> io::Result<Self> {
        let page = SharedPage::new()?;
        page.store::<HEADER, 2>([MAGIC, VERSION]);
        let (reader, writer) = io::pipe()?;
        let output = Output::new(reader)?;
        let mut command = Command::new(&program.path);
        command
            .args(&program.arguments)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let number = page.inherit(&mut command)?;
        command.env(VARIABLE, number.to_string());
        let (group, _) = ProcessGroup::start(&mut command)?;
        let answer_limit = program.answer_limit;
        Ok(Process { group, page, output, heard: 0, answer_limit })
    }

    /// Tells the program what happened and returns its answer.
    ///
    /// # Errors
    /// It has ended, does not answer, or its answer makes no sense.
    pub(crate) fn ask(&mut self, event: &Event<'_>) -> Result<Reply, ProgramError> {
        self.tell(event);
        self.wait(event, self.answer_limit, &|| false)?;
        self.reply(event)
    }

    /// Tells the program that the simulation has ended, and waits until it has ended too; it is
    /// killed if it does not.
    pub(crate) fn stop(mut self) {
        self.tell(&Event::Stop);
        // What it still says is of no interest; it ends with its group in any case.
        let _ = self.group.wait(GRACE, &|| false);
    }

    fn tell(&self, event: &Event<'_>) {
        self.page.store::<EVENT, EVENT_WORDS>(event.to_words());
        self.page.ring::<EVENT_BELL>();
    }

    fn wait(
        &mut self,
        event: &Event<'_>,
        limit: Duration,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), ProgramError> {
        let since = clock::now();
        loop {
            let heard = self.page.sleep::<REPLY_BELL>(self.heard, SLICE);
            if heard == self.heard.wrapping_add(1) {
                self.heard = heard;
                return Ok(());
            }
            if heard != self.heard {
                return Err(ProgramError::Repeated(event.into()));
            }
            if is_stopped() {
                return Err(ProgramError::Interrupted);
            }
            self.output.take();
            if let Some(end) = self.group.poll().map_err(ProgramError::Wait)? {
                self.output.take();
                let last_line = self.output.last_line();
                return Err(ProgramError::Ended {
                    status: end.status,
                    at: event.into(),
                    last_line,
                });
            }
            if since.elapsed() >= limit {
                let last_line = self.output.last_line();
                return Err(ProgramError::Late { at: event.into(), limit, last_line });
            }
        }
    }

    fn reply(&self, event: &Event<'_>) -> Result<Reply, ProgramError> {
        let words = self.page.load::<REPLY, REPLY_WORDS>();
        let reply = Reply::from_words(words)
            .map_err(|error| ProgramError::Reply { at: event.into(), error })?;
        // Each event has one answer, so both have the same number.
        if reply.event == self.heard {
            Ok(reply)
        } else {
            Err(ProgramError::Repeated(event.into()))
        }
    }
}
