//! Runs the programs of a test: their files, server and client, and what the client reports.

use crate::cell_plan;
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
use study::program::{self, CommandLine, Placeholder, Program, Reported};
use study::{CacheState, Traffic};
use units::ByteCount;

/// The most that a program may print to each of its streams, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// How long a server may take until it listens.
const LISTEN: Duration = Duration::from_secs(10);

/// How much longer than its warm-up and its duration a client may run.
const GRACE: Duration = Duration::from_secs(30);

/// How often the streams of programs are read.
const POLL: Duration = Duration::from_millis(20);

/// Time after which a cache has all of what it fetches, and after which objects have expired whose
/// origin has them fresh for a second, which caches count in whole ones.
const SETTLED: Duration = Duration::from_millis(2100);

/// The log of an origin: a line for each answer, with the bytes of its body.
const ORIGIN_LOG: &str = "origin.log";
/// Most bytes of it.
const MAX_ORIGIN_LOG: u64 = 1 << 20;

/// Hosts of a program, beside that of its client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramHosts<'a> {
    server: &'a LabHost,
    /// Where a server fetches from.
    origin: Option<&'a LabHost>,
    port: u16,
}

impl<'a> ProgramHosts<'a> {
    /// Those of a lab.
    pub(crate) fn of(server: &'a LabHost, hosts: &'a [LabHost], port: u16) -> Self {
        let origin = hosts.iter().find(|host| host.name == cell_plan::ORIGIN);
        ProgramHosts { server, origin, port }
    }
}

/// What stands in the place of placeholders.
#[derive(Debug)]
struct Values<'a> {
    traffic: &'a Traffic,
    server: IpAddr,
    origin: Option<IpAddr>,
    port: u16,
}

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
        hosts: ProgramHosts<'_>,
        stop: &StopFlag,
    ) -> Result<Prepared<'a>, AttemptError> {
        let wrong = |why: String| AttemptError::Program { flow: traffic.name.clone(), why };
        let address = |host: &LabHost| match traffic.ip {
            IpVersion::Ipv4 => IpAddr::from(host.ipv4),
            IpVersion::Ipv6 => IpAddr::from(host.ipv6),
        };
        let values = Values {
            traffic,
            server: address(hosts.server),
            origin: hosts.origin.map(address),
            port: hosts.port,
        };
        // Its path is in its files, so they are written for a directory that is there.
        let directory = self.scratch.directory(program.privileged, |path| {
            let value = |placeholder| values.of(placeholder, path);
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
            Prepared { programs: self, values, program, directory, server: None, origin: None };
        if let (Some(origin), Some(host)) = (&program.origin, hosts.origin) {
            prepared.origin = Some(prepared.listening(&origin.command, host, stop)?);
        }
        if let Some(line) = &program.server {
            prepared.server = Some(prepared.listening(line, hosts.server, stop)?);
        }
        Ok(prepared)
    }
}

/// A program of which the server, if it has one, is waiting for the client.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    programs: &'a Programs,
    values: Values<'a>,
    program: &'a Program,
    /// Ended before its directory is removed.
    server: Option<Confined>,
    origin: Option<Confined>,
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
        let value = |placeholder| self.values.of(placeholder, self.directory.path());
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
            // An edge has nginx open its listeners once before, to check them.
            let says_so = self.program.origin.is_none() || self.origin.is_none();
            match listening {
                Listening::Yes | Listening::NotYet if stop.is_raised() => {
                    return Err(AttemptError::Interrupted);
                }
                Listening::Yes if !says_so && !server.output().contains("\"listening\"") => {
                    if clock::now() >= give_up {
                        break format!("is not ready after {} s", LISTEN.as_secs());
                    }
                    std::thread::sleep(POLL);
                }
                Listening::Yes => return Ok(server),
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
        match self.values.traffic.cache_state {
            CacheState::Cold => {}
            CacheState::Warm | CacheState::Expired => {
                self.run_client(client, stop)?;
                // An edge still fetches the rest of a slice of which a range was asked for.
                std::thread::sleep(SETTLED);
            }
        }
        let before = self.sent_by_origin();
        let (reported, began) = self.run_client(client, stop)?;
        let origin = self.sent_by_origin().zip(before).map(|(after, before)| {
            ByteCount::from_bytes(after.bytes().saturating_sub(before.bytes()))
        });
        Ok(Transferred { program: self.program, reported: Reported { origin, ..reported }, began })
    }

    /// The bytes of bodies in the origin's log; `None` without an origin, or with more lines than
    /// are read.
    fn sent_by_origin(&self) -> Option<ByteCount> {
        self.origin.as_ref()?;
        let log = self.directory.read(ORIGIN_LOG, MAX_ORIGIN_LOG).ok()?;
        let mut bytes = log.lines().map(|line| line.parse::<u64>().ok());
        let bytes = bytes.try_fold(0u64, |sum, bytes| sum.checked_add(bytes?))?;
        Some(ByteCount::from_bytes(bytes))
    }

    /// What the client reports, and when it began.
    fn run_client(
        &mut self,
        client: &NetNs,
        stop: &StopFlag,
    ) -> Result<(Reported, Instant), AttemptError> {
        let traffic = self.values.traffic;
        let limit = traffic.omit + traffic.duration + GRACE;
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
        Ok((Reported { seconds, ..reported }, began))
    }

    fn wrong(&self, why: String) -> AttemptError {
        AttemptError::Program { flow: self.values.traffic.name.clone(), why }
    }
}

/// How a program ended, and its last words.
fn end(code: i32, program: &Confined) -> String {
    let last = program.last_line().map_or(String::new(), |line| format!(": {line}"));
    format!("exit code {code}{last}")
}

impl Values<'_> {
    /// The value of a placeholder.
    fn of(&self, placeholder: Placeholder, directory: &Path) -> String {
        let traffic = self.traffic;
        let bytes = |size: Option<ByteCount>| size.map_or(0, ByteCount::bytes).to_string();
        match placeholder {
            Placeholder::Server => self.server.to_string(),
            Placeholder::ServerInUrl => in_url(self.server),
            Placeholder::OriginInUrl => self.origin.map_or_else(String::new, in_url),
            Placeholder::Port => self.port.to_string(),
            Placeholder::Seconds => (traffic.omit + traffic.duration).as_secs_f64().to_string(),
            Placeholder::Streams => traffic.streams.to_string(),
            Placeholder::Bitrate => {
                traffic.bitrate.map_or_else(|| "0".to_owned(), |r| r.bps().to_string())
            }
            Placeholder::Block => bytes(traffic.block),
            Placeholder::Object => bytes(traffic.object),
            Placeholder::Range => traffic
                .range
                .map_or_else(|| "0-".to_owned(), |(first, last)| format!("{first}-{last}")),
            Placeholder::CacheState => traffic.cache_state.name().to_owned(),
            Placeholder::Dir => directory.display().to_string(),
            Placeholder::Longhaul => longhaul(),
        }
    }
}

fn in_url(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// The command line of longhaul: this program, unless it is another one that uses the library.
fn longhaul() -> String {
    let own = std::env::current_exe().ok();
    let name = own.as_ref().and_then(|path| path.file_name());
    // By the process, as another user may not reach its path.
    let is_longhaul = name.is_some_and(|name| name == "longhaul");
    if is_longhaul { "/proc/self/exe" } else { "longhaul" }.to_owned()
}
