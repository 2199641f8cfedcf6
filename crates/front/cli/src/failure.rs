//! How a subcommand ends: its exit code, and a one-line error.

use longhaul::{Fault, Field, Problem};
use report::untrusted;
use std::fmt;

/// Exit code: 0 success, 1 failure, 2 usage error or missing privileges, 3
/// invalid result; `lab run` passes on the exit code of its program.
pub(crate) type Code = i32;

pub(crate) const DONE: Code = 0;
pub(crate) const FAILED: Code = 1;
pub(crate) const USAGE: Code = 2;
pub(crate) const NOT_VALID: Code = 3;
pub(crate) const WORSE: Code = 4;

/// Why a subcommand failed: one line for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    line: String,
    /// The word that is wrong, and the one that was probably meant.
    meant: Option<(String, String)>,
}

impl Failure {
    /// The command line or the system's configuration is wrong.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Failure { code: USAGE, line: untrusted::line(&error.to_string(), false), meant: None }
    }

    /// The operation failed.
    pub(crate) fn work(error: impl fmt::Display) -> Self {
        Failure { code: FAILED, line: untrusted::line(&error.to_string(), false), meant: None }
    }

    /// The same, with a word of the command line and the one that was probably meant.
    pub(crate) fn meaning(self, wrong: &str, meant: Option<impl Into<String>>) -> Self {
        Failure { meant: meant.map(|meant| (wrong.to_owned(), meant.into())), ..self }
    }

    /// The wrong word, and the one that was probably meant.
    pub(crate) fn meant(&self) -> Option<(&str, &str)> {
        self.meant.as_ref().map(|(wrong, meant)| (wrong.as_str(), meant.as_str()))
    }

    /// The same, where a file's path is a detail of ours, by a name that the user knows.
    pub(crate) fn with_name(self, path: &str, name: &str) -> Self {
        Failure { line: self.line.replace(path, name), ..self }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let line = problem.line(|field| flag(field).to_owned());
        match problem.fault {
            Fault::Request | Fault::Host => Failure::usage(line),
            Fault::Peer | Fault::Interrupted | Fault::Internal => Failure::work(line),
        }
    }
}

/// The flag, or the argument, of a request's field.
pub(crate) const fn flag(field: Field) -> &'static str {
    match field {
        Field::Host => "HOST",
        Field::Interval => "--interval",
        Field::MaxHops => "--max-hops",
        Field::Method => "another kind of probes",
        Field::Payload => "--size",
        Field::Port => "--port",
        Field::Rate => "--rate",
        Field::Rtt => "--rtt",
        Field::Timeout => "--timeout",
        Field::Ttl => "--ttl",
        Field::Ports => "--port",
        Field::Seconds => "--time",
        Field::OmitSeconds => "--omit",
        Field::Bytes => "--bytes",
        Field::Blocks => "-k",
        Field::Streams => "--parallel",
        Field::Window => "--window",
        Field::Block => "--length",
        Field::Burst => "a burst after the rate",
        Field::Congestion => "--congestion",
        Field::Mss => "--mss",
        Field::FlowLabel => "--flowlabel",
        Field::Train => "another train",
        Field::LocalPort => "--cport",
        Field::Core => "--affinity",
        Field::File => "--file",
        Field::FileChunk => "--length",
        Field::SampleEvery => "another sampling interval",
        Field::ReportEvery => "--interval",
        Field::Protocol => "--udp",
        Field::Latency => "--latency-port",
        Field::Decide => "--decide",
        Field::Repeat => "--repeat",
        Field::LossTarget => "--loss-target",
        Field::TrySeconds => "--try-time",
        Field::Compare => "--compare",
        Field::Servers => "--servers",
        Field::Duration => "--duration",
        Field::Within => "--within",
        Field::ReceiveTimeout => "--rcv-timeout",
        Field::SendTimeout => "--snd-timeout",
        Field::ConnectTimeout => "--connect-timeout",
        Field::WatchLoad => "a shorter measurement of the load",
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

pub(crate) type Outcome = Result<Code, Failure>;
