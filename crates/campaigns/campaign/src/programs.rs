//! Runs the programs of a test: their files, server and client, and what the client reports.

use crate::testbed::AttemptError;
use host::confined::{Confined, Content, Scratch, ScratchDirectory};
use host::netns::NetNs;
use host::program::Reaper;
use host::{clock, sandbox};
use lab::{LabHost, Listening};
use model::IpVersion;
use perf::StopFlag;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use study::Traffic;
use study::program::{self, CommandLine, Placeholder, Program, Reported};
use units::ByteCount;

/// The most that a program may print to each of its streams, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// How long a server may take until it listens.
const LISTEN: Duration = Duration::from_secs(10);

/// How much longer than its warm-up and its duration a client may run.
const GRACE: Duration = Duration::from_secs(30);

/// How often the streams of programs are read.
const POLL: Duration = Duration::from_millis(20);

/// Runs programs, once in a sandbox.
#[derive(Debug)]
pub(crate) struct Programs {
    reaper: Reaper,
    scratch: Arc<Scratch>,
}

impl Programs {
    /// Needs to be process 1 of a sandbox.
    pub(crate) fn new(scratch: Arc<Scratch>) -> Self {
        // A lab has no resolver: queries are refused at once, instead of being lost in it. A
        // system without the file asks this host as well.
        let _ = sandbox::bind_file(c"/etc/resolv.conf", "nameserver 127.0.0.1\n");
        Programs { reaper: Reaper::start(None), scratch }
    }

    /// Makes the files of a flow's program, and starts its server.
    pub(crate) fn prepare<'a>(
        &'a self,
        traffic: &'a Traffic,
        program: &'a Program,
        server: &LabHost,
        port: u16,
        stop: &StopFlag,
    ) -> Result<Prepared<'a>, AttemptError> {
        let wrong = |why: String| AttemptError::Program { flow: traffic.name.clone(), why };
        let address = match traffic.ip {
            IpVersion::Ipv4 => IpAddr::from(server.ipv4),
            IpVersion::Ipv6 => IpAddr::from(server.ipv6),
        };
        // Its path is in its files, so they are written for a directory that is there.
        let directory = self.scratch.directory(program.privileged, |path| {
            let value = |placeholder| value(placeholder, traffic, address, port, path);
            let files = program.files.iter().map(|file| {
                let content = match &file.content {
                    program::Content::Text(text) => Content::Text(Placeholder::fill(text, value)),
                    program::Content::Zeros(length) => Content::Zeros(*length),
                };
                (file.name.clone(), content)
            });
            files.collect()
        });
        let directory =
            directory.map_err(|error| wrong(format!("cannot create its files: {error}")))?;
        let mut prepared =
            Prepared { programs: self, traffic, program, address, port, directory, server: None };
        if let Some(line) = &program.server {
            prepared.server = Some(prepared.listening(line, server, stop)?);
        }
        Ok(prepared)
    }
}

/// A program of which the server, if it has one, is waiting for the client.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    programs: &'a Programs,
    traffic: &'a Traffic,
    program: &'a Program,
    address: IpAddr,
    port: u16,
    /// Ended before its directory is removed.
    server: Option<Confined>,
    directory: ScratchDirectory,
}

/// A client that ended as it should.
#[derive(Debug)]
pub(crate) struct Transferred<'a> {
    /// The program.
    pub(crate) program: &'a Program,
    /// Its output.
    pub(crate) reported: Reported,
    /// When it was started.
    pub(crate) began: Instant,
}

impl<'a> Prepared<'a> {
    fn start(&self, line: &CommandLine, host: &NetNs) -> Result<Confined, AttemptError> {
        let value = |placeholder| {
            value(placeholder, self.traffic, self.address, self.port, self.directory.path())
        };
        let arguments: Vec<OsString> = line.fill(value).into_iter().map(OsString::from).collect();
        let started =
            self.programs.reaper.start_confined(host, &arguments, &self.directory, MAX_OUTPUT);
        started.map_err(|error| {
            let name = arguments.first().map(|name| name.to_string_lossy()).unwrap_or_default();
            self.wrong(format!("cannot start {name}: {error}; install it, or correct the plan"))
        })
    }

    /// Starts the server and waits until it listens.
    fn listening(
        &self,
        line: &CommandLine,
        host: &LabHost,
        stop: &StopFlag,
    ) -> Result<Confined, AttemptError> {
        let before = lab::waiting_sockets(host)?;
        let mut server = self.start(line, &host.namespace)?;
        let give_up = clock::now() + LISTEN;
        let problem = loop {
            let listening = lab::wait_until_listening(host, server.program(), before, POLL)?;
            // Its output before it listens must not fill the pipe.
            server.collect()?;
            match listening {
                Listening::Yes => return Ok(server),
                Listening::NotYet if stop.is_raised() => return Err(AttemptError::Interrupted),
                Listening::NotYet if clock::now() < give_up => {}
                Listening::NotYet => {
                    break format!("is not listening after {} s", LISTEN.as_secs());
                }
                Listening::Ended(code) => {
                    let end = end(code, &server);
                    break format!("ended before it listened ({end}); keep it in the foreground");
                }
            }
        };
        Err(self.wrong(format!("the server {problem}")))
    }

    /// Runs the client until it ends, which has its time limit.
    pub(crate) fn transfer(
        mut self,
        client: &NetNs,
        stop: &StopFlag,
    ) -> Result<Transferred<'a>, AttemptError> {
        let limit = self.traffic.omit + self.traffic.duration + GRACE;
        let began = clock::now();
        let mut running = self.start(&self.program.client, client)?;
        let code = loop {
            let fits =
                running.collect()? && self.server.as_mut().map_or(Ok(true), Confined::collect)?;
            if !fits {
                let most = ByteCount::from_bytes(MAX_OUTPUT as u64);
                return Err(self.wrong(format!("it printed more than {most}")));
            }
            if let Some(code) = running.program().wait_at_most(POLL) {
                break code;
            }
            if stop.is_raised() {
                return Err(AttemptError::Interrupted);
            }
            if began.elapsed() > limit {
                let limit = limit.as_secs();
                return Err(self.wrong(format!("it was terminated after {limit} s")));
            }
        };
        running.collect()?;
        if !self.program.exit_codes.contains(&code) {
            return Err(self.wrong(format!("the client ended with {}", end(code, &running))));
        }
        let reported = self.program.output.read(&running.output());
        let reported = reported.map_err(|why| match running.last_line() {
            Some(line) => self.wrong(format!("{why}; its last line is: {line}")),
            None => self.wrong(format!("{why}; it printed nothing")),
        })?;
        // No more than it could take.
        let seconds = reported.seconds.filter(|seconds| *seconds <= limit.as_secs_f64());
        Ok(Transferred { program: self.program, reported: Reported { seconds, ..reported }, began })
    }

    fn wrong(&self, why: String) -> AttemptError {
        AttemptError::Program { flow: self.traffic.name.clone(), why }
    }
}

/// How a program ended, and its last words.
fn end(code: i32, program: &Confined) -> String {
    let last = program.last_line().map_or(String::new(), |line| format!(": {line}"));
    format!("exit code {code}{last}")
}

/// The value that a test has for a placeholder.
fn value(
    placeholder: Placeholder,
    traffic: &Traffic,
    address: IpAddr,
    port: u16,
    directory: &Path,
) -> String {
    match placeholder {
        Placeholder::Server => address.to_string(),
        Placeholder::ServerInUrl if address.is_ipv6() => format!("[{address}]"),
        Placeholder::ServerInUrl => address.to_string(),
        Placeholder::Port => port.to_string(),
        Placeholder::Seconds => (traffic.omit + traffic.duration).as_secs_f64().to_string(),
        Placeholder::Streams => traffic.streams.to_string(),
        Placeholder::Bitrate => {
            traffic.bitrate.map_or_else(|| "0".to_owned(), |r| r.bps().to_string())
        }
        Placeholder::Block => {
            traffic.block.map_or_else(|| "0".to_owned(), |b| b.bytes().to_string())
        }
        Placeholder::Dir => directory.display().to_string(),
    }
}
