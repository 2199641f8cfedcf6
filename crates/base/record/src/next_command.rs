//! The command to run next: what a finding or a step ends with.

use crate::{Direction, EndCondition, Protocol, RemedyCommand, TestSpec, shell::command_line};
use serde::{Deserialize, Serialize};
use std::fmt;
use units::{BitRate, Rtt};

/// longhaul's port, and iperf3's.
const DEFAULT_PORT: u16 = 5201;

/// Streams at most, as the command line takes them.
const MAX_STREAMS: u32 = 128;

/// Seconds of a test without `-t`.
const DEFAULT_S: f64 = 10.0;

/// Seconds of a test at most, as far as one is proposed.
const MAX_S: f64 = 3600.0;

/// Stands for a host that nothing names.
const ANY_HOST: &str = "HOST";

/// The file of a capture that is proposed.
const CAPTURE_FILE: &str = "sender.pcapng";

/// The place where a command runs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandHost {
    /// The host that measured or reads the result.
    #[default]
    Here,
    /// The sender of the data.
    Sender,
    /// The receiver of the data.
    Receiver,
}

/// The command to run next.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextCommand {
    /// The command line for a POSIX shell; names from elsewhere are quoted.
    pub command: String,
    /// Where to run it.
    pub on: CommandHost,
    /// What it shows or changes: a clause without a full stop.
    pub why: String,
}

impl NextCommand {
    /// Where to run it, unless it is here, and what it does.
    #[must_use]
    pub fn remark(&self) -> String {
        match self.on {
            CommandHost::Here => self.why.clone(),
            CommandHost::Sender => format!("on the sender: {}", self.why),
            CommandHost::Receiver => format!("on the receiver: {}", self.why),
        }
    }
}

impl fmt::Display for NextCommand {
    /// As one line to paste into a POSIX shell, with the place as a comment unless it is here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command)?;
        match self.on {
            CommandHost::Here => Ok(()),
            CommandHost::Sender => f.write_str("   # on the sender"),
            CommandHost::Receiver => f.write_str("   # on the receiver"),
        }
    }
}

/// What a test shows besides the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlsoShows {
    /// Nothing.
    Nothing,
    /// The cause among likely ones, by a second test (`--decide`).
    Cause,
    /// The RTT under load (`--latency`).
    Latency,
    /// Its packets (`--pcap`).
    Packets,
}

/// What longhaul can be asked to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// `test`, as a spec requests it.
    Test(Box<TestSpec>, AlsoShows),
    /// `test --find-rate`: the highest rate of datagrams without loss.
    FindRate(Box<TestSpec>),
    /// `tune plan`.
    TunePlan {
        /// Rate of all streams together.
        rate: BitRate,
        /// RTT without queueing delay.
        rtt: Rtt,
        /// Streams that share the rate.
        streams: u32,
    },
    /// `doctor --rate --rtt`: the host's settings, CPUs and device.
    CheckHost {
        /// Rate of all streams together.
        rate: BitRate,
        /// RTT without queueing delay.
        rtt: Rtt,
    },
    /// `doctor --to`: the host, and the path's RTT, MTU and options.
    CheckPath {
        /// The far end.
        host: String,
        /// An open TCP port there; 0 for the default.
        port: u16,
    },
    /// `trace`: loss and RTT of each hop.
    Trace {
        /// The far end.
        host: String,
        /// IPv4 (`-4`) or IPv6 (`-6`) alone.
        family: Option<&'static str>,
    },
    /// `ping`: whether and when the far end answers.
    Ping(String),
    /// `baseline`.
    Baseline {
        /// The far end.
        host: String,
        /// The port of its server; 0 for the default.
        port: u16,
    },
    /// A command that a remedy has in full, such as `boost plan`.
    Remedy(RemedyCommand),
    /// `watch`: the running connections, with their programs.
    Watch,
    /// `capture`: the headers of one connection's packets.
    Capture {
        /// Its far end.
        host: String,
        /// The port there; 0 if unknown.
        port: u16,
    },
}

impl Action {
    /// Its command line.
    #[must_use]
    pub fn command(&self) -> String {
        command_line(self.words())
    }

    /// Its command line in a lab of this path, in the syntax of `--link`, if it needs the path.
    #[must_use]
    pub fn command_in_lab(&self, link: &str) -> String {
        let needs_path = !matches!(
            self,
            Action::TunePlan { .. } | Action::CheckHost { .. } | Action::Watch | Action::Remedy(_)
        );
        if !needs_path {
            return self.command();
        }
        let needs_no_server = matches!(self, Action::Trace { .. } | Action::Ping(_));
        let server: &[&str] = if needs_no_server { &[] } else { &["--server", "longhaul server"] };
        let lab = ["longhaul", "lab", "run", "--link", link].into_iter();
        let words = self.words().into_iter().filter(|word| word != "sudo");
        let lab = lab.chain(server.iter().copied()).chain(["--"]).map(str::to_owned);
        command_line(lab.chain(words))
    }

    /// The words of its command line, unquoted.
    fn words(&self) -> Vec<String> {
        match self {
            Action::Test(spec, also) => test(spec, *also),
            Action::FindRate(spec) => find_rate(spec),
            Action::TunePlan { rate, rtt, streams } => {
                let mut words = with("tune plan", &path_flags(*rate, *rtt));
                if *streams > 1 {
                    words.extend(["-P".to_owned(), streams.min(&65_535).to_string()]);
                }
                words
            }
            Action::CheckHost { rate, rtt } => with("doctor", &path_flags(*rate, *rtt)),
            Action::CheckPath { host, port } => {
                // A name that looks like a flag is the value of one.
                let mut words = with("doctor", &[format!("--to={}", named(host))]);
                if let [_, number] = port_flag(*port).as_slice() {
                    words.extend(["--port".to_owned(), number.clone()]);
                }
                words
            }
            Action::Trace { host, family } => {
                to_host("trace", host, &Vec::from_iter(family.map(str::to_owned)))
            }
            Action::Ping(host) => to_host("ping", host, &[]),
            Action::Baseline { host, port } => to_host("baseline", host, &port_flag(*port)),
            Action::Remedy(command) => command.to_string().split(' ').map(str::to_owned).collect(),
            Action::Watch => with("watch", &[]),
            Action::Capture { host, port } => {
                let mut words = vec!["sudo".to_owned()];
                words.extend(with(
                    "capture any",
                    &["-w", CAPTURE_FILE, "-t", "60"].map(str::to_owned),
                ));
                words.extend(["host".to_owned(), named(host)]);
                if *port != 0 {
                    words.extend(["and", "tcp", "port"].map(str::to_owned));
                    words.push(port.to_string());
                }
                words
            }
        }
    }
}

fn named(host: &str) -> String {
    if host.is_empty() { ANY_HOST.to_owned() } else { host.to_owned() }
}

fn with(verb: &str, flags: &[String]) -> Vec<String> {
    let verb = verb.split(' ').map(str::to_owned);
    std::iter::once("longhaul".to_owned()).chain(verb).chain(flags.iter().cloned()).collect()
}

/// The verb, the host and the flags; a name that looks like a flag comes last, after `--`.
fn to_host(verb: &str, host: &str, flags: &[String]) -> Vec<String> {
    let host = named(host);
    let mut words = with(verb, &[]);
    if host.starts_with('-') {
        words.extend(flags.iter().cloned());
        words.extend(["--".to_owned(), host]);
    } else {
        words.push(host);
        words.extend(flags.iter().cloned());
    }
    words
}

fn port_flag(port: u16) -> Vec<String> {
    if port == 0 || port == DEFAULT_PORT {
        return Vec::new();
    }
    vec!["-p".to_owned(), port.to_string()]
}

/// The flags of a path, `--rate 94.1mbit --rtt 173ms`, to three digits.
#[must_use]
pub fn path_flags(rate: BitRate, rtt: Rtt) -> Vec<String> {
    let word = |text: String| {
        let text = text.replace(' ', "").replace('µ', "u").to_lowercase();
        text.strip_suffix("bit/s").map(|rate| format!("{rate}bit")).unwrap_or(text)
    };
    let (rate, rtt) = (rate.min(BitRate::MAX), rtt.min(Rtt::MAX));
    let [rate, rtt] = [word(rate.to_string()), word(rtt.to_string())];
    vec!["--rate".to_owned(), rate, "--rtt".to_owned(), rtt]
}

fn test(spec: &TestSpec, also: AlsoShows) -> Vec<String> {
    let mut words = port_flag(spec.port);
    let direction = match spec.direction {
        Direction::Forward => None,
        Direction::Reverse => Some("-R"),
        Direction::Both => Some("--bidir"),
    };
    words.extend(direction.map(str::to_owned));
    let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if spec.streams > 1 {
        flag("-P", spec.streams.min(MAX_STREAMS).to_string());
    }
    if let Some(window) = spec.window_bytes.filter(|window| window.bytes() > 0) {
        flag("-w", size(window.bytes()));
    }
    if let Some(rate) = spec.rate_bps.filter(|rate| rate.bps() > 0 && *rate <= BitRate::MAX) {
        flag("-b", format!("{}kbit", rate.bps().div_ceil(1000)));
    }
    // A name that looks like a flag is none of a congestion control.
    if let Some(congestion) = spec.congestion.as_ref().filter(|name| !name.starts_with('-')) {
        flag("-C", congestion.clone());
    }
    if spec.end == EndCondition::Time && spec.seconds.round() > DEFAULT_S {
        flag("-t", format!("{:.0}", spec.seconds.min(MAX_S)));
    }
    let native = spec.native.then_some("--native");
    let protocol = match spec.protocol {
        Protocol::Tcp => [None, None],
        Protocol::Udp => [Some("-u"), None],
        Protocol::Udt => [Some("--udt"), native],
    };
    // The second test needs one direction, and losses that a sender sees.
    let cannot_decide = spec.protocol == Protocol::Udp || spec.direction == Direction::Both;
    let also: &[&str] = match also {
        AlsoShows::Nothing => &[],
        AlsoShows::Cause if !cannot_decide => &["--decide"],
        AlsoShows::Cause | AlsoShows::Latency => &["--latency"],
        AlsoShows::Packets => &["--pcap", CAPTURE_FILE],
    };
    words.extend(protocol.into_iter().flatten().chain(also.iter().copied()).map(str::to_owned));
    let sudo = also.contains(&"--pcap").then(|| "sudo".to_owned());
    sudo.into_iter().chain(to_host("test", &spec.target, &words)).collect()
}

/// A size as `-w` takes it.
fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) {
        format!("{}M", bytes >> 20)
    } else if bytes.is_multiple_of(1 << 10) {
        format!("{}K", bytes >> 10)
    } else {
        bytes.to_string()
    }
}

fn find_rate(spec: &TestSpec) -> Vec<String> {
    let reverse = (spec.direction == Direction::Reverse).then(|| "-R".to_owned());
    let flags: Vec<String> =
        port_flag(spec.port).into_iter().chain(reverse).chain(["--find-rate".to_owned()]).collect();
    to_host("test", &spec.target, &flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::ByteCount;

    fn spec(target: &str) -> TestSpec {
        TestSpec { target: target.to_owned(), port: 5201, streams: 1, ..TestSpec::default() }
    }

    fn decide(spec: TestSpec) -> String {
        Action::Test(Box::new(spec), AlsoShows::Cause).command()
    }

    #[test]
    fn what_was_asked_for_is_asked_for_again() {
        let all = TestSpec {
            port: 5202,
            direction: Direction::Reverse,
            streams: 4,
            seconds: 30.0,
            window_bytes: Some(ByteCount::from_bytes(65_536)),
            rate_bps: Some(BitRate::from_bps(20_000_000)),
            ..spec("server")
        };
        assert_eq!(
            decide(all),
            "longhaul test server -p 5202 -R -P 4 -w 64K -b 20000kbit -t 30 --decide"
        );
        assert_eq!(decide(spec("")), "longhaul test HOST --decide");
        let udp = TestSpec { protocol: Protocol::Udp, ..spec("h") };
        assert_eq!(decide(udp), "longhaul test h -u --latency");
    }

    #[test]
    fn names_are_quoted_and_are_no_flags() {
        assert_eq!(decide(spec("x; rm -rf ~")), "longhaul test 'x; rm -rf ~' --decide");
        assert_eq!(decide(spec("--json")), "longhaul test --decide -- --json");
        let path = Action::CheckPath { host: "-x".to_owned(), port: 80 };
        assert_eq!(path.command(), "longhaul doctor --to=-x --port 80");
    }

    #[test]
    fn a_lab_s_command_starts_the_lab() {
        let link = "rate=1gbit,rtt=50ms";
        let trace = Action::Trace { host: "server".to_owned(), family: None };
        assert_eq!(
            trace.command_in_lab(link),
            "longhaul lab run --link rate=1gbit,rtt=50ms -- longhaul trace server"
        );
        let packets = Action::Test(Box::new(spec("server")), AlsoShows::Packets);
        assert_eq!(packets.command(), "sudo longhaul test server --pcap sender.pcapng");
        assert_eq!(
            packets.command_in_lab(link),
            "longhaul lab run --link rate=1gbit,rtt=50ms --server 'longhaul server' -- \
             longhaul test server --pcap sender.pcapng"
        );
        let (rate, rtt) = (BitRate::from_bps(94_100_000), Rtt::from_micros(12_500));
        let plan = Action::TunePlan { rate, rtt, streams: 1 };
        assert_eq!(plan.command_in_lab(link), "longhaul tune plan --rate 94.1mbit --rtt 12.5ms");
    }
}
