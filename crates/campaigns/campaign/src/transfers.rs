//! The flows of a test, each at its time, from each of its clients.

use crate::cell_lab::Shared;
use crate::cell_plan;
use crate::disks::FlowDisk;
use crate::programs::{Prepared, ProgramHosts, Transferred};
use crate::testbed::AttemptError;
use crate::watched::{self, Ends};
use host::clock;
use lab::{Lab, LabHost};
use model::IpVersion;
use perf::client::{self, ClientConfig, EndAfter};
use perf::server::{Server, ServerConfig};
use perf::{Event, ServerEvent, StopFlag};
use record::{Measurement, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use study::program::Reported;
use study::{Test, Traffic};
use units::ByteCount;
use watch::LoggedConnection;

/// One flow's measurement.
pub(crate) struct MeasuredFlow {
    pub(crate) name: String,
    /// When its streams were open and the warm-up was over.
    pub(crate) began: Instant,
    pub(crate) measurement: Measurement,
    /// What a program said of it.
    pub(crate) reported: Option<Reported>,
}

/// A flow of one of the clients.
struct Planned<'a> {
    name: String,
    traffic: &'a Traffic,
    /// Buffers of a UDT connection: the plan's window.
    udt_buffer: Option<ByteCount>,
    /// Indices among the lab's hosts.
    client: usize,
    server: usize,
    /// Each flow has a server of its own.
    port: u16,
}

/// A flow whose server is listening.
enum Ready<'a> {
    /// With the disk of the file that is sent.
    Longhaul(Box<Server>, Option<FlowDisk>),
    Program(Box<Prepared<'a>>),
}

/// A flow that has ended.
enum Ended<'a> {
    Longhaul { began: Instant, measurement: Box<Measurement> },
    Program(Transferred<'a>),
}

/// The samples of each host that has programs.
type Logs = BTreeMap<usize, Vec<LoggedConnection>>;

/// Runs all flows of a test.
pub(crate) fn run(
    lab: &Lab,
    test: &Test,
    shared: &Shared,
    stop: &StopFlag,
) -> Result<Vec<MeasuredFlow>, AttemptError> {
    let flows = planned(test);
    let mut ready = Vec::new();
    for flow in &flows {
        ready.push(prepare(flow, lab.hosts(), shared, stop)?);
    }
    lab.begin();
    let begins = clock::now();
    // Raised when all flows have ended.
    let done = StopFlag::new();
    let (ended, logs) = thread::scope(|scope| {
        let all_end = done.raised_on_drop();
        let logs = watched_hosts(&flows).map(|host| {
            let (namespace, done) = (&lab.hosts()[host].namespace, &done);
            let log = move || watched::log(namespace, begins, done);
            Ok((host, thread::Builder::new().spawn_scoped(scope, log)?))
        });
        let logs: Vec<_> = logs.collect::<io::Result<_>>()?;
        let threads = flows.iter().zip(ready).map(|(flow, ready)| {
            let work = move || {
                if !wait_until(begins + flow.traffic.start, stop) {
                    return Err(AttemptError::Interrupted);
                }
                transfer(flow, ready, lab.hosts(), stop)
            };
            thread::Builder::new().spawn_scoped(scope, work)
        });
        // All begin before the first is waited for.
        let threads: Vec<_> = threads.collect::<io::Result<_>>()?;
        let ended: Vec<_> = threads.into_iter().map(joined).collect();
        drop(all_end);
        let logs: Vec<_> =
            logs.into_iter().map(|(host, thread)| joined(thread).map(|log| (host, log))).collect();
        Ok::<_, AttemptError>((ended, logs))
    })?;
    let logs: Logs = logs.into_iter().collect::<Result<_, _>>()?;
    let ended: Vec<Ended<'_>> = ended.into_iter().collect::<Result<_, _>>()?;
    let flows = flows.iter().zip(ended);
    flows.map(|(flow, ended)| measured(flow, ended, lab.hosts(), &logs, begins)).collect()
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Every flow of every client.
fn planned(test: &Test) -> Vec<Planned<'_>> {
    let clients = test.hosts.clients;
    let all = (0..clients).flat_map(|client| test.flows.iter().map(move |flow| (client, flow)));
    let first = ServerConfig::default().port;
    let flows = (first..).zip(all).map(|(port, (number, traffic))| {
        let (client, server) = cell_plan::pair(test.hosts, number);
        let name = test.hosts.flow_name(&traffic.name, number);
        Planned { name, traffic, udt_buffer: test.window, client, server, port }
    });
    flows.collect()
}

/// The hosts at either end of programs.
fn watched_hosts(flows: &[Planned<'_>]) -> impl Iterator<Item = usize> {
    let programs = flows.iter().filter(|flow| flow.traffic.program.is_some());
    let hosts: BTreeSet<usize> = programs.flat_map(|flow| [flow.client, flow.server]).collect();
    hosts.into_iter()
}

fn prepare<'a>(
    flow: &Planned<'a>,
    hosts: &[LabHost],
    shared: &'a Shared,
    stop: &StopFlag,
) -> Result<Ready<'a>, AttemptError> {
    let server = &hosts[flow.server];
    if let (Some(program), Some(programs)) = (&flow.traffic.program, &shared.programs) {
        return programs
            .prepare(flow.traffic, program, ProgramHosts::of(server, hosts, flow.port), stop)
            .map(|prepared| Ready::Program(Box::new(prepared)));
    }
    let settings = ServerConfig { port: flow.port, one_off: true, ..ServerConfig::default() };
    let bound = server.namespace.run(|| Server::bind(&settings))?;
    let server = bound.map_err(|source| {
        let flow = format!("the server of {}", flow.name);
        AttemptError::Flow { flow, source }
    })?;
    let disk = match (flow.traffic.disk_limit(), &shared.scratch) {
        (Some(rate), Some(scratch)) => Some(FlowDisk::mount(flow.traffic, rate, scratch)?),
        _ => None,
    };
    Ok(Ready::Longhaul(Box::new(server), disk))
}

fn transfer<'a>(
    flow: &Planned<'_>,
    ready: Ready<'a>,
    hosts: &[LabHost],
    stop: &StopFlag,
) -> Result<Ended<'a>, AttemptError> {
    let (client, server) = (&hosts[flow.client], &hosts[flow.server]);
    match ready {
        Ready::Program(prepared) => prepared.transfer(&client.namespace, stop).map(Ended::Program),
        Ready::Longhaul(listening, disk) => {
            let ended = StopFlag::new();
            let serve = || listening.serve(&ended, &|_: ServerEvent| ());
            thread::scope(|scope| {
                let serving = scope.spawn(|| server.namespace.run(serve));
                let address = address(flow.traffic, server);
                let measured =
                    client.namespace.run(|| longhaul(flow, address, disk.as_ref(), stop));
                ended.raise();
                // What the server says of it is in the client's measurement.
                let _ = joined(serving);
                measured?
            })
        }
    }
}

/// The server's address for a flow.
fn address(traffic: &Traffic, server: &LabHost) -> IpAddr {
    match traffic.ip {
        IpVersion::Ipv4 => server.ipv4.into(),
        IpVersion::Ipv6 => server.ipv6.into(),
    }
}

/// `false`: stopped before.
fn wait_until(due: Instant, stop: &StopFlag) -> bool {
    const STEP: Duration = Duration::from_millis(20);
    loop {
        let left = due.saturating_duration_since(clock::now());
        if stop.is_raised() || left.is_zero() {
            return !stop.is_raised();
        }
        thread::sleep(left.min(STEP));
    }
}

/// A flow of longhaul's own client.
fn longhaul<'a>(
    flow: &Planned<'_>,
    server: IpAddr,
    disk: Option<&FlowDisk>,
    stop: &StopFlag,
) -> Result<Ended<'a>, AttemptError> {
    let traffic = flow.traffic;
    let config = ClientConfig {
        ports: flow.port..=flow.port,
        transport: traffic.protocol.into(),
        direction: traffic.direction,
        end: EndAfter::Seconds(traffic.duration.as_secs_f64()),
        omit_seconds: u32::try_from(traffic.omit.as_secs()).unwrap_or(u32::MAX),
        streams: traffic.streams,
        rate: traffic.bitrate,
        fq_rate: traffic.pacing,
        block: traffic.block,
        file: disk.map(|disk| disk.file().to_owned()),
        file_chunk: traffic.chunk.filter(|_| disk.is_some()),
        congestion: (traffic.protocol != Protocol::Udp).then(|| traffic.congestion().to_owned()),
        // TCP's is that of the hosts.
        window: flow.udt_buffer.filter(|_| traffic.protocol == Protocol::Udt),
        watch_load: Duration::ZERO,
        receive_timeout: Duration::from_secs(30),
        ..ClientConfig::new(server.to_string())
    };
    let began = OnceLock::new();
    let mut progress = |event| {
        if let Event::Connected(_) = event {
            // Samples and figures begin after the warm-up.
            let _ = began.set(clock::now() + traffic.omit);
        }
    };
    let report = client::run(&config, &mut progress, stop)
        .map_err(|source| AttemptError::Flow { flow: flow.name.clone(), source })?;
    Ok(Ended::Longhaul {
        began: began.into_inner().unwrap_or_else(clock::now),
        measurement: Box::new(report.measurement),
    })
}

fn measured(
    flow: &Planned<'_>,
    ended: Ended<'_>,
    hosts: &[LabHost],
    logs: &Logs,
    origin: Instant,
) -> Result<MeasuredFlow, AttemptError> {
    let name = flow.name.clone();
    let done = match ended {
        Ended::Longhaul { began, measurement } => {
            return Ok(MeasuredFlow { name, began, measurement: *measurement, reported: None });
        }
        Ended::Program(done) => done,
    };
    let log = |host: usize| logs.get(&host).map_or(&[][..], Vec::as_slice);
    let ends = Ends {
        client: log(flow.client),
        server: log(flow.server),
        server_address: address(flow.traffic, &hosts[flow.server]),
        port: flow.port,
    };
    let facts = hosts[flow.client].namespace.run(|| host::facts::read(None))?;
    // The warm-up is in a goodput that is over the program's own time.
    let omitted = if done.reported.seconds.is_some() { Duration::ZERO } else { flow.traffic.omit };
    Ok(MeasuredFlow {
        name,
        began: done.began + omitted,
        measurement: watched::measurement(flow.traffic, &done, &ends, origin, facts),
        reported: Some(done.reported),
    })
}
