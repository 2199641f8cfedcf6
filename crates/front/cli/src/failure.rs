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
        Failure::new(USAGE, &error.to_string())
    }

    /// The operation failed.
    pub(crate) fn work(error: impl fmt::Display) -> Self {
        Failure::new(FAILED, &error.to_string())
    }

    fn new(code: Code, line: &str) -> Self {
        Failure { code, line: untrusted::line(&with_flags(line), false), meant: None }
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
            Fault::Input | Fault::Peer | Fault::Interrupted | Fault::Internal => {
                Failure::work(line)
            }
        }
    }
}

/// A message of a crate below, which names fields of requests, with the flags that set them.
pub(crate) fn with_flags(message: &str) -> String {
    longhaul::with_names(message, |field| flag(field).to_owned())
}

/// The flag, or the argument, of a request's field.
pub(crate) const fn flag(field: Field) -> &'static str {
    match field {
        Field::Buffer => "--buffer",
        Field::Connection => "--connection",
        Field::Files => "FILE",
        Field::AllowCommands => "--allow-commands",
        Field::AllowSysctls => "--allow-sysctls",
        Field::Attempts => "--attempts",
        Field::Capture => "--pcap",
        Field::Folder => "another --out",
        Field::Directions => "--both or --reverse",
        Field::Repeat => "--repeat",
        Field::Settings => "SETTINGS",
        Field::Streams => "--streams",
        Field::Environment => "another environment",
        Field::Host => "HOST",
        Field::Interface => "IFACE",
        Field::Interval => "--interval",
        Field::Link => "--link",
        Field::Congestion => "--congestion",
        Field::Driver => "--driver",
        Field::FarProgram => "--far-program",
        Field::Fields => "--fields",
        Field::InLab => "--in-lab",
        Field::InitialWindow => "--iw",
        Field::Lab => "--lab",
        Field::Loss => "--loss",
        Field::MaxHops => "--max-hops",
        Field::MaxMemory => "--max-memory",
        Field::MaxPerAddress => "--max-per-address",
        Field::MaxStreams => "--max-streams",
        Field::MaxTime => "--max-time",
        Field::MaxTotalStreams => "--max-total-streams",
        Field::Method => "another kind of probes",
        Field::Output => "--write",
        Field::Mss => "--mss",
        Field::Name => "--name",
        Field::Nat => "--nat",
        Field::Out => "--out",
        Field::Packet => "--packet",
        Field::Payload => "--size",
        Field::Persist => "--persist",
        Field::Pid => "--pid",
        Field::Port => "--port",
        Field::Plan => "another plan",
        Field::Programs => "CMD",
        Field::Count => "--count",
        Field::Destinations => "--dst",
        Field::IdleTimeout => "--idle-timeout",
        Field::Limits => "another limit",
        Field::MaxCopies => "--max-copies",
        Field::Metrics => "--metrics",
        Field::MetricsHosts => "--metrics-host",
        Field::Ports => "--port",
        Field::PrivateKey => "--private-key",
        Field::Rate => "--rate",
        Field::Root => "--root",
        Field::Rtt => "--rtt",
        Field::Snaplen => "--snaplen",
        Field::Seconds => "--seconds",
        Field::Sysctls => "--sysctl",
        Field::Sources => "SRC",
        Field::Target => "--target",
        Field::Timeout => "--timeout",
        Field::To => "--to",
        Field::Tokens => "--tokens",
        Field::Ttl => "--ttl",
        Field::OmitSeconds => "--omit",
        Field::Bytes => "--bytes",
        Field::Blocks => "-k",
        Field::Window => "--window",
        Field::Block => "--length",
        Field::Burst => "a burst after the rate",
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
        Field::LossTarget => "--loss-target",
        Field::TrySeconds => "--try-time",
        Field::Compare => "--compare",
        Field::Servers => "--servers",
        Field::Duration => "--duration",
        Field::Within => "--within",
        Field::Users => "--users",
        Field::Record => "--record",
        Field::Ring => "--ring",
        Field::Rto => "--rto",
        Field::Sack => "--sack",
        Field::Save => "--save",
        Field::Ssh => "--ssh",
        Field::TokenFile => "--token-file",
        Field::TokenName => "--token-name",
        Field::Transport => "--transport",
        Field::TrustUdp => "--trust-udp",
        Field::Vlan => "--vlan",
        Field::Writable => "--writable",
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

pub(crate) type Outcome = Result<Code, Failure>;
