//! What can be wrong with a plan, each in one line that says what to do.

use super::{MAX_HOSTS, MAX_LINKS};
use std::fmt;
use units::ByteCount;

/// What is wrong, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// The file, as it was named by who reads it; `None` for a shape.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Box<Problem>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file} line {line}: {}", self.problem),
            (Some(file), None) => write!(f, "{file}: {}", self.problem),
            (None, _) => self.problem.fmt(f),
        }
    }
}

impl std::error::Error for PlanError {}

/// Something that cannot be in a plan. Names in it are as they were written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum Problem {
    #[error("{0}")]
    Toml(String),
    #[error("the {what} name '{name}' {wrong}; names are 1 to 32 of a to z, 0 to 9 and -")]
    Name { what: &'static str, name: String, wrong: &'static str },
    #[error("two hosts are named '{name}'; give one of them another name")]
    HostTwice { name: String },
    #[error("two links are named '{name}'; give the second a name of its own: name = \"…\"")]
    LinkTwice { name: String },
    #[error("{who}: there is no host '{host}'; the hosts are {known}")]
    UnknownHost { who: String, host: String, known: String },
    #[error("{who}: there is no link '{link}'; the links are {known}")]
    UnknownLink { who: String, link: String, known: String },
    #[error("a lab needs two hosts and a link; write [host.alice], [host.bob] and [[link]]")]
    Empty,
    #[error("more than {MAX_HOSTS} hosts and routers; a lab holds no more")]
    TooManyHosts,
    #[error("more than {MAX_LINKS} links; a lab holds no more")]
    TooManyLinks,
    #[error("a link between {ends} hosts; a link joins two: between = [\"alice\", \"bob\"]")]
    Ends { ends: usize },
    #[error("link '{link}' joins {host} to itself; a link joins two hosts")]
    Itself { link: String, host: String },
    #[error("host '{host}': '{text}' is not the {wanted}")]
    Address { host: String, text: String, wanted: &'static str },
    #[error("hosts {} and {} have the same address {address}; give each its own, or none", .hosts[0], .hosts[1])]
    SameAddress { hosts: [String; 2], address: String },
    #[error("link '{link}': {reason}")]
    Path { link: String, reason: String },
    #[error("the change of link '{link}': {reason}")]
    Change { link: String, reason: String },
    #[error(
        "'{key}' is no network setting; a lab's hosts have their own net.…, all else is the machine's"
    )]
    Setting { key: String },
    #[error("'{key}' cannot be the name of a setting; write it as net.ipv4.tcp_sack")]
    SettingName { key: String },
    #[error("the value of {key} has more than one line")]
    SettingValue { key: String },
    #[error(
        "'{name}' cannot be a congestion control; write its kernel's name, such as cubic or bbr"
    )]
    Congestion { name: String },
    #[error("{key}: {wrong}")]
    Time { key: &'static str, wrong: String },
    #[error("the lab ends before it begins; give a duration above zero, or none")]
    NoTime,
    #[error("'{command}' stops before it starts; stop counts since the lab began, as start does")]
    StopBeforeStart { command: String },
    #[error("the lab's duration is over at the time of {what}; make it longer, or {what} earlier")]
    AfterTheEnd { what: &'static str },
    #[error("a program without a command; write command = \"iperf3 -s\"")]
    NoCommand,
    #[error("'{word}' is nothing to wait for; write wait = \"listening\" or wait = \"no\"")]
    Wait { word: String },
    #[error(
        "'{command}' starts later than the lab, which can wait only for what starts with it; leave out wait, or start"
    )]
    WaitLater { command: String },
    #[error(
        "the route on {on} to {to}: {via} is no neighbour of {on} and no link there; its neighbours are {known}"
    )]
    NoNeighbour { on: String, to: String, via: String, known: String },
    #[error("a route on {on} to itself; a route leads to another host")]
    RouteToItself { on: String },
    #[error("{on} has two routes to {to}; leave one")]
    RouteTwice { on: String, to: String },
    #[error(
        "the route on {on} to {to} goes through {via}, which does not forward; write [router.{via}] instead of [host.{via}]"
    )]
    RouteThroughHost { on: String, to: String, via: String },
    #[error("the routes to {to} lead in a circle: {circle}; change the one on {on}")]
    Circle { to: String, circle: String, on: String },
    #[error("no route from {from} to {to}: no link joins {here} to {there}")]
    Apart { from: String, to: String, here: String, there: String },
    #[error(
        "no route from {from} to {to}: {through} is between them and does not forward; write [router.{through}] instead of [host.{through}]"
    )]
    ThroughHost { from: String, to: String, through: String },
    #[error("there is no shape '{0}'; the shapes are pair, dumbbell, chain and star")]
    UnknownShape(String),
    #[error("a {kind} has no '{key}'; it has {known}")]
    NotOfShape { kind: &'static str, key: &'static str, known: &'static str },
    #[error("a {kind} needs '{key}', such as {example}")]
    ShapeNeeds { kind: &'static str, key: &'static str, example: &'static str },
    #[error("{key} = {number}: a {kind} has {least} to {most} of them")]
    ShapeSize { kind: &'static str, key: &'static str, number: u64, least: u64, most: u64 },
    #[error("{rtts} round trips for {pairs} pairs; give one for all, or one for each")]
    RoundTrips { rtts: usize, pairs: usize },
    #[error("the round trip of pair {pair}, {rtt}, is shorter than the bottleneck's own, {least}")]
    ShortRoundTrip { pair: usize, rtt: String, least: String },
    #[error(
        "packets in flight and in queues can take {needed} of memory, more than half of the {available} that are free; link '{link}' takes {share}: lower rate, rtt or queue"
    )]
    Memory { needed: ByteCount, available: ByteCount, link: String, share: ByteCount },
}
