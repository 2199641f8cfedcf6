//! A process that runs until it is ended, and what its output says.

use super::transfer;
use crate::{Fault, Problem, StopFlag};
use host::clock;
use host::process_group::{GroupEnd, ProcessGroup};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest line that is read as one.
const MAX_LINE: u64 = 64 << 10;
/// The end of standard error that is kept.
const MAX_REASON: usize = 16 << 10;
/// Interval at which an interruption is noticed.
const POLL: Duration = Duration::from_millis(50);
/// Time between SIGTERM and SIGKILL: a box drains for 30 s.
const GRACE: Duration = Duration::from_secs(35);

/// Collects what a service's lines say.
pub(super) trait Lines: Send + 'static {
    /// Takes a line; true once the service is ready.
    fn take(&mut self, line: &str) -> bool;
}

/// A running service.
pub(super) struct Service<L> {
    group: ProcessGroup,
    name: &'static str,
    ready: Receiver<()>,
    lines: JoinHandle<L>,
    errors: JoinHandle<Vec<u8>>,
}

impl<L: Lines> Service<L> {
    /// Starts it; `name` is what errors call it.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn start(name: &'static str, words: &[OsString], lines: L) -> Result<Self, Problem> {
        let refused = |error: std::io::Error| {
            Problem::new(Fault::Host, format!("cannot start {name}: {error}"))
        };
        let mut command = Command::new(words.first().cloned().unwrap_or_default());
        command.args(words.get(1..).unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (group, mut child) = ProcessGroup::start(&mut command).map_err(refused)?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let (tell, ready) = sync_channel(1);
        let thread = || std::thread::Builder::new().name("output".to_owned());
        let read = move || {
            let mut lines = lines;
            each_line(output, |line| {
                if lines.take(line) {
                    // The first one counts.
                    let _ = tell.try_send(());
                }
            });
            lines
        };
        let lines = thread().spawn(read).map_err(refused)?;
        let read = move || errors.map(|pipe| transfer::end(pipe, MAX_REASON)).unwrap_or_default();
        let errors = thread().spawn(read).map_err(refused)?;
        Ok(Service { group, name, ready, lines, errors })
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// It ended, or is not ready in time; an interruption.
    pub(super) fn until_ready(self, limit: Duration, stop: &StopFlag) -> Result<Self, Problem> {
        let until = clock::now() + limit;
        loop {
            match self.ready.recv_timeout(POLL) {
                Ok(()) => return Ok(self),
                Err(_) if stop.is_raised() => {
                    return Err(Problem::new(Fault::Interrupted, "interrupted"));
                }
                Err(RecvTimeoutError::Timeout) if clock::now() < until => {}
                Err(_) => return Err(self.unready()),
            }
        }
    }

    fn unready(mut self) -> Problem {
        // Whether it ended by itself or is ended here: its last words say why.
        let _ = self.group.terminate(Duration::from_secs(1));
        let words = self.errors.join().unwrap_or_default();
        let why = transfer::last_line(&words);
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        Problem::new(Fault::Host, format!("{} does not start{why}", self.name))
    }

    /// Ends it; how it ended, what its lines said, and its messages.
    ///
    /// # Errors
    /// The system error.
    pub(super) fn end(mut self) -> Result<(GroupEnd, L, String), Problem> {
        let lost = |what: String| Problem::new(Fault::Internal, format!("{}: {what}", self.name));
        let end = self.group.terminate(GRACE).map_err(|error| lost(error.to_string()))?;
        let lines = self.lines.join().map_err(|_| lost("its output was not read".to_owned()))?;
        let messages = self.errors.join().unwrap_or_default();
        Ok((end, lines, String::from_utf8_lossy(&messages).into_owned()))
    }
}

fn each_line(pipe: Option<impl Read>, mut take: impl FnMut(&str)) {
    let Some(pipe) = pipe else { return };
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut pipe).take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => take(String::from_utf8_lossy(&line).trim_end()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Kept(Vec<String>);

    impl Lines for Kept {
        fn take(&mut self, line: &str) -> bool {
            self.0.push(line.to_owned());
            line == "ready"
        }
    }

    fn shell(script: &str) -> Service<Kept> {
        let words = ["sh", "-c", script].map(OsString::from);
        Service::start("the box", &words, Kept::default()).unwrap()
    }

    #[test]
    fn a_service_is_ready_once_it_says_so() {
        let long = Duration::from_secs(30);
        let stop = StopFlag::new();
        let service =
            shell("trap 'echo last; exit 0' TERM; echo one; echo ready; sleep 1000 & wait");
        let (end, lines, _) = service.until_ready(long, &stop).unwrap().end().unwrap();
        assert_eq!(
            (end.status.code(), lines.0),
            (Some(0), ["one", "ready", "last"].map(str::to_owned).to_vec())
        );
        let failed = shell("echo no key >&2; exit 2").until_ready(long, &stop);
        assert!(failed.is_err_and(|problem| problem.message == "the box does not start: no key"));
        let silent = shell("sleep 1000").until_ready(Duration::from_millis(50), &stop);
        assert!(silent.is_err());
        stop.raise();
        let stopped = shell("sleep 1000").until_ready(long, &stop);
        assert!(stopped.is_err_and(|problem| problem.fault == Fault::Interrupted));
    }
}
