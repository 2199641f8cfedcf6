//! One process: its time, its CPU time, and the end of its output.

use crate::{Fault, Problem, StopFlag};
use host::clock;
use host::process_group::{GroupEnd, ProcessGroup};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Output that is kept: the beginning of standard output, for a result, and the end of standard
/// error, for a reason.
const MAX_RESULT: usize = 4 << 20;
const MAX_REASON: usize = 2 << 10;
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// A running process without input.
pub(super) struct Transfer {
    group: ProcessGroup,
    began: Instant,
    output: JoinHandle<Vec<u8>>,
    errors: JoinHandle<Vec<u8>>,
}

/// A process that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Seconds from its start.
    pub(super) seconds: f64,
    /// CPU time with its descendants.
    pub(super) cpu: Duration,
    /// Its output.
    pub(super) output: Vec<u8>,
    /// Why it failed.
    pub(super) failed: Option<String>,
}

impl Transfer {
    /// Starts it.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn start(words: &[OsString]) -> Result<Self, Problem> {
        let [program, arguments @ ..] = words else {
            return Err(Problem::new(Fault::Request, "there is no program to run"));
        };
        let refused = |error: std::io::Error| {
            let program = program.to_string_lossy();
            Problem::new(Fault::Request, format!("cannot start {program}: {error}"))
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let began = clock::now();
        let (group, mut child) = ProcessGroup::start(&mut command).map_err(refused)?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let output = read(output, |pipe| beginning(pipe, MAX_RESULT)).map_err(refused)?;
        let errors = read(errors, |pipe| end(pipe, MAX_REASON)).map_err(refused)?;
        Ok(Transfer { group, began, output, errors })
    }

    /// Waits for its end; past `limit`, or once `stop` is raised, it is ended.
    ///
    /// # Errors
    /// The system error.
    pub(super) fn wait(mut self, limit: Duration, stop: &StopFlag) -> Result<Ended, Problem> {
        let end = self.group.wait(limit, &|| stop.is_raised()).map_err(|error| lost(&error))?;
        let end = match end {
            Some(end) => Ok(end),
            None => Err(self.group.terminate(GRACE).map_err(|error| lost(&error))?),
        };
        let seconds = clock::now().saturating_duration_since(self.began).as_secs_f64();
        let [output, errors] = [self.output, self.errors].map(JoinHandle::join);
        let reason = last_line(&errors.unwrap_or_default());
        let (end, failed) = match end {
            Ok(end) => (end, failure(&end, &reason)),
            Err(end) => (end, Some(format!("it took longer than {} s", limit.as_secs()))),
        };
        let output = output.unwrap_or_default();
        Ok(Ended { seconds, cpu: end.cpu.total(), output, failed })
    }

    /// True if it runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.group.poll(), Ok(None))
    }

    /// Ends it.
    pub(super) fn end(mut self) {
        // It is gone either way once it is dropped.
        let _ = self.group.terminate(GRACE);
    }
}

fn lost(error: &std::io::Error) -> Problem {
    Problem::new(Fault::Internal, format!("cannot wait for a program: {error}"))
}

fn failure(end: &GroupEnd, reason: &str) -> Option<String> {
    let how = match (end.status.code(), end.status.signal()) {
        (Some(0), _) => return None,
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    };
    Some(if reason.is_empty() { how } else { format!("{how}: {reason}") })
}

fn read<R: Read + Send + 'static>(
    pipe: Option<R>,
    read: impl FnOnce(R) -> Vec<u8> + Send + 'static,
) -> std::io::Result<JoinHandle<Vec<u8>>> {
    let read = move || pipe.map(read).unwrap_or_default();
    std::thread::Builder::new().name("output".to_owned()).spawn(read)
}

/// Reads to the end and keeps the first `most` bytes.
fn beginning(mut pipe: impl Read, most: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    pieces(&mut pipe, |piece| {
        let room = most.saturating_sub(kept.len()).min(piece.len());
        kept.extend_from_slice(piece.get(..room).unwrap_or_default());
    });
    kept
}

/// Reads to the end and keeps the last `most` bytes.
pub(super) fn end(mut pipe: impl Read, most: usize) -> Vec<u8> {
    let mut kept = VecDeque::new();
    pieces(&mut pipe, |piece| {
        kept.extend(piece);
        kept.drain(..kept.len().saturating_sub(most));
    });
    kept.into()
}

fn pieces(pipe: &mut impl Read, mut take: impl FnMut(&[u8])) {
    let mut piece = [0; 8192];
    loop {
        match pipe.read(&mut piece) {
            Ok(0) => return,
            Ok(length) => take(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

pub(super) fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Duration) -> Ended {
        let words = ["sh", "-c", script].map(OsString::from);
        Transfer::start(&words).unwrap().wait(limit, &StopFlag::new()).unwrap()
    }

    #[test]
    fn a_failure_has_the_last_line_of_its_errors() {
        let long = Duration::from_secs(30);
        let ended = run("echo out; echo first >&2; echo second >&2; exit 7", long);
        assert_eq!(ended.failed.as_deref(), Some("exit code 7: second"));
        assert_eq!(ended.output, b"out\n");
        let good = run("yes | head -c 9000000", long);
        assert_eq!((good.failed, good.output.len()), (None, MAX_RESULT));
        let late = run("sleep 1000", Duration::from_millis(20));
        assert!(late.failed.unwrap().contains("longer than 0 s"));
        let stop = StopFlag::new();
        stop.raise();
        let words = ["sleep", "1000"].map(OsString::from);
        Transfer::start(&words).unwrap().wait(long, &stop).unwrap();
        assert!(
            Transfer::start(&["/nowhere/x".into()]).is_err_and(|p| p.message.contains("/nowhere"))
        );
    }

    #[test]
    fn what_is_kept_is_bounded() {
        assert_eq!(end(&b"abcdef"[..], 3), b"def");
        assert_eq!(beginning(&b"abcdef"[..], 3), b"abc");
        assert_eq!(last_line(b"a\nb \n\n"), "b");
        assert_eq!(last_line(b""), "");
    }
}
