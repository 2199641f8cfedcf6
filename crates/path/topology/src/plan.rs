//! A plan: hosts, routers, links, programs, and what changes while it runs.
//!
//! ```toml
//! [host.alice]
//! [host.bob]
//! [router.r1]
//!
//! [[link]]
//! between = ["alice", "r1"]
//! path = "rate=1gbit,rtt=20ms"
//!
//! [[link]]
//! between = ["r1", "bob"]
//! path = "rate=100mbit,rtt=40ms"
//!
//! [[run]]
//! on = "bob"
//! command = "iperf3 -s"
//! background = true
//!
//! [[run]]
//! on = "alice"
//! command = "iperf3 -c bob"
//! ```
//!
//! `examples/` has longer ones with every key explained. A plan is checked as
//! a whole before anything is made of it, and what is wrong is told in one
//! line with the line of the file.

mod addresses;
mod build;
mod changes;
mod error;
mod forms;
mod names;
mod programs;
mod source;
mod time;
mod written;

pub use error::{PlanError, Problem};
pub(crate) use names::listed;

use crate::shapes::Shape;
use crate::{DriverChoice, PathSpec, Reader};
use addresses::Family;
use core::net::{Ipv4Addr, Ipv6Addr};
use source::Source;
use std::time::Duration;
use units::ByteCount;
use written::PlanText;

/// Most hosts and routers of a plan: their addresses are given out of
/// 10.0.0.1 to 10.0.0.254.
pub const MAX_HOSTS: usize = 250;

/// Most links of a plan: each takes two devices.
pub const MAX_LINKS: usize = 500;

/// What is asked of a lab. [`Plan::parse`] and [`Plan::from_shape`] give
/// plans that are checked; the indices in them are those of `hosts` and `links`.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// By what a running lab is found.
    pub name: String,
    /// The file it was written in, for what is said about it.
    pub file: Option<String>,
    /// Hosts and routers, in the order in which addresses are given out.
    pub hosts: Vec<HostPlan>,
    /// The links between them.
    pub links: Vec<LinkPlan>,
    /// Ways that are not the shortest.
    pub routes: Vec<RoutePlan>,
    /// What runs on the hosts, as written.
    pub programs: Vec<ProgramPlan>,
    /// What changes while the lab runs, earliest first.
    pub changes: Vec<ChangePlan>,
    /// When the lab ends. `None`: when every program that is not in the
    /// background ended, or when it is told to, where there is none.
    pub duration: Option<Duration>,
    /// What carries the packets, unless who starts the lab says otherwise.
    pub driver: DriverChoice,
}

/// Whether a host forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An end of connections: it takes what is for itself.
    Host,
    /// It also passes on what is for others.
    Router,
}

/// A host or a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlan {
    /// Its name, in the lab's /etc/hosts too.
    pub name: String,
    /// Whether it forwards.
    pub role: Role,
    /// Its IPv4 address, the same on all its devices, with a prefix of 32 bits:
    /// what is behind which device, [`crate::routes`] says.
    pub ipv4: Ipv4Addr,
    /// Its IPv6 address, with a prefix of 128 bits.
    pub ipv6: Ipv6Addr,
    /// Its TCP congestion control, by the kernel's name.
    pub congestion: String,
    /// Its settings, all below `net.`, in the order to be set in.
    pub sysctls: Vec<(String, String)>,
    /// Whether it gets TCP buffers that fill its longest path, before `sysctls`.
    pub tuned: bool,
    /// Its line in the file, from 1.
    pub line: Option<usize>,
}

/// A link between two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkPlan {
    /// Its name: `alice-r1` where it was not given one.
    pub name: String,
    /// The hosts it joins. Upwards is from the first to the second.
    pub ends: [usize; 2],
    /// Rate, delay and everything else, of both directions.
    pub path: PathSpec,
    /// The line of its path in the file, from 1.
    pub line: Option<usize>,
}

/// On one host, a way to another that is not the shortest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoutePlan {
    /// The host whose choice it is.
    pub on: usize,
    /// The host it leads to.
    pub to: usize,
    /// The link to take, one of those at `on`.
    pub link: usize,
    /// Its line in the file, from 1.
    pub line: Option<usize>,
}

/// A program and when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramPlan {
    /// The host it runs on.
    pub host: usize,
    /// A line for the shell.
    pub command: String,
    /// Whether the lab may end while it runs.
    pub background: bool,
    /// Whether the lab's clock waits for it.
    pub wait: Wait,
    /// When it starts, since the lab's clock began.
    pub start: Duration,
    /// When it is told to end (SIGTERM), later than `start`.
    pub stop: Option<Duration>,
    /// The line of its command in the file, from 1.
    pub line: Option<usize>,
}

/// Whether a lab's clock, from which all times count, begins only when a
/// program listens (TCP), or has a socket bound to a port (UDP).
///
/// Programs that are waited for start before all others, at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It does not.
    No,
    /// It waits a moment, and then begins anyway: what a background program
    /// gets unasked, as most of them are servers, and some are `ping`.
    Briefly,
    /// It must listen, or the lab fails.
    UntilListening,
}

/// A link's new settings, from a moment on.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePlan {
    /// When, since the lab's clock began.
    pub at: Duration,
    /// Which link.
    pub link: usize,
    /// What was asked to change: `loss=1%,rate=10mbit`.
    pub set: String,
    /// All settings of the link from then on: what it had before, and `set`.
    pub path: PathSpec,
    /// Its line in the file, from 1.
    pub line: Option<usize>,
}

impl Plan {
    /// Reads and checks a plan. `file` is what it is called in messages; a
    /// plan that does not say its name is called after the file's stem.
    ///
    /// # Errors
    /// [`PlanError`]: what is wrong first, with its line.
    pub fn parse(file: &str, text: &str, read: &mut Reader<'_>) -> Result<Self, PlanError> {
        let source = Source::new(file, text);
        let written = source.read()?;
        build::build(names::of_file(file), &written, &source, read)
    }

    /// A built-in topology, named after its kind.
    ///
    /// # Errors
    /// [`PlanError`], without a line.
    pub fn from_shape(shape: &Shape, read: &mut Reader<'_>) -> Result<Self, PlanError> {
        let name = shape.kind.to_string();
        build::build(name, &PlanText::of_shape(shape), &Source::default(), read)
    }

    /// The paths that link number `link` has in turn: at the start, and after each change.
    pub fn paths_of(&self, link: usize) -> impl Iterator<Item = &PathSpec> {
        let start = self.links.get(link).map(|planned| &planned.path);
        let changes = self.changes.iter().filter(move |change| change.link == link);
        start.into_iter().chain(changes.map(|change| &change.path))
    }

    /// Two hosts, `client` and `server`, and one link named `path`.
    #[must_use]
    pub fn pair(
        path: PathSpec,
        congestion: &str,
        sysctls: &[(String, String)],
        tuned: bool,
    ) -> Self {
        let mut plan = Plan::empty("pair");
        let [client, server] = ["client", "server"].map(|name| plan.add(name, Role::Host));
        plan.join("path", [client, server], path);
        for host in &mut plan.hosts {
            congestion.clone_into(&mut host.congestion);
            (host.sysctls, host.tuned) = (sysctls.to_vec(), tuned);
        }
        plan
    }

    /// Hosts `client1`, `client2`, … and `server1`, `server2`, … at either end of one link named
    /// `path`, to which each has a link of its own without a limit of rate and without delay.
    /// At most [`MAX_HOSTS`] in all, two routers included.
    #[must_use]
    pub fn dumbbell(path: PathSpec, clients: u8, servers: u8) -> Self {
        let mut plan = Plan::empty("dumbbell");
        let access = PathSpec::unlimited(path.mtu());
        let sides = [("client", clients), ("server", servers)];
        let hosts = sides.map(|(name, count)| {
            let hosts = (1..=count).map(|number| plan.add(&format!("{name}{number}"), Role::Host));
            hosts.collect::<Vec<usize>>()
        });
        let routers = ["left", "right"].map(|name| plan.add(name, Role::Router));
        plan.join("path", routers, path);
        for (hosts, router) in hosts.into_iter().zip(routers) {
            for host in hosts {
                let name = format!("{}-{}", plan.hosts[host].name, plan.hosts[router].name);
                let ends = if router == routers[0] { [host, router] } else { [router, host] };
                plan.join(&name, ends, access.clone());
            }
        }
        plan
    }

    fn empty(name: &str) -> Self {
        Plan {
            name: name.to_owned(),
            file: None,
            hosts: Vec::new(),
            links: Vec::new(),
            routes: Vec::new(),
            programs: Vec::new(),
            changes: Vec::new(),
            duration: None,
            driver: DriverChoice::Auto,
        }
    }

    /// Adds a host with the next addresses; its index.
    fn add(&mut self, name: &str, role: Role) -> usize {
        let index = self.hosts.len();
        let number = u8::try_from(index + 1).unwrap_or(u8::MAX);
        self.hosts.push(HostPlan {
            name: name.to_owned(),
            role,
            ipv4: Ipv4Addr::numbered(number),
            ipv6: Ipv6Addr::numbered(number),
            congestion: "cubic".to_owned(),
            sysctls: Vec::new(),
            tuned: false,
            line: None,
        });
        index
    }

    fn join(&mut self, name: &str, ends: [usize; 2], path: PathSpec) {
        self.links.push(LinkPlan { name: name.to_owned(), ends, path, line: None });
    }

    /// Adds a host behind another one, with the other's congestion control and buffers, over a link
    /// of its own, which is named after it.
    pub fn add_behind(&mut self, host: usize, name: &str, path: PathSpec) {
        let added = self.add(name, Role::Host);
        if let Some(of) = self.hosts.get(host).cloned()
            && let Some(added) = self.hosts.get_mut(added)
        {
            (added.congestion, added.tuned) = (of.congestion, of.tuned);
        }
        self.join(name, [host, added], path);
    }

    /// The host of that name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }

    /// The link of that name.
    #[must_use]
    pub fn link(&self, name: &str) -> Option<usize> {
        self.links.iter().position(|link| link.name == name)
    }

    /// The links at a host, in the order of its devices.
    pub fn links_at(&self, host: usize) -> impl Iterator<Item = usize> {
        let at = move |(link, plan): (usize, &LinkPlan)| plan.ends.contains(&host).then_some(link);
        self.links.iter().enumerate().filter_map(at)
    }

    /// The host at the other end of a link.
    #[must_use]
    pub fn far_end(&self, host: usize, link: usize) -> &HostPlan {
        &self.hosts[self.far(host, link)]
    }

    pub(crate) fn far(&self, host: usize, link: usize) -> usize {
        let [first, second] = self.links[link].ends;
        if first == host { second } else { first }
    }

    /// The name of a host's device at one of its links: the first is `lab0`.
    #[must_use]
    pub fn device(&self, host: usize, link: usize) -> String {
        format!("lab{}", self.links_at(host).take_while(|at| *at < link).count())
    }

    /// Memory that packets on the wires and in the queues can take, all links
    /// together, each with the settings that take most.
    #[must_use]
    pub fn memory(&self) -> ByteCount {
        let links = (0..self.links.len()).map(|link| self.memory_of(link));
        links.fold(ByteCount::ZERO, ByteCount::plus)
    }

    fn memory_of(&self, link: usize) -> ByteCount {
        let changed = self.changes.iter().filter(|change| change.link == link);
        let states = changed.map(|change| change.path.memory());
        states.fold(self.links[link].path.memory(), ByteCount::max)
    }

    /// Whether `available` memory is enough for [`Plan::memory`]. Small packets
    /// take more memory than they have bytes, and hosts need as much again for
    /// their sockets: half of what is free is the most for the wires.
    ///
    /// # Errors
    /// [`Problem::Memory`], at the line of the link that takes most.
    pub fn check_memory(&self, available: ByteCount) -> Result<(), PlanError> {
        let needed = self.memory();
        if needed <= ByteCount::from_bytes(available.bytes() / 2) {
            return Ok(());
        }
        // Of equals the first, which is where a reader begins.
        let most = (0..self.links.len()).rev().max_by_key(|link| self.memory_of(*link));
        let link = most.map_or_else(String::new, |link| self.links[link].name.clone());
        let share = most.map_or(ByteCount::ZERO, |link| self.memory_of(link));
        Err(PlanError {
            file: self.file.clone(),
            line: most.and_then(|link| self.links[link].line),
            problem: Box::new(Problem::Memory { needed, available, link, share }),
        })
    }
}
