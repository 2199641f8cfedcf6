//! The flows of a test between real hosts: each at its time, from each of its clients.

use super::Agents;
use crate::cell_lab;
use crate::testbed::AttemptError;
use host::clock;
use model::IpVersion;
use perf::StopFlag;
use record::{FlowFigures, Measurement, Protocol, StartSkew};
use remote::protocol::{FlowReply, FlowRequest, Offset, Secret, Started, start_skew};
use remote::{Agent, RemoteError};
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};
use study::{Test, Traffic};
use units::ByteCount;

/// How often an agent without work is asked something during a run.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// When and with what a test's flows begin.
pub(super) struct Planned<'a> {
    /// Of the test, by the clock here.
    begins: Duration,
    origin: Instant,
    flows: Vec<&'a Traffic>,
    /// Of each server.
    buffers: Vec<Option<ByteCount>>,
}

/// The measurements.
pub(super) struct Ran {
    pub(super) flows: Vec<RanFlow>,
    pub(super) start_skew: Option<StartSkew>,
    pub(super) took: Duration,
}

/// A flow of one client.
pub(super) struct RanFlow {
    /// The index of its server.
    pub(super) server: usize,
    pub(super) measured: (FlowFigures, Measurement),
}

/// One flow's reply, with its client's number.
struct Replied<'a> {
    client: u8,
    traffic: &'a Traffic,
    /// When its data began, by the clock here, in ns.
    began_ns: i64,
    uncertainty_ns: u64,
    measurement: Measurement,
}

impl<'a> Planned<'a> {
    /// All flows begin `lead` from now.
    pub(super) fn all(
        test: &'a Test,
        origin: Instant,
        lead: Duration,
        buffer: impl Fn(usize, ByteCount) -> ByteCount,
    ) -> Self {
        let servers = usize::from(test.hosts.servers);
        Planned {
            begins: origin.elapsed() + lead,
            origin,
            flows: test.flows.iter().collect(),
            buffers: (0..servers)
                .map(|server| test.window.map(|window| buffer(server, window)))
                .collect(),
        }
    }

    /// The request to a client; `None` if its clock is implausible.
    fn requests(
        &self,
        offset: Offset,
        server: (&str, u16),
        buffer: Option<ByteCount>,
    ) -> Option<Vec<FlowRequest>> {
        let request = |traffic: &&Traffic| {
            let at = offset.to_remote(self.begins + traffic.start)?;
            Some(FlowRequest {
                at_ns: u64::try_from(at.as_nanos()).ok()?,
                server: server.0.to_owned(),
                port: server.1,
                ip: Some(match traffic.ip {
                    IpVersion::Ipv4 => 4,
                    IpVersion::Ipv6 => 6,
                }),
                protocol: traffic.protocol,
                direction: traffic.direction,
                seconds: traffic.duration.as_secs_f64(),
                omit_s: u32::try_from(traffic.omit.as_secs()).unwrap_or(u32::MAX),
                streams: traffic.streams,
                congestion: (traffic.protocol != Protocol::Udp)
                    .then(|| traffic.congestion().to_owned()),
                window_bytes: buffer.filter(|_| traffic.protocol != Protocol::Udp),
                rate_bps: traffic.bitrate,
                pacing_bps: traffic.pacing,
                block_bytes: traffic.block,
            })
        };
        self.flows.iter().map(request).collect()
    }
}

/// Runs all flows of a test.
pub(super) fn run(
    planned: &Planned<'_>,
    agents: &mut Agents,
    test: &Test,
    stop: &StopFlag,
) -> Result<Ran, AttemptError> {
    let Agents { clients, servers, addresses, token } = agents;
    let length = planned.begins.saturating_sub(planned.origin.elapsed()) + test.planned();
    let done = StopFlag::new();
    let replies = thread::scope(|scope| {
        for server in servers {
            let done = &done;
            scope.spawn(move || keep_alive(server, done));
        }
        let threads: Vec<_> = (0u8..)
            .zip(clients.iter_mut())
            .map(|(number, client)| {
                let server = usize::from(number % test.hosts.servers.max(1));
                let address = addresses.get(server).map(|(host, port)| (host.as_str(), *port));
                let buffer = planned.buffers.get(server).copied().flatten();
                let token = token.clone();
                scope.spawn(move || {
                    let address = address
                        .ok_or_else(|| AttemptError::Path("a client has no server".to_owned()))?;
                    of_client(planned, client, number, (address, buffer, token), length, stop)
                })
            })
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let replies: Vec<_> = joined.collect();
        done.raise();
        replies
    });
    let replies: Vec<Vec<Replied<'_>>> = replies.into_iter().collect::<Result<_, _>>()?;
    let took = planned.origin.elapsed().saturating_sub(planned.begins);
    let replies: Vec<Replied<'_>> = replies.into_iter().flatten().collect();
    Ok(Ran { start_skew: skew(planned, &replies), flows: finished(replies, test), took })
}

/// The flows of one client.
fn of_client<'a>(
    planned: &Planned<'a>,
    client: &mut Agent,
    number: u8,
    (server, buffer, token): ((&str, u16), Option<ByteCount>, Option<Secret>),
    length: Duration,
    stop: &StopFlag,
) -> Result<Vec<Replied<'a>>, AttemptError> {
    let no_clock = |host: &str| RemoteError::Protocol {
        host: host.to_owned(),
        why: "its clock is implausible".to_owned(),
    };
    let offset = client.offset().ok_or_else(|| no_clock(client.host()))?;
    let requests = planned.requests(offset, server, buffer);
    let requests = requests.ok_or_else(|| no_clock(client.host()))?;
    let replies = client.run(token, requests, length, stop)?;
    let replies = planned.flows.iter().zip(replies).map(|(traffic, reply)| match reply {
        FlowReply::Failed { reason } => {
            let why = format!("{}: {reason}", client.host());
            Err(AttemptError::Program { flow: traffic.name.clone(), why })
        }
        FlowReply::Measured { began_ns, measurement } => Ok(Replied {
            client: number,
            traffic,
            began_ns: offset
                .to_here_ns(Duration::from_nanos(began_ns))
                .ok_or_else(|| no_clock(client.host()))?,
            uncertainty_ns: offset.uncertainty_ns,
            measurement: *measurement,
        }),
    });
    replies.collect()
}

/// Asks an agent without work for the time, until the others are done.
fn keep_alive(agent: &mut Agent, done: &StopFlag) {
    let mut next = clock::now() + KEEP_ALIVE;
    while !done.is_raised() {
        thread::sleep(Duration::from_millis(20));
        if clock::now() >= next {
            // An error shows at the next request.
            let _ = agent.compare_clocks(1, done);
            next = clock::now() + KEEP_ALIVE;
        }
    }
}

/// The largest skew of a flow that several clients sent.
fn skew(planned: &Planned<'_>, replies: &[Replied<'_>]) -> Option<StartSkew> {
    let mut by_flow: BTreeMap<&str, Vec<Started>> = BTreeMap::new();
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    for reply in replies {
        let due = nanos(planned.begins + reply.traffic.start + reply.traffic.omit);
        let late_ns = reply.began_ns.saturating_sub(due);
        let started = Started { late_ns, uncertainty_ns: reply.uncertainty_ns };
        by_flow.entry(&reply.traffic.name).or_default().push(started);
    }
    let skews = by_flow.values().filter_map(|started| start_skew(started));
    let largest = skews.max_by_key(|skew| skew.ns)?;
    Some(StartSkew {
        ms: largest.ns as f64 / 1e6,
        uncertainty_ms: largest.uncertainty_ns as f64 / 1e6,
    })
}

/// The figures of each flow.
fn finished(replies: Vec<Replied<'_>>, test: &Test) -> Vec<RanFlow> {
    let first = replies.iter().map(|reply| reply.began_ns).min().unwrap_or(0);
    let flows = replies.into_iter().map(|reply| {
        let began_s = reply.began_ns.abs_diff(first) as f64 / 1e9;
        let name = test.hosts.flow_name(&reply.traffic.name, reply.client);
        RanFlow {
            server: usize::from(reply.client % test.hosts.servers.max(1)),
            measured: cell_lab::finished(&name, began_s, reply.measurement),
        }
    });
    flows.collect()
}
