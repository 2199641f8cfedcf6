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
    #[error("the {what} name '{name}' {wrong}; a name has 1 to 32 characters a-z, 0-9 and -")]
    Name { what: &'static str, name: String, wrong: &'static str },
    #[error("two hosts are named '{name}'; give one of them another name")]
    HostTwice { name: String },
    #[error("two links are named '{name}'; give the second another: name = \"…\"")]
    LinkTwice { name: String },
    #[error("{who}: no host '{host}'; the hosts are {known}")]
    UnknownHost { who: String, host: String, known: String },
    #[error("{who}: no link '{link}'; the links are {known}")]
    UnknownLink { who: String, link: String, known: String },
    #[error("a lab needs two hosts and a link; write [host.alice], [host.bob] and [[link]]")]
    Empty,
    #[error("more than {MAX_HOSTS} hosts and routers, the limit of a lab")]
    TooManyHosts,
    #[error("more than {MAX_LINKS} links, the limit of a lab")]
    TooManyLinks,
    #[error("a link between {ends} hosts; a link connects two: between = [\"alice\", \"bob\"]")]
    Ends { ends: usize },
    #[error("link '{link}' connects {host} to itself; a link connects two hosts")]
    Itself { link: String, host: String },
    #[error("host '{host}': '{text}' is not a valid {wanted}")]
    Address { host: String, text: String, wanted: &'static str },
    #[error("hosts {} and {} have the same address {address}; give each another, or none", .hosts[0], .hosts[1])]
    SameAddress { hosts: [String; 2], address: String },
    #[error("link '{link}': {reason}")]
    Path { link: String, reason: String },
    #[error("the change of link '{link}': {reason}")]
    Change { link: String, reason: String },
    #[error("'{key}' is not a network setting; a lab host has its own net.* settings only")]
    Setting { key: String },
    #[error("'{key}' is not the name of a sysctl, such as net.ipv4.tcp_sack")]
    SettingName { key: String },
    #[error("{key} has a list, expected a string or a number")]
    SettingList { key: String },
    #[error("the value of {key} has more than one line")]
    SettingValue { key: String },
    #[error("'{name}' is not a congestion control; use the kernel's name, such as cubic or bbr")]
    Congestion { name: String },
    #[error("{key}: {wrong}")]
    Time { key: &'static str, wrong: String },
    #[error("'{name}' is not a driver; {known}")]
    Driver { name: String, known: &'static str },
    #[error("the duration is zero; give a longer one, or none")]
    NoTime,
    #[error(
        "'{command}' stops before it starts; stop and start both count from the start of the lab"
    )]
    StopBeforeStart { command: String },
    #[error("{what} is after the end of the lab; raise duration, or lower {what}")]
    AfterTheEnd { what: &'static str },
    #[error("a program without a command; write command = \"iperf3 -s\"")]
    NoCommand,
    #[error("'{word}' is not a value of wait; write wait = \"listening\" or wait = \"no\"")]
    Wait { word: String },
    #[error(
        "'{command}' has both wait and start; the lab can only wait for a program that starts with it: omit one"
    )]
    WaitLater { command: String },
    #[error(
        "the route on {on} to {to}: {via} is neither a neighbour nor a link of {on}; its neighbours are {known}"
    )]
    NoNeighbour { on: String, to: String, via: String, known: String },
    #[error("a route on {on} to itself; a route leads to another host")]
    RouteToItself { on: String },
    #[error("{on} has two routes to {to}; remove one")]
    RouteTwice { on: String, to: String },
    #[error(
        "the route on {on} to {to} goes through {via}, which does not forward; write [router.{via}] instead of [host.{via}]"
    )]
    RouteThroughHost { on: String, to: String, via: String },
    #[error("the routes to {to} form a loop: {routing_loop}; change the one on {on}")]
    RoutingLoop { to: String, routing_loop: String, on: String },
    #[error("no route from {from} to {to}: no link connects {here} to {there}")]
    Disconnected { from: String, to: String, here: String, there: String },
    #[error(
        "no route from {from} to {to}: {through} is between them and does not forward; write [router.{through}] instead of [host.{through}]"
    )]
    ThroughHost { from: String, to: String, through: String },
    #[error("no shape '{0}'; the shapes are pair, dumbbell, chain and star")]
    UnknownShape(String),
    #[error("a {kind} has no key '{key}'; its keys are {known}")]
    NotOfShape { kind: &'static str, key: &'static str, known: &'static str },
    #[error("a {kind} needs '{key}', such as {example}")]
    ShapeNeeds { kind: &'static str, key: &'static str, example: &'static str },
    #[error("{key} = {number}: a {kind} takes {least} to {most}")]
    ShapeSize { kind: &'static str, key: &'static str, number: u64, least: u64, most: u64 },
    #[error("{rtts} round-trip times for {pairs} pairs; give one for all, or one for each")]
    RoundTrips { rtts: usize, pairs: usize },
    #[error(
        "the round-trip time of pair {pair}, {rtt}, is shorter than that of the bottleneck, {least}"
    )]
    ShortRoundTrip { pair: usize, rtt: String, least: String },
    #[error(
        "packets in flight and in queues can take {needed} of memory, more than half of the {available} available; link '{link}' takes {share}: lower its rate, rtt or queue"
    )]
    Memory { needed: ByteCount, available: ByteCount, link: String, share: ByteCount },
}
