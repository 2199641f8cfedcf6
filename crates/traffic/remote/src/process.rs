//! An agent's process, as far as ssh shows it, and lines to and from it.
//!
//! Every wait has a deadline for the whole line, and every line a bound. What ssh and the far
//! end write to their standard error is kept for a message and goes nowhere else: the far end
//! could move the cursor with it.

use crate::host_name::{WrongHost, check_host};
use crate::protocol::Lines;
use host::lock::lock;
use host::stop::StopFlag;
use host::{clock, wait};
use problem::Field;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How an agent is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launcher {
    /// Over ssh.
    Ssh {
        /// The command, with its own options.
        ssh: Vec<String>,
        /// The host, or `USER@HOST`.
        host: String,
        /// What runs there: longhaul.
        program: String,
    },
    /// At this host, without ssh.
    Here {
        /// What runs: longhaul.
        program: PathBuf,
    },
}

/// Why a host could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// ssh cannot be given this host.
    #[error("{host}: {why}")]
    Host {
        /// The host.
        host: String,
        /// Why.
        why: WrongHost,
    },
    /// There is no ssh command.
    #[error("the ssh command is empty; see {}", Field::Ssh)]
    NoCommand,
    /// The process cannot be started.
    #[error("cannot run {command}: {source}; install it, or name the command with {}", Field::Ssh)]
    Start {
        /// The command.
        command: String,
        /// The system's error.
        source: io::Error,
    },
    /// It ended, or never began.
    #[error(
        "longhaul does not run on {host}{said}: check that \"ssh {host} longhaul --version\" works, \
         or name the program with {}",
        Field::FarProgram
    )]
    Ended {
        /// The host.
        host: String,
        /// What ssh said last, in brackets; empty if nothing.
        said: String,
    },
    /// It is silent.
    #[error("the agent on {host} did not answer within {} s", limit.as_secs())]
    Late {
        /// The host.
        host: String,
        /// The whole time it had.
        limit: Duration,
    },
    /// It does not follow the protocol.
    #[error("protocol error of the agent on {host}: {why}")]
    Protocol {
        /// The host.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// It refused, or failed to do what was asked.
    #[error("{host}: {reason}")]
    Refused {
        /// The host.
        host: String,
        /// Its reason.
        reason: String,
    },
    /// By the user.
    #[error("interrupted")]
    Interrupted,
}

/// How often a wait looks for an interruption.
const POLL: Duration = Duration::from_millis(50);
/// How long a process may take to end by itself, reverting what it set.
const END: Duration = Duration::from_secs(5);
/// What is kept of standard error, in bytes: the end of it.
const SAID: usize = 400;

/// A running agent's process. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    lines: Lines,
    said: Arc<Mutex<Vec<u8>>>,
    pub(crate) host: String,
}

impl Launcher {
    /// The host, for messages.
    #[must_use]
    pub fn host(&self) -> &str {
        match self {
            Launcher::Ssh { host, .. } => host,
            Launcher::Here { .. } => "this host",
        }
    }

    fn command(&self) -> Result<(String, Command), RemoteError> {
        const AGENT: [&str; 2] = ["agent", "--stdio"];
        match self {
            Launcher::Ssh { ssh, host, program } => {
                check_host(host).map_err(|why| RemoteError::Host { host: host.clone(), why })?;
                let (name, options) = ssh.split_first().ok_or(RemoteError::NoCommand)?;
                let mut command = Command::new(name);
                command.args(options).args(["--", host, program]).args(AGENT);
                Ok((name.clone(), command))
            }
            Launcher::Here { program } => {
                let mut command = Command::new(program);
                command.args(AGENT);
                Ok((program.display().to_string(), command))
            }
        }
    }
}

impl Process {
    pub(crate) fn start(launcher: &Launcher) -> Result<Self, RemoteError> {
        let (name, mut command) = launcher.command()?;
        let start = |source| RemoteError::Start { command: name.clone(), source };
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().map_err(start)?;
        let parts = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = parts else {
            return Err(start(io::ErrorKind::BrokenPipe.into()));
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&said);
        std::thread::spawn(move || keep_end(errors, &kept));
        let process = Process {
            child,
            input: Some(input),
            output,
            lines: Lines::default(),
            said,
            host: launcher.host().to_owned(),
        };
        // A far end that does not read must not stop the writer.
        process.input.as_ref().map_or(Ok(()), nonblocking).map_err(start)?;
        Ok(process)
    }

    /// Sends a line. An agent that has closed its input is no error here: it may have said why
    /// before, which [`Process::receive`] reads, as it does the end.
    pub(crate) fn send(
        &mut self,
        line: &str,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<(), RemoteError> {
        let until = clock::now() + limit;
        let text = format!("{line}\n");
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let Some(input) = self.input.as_mut() else { return Ok(()) };
            match input.write(rest) {
                Ok(0) => return Err(self.ended()),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let time = self.time_left(until, limit, stop)?;
                    if let Some(input) = self.input.as_ref() {
                        let _ = wait::ready(input, true, time);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.input = None,
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    /// The next line, of at most `most` bytes.
    pub(crate) fn receive(
        &mut self,
        most: usize,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<Vec<u8>, RemoteError> {
        let until = clock::now() + limit;
        let mut buffer = [0; 16 << 10];
        loop {
            let line = self.lines.next_line(most).map_err(|error| self.protocol(error))?;
            if let Some(line) = line {
                return Ok(line);
            }
            let time = self.time_left(until, limit, stop)?;
            let [ready] = wait::readable([self.output.as_fd()], Some(time))
                .map_err(|error| self.protocol(error))?;
            if ready {
                match self.output.read(&mut buffer) {
                    Ok(0) => return Err(self.ended()),
                    Ok(count) => self.lines.push(buffer.get(..count).unwrap_or_default()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return Err(self.ended()),
                }
            }
        }
    }

    /// How long to wait until the next look.
    fn time_left(
        &self,
        until: Instant,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<Duration, RemoteError> {
        let left = until.saturating_duration_since(clock::now());
        if stop.is_raised() {
            Err(RemoteError::Interrupted)
        } else if left.is_zero() {
            Err(RemoteError::Late { host: self.host.clone(), limit })
        } else {
            Ok(left.min(POLL))
        }
    }

    pub(crate) fn protocol(&self, why: impl std::fmt::Display) -> RemoteError {
        RemoteError::Protocol { host: self.host.clone(), why: why.to_string() }
    }

    /// Ends it at once.
    #[cfg(test)]
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// The far end has gone.
    fn ended(&mut self) -> RemoteError {
        // Its last words may still be under way.
        for _ in 0..10 {
            if matches!(self.child.try_wait(), Ok(Some(_))) && !lock(&self.said).is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let said = String::from_utf8_lossy(&lock(&self.said)).into_owned();
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        let said = last.map_or(String::new(), |line| format!(" ({line})"));
        RemoteError::Ended { host: self.host.clone(), said }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input ends the agent, and that ends ssh.
        drop(self.input.take());
        let until = clock::now() + END;
        while clock::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn nonblocking(input: &ChildStdin) -> io::Result<()> {
    let flags = fcntl_getfl(input)?;
    Ok(fcntl_setfl(input, flags | OFlags::NONBLOCK)?)
}

/// Reads standard error to its end and keeps the last bytes.
fn keep_end(mut errors: ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut buffer) {
        let mut kept = lock(kept);
        kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let excess = kept.len().saturating_sub(SAID);
        kept.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it said before it ended is read, also where it ended before anything was asked.
    #[test]
    fn the_reply_of_a_process_that_has_ended_is_read() {
        let words = ["sh", "-c", "exec <&-; echo reason"];
        let launcher = Launcher::Ssh {
            ssh: words.map(str::to_owned).to_vec(),
            host: "far".to_owned(),
            program: "longhaul".to_owned(),
        };
        let (limit, stop) = (Duration::from_secs(10), StopFlag::new());
        let mut process = Process::start(&launcher).unwrap();
        process.child.wait().unwrap();
        for request in ["hello", "copy"] {
            process.send(request, limit, &stop).unwrap();
        }
        assert_eq!(process.receive(100, limit, &stop).unwrap(), b"reason");
        process.send("time", limit, &stop).unwrap();
        let ended = process.receive(100, limit, &stop).unwrap_err();
        assert!(matches!(ended, RemoteError::Ended { .. }), "{ended}");
    }
}
