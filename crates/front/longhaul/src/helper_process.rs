//! The process in which labs and captures run: this program again, with one thread.
//!
//! ```text
//!   caller's thread            helper process          process 1 of the sandbox
//!   run(request) ── request ──> sandbox::run ── fork ──> lab::run
//!        <───────────── lines of JSON: events, the document or a problem ──┘
//! ```
//!
//! A lab forks and enters namespaces, which a process with several threads cannot do, and a capture
//! gives up privileges that its caller may need. [`run`] starts this program again, connected by a
//! socket whose number is in [`VARIABLE`]; [`init`] takes over there. Standard input and output of
//! the helper are /dev/null; standard error is the caller's, for programs that write there.
//!
//! A raised flag becomes SIGTERM. The kernel ends the helper when the caller's thread ends, the
//! helper ends when the socket is closed, and the kernel ends everything in the sandbox with it.

use crate::{Document, Fault, Problem, Request, StopFlag, capture, demo, lab, sim, study};
use host::reexec::{self, Reexecuted};
use host::sandbox::{self, Ended};
use host::signals;
use lab::EndSignal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The environment variable that has the number of the helper's socket.
const VARIABLE: &str = "LONGHAUL_HELPER_SOCKET";

/// Maximum length of a request, bytes: plans have at most 1 MiB.
const MAX_REQUEST: u64 = 8 << 20;

/// Maximum length of an event or a document, bytes: a study may have 100,000 cells.
const MAX_LINE: u64 = 256 << 20;

/// Maximum delay until a raised flag is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Exit codes of the helper, for whoever looks at processes.
const DONE: i32 = 0;
const FAILED: i32 = 1;
const TOO_LATE: i32 = 3;

/// True if [`init`] was called in this process.
static INITIALISED: AtomicBool = AtomicBool::new(false);

/// A line from the helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line<E, D> {
    Event(E),
    Document(D),
    Problem(Problem),
}

/// Prepares this program for requests that need a process of their own: [`Request::Lab`] and
/// others that say so. To be called first in `main`, before any thread is started.
///
/// Returns at once. In a process that [`crate::run`] started for such a request it carries out the
/// request and does not return.
pub fn init() {
    INITIALISED.store(true, Ordering::Relaxed);
    match reexec::inherited(VARIABLE) {
        Ok(None) => {}
        Ok(Some(socket)) => exit(serve(&socket)),
        Err(_) => exit(TOO_LATE),
    }
}

/// Carries out a request in a helper process.
pub(crate) fn run<E: DeserializeOwned, D: DeserializeOwned>(
    request: &Request,
    on_event: &mut dyn FnMut(E),
    stop: &StopFlag,
) -> Result<D, Problem> {
    if !INITIALISED.load(Ordering::Relaxed) {
        return Err(internal("this request needs longhaul::init() to be called first in main"));
    }
    let mut line =
        serde_json::to_vec(request).map_err(|error| Problem::new(Fault::Request, error))?;
    line.push(b'\n');
    if line.len() as u64 > MAX_REQUEST {
        let problem = format!("the request is longer than {MAX_REQUEST} bytes");
        return Err(Problem::new(Fault::Request, problem));
    }
    let helper = reexec::start(VARIABLE).map_err(cannot_start)?;
    let mut socket = helper.socket();
    // One that ended at once says why, or does not.
    let _ = socket.write_all(&line);
    socket.set_read_timeout(Some(POLL_INTERVAL)).map_err(cannot_start)?;
    let mut result = None;
    let mut lines = Lines { reader: BufReader::new(socket), helper: &helper, stop, stopped: false };
    while let Some(line) = lines.next().map_err(internal)? {
        match serde_json::from_slice(&line).map_err(internal)? {
            // After the result the end of the socket says that nothing is left.
            _ if result.is_some() => {}
            Line::Event(event) => on_event(event),
            Line::Document(document) => result = Some(Ok(document)),
            Line::Problem(problem) => result = Some(Err(problem)),
        }
    }
    let stopped = lines.stopped;
    drop(lines);
    let status = helper.wait().map_err(internal)?;
    result.unwrap_or_else(|| {
        Err(match stopped {
            true => Problem::new(Fault::Interrupted, "interrupted"),
            false if status.code() == Some(TOO_LATE) => internal(
                "longhaul::init() was called after a thread was started; call it first in main",
            ),
            false => internal(format!("the helper process ended early ({status})")),
        })
    })
}

fn internal(error: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Internal, error)
}

fn cannot_start(error: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Host, format!("cannot start the helper process: {error}"))
}

/// The lines of a helper, until it and all that it started have ended.
struct Lines<'a> {
    reader: BufReader<&'a UnixStream>,
    helper: &'a Reexecuted,
    stop: &'a StopFlag,
    /// True if the helper got SIGTERM.
    stopped: bool,
}

impl Lines<'_> {
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            if self.stop.is_raised() && !self.stopped {
                self.stopped = true;
                self.helper.terminate();
            }
            let left = MAX_LINE.saturating_sub(line.len() as u64);
            match self.reader.by_ref().take(left).read_until(b'\n', &mut line) {
                Ok(_) if line.last() == Some(&b'\n') => return Ok(Some(line)),
                Ok(_) if line.len() as u64 >= MAX_LINE => {
                    return Err(io::Error::other("a line from the helper process is too long"));
                }
                // One that was killed while it wrote.
                Ok(_) => return Ok(None),
                Err(error) if is_poll(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_poll(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The helper: reads the request, and carries it out. Returns the exit code.
fn serve(socket: &UnixStream) -> i32 {
    let request = match receive(socket) {
        Ok(request) => request,
        Err(problem) => return Writer(socket).end(&Err(problem)),
    };
    // It forwards signals itself, and its process may have no other thread.
    if let Request::LabExec(request) = &request {
        let done = io::stderr().as_fd().try_clone_to_owned().map_err(internal);
        let done = done.and_then(|errors| lab::running::exec(request, errors.into()));
        return Writer(socket).end(&done.map(Document::LabExec));
    }
    let work = || {
        let ending = Ending::default();
        ending.follow_signals();
        ending.follow(socket);
        Writer(socket).end(&carry_out(&request, &ending, Writer(socket)))
    };
    if !needs_sandbox(&request) {
        signals::block();
        return work();
    }
    let problem = match sandbox::run(work) {
        Ok(Ended::Code(code)) => return code,
        Ok(Ended::Signal(signal)) => internal(format!("the lab was killed by signal {signal}")),
        Err(error) => Problem::new(Fault::Host, error),
    };
    Writer(socket).end(&Err(problem))
}

/// Returns true if a request makes labs.
const fn needs_sandbox(request: &Request) -> bool {
    use Request::{Demo, Lab, LabCheck, SimCompare, Study};
    matches!(request, Demo(_) | Lab(_) | LabCheck(_) | SimCompare(_) | Study(_))
}

fn receive(socket: &UnixStream) -> Result<Request, Problem> {
    let mut line = Vec::new();
    BufReader::new(socket.take(MAX_REQUEST)).read_until(b'\n', &mut line).map_err(internal)?;
    serde_json::from_slice(&line).map_err(|error| Problem::new(Fault::Request, error))
}

/// Carries out a request in this process, which has one thread.
fn carry_out(request: &Request, ending: &Ending, writer: Writer<'_>) -> Result<Document, Problem> {
    Ok(match request {
        Request::Capture(request) => Document::Capture(capture::run(
            request,
            &mut |event| writer.event(&event),
            &ending.stop,
        )?),
        Request::Demo(request) => {
            let mut observe = |event| writer.event(&event);
            let outcome = demo::run(request, &mut observe, &ending.stop)?;
            Document::Demo(Box::new(outcome.report))
        }
        Request::Lab(request) => {
            Document::Lab(lab::run(request, &mut |event| writer.event(&event), &ending.end_signal)?)
        }
        Request::LabCheck(request) => Document::LabCheck(lab::check::run(
            request,
            &mut |event| writer.event(&event),
            &ending.stop,
        )?),
        Request::SimCompare(request) => Document::SimCompare(sim::compare(
            request,
            &mut |event| writer.event(&event),
            &ending.stop,
        )?),
        Request::Study(request) => {
            Document::Study(study::run(request, &mut |event| writer.event(&event), &ending.stop)?)
        }
        _ => return Err(internal("this request needs no helper process")),
    })
}

/// The way to stop the work in the helper.
#[derive(Debug, Clone, Default)]
struct Ending {
    stop: StopFlag,
    end_signal: EndSignal,
}

impl Ending {
    /// The first signal ends the work in good order, a second one at once.
    fn follow_signals(&self) {
        let Ending { stop, end_signal } = self.clone();
        std::thread::spawn(move || {
            let (signal, from_program) = signals::wait_for_termination();
            stop.raise();
            // Without programs yet, the flag ends what there is.
            let _ = end_signal.on_signal(signal, from_program);
            exit(128 + signals::wait_for_second());
        });
    }

    /// Ends the process when the other end of the socket is closed.
    fn follow(&self, socket: &UnixStream) {
        let socket = socket.try_clone();
        std::thread::spawn(move || {
            // Nothing is sent after the request.
            let _ = socket.and_then(|mut socket| socket.read(&mut [0]));
            exit(FAILED);
        });
    }
}

/// Writes lines to the caller. Without it, the process ends.
#[derive(Clone, Copy)]
struct Writer<'a>(&'a UnixStream);

impl Writer<'_> {
    fn event<E: Serialize>(self, event: &E) {
        self.line(&Line::<&E, ()>::Event(event));
    }

    fn end(self, result: &Result<Document, Problem>) -> i32 {
        match result {
            Ok(document) => self.line(&Line::<(), _>::Document(document)),
            Err(problem) => self.line(&Line::<(), ()>::Problem(problem.clone())),
        }
        if result.is_ok() { DONE } else { FAILED }
    }

    fn line<E: Serialize, D: Serialize>(self, line: &Line<E, D>) {
        let mut socket = self.0;
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut text| {
            text.push(b'\n');
            socket.write_all(&text)
        });
        if written.is_err() {
            exit(FAILED);
        }
    }
}
