//! A thorough measurement of a path in five minutes, for later comparison.
//!
//! ```no_run
//! use longhaul::StopFlag;
//! use longhaul::baseline::{self, BaselineEvent, BaselineRequest};
//!
//! let request = BaselineRequest::new("192.0.2.1");
//! let on_event = &mut |event| {
//!     if let BaselineEvent::Tested { progress, figures } = event {
//!         println!("{}: {}", progress.condition, figures.throughput_bps);
//!     }
//! };
//! let report = baseline::run(&request, on_event, &StopFlag::new())?;
//! println!("{} rounds", report.rounds);
//! # Ok::<(), longhaul::Problem>(())
//! ```

mod architecture;
mod host_checks;
mod path;
mod request;
mod rounds;
mod servers;

pub use architecture::architecture;
pub use host::resolve::Family;
pub use record::ArchitectureNote;
pub use report::terminal::BaselineProgress;
pub use request::{BaselineRequest, ServerSource};

use crate::{Fault, Problem, StopFlag};
use host::{clock, random};
use record::{
    AddressFamily, BASELINE_SCHEMA, BaselineReport, RunFigures, ServerCandidate, ServerChoice,
    TestCondition,
};
use rounds::Rounds;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Events of [`run`], in order.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineEvent {
    /// The servers of a list are pinged.
    Pinging {
        /// Their number.
        servers: usize,
        /// The number that is done.
        done: usize,
    },
    /// A server of the list does not answer.
    Unreachable {
        /// Its name.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The server of the list that is measured to.
    Chosen(ServerCandidate),
    /// It cannot be used; the next one follows.
    Rejected {
        /// Its name.
        host: String,
        /// The reason.
        problem: Problem,
    },
    /// The server's name is resolved.
    Resolving {
        /// The name.
        host: String,
    },
    /// A path to the server is probed.
    Probing {
        /// The server.
        host: String,
        /// IPv4 or IPv6.
        family: AddressFamily,
        /// The probe, in words.
        step: String,
    },
    /// Other traffic of this host is observed.
    ObservingTraffic,
    /// The tests begin.
    Begun {
        /// Their expected number.
        tests: u32,
        /// The time that they are expected to take, s.
        expected_s: f64,
        /// The seed of their order.
        seed: u64,
        /// True if that exceeds the time requested: at least three of each condition run.
        exceeds: bool,
    },
    /// A test runs.
    Testing(BaselineProgress),
    /// A test ended.
    Tested {
        /// The test.
        progress: BaselineProgress,
        /// Its figures.
        figures: Box<RunFigures>,
    },
    /// A test failed.
    Failed {
        /// Its condition.
        condition: TestCondition,
        /// The reason.
        reason: String,
    },
}

/// The server to measure to.
#[derive(Debug, Clone)]
struct Server {
    host: String,
    ports: RangeInclusive<u16>,
    token: Option<String>,
}

/// An obstacle to measuring: the request, or this server.
enum Unmeasured {
    /// The next server would not help.
    Fatal(Problem),
    /// This server cannot be used.
    Server(Problem),
}

/// Measures the path to a server, or to the nearest fast one of a list. If interrupted, returns
/// the results so far.
///
/// # Errors
/// An invalid field; no server that can be used; no test that succeeded.
pub fn run(
    request: &BaselineRequest,
    on_event: &mut dyn FnMut(BaselineEvent),
    stop: &StopFlag,
) -> Result<BaselineReport, Problem> {
    request.check()?;
    let session = Session { request, stop, begun: (clock::now(), clock::unix_seconds()) };
    let mut report = match &request.server {
        ServerSource::Host { host, ports, token } => {
            let (host, ports, token) = (host.clone(), ports.clone(), token.clone());
            let measured = session.measure(&Server { host, ports, token }, on_event);
            measured.map_err(|unmeasured| match unmeasured {
                Unmeasured::Fatal(problem) | Unmeasured::Server(problem) => problem,
            })?
        }
        ServerSource::List { name, text, rate } => {
            let list = servers::parse(name, text)?;
            let choice = servers::choose(name, &list, request, *rate, on_event, stop)?;
            session.nearest(choice, on_event)?
        }
    };
    if let Some(earlier) = &request.compare {
        match ::baseline::compare(earlier, &report) {
            Ok(comparison) => report.comparison = Some(comparison),
            Err(why) => report.notes.push(format!("not compared: {why}")),
        }
    }
    Ok(report)
}

/// One baseline.
struct Session<'a> {
    request: &'a BaselineRequest,
    stop: &'a StopFlag,
    /// The start, and the same in seconds since 1970.
    begun: (Instant, u64),
}

impl Session<'_> {
    /// Measures to the nearest server of a list that is fast enough and can be used.
    fn nearest(
        &self,
        mut choice: ServerChoice,
        on_event: &mut dyn FnMut(BaselineEvent),
    ) -> Result<BaselineReport, Problem> {
        loop {
            let chosen = choice.servers.iter().find(|server| server.rejected.is_none());
            let Some(chosen) = chosen else { return Err(servers::none_usable(&choice)) };
            let (host, ports) = (chosen.host.clone(), chosen.ports.0..=chosen.ports.1);
            on_event(BaselineEvent::Chosen(chosen.clone()));
            // Servers of a list get no token: their operators are unknown.
            let server = Server { host, ports, token: None };
            match self.measure(&server, on_event) {
                Ok(report) => {
                    return Ok(BaselineReport { choice: Some(choice), ..report });
                }
                Err(Unmeasured::Fatal(problem)) => return Err(problem),
                Err(Unmeasured::Server(problem)) => {
                    let host = server.host;
                    on_event(BaselineEvent::Rejected { host, problem: problem.clone() });
                    self.reject(&mut choice, &problem)?;
                }
            }
        }
    }

    fn reject(&self, choice: &mut ServerChoice, problem: &Problem) -> Result<(), Problem> {
        if self.stop.is_raised() {
            return Err(interrupted("interrupted before the first test ended; run it again"));
        }
        if ::baseline::reject_chosen(choice, &format!("cannot be used: {problem}")) {
            Ok(())
        } else {
            Err(servers::none_usable(choice))
        }
    }

    /// Measures to one server.
    fn measure(
        &self,
        server: &Server,
        on_event: &mut dyn FnMut(BaselineEvent),
    ) -> Result<BaselineReport, Unmeasured> {
        let request = self.request;
        let host = host_checks::Examined::towards(server, request, self.stop, on_event)?;
        let seed = request.seed.unwrap_or_else(random::seed);
        let elapsed = clock::now().saturating_duration_since(self.begun.0);
        let left = request.within.saturating_sub(elapsed);
        let fitting = || rounds::fitting_duration(&host.paths, request.streams, left);
        let asked = rounds::Asked {
            server,
            paths: &host.paths,
            duration: request.duration.map_or_else(fitting, Duration::from_secs_f64),
            within: request.within,
            streams: request.streams,
            seed,
        };
        let measured = Rounds::run(&asked, self.begun.0, on_event, self.stop)?;
        Ok(self.report(server, seed, host, measured))
    }

    fn report(
        &self,
        server: &Server,
        seed: u64,
        host: host_checks::Examined,
        measured: Rounds,
    ) -> BaselineReport {
        let paths = measured.with_failures(host.paths);
        let conditions = measured.summaries();
        let mut notes = measured.notes;
        if self.stop.is_raised() {
            notes.push(format!(
                "interrupted in round {}: only the results up to then are reported",
                measured.rounds
            ));
        }
        let mut report = BaselineReport {
            schema: BASELINE_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s: self.begun.1,
            took_s: clock::now().saturating_duration_since(self.begun.0).as_secs_f64(),
            host: measured.host,
            link_bps: host.link,
            target: server.host.clone(),
            port: *server.ports.start(),
            peer: measured.peer,
            seed,
            within_s: self.request.within.as_secs_f64(),
            duration_s: measured.duration.as_secs_f64(),
            rounds: measured.rounds,
            interrupted: self.stop.is_raised(),
            architecture: self.request.architecture.clone(),
            checks: host.checks,
            differences: ::baseline::differences(&conditions),
            links: ::baseline::links(&conditions, &paths),
            paths,
            conditions,
            steps: Vec::new(),
            comparison: None,
            choice: None,
            notes,
        };
        report.steps = ::baseline::steps(&report);
        report
    }
}

fn interrupted(what: &str) -> Problem {
    Problem::new(Fault::Interrupted, what)
}
