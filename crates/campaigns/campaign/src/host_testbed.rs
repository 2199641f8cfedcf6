//! Real hosts: agents at each, which begin together.
//!
//! Each host's clock is compared with the one here before every run, over the connection that
//! carries the requests; a flow's time is told to its host in that host's own clock. Sysctls are
//! set by each agent with a journal of their previous values, and reverted after the run.

mod flows;

use crate::captures::CaptureFile;
use crate::testbed::{Attempt, AttemptError, Testbed};
use crate::window_share;
use flows::{Planned, RanFlow};
use host::clock;
use host::lock::lock;
use perf::StopFlag;
use record::StudyHost;
use remote::protocol::{Secret, SysctlRequest};
use remote::{Agent, Launcher, RemoteError};
use std::collections::BTreeMap;
use std::io;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use study::{CellRun, Part, RealHosts, RemoteHost, Servers, Side, Test};
use units::ByteCount;

/// How the hosts of a study are reached.
#[derive(Clone)]
pub struct HostAccess {
    /// The ssh command, with its own options.
    pub ssh: Vec<String>,
    /// longhaul at the other hosts.
    pub far_program: String,
    /// longhaul at this host.
    pub own_program: PathBuf,
    /// For a server that runs already and requires one.
    pub token: Option<String>,
}

/// Exchanges of the time when an agent has been started, and before each run.
const FIRST_EXCHANGES: u32 = 10;
const EXCHANGES: u32 = 3;

/// Runs without a result, one after the other, after which the study stops.
const MAX_FAILED: u32 = 3;

/// How long a wait before another attempt is: a host may be starting.
const SETTLE: Duration = Duration::from_secs(3);

/// The hosts of a study.
pub(crate) struct HostTestbed<'a> {
    hosts: &'a RealHosts,
    access: &'a HostAccess,
    origin: Instant,
    /// `None` after an error: they are started again.
    agents: Mutex<Option<Agents>>,
    facts: Vec<StudyHost>,
    /// By what a window is multiplied for the buffer that leads to it, for each server.
    buffers: Mutex<BTreeMap<usize, f64>>,
    /// Runs without a result since the last one with a result; the first one counts as all.
    failed: Mutex<u32>,
}

/// Agents that are running.
struct Agents {
    clients: Vec<Agent>,
    servers: Vec<Agent>,
    /// Where each server is reached: its address and port.
    addresses: Vec<(String, u16)>,
    /// What the servers require.
    token: Option<Secret>,
}

impl<'a> HostTestbed<'a> {
    /// Starts an agent at each host.
    pub(crate) fn connect(
        hosts: &'a RealHosts,
        access: &'a HostAccess,
        stop: &StopFlag,
    ) -> Result<Self, AttemptError> {
        let origin = clock::now();
        let agents = Agents::start(hosts, access, origin, stop)?;
        let facts = agents.facts(hosts);
        Ok(HostTestbed {
            hosts,
            access,
            origin,
            agents: Mutex::new(Some(agents)),
            facts,
            buffers: Mutex::default(),
            failed: Mutex::new(MAX_FAILED),
        })
    }

    /// The hosts, as they were when the agents were started.
    pub(crate) fn facts(&self) -> Vec<StudyHost> {
        self.facts.clone()
    }

    /// The socket buffer for a window at a server: the kernel doubles it and advertises a share.
    fn buffer(&self, server: usize, window: ByteCount) -> ByteCount {
        let factor = lock(&self.buffers).get(&server).copied().unwrap_or(1.0);
        ByteCount::from_f64(window.as_f64() * factor)
    }

    /// What is wrong with the windows that the servers advertised, each server once; the next
    /// attempt has other buffers.
    fn window_complaints(&self, test: &Test, flows: &[RanFlow]) -> Vec<String> {
        let Some(window) = test.window else { return Vec::new() };
        let mut wrong: BTreeMap<usize, (u64, String)> = BTreeMap::new();
        for flow in flows {
            let streams = &flow.measured.1.streams;
            if let Some(advertised) = window_share::advertised(streams)
                && let Some(complaint) = window_share::complaint(window, advertised, streams)
            {
                wrong.entry(flow.server).or_insert((advertised, complaint));
            }
        }
        let mut buffers = lock(&self.buffers);
        let complaints = wrong.into_iter().map(|(server, (advertised, complaint))| {
            let factor = buffers.entry(server).or_insert(1.0);
            *factor = (*factor * window.as_f64() / (advertised as f64).max(1.0)).clamp(0.1, 10.0);
            if advertised < window.bytes() {
                format!("{complaint}; its net.core.rmem_max limits the buffer")
            } else {
                complaint
            }
        });
        complaints.collect()
    }
}

impl Testbed for HostTestbed<'_> {
    fn capture(&self, _: &Part, _: CellRun, _: u32) -> io::Result<Option<CaptureFile>> {
        Ok(None)
    }

    fn attempt(
        &self,
        test: &Test,
        _: u64,
        _: Option<CaptureFile>,
        stop: &StopFlag,
    ) -> Result<Attempt, AttemptError> {
        let mut kept = lock(&self.agents);
        // After an error they are gone.
        let mut agents = match kept.take() {
            Some(agents) => agents,
            None => Agents::start(self.hosts, self.access, self.origin, stop)?,
        };
        agents.compare_clocks(EXCHANGES, stop)?;
        agents.tune(test, stop)?;
        let planned = Planned::all(test, self.origin, agents.lead(), |server, window| {
            self.buffer(server, window)
        });
        let ran = flows::run(&planned, &mut agents, test, stop);
        let left = agents.revert(test, stop);
        let ran = ran?;
        let mut reasons = left?;
        *kept = Some(agents);
        drop(kept);
        reasons.extend(self.window_complaints(test, &ran.flows));
        Ok(Attempt {
            reasons,
            disturbed: false,
            took: ran.took,
            start_skew: ran.start_skew,
            flows: ran.flows.into_iter().map(|flow| flow.measured).collect(),
        })
    }

    /// Two tests would share a path.
    fn at_once(&self, _: u32) -> u32 {
        1
    }

    fn settle(&self, stop: &StopFlag) {
        let until = clock::now() + SETTLE;
        while clock::now() < until && !stop.is_raised() {
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A host that is down fails every run: they would all be stored as failed.
    fn goes_on(&self, has_result: bool) -> bool {
        let mut failed = lock(&self.failed);
        *failed = if has_result { 0 } else { failed.saturating_add(1) };
        *failed < MAX_FAILED
    }
}

impl Agents {
    fn start(
        hosts: &RealHosts,
        access: &HostAccess,
        origin: Instant,
        stop: &StopFlag,
    ) -> Result<Self, AttemptError> {
        let over_ssh = |host: &RemoteHost| Launcher::Ssh {
            ssh: access.ssh.clone(),
            host: host.ssh.clone(),
            program: access.far_program.clone(),
        };
        let here = || vec![Launcher::Here { program: access.own_program.clone() }];
        let clients: Vec<Launcher> = hosts.clients.iter().map(over_ssh).collect();
        let clients = if clients.is_empty() { here() } else { clients };
        // One after the other: ssh may ask for a password.
        let start = |launcher: &Launcher| {
            let mut agent = Agent::start(launcher, origin, stop)?;
            agent.compare_clocks(FIRST_EXCHANGES, stop)?;
            Ok::<_, RemoteError>(agent)
        };
        let clients = clients.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let started = match &hosts.servers {
            Servers::Running { address, port } => {
                let addresses = vec![(address.clone(), *port)];
                let token = access.token.clone().map(Secret);
                return Ok(Agents { clients, servers: Vec::new(), addresses, token });
            }
            Servers::Started(servers) => servers,
        };
        let token = Secret(new_token().map_err(AttemptError::Token)?);
        let (mut servers, mut addresses) = (Vec::new(), Vec::new());
        for host in started {
            let mut agent = start(&over_ssh(host))?;
            let (port, _) = agent.serve(token.clone(), stop)?;
            addresses.push((address(host, &agent), port));
            servers.push(agent);
        }
        Ok(Agents { clients, servers, addresses, token: Some(token) })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Agent> {
        self.clients.iter_mut().chain(&mut self.servers)
    }

    fn compare_clocks(&mut self, count: u32, stop: &StopFlag) -> Result<(), RemoteError> {
        self.all().try_for_each(|agent| agent.compare_clocks(count, stop))
    }

    /// How far ahead a run's beginning is, so that each agent knows of it before.
    fn lead(&self) -> Duration {
        const MIN: Duration = Duration::from_millis(200);
        let uncertain = self.clients.iter().filter_map(Agent::offset);
        // Half a round trip: a request may take several times that, as when a packet is lost.
        let half = uncertain.map(|offset| offset.uncertainty_ns).max().unwrap_or(0);
        MIN + Duration::from_nanos(half).saturating_mul(8).min(Duration::from_secs(10))
    }

    /// Sets what the test asks for on each side.
    fn tune(&mut self, test: &Test, stop: &StopFlag) -> Result<(), RemoteError> {
        if test.sysctls.is_empty() {
            return Ok(());
        }
        let of_side = |side: Side| -> Vec<SysctlRequest> {
            let own = test.sysctls.iter().filter(|one| one.side == Side::Both || one.side == side);
            let request = |one: &study::Sysctl| SysctlRequest {
                key: one.name.clone(),
                value: one.value.clone(),
                optional: one.optional,
            };
            own.map(request).collect()
        };
        for (agents, side) in
            [(&mut self.clients, Side::Clients), (&mut self.servers, Side::Servers)]
        {
            for agent in agents {
                agent.tune(of_side(side), stop)?;
            }
        }
        Ok(())
    }

    /// Reverts it; what is left.
    fn revert(&mut self, test: &Test, stop: &StopFlag) -> Result<Vec<String>, RemoteError> {
        let mut all = Vec::new();
        if test.sysctls.is_empty() {
            return Ok(all);
        }
        for agent in self.all() {
            let left = agent.revert(stop)?;
            all.extend(left.into_iter().map(|one| format!("{}: {one}", agent.host())));
        }
        Ok(all)
    }

    fn facts(&self, hosts: &RealHosts) -> Vec<StudyHost> {
        let clients = hosts.client_names().into_iter().map(|name| (name, "client"));
        let clients = clients.zip(self.clients.iter().map(Some));
        let servers = hosts.server_names().into_iter().map(|name| (name, "server"));
        let agents = self.servers.iter().map(Some).chain(std::iter::repeat(None));
        clients
            .chain(servers.zip(agents))
            .map(|((name, role), agent)| facts(name, role, agent))
            .collect()
    }
}

fn facts(name: String, role: &str, agent: Option<&Agent>) -> StudyHost {
    let hello = agent.map(Agent::hello);
    let wall = agent.and_then(Agent::wall_offset_s);
    StudyHost {
        name,
        role: role.to_owned(),
        version: hello.map(|hello| hello.longhaul.clone()),
        kernel: hello.map(|hello| hello.host.kernel.clone()),
        cores: hello.map(|hello| hello.host.cores),
        clock_offset_ms: wall.map(|(ahead, _)| ahead * 1e3),
        clock_uncertainty_ms: wall.map(|(_, uncertainty)| uncertainty * 1e3),
    }
}

/// Where clients reach a server: as the plan says; else by the name that ssh is given, or, if only
/// ssh knows that, at the address where ssh reached it.
fn address(host: &RemoteHost, agent: &Agent) -> String {
    if let Some(address) = &host.address {
        return address.clone();
    }
    let name = host.ssh.rsplit('@').next().unwrap_or(&host.ssh);
    let is_known = (name, 0).to_socket_addrs().is_ok_and(|mut all| all.next().is_some());
    let reached = || {
        let address = agent.hello().address.as_deref()?;
        address.parse::<std::net::IpAddr>().ok().map(|address| address.to_string())
    };
    if is_known { name.to_owned() } else { reached().unwrap_or_else(|| name.to_owned()) }
}

/// What the servers of one study require.
fn new_token() -> std::io::Result<String> {
    Ok(host::random::secret::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}
