//! One run of a simulation's flows in a lab, by our own client and server.

use super::ATTEMPTS;
use crate::sim::event::SimEvent;
use crate::sim::flow_group::FlowGroup;
use crate::sim::prepared::Prepared;
use crate::{Fault, Problem, StopFlag};
use host::{clock, cpu};
use lab::{Lab, LabError, Options};
use perf::client::{self, ClientConfig, EndAfter};
use perf::server::{Server, ServerConfig};
use perf::{PerfError, ServerEvent};
use record::Measurement;
use std::thread;
use std::time::{Duration, Instant};
use topology::{PathSpec, Plan};
use units::ByteCount;

/// A host is idle enough for a lab below this share of its CPU time.
const BUSY: f64 = 0.3;

/// A run in a lab.
pub(super) struct LabRun {
    /// Of each group of flows.
    pub(super) measurements: Vec<Measurement>,
    /// Why it does not count; empty for a valid run.
    pub(super) not_valid: Vec<String>,
}

/// Runs the flows, again if the lab was not valid. `None`: interrupted.
pub(super) fn valid(
    prepared: &Prepared,
    path: &PathSpec,
    seed: u64,
    on_event: &mut dyn FnMut(SimEvent),
    stop: &StopFlag,
) -> Result<Option<LabRun>, Problem> {
    let mut attempt = 1;
    loop {
        settle(stop);
        let run = run(prepared, path, seed, stop);
        if stop.is_raised() {
            return Ok(None);
        }
        let run = run?;
        if run.not_valid.is_empty() {
            return Ok(Some(run));
        }
        on_event(SimEvent::NotValid { seed, reason: run.not_valid.join("; ") });
        if attempt == ATTEMPTS {
            return Ok(Some(run));
        }
        attempt += 1;
    }
}

/// Waits for a machine on which a lab is more likely to be valid, for five seconds at most.
fn settle(stop: &StopFlag) {
    for _ in 0..5 {
        let busy = cpu::machine_busy(Duration::from_secs(1));
        if stop.is_raised() || busy.is_none_or(|share| share < BUSY) {
            return;
        }
    }
}

fn run(
    prepared: &Prepared,
    path: &PathSpec,
    seed: u64,
    stop: &StopFlag,
) -> Result<LabRun, Problem> {
    let path: PathSpec = path
        .with(&format!("seed={seed}"), &mut crate::input::of_a_path)
        .map_err(|error| Problem::new(Fault::Request, error))?;
    let ecn = prepared.groups.iter().any(|group| group.ecn);
    let sysctls = [("net.ipv4.tcp_ecn".to_owned(), if ecn { "1" } else { "0" }.to_owned())];
    let mut plan = Plan::pair(path, "cubic", &sysctls, true);
    // The kernel loads the module of a host's congestion control, or says that it has none.
    let foreign = prepared.groups.iter().map(FlowGroup::kernel_control);
    for (host, name) in plan.hosts.iter_mut().zip(foreign) {
        name.clone_into(&mut host.congestion);
    }
    let lab = Lab::start(&plan, Options::default()).map_err(cannot_start)?;
    let listening = (0..).zip(&prepared.groups).map(|(index, _)| listen(&lab, index));
    let listening: Vec<(Server, u16)> = listening.collect::<Result<_, _>>()?;
    lab.begin();
    let began = clock::now();
    let done: Result<Vec<Measurement>, Problem> = thread::scope(|scope| {
        let flows = prepared.groups.iter().zip(listening);
        let threads: Vec<_> = flows
            .map(|(group, (server, port))| {
                let (lab, end) = (&lab, prepared.duration);
                scope.spawn(move || {
                    wait_until(began + group.start, stop);
                    transfer(lab, group, &server, port, end, stop)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let report = lab.finish().map_err(|error| Problem::new(Fault::Internal, error))?;
    let not_valid = report.links.into_iter().flat_map(|link| link.path.reasons).collect();
    Ok(LabRun { measurements: done?, not_valid })
}

/// A server for one group.
fn listen(lab: &Lab, index: u16) -> Result<(Server, u16), Problem> {
    let port = ServerConfig::default().port.saturating_add(index);
    let settings = ServerConfig { port, one_off: true, ..ServerConfig::default() };
    let bound = lab.server().namespace.run(|| Server::bind(&settings));
    let server = bound.map_err(|error| Problem::new(Fault::Host, error))?.map_err(failed)?;
    Ok((server, port))
}

fn transfer(
    lab: &Lab,
    group: &FlowGroup,
    server: &Server,
    port: u16,
    end: Duration,
    stop: &StopFlag,
) -> Result<Measurement, Problem> {
    let [client, far] = [lab.client(), lab.server()];
    let until = group.stop.unwrap_or(end).min(end);
    let seconds = until.saturating_sub(group.start).as_secs_f64();
    let config = ClientConfig {
        ports: port..=port,
        end: group.bytes.map_or(EndAfter::Seconds(seconds), |bytes| {
            EndAfter::Bytes(ByteCount::from_bytes(bytes.bytes().saturating_mul(group.count.into())))
        }),
        streams: group.connection_count(),
        congestion: Some(group.kernel_control().to_owned()),
        rate: group.connection_rate(),
        fq_rate: group.pacing,
        // The kernel doubles what is set, and half of it is window.
        window: group.window,
        watch_load: Duration::ZERO,
        receive_timeout: Duration::from_secs(30),
        keeps_incomplete: true,
        ..ClientConfig::new(far.ipv4.to_string())
    };
    let served = StopFlag::new();
    let measured = thread::scope(|scope| {
        let serving =
            scope.spawn(|| far.namespace.run(|| server.serve(&served, &|_: ServerEvent| ())));
        let measured = client.namespace.run(|| client::run(&config, &mut |_| (), stop));
        served.raise();
        // What the server says of it is in the client's measurement.
        let _ = serving.join();
        measured
    });
    let measured = measured.map_err(|error| Problem::new(Fault::Host, error))?;
    Ok(measured.map_err(failed)?.measurement)
}

fn wait_until(due: Instant, stop: &StopFlag) {
    const STEP: Duration = Duration::from_millis(20);
    loop {
        let left = due.saturating_duration_since(clock::now());
        if stop.is_raised() || left.is_zero() {
            return;
        }
        thread::sleep(left.min(STEP));
    }
}

fn cannot_start(error: LabError) -> Problem {
    let fault = match &error {
        LabError::Emulator(_) => Fault::Internal,
        _ => Fault::Host,
    };
    Problem::new(fault, error)
}

fn failed(error: PerfError) -> Problem {
    Problem::new(Fault::Internal, error)
}
