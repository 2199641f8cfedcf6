//! One attempt at a run: the cell's lab, its flows, and what was measured.

use crate::figures;
use crate::window_share::{self, WindowShares};
use host::clock;
use lab::{Lab, Options};
use model::IpVersion;
use perf::client::{self, ClientConfig};
use perf::server::{Server, ServerConfig};
use perf::{Event, PerfError, ServerEvent, StopFlag};
use record::{Direction, FlowFigures, Measurement, Protocol};
use std::io;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};
use study::{Buffers, Test, Traffic};
use topology::{PathSpec, Plan};

/// What one attempt gave.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Why it is not what the plan asks for; empty if it is.
    pub(crate) reasons: Vec<String>,
    /// Whether the lab emulated the path.
    pub(crate) emulated: bool,
    /// From the first flow's first packet to the last one's result.
    pub(crate) took: Duration,
    pub(crate) flows: Vec<(FlowFigures, Measurement)>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    #[error("{flow}: {source}")]
    Flow { flow: String, source: PerfError },
    #[error("cannot enter a host of the lab: {0}")]
    Host(#[from] io::Error),
    #[error("{0}")]
    Path(String),
    #[error("interrupted")]
    Interrupted,
}

/// Runs a test once, in a lab of its own whose draws are those of `seed`.
pub(crate) fn run(
    test: &Test,
    seed: u64,
    shares: &WindowShares,
    stop: &StopFlag,
) -> Result<Attempt, AttemptError> {
    let path: PathSpec = format!("{},seed={seed}", test.path)
        .parse()
        .map_err(|error: topology::PathError| AttemptError::Path(error.to_string()))?;
    let mut sysctls = test.sysctls.clone();
    let buffer = test.window.map(|window| shares.buffer(&path, window, stop)).transpose()?;
    sysctls.extend(buffer.map(window_share::sysctl));
    let plan = Plan::pair(path.clone(), "cubic", &sysctls, test.buffers == Buffers::Tuned);
    let lab = Lab::start(&plan, Options { shared: true, ..Options::default() })?;
    let began = clock::now();
    let flows = transfer(&lab, test, stop);
    let took = began.elapsed();
    let path_report = lab.finish()?.into_path();
    let flows = flows?;
    if stop.is_raised() {
        return Err(AttemptError::Interrupted);
    }
    let mut reasons = path_report.reasons.clone();
    if let (Some(window), Some(buffer)) = (test.window, buffer) {
        let tcp = flows.iter().filter(|flow| flow.measurement.spec.protocol == Protocol::Tcp);
        for flow in tcp {
            let Some(advertised) = window_share::advertised(&flow.measurement.streams) else {
                continue;
            };
            let streams = &flow.measurement.streams;
            if let Some(complaint) = window_share::complaint(window, advertised, streams) {
                shares.learn(&path, buffer, advertised);
                reasons.push(complaint);
            }
        }
    }
    let first = flows.iter().map(|flow| flow.began).min();
    let flows = flows.into_iter().map(|flow| {
        let began = first.map_or(0.0, |first| (flow.began - first).as_secs_f64());
        let measurement = Measurement { path: Some(path_report.clone()), ..flow.measurement };
        let finding = diagnose::explain(&diagnosed(&measurement));
        (figures::of(&flow.name, began, &measurement, &finding), measurement)
    });
    Ok(Attempt { reasons, emulated: path_report.valid, took, flows: flows.collect() })
}

/// What is diagnosed: of a test in both directions, the client's.
fn diagnosed(measurement: &Measurement) -> Measurement {
    match measurement.spec.direction {
        Direction::Both => measurement.one_direction(false),
        Direction::Forward | Direction::Reverse => measurement.clone(),
    }
}

/// One flow's measurement.
struct MeasuredFlow {
    name: String,
    /// When its streams were open and the warm-up was over.
    began: Instant,
    measurement: Measurement,
}

/// All flows, each at its time.
fn transfer(lab: &Lab, test: &Test, stop: &StopFlag) -> Result<Vec<MeasuredFlow>, AttemptError> {
    let [client, server] = [lab.client(), lab.server()].map(|host| &host.namespace);
    let served = StopFlag::new();
    let mut servers = Vec::new();
    for (number, _) in (0u16..).zip(&test.flows) {
        let settings =
            ServerConfig { port: port(number), one_off: true, ..ServerConfig::default() };
        let bound = server.run(|| Server::bind(&settings))?;
        servers.push(
            bound.map_err(|source| AttemptError::Flow { flow: "server".to_owned(), source })?,
        );
    }
    lab.begin();
    let begins = clock::now();
    thread::scope(|scope| {
        for listening in servers {
            let served = &served;
            scope.spawn(move || server.run(|| listening.serve(served, &|_: ServerEvent| ())));
        }
        let threads: Vec<_> = (0u16..)
            .zip(&test.flows)
            .map(|(number, traffic)| {
                let host = match traffic.ip {
                    IpVersion::Ipv4 => lab.server().ipv4.to_string(),
                    IpVersion::Ipv6 => lab.server().ipv6.to_string(),
                };
                scope.spawn(move || {
                    if !wait_until(begins + traffic.start, stop) {
                        return Err(AttemptError::Interrupted);
                    }
                    client.run(|| flow(traffic, host, port(number), stop))?
                })
            })
            .collect();
        let done: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        served.raise();
        done.into_iter().collect()
    })
}

/// Each flow has a server of its own.
fn port(number: u16) -> u16 {
    ServerConfig::default().port + number
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

fn flow(
    traffic: &Traffic,
    host: String,
    port: u16,
    stop: &StopFlag,
) -> Result<MeasuredFlow, AttemptError> {
    let config = ClientConfig {
        ports: port..=port,
        protocol: traffic.protocol,
        direction: traffic.direction,
        seconds: traffic.duration.as_secs_f64(),
        omit_seconds: u32::try_from(traffic.omit.as_secs()).unwrap_or(u32::MAX),
        streams: traffic.streams,
        rate: traffic.bitrate,
        block: traffic.block,
        congestion: (traffic.protocol == Protocol::Tcp).then(|| traffic.congestion.clone()),
        watch_load: Duration::ZERO,
        receive_timeout: Duration::from_secs(30),
        ..ClientConfig::new(host)
    };
    let began = OnceLock::new();
    let mut progress = |event| {
        if let Event::Connected(_) = event {
            // Samples and figures begin after the warm-up.
            let _ = began.set(clock::now() + traffic.omit);
        }
    };
    let report = client::run(&config, &mut progress, stop)
        .map_err(|source| AttemptError::Flow { flow: traffic.name.clone(), source })?;
    Ok(MeasuredFlow {
        name: traffic.name.clone(),
        began: began.into_inner().unwrap_or_else(clock::now),
        measurement: report.measurement,
    })
}
