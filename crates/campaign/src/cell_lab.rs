//! One attempt at a run: the cell's lab, its flows, and what was measured.

use crate::figures;
use host::clock;
use lab::{Lab, Options};
use perf::client::{self, ClientConfig};
use perf::server::{Server, ServerConfig};
use perf::{Event, Interval, PerfError, ServerEvent, StopFlag};
use record::{Direction, FlowFigures, Measurement, Protocol};
use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};
use study::{Buffers, Test, Traffic};
use topology::{PathSpec, Plan};
use units::ByteCount;

/// What one attempt gave.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Why it is not what the plan asks for; empty if it is.
    pub(crate) reasons: Vec<String>,
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

/// How far an advertised window may be from the one asked. It changes by whole segments (2 %
/// of 64 KiB) and by units of the window scale.
const WINDOW_TOLERANCE: f64 = 0.02;

/// Share of the time that a stream waits for the receive window, above which a window that
/// is smaller than asked makes a difference.
const WINDOW_MATTERS: f64 = 0.01;

/// The share of a receive buffer that becomes window: it depends on the kernel's overhead
/// for each packet, so it is learned from the runs, separately for each MTU.
#[derive(Debug, Default)]
pub(crate) struct WindowShares(BTreeMap<u32, f64>);

impl WindowShares {
    /// The receive buffer for a window.
    fn buffer(&self, path: &PathSpec, window: ByteCount) -> ByteCount {
        let share = self.0.get(&path.mtu()).copied().unwrap_or(model::INITIAL_WINDOW_SHARE);
        ByteCount::from_f64(window.as_f64() / share)
    }

    fn learn(&mut self, path: &PathSpec, buffer: ByteCount, advertised: u64) {
        let share = advertised as f64 / buffer.as_f64();
        if (0.05..=1.0).contains(&share) {
            self.0.insert(path.mtu(), share);
        }
    }
}

/// Runs a test once, in a lab of its own whose draws are those of `seed`.
pub(crate) fn run(
    test: &Test,
    seed: u64,
    shares: &mut WindowShares,
    observe: &(dyn Fn(&Traffic, Interval) + Sync),
    stop: &StopFlag,
) -> Result<Attempt, AttemptError> {
    let path: PathSpec = format!("{},seed={seed}", test.path)
        .parse()
        .map_err(|error: topology::PathError| AttemptError::Path(error.to_string()))?;
    let mut sysctls = test.sysctls.clone();
    let buffer = test.window.map(|window| shares.buffer(&path, window));
    if let Some(buffer) = buffer {
        sysctls.push(("net.ipv4.tcp_rmem".to_owned(), format!("4096 {0} {0}", buffer.bytes())));
    }
    let plan = Plan::pair(path.clone(), "cubic", &sysctls, test.buffers == Buffers::Tuned);
    let lab = Lab::start(&plan, Options::default())?;
    let flows = transfer(&lab, test, observe, stop);
    let path_report = lab.finish()?.into_path();
    let flows = flows?;
    if stop.is_raised() {
        return Err(AttemptError::Interrupted);
    }
    let mut reasons = path_report.reasons.clone();
    if let (Some(window), Some(buffer)) = (test.window, buffer) {
        let tcp = flows.iter().filter(|flow| flow.measurement.spec.protocol == Protocol::Tcp);
        for flow in tcp {
            let Some(advertised) = advertised(&flow.measurement) else { continue };
            shares.learn(&path, buffer, advertised);
            reasons.extend(window_reason(window, advertised, &flow.measurement));
        }
    }
    let first = flows.iter().map(|flow| flow.began).min();
    let flows = flows.into_iter().map(|flow| {
        let began = first.map_or(0.0, |first| (flow.began - first).as_secs_f64());
        let measurement = Measurement { path: Some(path_report.clone()), ..flow.measurement };
        let finding = diagnose::explain(&diagnosed(&measurement));
        (figures::of(&flow.name, began, &measurement, &finding), measurement)
    });
    Ok(Attempt { reasons, flows: flows.collect() })
}

/// What is diagnosed: of a test in both directions, the client's.
fn diagnosed(measurement: &Measurement) -> Measurement {
    match measurement.spec.direction {
        Direction::Both => measurement.one_direction(false),
        Direction::Forward | Direction::Reverse => measurement.clone(),
    }
}

/// The highest window that was advertised to a sender.
fn advertised(measurement: &Measurement) -> Option<u64> {
    let samples = measurement.streams.iter().flat_map(|stream| &stream.sender);
    samples.filter_map(|sample| sample.peer_window_bytes).max()
}

/// A window that is not the one asked; a smaller one counts only where a stream waited for it.
fn window_reason(asked: ByteCount, advertised: u64, measurement: &Measurement) -> Option<String> {
    let ratio = advertised as f64 / asked.as_f64();
    let waited = measurement
        .streams
        .iter()
        .filter_map(|stream| stream.sender.last())
        .any(|last| last.rwnd_limited_us as f64 > WINDOW_MATTERS * last.busy_us as f64);
    let wrong = ratio > 1.0 + WINDOW_TOLERANCE || (ratio < 1.0 - WINDOW_TOLERANCE && waited);
    wrong.then(|| {
        format!("the receiver advertised {} instead of {asked}", ByteCount::from_bytes(advertised))
    })
}

/// One flow's measurement.
struct Flow {
    name: String,
    /// When its streams were open.
    began: Instant,
    measurement: Measurement,
}

/// All flows, each at its time.
fn transfer(
    lab: &Lab,
    test: &Test,
    observe: &(dyn Fn(&Traffic, Interval) + Sync),
    stop: &StopFlag,
) -> Result<Vec<Flow>, AttemptError> {
    let [client, server] = [lab.client(), lab.server()].map(|host| &host.namespace);
    let served = StopFlag::new();
    let mut servers = Vec::new();
    for (number, _) in (0u16..).zip(&test.flows) {
        let settings =
            ServerConfig { port: iperf3_port(number), one_off: true, ..ServerConfig::default() };
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
                let host = lab.server().ipv4.to_string();
                scope.spawn(move || {
                    if !wait_until(begins + traffic.start, stop) {
                        return Err(AttemptError::Interrupted);
                    }
                    client.run(|| flow(traffic, host, iperf3_port(number), observe, stop))?
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
fn iperf3_port(number: u16) -> u16 {
    5201 + number
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
    observe: &(dyn Fn(&Traffic, Interval) + Sync),
    stop: &StopFlag,
) -> Result<Flow, AttemptError> {
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
    let mut progress = |event| match event {
        Event::Connected(_) => {
            let _ = began.set(clock::now());
        }
        Event::Interval(interval) if interval.stream.is_none() || traffic.streams == 1 => {
            observe(traffic, interval);
        }
        Event::Interval(_) => {}
    };
    let report = client::run(&config, &mut progress, stop)
        .map_err(|source| AttemptError::Flow { flow: traffic.name.clone(), source })?;
    Ok(Flow {
        name: traffic.name.clone(),
        began: began.into_inner().unwrap_or_else(clock::now),
        measurement: report.measurement,
    })
}
