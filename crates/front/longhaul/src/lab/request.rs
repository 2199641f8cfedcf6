//! Requests to run a lab: its hosts and links, and the programs in it.

use super::far_end::FarHost;
use super::{arguments, paths};
use crate::{Fault, Field, Problem, input};
use host::sysctl;
use lab::{Job, LabError, Streams};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use topology::plan::{ProgramPlan, Wait};
use topology::{DriverChoice, Plan, Shape};
use units::Rtt;

/// A lab, its programs, and its output files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabRequest {
    /// Its hosts, links and programs.
    pub hosts: LabHosts,
    /// Where output of the programs goes.
    pub output: ProgramOutput,
    /// Environment variables of the programs of a pair, beside those of the calling process.
    pub environment: Vec<(String, String)>,
    /// True if its links are meant to be changed by others while it runs.
    pub changing: bool,
    /// Its name, by which it is found while it runs; by default one that is free.
    pub name: Option<String>,
    /// True to busy-wait on one core, for lower timing error.
    pub accurate: bool,
    /// The packet driver; by default the plan's.
    pub driver: Option<DriverChoice>,
    /// The first part of the run, which its report does not cover; in nanoseconds.
    pub omit: Option<Rtt>,
    /// File for the report on each link (JSON).
    pub report: Option<PathBuf>,
    /// File for a record of each packet (CSV).
    pub packet_log: Option<PathBuf>,
    /// File for the queue lengths over time (CSV).
    pub queue_log: Option<PathBuf>,
    /// Hosts whose packets are captured, each with its file (pcapng).
    pub captures: Vec<(String, PathBuf)>,
}

/// The hosts of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LabHosts {
    /// `client` and `server`, and a path between them.
    Pair(PairRequest),
    /// Those of a plan (TOML), with its programs.
    Plan {
        /// The name of the plan in messages; its stem names the lab, unless the plan does.
        file: String,
        /// The plan.
        text: String,
    },
    /// A built-in topology, without programs: it runs until it is stopped.
    Shape(Shape),
}

/// Two hosts and the path between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PairRequest {
    /// The path: a name (see [`super::named_paths`]), `KEY=VALUE,…` or both.
    pub link: String,
    /// Congestion control of both hosts, by the kernel's name.
    pub congestion: String,
    /// Sysctls of both hosts, below `net.`.
    pub sysctls: Vec<(String, String)>,
    /// True if TCP buffers of both hosts are sized for the path: 4 x (BDP + queue).
    pub tuned: bool,
    /// The far end of the path.
    pub far_end: FarEnd,
    /// Programs, started in this order once the server listens. The lab ends with the last of
    /// them; without any, when it is stopped.
    pub programs: Vec<LabProgram>,
}

/// The far end of the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FarEnd {
    /// A host of the lab.
    Host {
        /// A command line of the shell, started before the programs. They start once it listens.
        server: Option<String>,
    },
    /// This machine, under the name `machine`: its TCP services are relayed.
    Machine,
    /// This machine, which also forwards to its network. Needs root.
    MachineWithNat,
}

/// A program on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabProgram {
    /// The host's name.
    pub host: String,
    /// The program with its arguments.
    #[serde(with = "arguments")]
    pub command: Vec<OsString>,
}

/// Where output of a lab's programs goes. They read nothing, unless they inherit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramOutput {
    /// Into events, line by line. The lab ends with the first program that fails. Programs of a
    /// plan always have this.
    #[default]
    Events,
    /// To standard error of the process that runs the lab.
    StandardError,
    /// To the standard streams of the process that runs the lab. In the helper process of
    /// [`crate::run`], standard input and output are /dev/null.
    Inherited,
}

impl Default for LabHosts {
    fn default() -> Self {
        LabHosts::Pair(PairRequest::default())
    }
}

impl Default for PairRequest {
    /// Two hosts as the system sets them. The path is missing.
    fn default() -> Self {
        PairRequest {
            link: String::new(),
            congestion: "cubic".to_owned(),
            sysctls: Vec::new(),
            tuned: false,
            far_end: FarEnd::Host { server: None },
            programs: Vec::new(),
        }
    }
}

impl LabRequest {
    /// A program with its arguments on `client`, with a path to `server`.
    pub fn new(link: &str, command: impl IntoIterator<Item: Into<OsString>>) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        let programs = vec![LabProgram { host: "client".to_owned(), command }];
        let pair = PairRequest { link: link.to_owned(), programs, ..PairRequest::default() };
        LabRequest { hosts: LabHosts::Pair(pair), ..LabRequest::default() }
    }

    /// A server that is started first, by a command line of the shell.
    #[must_use]
    pub fn with_server(mut self, line: &str) -> Self {
        if let LabHosts::Pair(pair) = &mut self.hosts {
            pair.far_end = FarEnd::Host { server: Some(line.to_owned()) };
        }
        self
    }

    /// Checks the request, for which it reads the files that its paths name.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        self.checked_plan().map(drop)
    }

    /// The plan of a request whose other fields are right as well.
    pub(super) fn checked_plan(&self) -> Result<Plan, Problem> {
        let plan = self.plan()?;
        let programs = match &self.hosts {
            LabHosts::Pair(pair) => pair.programs.as_slice(),
            LabHosts::Plan { .. } | LabHosts::Shape(_) => &[],
        };
        let known = |host: &String| plan.hosts.iter().any(|one| one.name == *host);
        let hosts = programs.iter().map(|program| &program.host);
        if let Some(name) =
            hosts.chain(self.captures.iter().map(|(host, _)| host)).find(|host| !known(host))
        {
            let all: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
            let error = LabError::NoHost { name: name.clone(), known: all.join(", ") };
            return Err(Problem::new(Fault::Request, error));
        }
        if programs.iter().any(|program| program.command.is_empty()) {
            let accepted = "a program and its arguments";
            return Err(Problem::field(Field::Programs, "a program without a name", accepted));
        }
        let wrong = |(name, _): &(String, String)| name.is_empty() || name.contains(['=', '\0']);
        if self.environment.iter().any(wrong) {
            let accepted = "names without '='";
            return Err(Problem::field(Field::Environment, "a variable without a name", accepted));
        }
        Ok(plan)
    }

    /// The plan of its hosts, links and programs.
    ///
    /// # Errors
    /// An error in it.
    pub fn plan(&self) -> Result<Plan, Problem> {
        let wrong = |error| Problem::new(Fault::Request, error);
        match &self.hosts {
            LabHosts::Pair(pair) => pair.plan(),
            LabHosts::Plan { file, text } => {
                Plan::parse(file, text, &mut input::of_a_path).map_err(wrong)
            }
            LabHosts::Shape(shape) => Plan::from_shape(shape, &mut input::of_a_path).map_err(wrong),
        }
    }

    /// The programs to run: of a plan those that it has.
    pub(super) fn jobs(&self, plan: &Plan) -> Vec<Job> {
        match &self.hosts {
            LabHosts::Pair(pair) => pair.jobs(self.output),
            _ => plan.programs.iter().map(|program| planned(plan, program)).collect(),
        }
    }
}

impl PairRequest {
    /// The kind of the far host.
    pub(super) fn far_host(&self) -> FarHost {
        match self.far_end {
            FarEnd::Host { .. } => FarHost::Own,
            FarEnd::Machine => FarHost::Relay,
            FarEnd::MachineWithNat => FarHost::Nat,
        }
    }

    fn plan(&self) -> Result<Plan, Problem> {
        let path = paths::parse_path(&self.link)?;
        for (key, _) in &self.sysctls {
            check_sysctl(key)?;
        }
        let mut plan = Plan::pair(path, &self.congestion, &self.sysctls, self.tuned);
        self.far_host().adapt(&mut plan);
        Ok(plan)
    }

    fn jobs(&self, output: ProgramOutput) -> Vec<Job> {
        let streams = match output {
            ProgramOutput::Events => Streams::Lines,
            ProgramOutput::StandardError => Streams::Errors,
            ProgramOutput::Inherited => Streams::Terminal,
        };
        let server = match &self.far_end {
            FarEnd::Host { server: Some(line) } => Some(Job {
                background: true,
                wait: Wait::UntilListening,
                // A server has no terminal to itself.
                streams: if streams == Streams::Lines { streams } else { Streams::Errors },
                ..shell("server".to_owned(), line)
            }),
            _ => None,
        };
        let programs = self.programs.iter().map(|program| {
            let words: Vec<_> = program.command.iter().map(|word| word.to_string_lossy()).collect();
            let (words, arguments) = (words.join(" "), program.command.clone());
            Job { arguments, streams, ..shell(program.host.clone(), &words) }
        });
        server.into_iter().chain(programs).collect()
    }
}

/// A program of a plan.
fn planned(plan: &Plan, program: &ProgramPlan) -> Job {
    Job {
        background: program.background,
        wait: program.wait,
        start: program.start,
        stop: program.stop,
        ..shell(plan.hosts[program.host].name.clone(), &program.command)
    }
}

/// A command line, which the shell parses; it replaces itself where it is a single program.
fn shell(host: String, line: &str) -> Job {
    Job {
        host,
        arguments: ["/bin/sh", "-c", line].map(OsString::from).into(),
        words: line.to_owned(),
        background: false,
        wait: Wait::No,
        start: Duration::ZERO,
        stop: None,
        streams: Streams::Lines,
    }
}

/// Checks the name of a lab host's sysctl.
///
/// # Errors
/// A name that cannot be one, or one of the whole machine.
pub fn check_sysctl(key: &str) -> Result<(), Problem> {
    let wrong =
        |error: String| Problem::new(Fault::Request, error).with(Field::Sysctls, "net.* settings");
    sysctl::path(key).map_err(|error| wrong(error.to_string()))?;
    if !key.starts_with("net.") {
        return Err(wrong(LabError::Setting { key: key.to_owned() }.to_string()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
