//! The end of a subcommand: its exit code, and a one-line error.

use clap::Command;
use longhaul::{Fault, Field, Problem};
use report::untrusted;
use std::fmt;
use std::sync::OnceLock;

/// Exit code: 0 success, 1 failure, 2 usage error or missing privileges, 3
/// invalid result; `lab run` passes on the exit code of its program.
pub(crate) type Code = i32;

pub(crate) const DONE: Code = 0;
pub(crate) const FAILED: Code = 1;
pub(crate) const USAGE: Code = 2;
pub(crate) const NOT_VALID: Code = 3;
pub(crate) const WORSE: Code = 4;

/// The reason a subcommand failed, as one line for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    line: String,
    /// The wrong word, and the one that was probably meant.
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

    /// Adds a word of the command line and the one that was probably meant.
    pub(crate) fn meaning(self, wrong: &str, meant: Option<impl Into<String>>) -> Self {
        Failure { meant: meant.map(|meant| (wrong.to_owned(), meant.into())), ..self }
    }

    /// The wrong word, and the one that was probably meant.
    pub(crate) fn meant(&self) -> Option<(&str, &str)> {
        self.meant.as_ref().map(|(wrong, meant)| (wrong.as_str(), meant.as_str()))
    }

    /// Replaces an internal file path by a name that the user knows.
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

/// Replaces the fields that a message of a lower crate names by the flags that set them.
pub(crate) fn with_flags(message: &str) -> String {
    longhaul::with_names(message, |field| flag(field).to_owned())
}

/// The long flags of the verb that runs.
static OF_VERB: OnceLock<Vec<String>> = OnceLock::new();

/// Records the verb that runs: some verbs have another name for a field.
pub(crate) fn set_verb(verb: &Command) {
    let longs = verb.get_arguments().filter_map(|argument| {
        Some(argument.get_long_and_visible_aliases()?.into_iter().map(|name| format!("--{name}")))
    });
    // A process runs one verb; tests run several, for which the first flag is used.
    let _ = OF_VERB.set(longs.flatten().collect());
}

/// The flag or the argument that sets a request's field in the current verb.
pub(crate) fn flag(field: Field) -> &'static str {
    let flags = flags(field);
    let has = |flag: &&&str| OF_VERB.get().is_some_and(|all| all.iter().any(|one| one == **flag));
    flags.iter().find(has).or(flags.first()).copied().unwrap_or_default()
}

/// The names of a request's field on the command line.
pub(crate) const fn flags(field: Field) -> &'static [&'static str] {
    match field {
        Field::Allow => &["--allow"],
        Field::AllowCommands => &["--allow-commands"],
        Field::AllowOrigins => &["--allow-origin"],
        Field::AllowSysctls => &["--allow-sysctls"],
        Field::Attempts => &["--attempts"],
        Field::Block => &["--length"],
        Field::Blocks => &["-k"],
        Field::Buffer => &["--buffer"],
        Field::Burst => &["a burst after the rate"],
        Field::Bytes => &["--bytes"],
        Field::Cache => &["--cache"],
        Field::Capture => &["--pcap"],
        Field::Clients => &["--clients"],
        Field::Compare => &["--compare"],
        Field::Compressible => &["--compressible"],
        Field::Congestion => &["--congestion", "--cc"],
        Field::Connection => &["--connection"],
        Field::Connections => &["--connections"],
        Field::Core => &["--affinity"],
        Field::Count => &["--count"],
        Field::Decide => &["--decide"],
        Field::Destinations => &["--dst"],
        Field::Directions => &["--both or --reverse"],
        Field::Reverse => &["--reverse"],
        Field::DirectRate => &["--direct-rate"],
        Field::Drain => &["--drain"],
        Field::Driver => &["--driver"],
        Field::Duration => &["--duration"],
        Field::EdgeRtt => &["--edge-rtt"],
        Field::Environment => &["another environment"],
        Field::Far => &["--far"],
        Field::FarProgram => &["--far-program"],
        Field::Fields => &["--fields"],
        Field::File => &["--file"],
        Field::FileChunk => &["--length"],
        Field::Files => &["FILE"],
        Field::ControlProgram => &["--control"],
        Field::Flows => &["--flow"],
        Field::FlowLabel => &["--flowlabel"],
        Field::Folder => &["another --out"],
        Field::Forward => &["--forward"],
        Field::Fresh => &["--fresh"],
        Field::History => &["--history"],
        Field::Host => &["HOST"],
        Field::HostNames => &["--host-name"],
        Field::IdleTimeout => &["--idle-timeout"],
        Field::Udt => &["--udt"],
        Field::UdtPorts => &["--udt-ports"],
        Field::InLab => &["--in-lab"],
        Field::InitialReceiveWindow => &["--initrwnd"],
        Field::InitialWindow => &["--iw", "--initcwnd"],
        Field::Insecure => &["--insecure"],
        Field::Ipv4Name => &["--ipv4-name"],
        Field::Ipv6Name => &["--ipv6-name"],
        Field::Into => &["--into"],
        Field::Interface => &["IFACE"],
        Field::Interval => &["--interval"],
        Field::KeyFiles => &["--key-file"],
        Field::Lab => &["--lab"],
        Field::Lanes => &["--lanes"],
        Field::Latency => &["--latency-port"],
        Field::Limits => &["another limit"],
        Field::Link => &["--link"],
        Field::Listen => &["--listen"],
        Field::LocalPort => &["--cport"],
        Field::Loss => &["--loss"],
        Field::LossTarget => &["--loss-target"],
        Field::MaxBytesPerRun => &["--max-bytes-per-run"],
        Field::MaxCopies => &["--max-copies"],
        Field::MaxFlows => &["--max-flows"],
        Field::MaxHops => &["--max-hops"],
        Field::MaxMemory => &["--max-memory"],
        Field::MaxPerAddress => &["--max-per-address"],
        Field::MaxSize => &["--max-size"],
        Field::MaxStreams => &["--max-streams"],
        Field::MaxTime => &["--max-time"],
        Field::MaxTotalStreams => &["--max-total-streams"],
        Field::Method => &["another kind of probes"],
        Field::Metrics => &["--metrics"],
        Field::MetricsHosts => &["--metrics-host"],
        Field::Mss => &["--mss"],
        Field::Mtu => &["--mtu"],
        Field::Name => &["--name"],
        Field::Object => &["--object"],
        Field::OmitSeconds => &["--omit"],
        Field::Nat => &["--nat"],
        Field::Origin => &["--origin"],
        Field::Out => &["--out"],
        Field::Output => &["--write", "--out"],
        Field::Packet => &["--packet"],
        Field::Payload => &["--size"],
        Field::Peer => &["--peer"],
        Field::Persist => &["--persist"],
        Field::Pid => &["--pid"],
        Field::Plan => &["another plan"],
        Field::Port => &["--port", "--tcp"],
        Field::Ports => &["--port", "--transparent"],
        Field::PrivateKey => &["--private-key"],
        Field::Programs => &["CMD"],
        Field::Range => &["--range"],
        Field::Rate => &["--rate"],
        Field::Ratio => &["--ratio"],
        Field::Record => &["--record"],
        Field::Repeat => &["--repeat", "--runs"],
        Field::ReportEvery => &["--interval"],
        Field::Ring => &["--ring"],
        Field::Route => &["--route"],
        Field::Root => &["--root"],
        Field::Rto => &["--rto"],
        Field::Rtt => &["--rtt"],
        Field::LanRtt => &["--lan-rtt"],
        Field::LanRate => &["--lan-rate"],
        Field::ProgramWindow => &["--program-window"],
        Field::Sack => &["--sack"],
        Field::SampleEvery => &["another sampling interval"],
        Field::Save => &["--save"],
        Field::Seconds => &["--time", "--seconds"],
        Field::Servers => &["--servers"],
        Field::Settings => &["SETTINGS"],
        Field::Shard => &["--shard"],
        Field::SkipUnsupported => &["--skip-unsupported"],
        Field::Slice => &["--slice"],
        Field::Snaplen => &["--snaplen"],
        Field::Sources => &["SRC"],
        Field::Ssh => &["--ssh"],
        Field::Streams => &["--parallel", "--streams"],
        Field::Sysctls => &["--sysctl"],
        Field::Target => &["--target"],
        Field::Testbed => &["--in"],
        Field::Timeout => &["--timeout"],
        Field::To => &["--to"],
        Field::Web => &["--web"],
        Field::Tls => &["--tls"],
        Field::Token => &["--token"],
        Field::TokenFile => &["--token-file"],
        Field::TokenName => &["--token-name"],
        Field::Tokens => &["--tokens"],
        Field::Train => &["another train"],
        Field::Transport => &["--transport", "--udp"],
        Field::TrustUdp => &["--trust-udp"],
        Field::TrySeconds => &["--try-time"],
        Field::Ttl => &["--ttl"],
        Field::Users => &["--users"],
        Field::Vlan => &["--vlan"],
        Field::Window => &["--window"],
        Field::Within => &["--within"],
        Field::Note => &["--note"],
        Field::Notes => &["--notes"],
        Field::ReceiveTimeout => &["--rcv-timeout"],
        Field::SendTimeout => &["--snd-timeout"],
        Field::ConnectTimeout => &["--connect-timeout"],
        Field::WatchLoad => &["a shorter measurement of the load"],
        Field::Writable => &["--writable"],
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

pub(crate) type Outcome = Result<Code, Failure>;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The flags of a command and of those below it.
    fn long_flags(command: &Command, all: &mut Vec<String>) {
        let longs = command.get_arguments().filter_map(clap::Arg::get_long_and_visible_aliases);
        all.extend(longs.flatten().map(|name| format!("--{name}")));
        command.get_subcommands().for_each(|command| long_flags(command, all));
    }

    #[test]
    fn fields_have_flags_that_exist() {
        let mut all = Vec::new();
        long_flags(&crate::Cli::command(), &mut all);
        for field in Field::ALL {
            assert!(!flags(*field).is_empty(), "{field:?}");
            for word in flags(*field).iter().flat_map(|text| text.split(' ')) {
                let is_flag = word.starts_with("--");
                assert!(!is_flag || all.iter().any(|one| one == word), "{field:?}: {word}");
            }
        }
    }
}
