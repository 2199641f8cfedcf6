//! One case in the lab: emulated path, real kernels, and the ground truth of the run.
//!
//! | asked by the case | done by |
//! |---|---|
//! | path, congestion control | the lab |
//! | send buffer, receive window, ECN | sysctls of both hosts |
//! | streams, direction, rate, pacing, block | options of the test |
//! | slow receiving application | the test writes to a pipe that is read at a rate |
//! | cross traffic | sockets of our own on the same hosts |

mod clocks;
mod cross;
mod slow_sink;

pub(crate) use clocks::{Clocks, CpuReading, ReceiverReading, SenderReading, ThreadShare};

use crate::lab_capture;
use crate::lab_truth::{self, HostInterval, Logged};
use bench_harness::Fallible;
use cross::CrossTraffic;
use host::clock;
use lab::{FlowKey, Lab, LabHost, Options, PacketRecord};
use perf::{
    Event, ServerEvent, Started, StopFlag,
    client::{self, ClientConfig, EndAfter},
    server::{Server, ServerConfig},
};
use record::{Direction, Measurement, PathReport};
use simulator::Scenario;
use slow_sink::SlowSink;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};
use topology::Plan;
use twin::TruthInterval;

/// A run in the lab.
#[derive(Debug)]
pub(crate) struct LabRun {
    /// Why the emulation was not that of the path; empty if it was valid.
    pub(crate) not_valid: Vec<String>,
    pub(crate) measurement: Measurement,
    /// The records of its packets, if asked for.
    pub(crate) records: Option<Vec<PacketRecord>>,
    /// The measured streams.
    pub(crate) streams: Vec<FlowKey>,
    pub(crate) path: PathReport,
    /// On the time axis of the sender's samples.
    pub(crate) truth: Vec<TruthInterval>,
    /// CPU use in the same intervals.
    pub(crate) hosts: Vec<HostInterval>,
    /// From the start to the first interval with data of a measured stream: shows that the
    /// clocks agree.
    pub(crate) first_data: Duration,
}

impl LabRun {
    /// What captures at the sender and at the receiver show, if its packets were recorded.
    pub(crate) fn captured(&self, case: &Scenario) -> Option<[Measurement; 2]> {
        let records = self.records.as_ref()?;
        Some(lab_capture::measurements(case, records, &self.streams))
    }
}

/// Longest pause of the emulator. The lab's certificate allows 1 % of the packets to be
/// late; but a queue that overflows because of a pause would have a cause outside of the
/// path. An interval of the log is 10 ms.
const MAX_PAUSE: Duration = Duration::from_millis(30);

/// Runs a case, again as long as the lab is not valid, at most `attempts` times; with `records`,
/// its packets are recorded.
pub(crate) fn run_valid(
    case: &Scenario,
    seed: u64,
    attempts: u32,
    records: bool,
) -> Fallible<LabRun> {
    for _ in 1..attempts {
        wait_for_idle_machine();
        let run = run(case, seed, records)?;
        if run.not_valid.is_empty() {
            return Ok(run);
        }
    }
    run(case, seed, records)
}

/// Waits for a machine on which a lab is more likely to be valid, for ten seconds at most.
fn wait_for_idle_machine() {
    const BUSY: f64 = 0.3;
    for _ in 0..10 {
        let busy = host::cpu::machine_busy(Duration::from_secs(1));
        if busy.is_none_or(|share| share < BUSY) {
            return;
        }
    }
}

/// The moment at which the measured traffic begins, and whether it is over.
#[derive(Debug, Default)]
struct TestClock {
    began: OnceLock<Instant>,
    ended: StopFlag,
}

impl TestClock {
    /// Time since the start; `None` before it, and after the end.
    fn elapsed(&self) -> Option<Duration> {
        self.began.get().filter(|_| !self.has_ended()).map(Instant::elapsed)
    }

    fn has_ended(&self) -> bool {
        self.ended.is_raised()
    }

    /// Waits for a moment of the test; false if it ends first.
    fn wait_until(&self, due: Duration) -> bool {
        while !self.has_ended() {
            let left = match self.elapsed() {
                Some(now) if now >= due => return true,
                Some(now) => due - now,
                None => Duration::from_millis(1),
            };
            thread::sleep(left.min(Duration::from_millis(20)));
        }
        false
    }
}

/// Ends the threads of the cross traffic and of the sampling, also after an error.
struct Ending<'a>(&'a TestClock);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.ended.raise();
    }
}

/// Runs a case; the path's draws are those of the seed and the case's number. With `records`,
/// its packets are recorded.
pub(crate) fn run(case: &Scenario, seed: u64, records: bool) -> Fallible<LabRun> {
    let path = format!("{},seed={}", case.path, case.path_seed(seed)).parse()?;
    let plan = Plan::pair(path, case.congestion.name(), &case.host_sysctls(), true);
    let lab = Lab::start(&plan, Options::default())?;
    lab.log_intervals();
    let records = match records {
        true => Some(lab_capture::collect(lab.watch(None, lab_capture::SNAPLEN)?)),
        false => None,
    };
    let (from, to) = ends(&lab, case.reverse);
    let flows: Vec<CrossTraffic> = (0..)
        .zip(&case.cross)
        .map(|(number, cross)| CrossTraffic::connect(cross, number, from, to))
        .collect::<Fallible<_>>()?;
    let sink = case
        .reader
        .map(|rate| SlowSink::new(rate.scaled(f64::from(case.streams.max(1)))))
        .transpose()?;
    let clock = TestClock::default();
    let done = thread::scope(|scope| {
        let ending = Ending(&clock);
        for flow in &flows {
            flow.run(scope, &clock);
        }
        let sampling =
            scope.spawn(|| clocks::sample(lab.epoch(), &from.namespace, &to.namespace, &clock));
        let path = sink.as_ref().map(SlowSink::path);
        let writer = sink.map(|sink| {
            let (writer, drain) = sink.into_ends();
            scope.spawn(|| drain.run(case.seconds, &clock));
            writer
        });
        let done = transfer(case, &lab, path, &clock);
        drop(writer);
        drop(ending);
        let clocks = sampling.join().map_err(|_| "the sampling thread panicked")??;
        done.map(|(measurement, streams)| (measurement, streams, clocks))
    });
    let keys = flows.iter().filter_map(|flow| flow.key().transpose()).collect::<Fallible<Vec<_>>>();
    drop(flows);
    let report = lab.finish()?;
    let (measurement, streams, clocks) = done?;
    let records = records.map(|it| it.join().map_err(|_| "the capture panicked")).transpose()?;
    let Some(link) = report.links.into_iter().next() else {
        return Err("a lab without a link".into());
    };
    let [up, down] = link.intervals;
    let (forward, reverse) = if case.reverse { (down, up) } else { (up, down) };
    let began = clock.began.get().ok_or("the test never began")?;
    let logged = Logged {
        began: units::Nanos(u64::try_from((*began - lab.epoch()).as_nanos())?),
        seconds: case.seconds,
        forward,
        reverse,
        streams: streams.clone(),
        bulk: case.rate.is_none(),
        cross: keys?,
        clocks,
    };
    let mut not_valid = link.path.reasons.clone();
    let pause = lab_truth::longest_pause(&logged);
    if pause > MAX_PAUSE {
        not_valid.push(format!("the emulator was not scheduled for {} ms", pause.as_millis()));
    }
    let (truth, hosts) = lab_truth::intervals(&logged);
    let first_data = lab_truth::first_data(&logged);
    let path = link.path;
    Ok(LabRun { not_valid, measurement, records, streams, truth, hosts, path, first_data })
}

/// The hosts that the data comes from and goes to.
fn ends(lab: &Lab, reverse: bool) -> (&LabHost, &LabHost) {
    if reverse { (lab.server(), lab.client()) } else { (lab.client(), lab.server()) }
}

/// The measured transfer, with the flows of its streams.
fn transfer(
    case: &Scenario,
    lab: &Lab,
    sink: Option<std::path::PathBuf>,
    clock: &TestClock,
) -> Fallible<(Measurement, Vec<FlowKey>)> {
    // The sender's clock is that of the samples: it begins where the data does.
    let streams = OnceLock::new();
    let begin = |started: &Started| {
        if clock.began.set(clock::now()).is_ok() {
            lab.begin();
            let keys: Vec<FlowKey> = started
                .streams
                .iter()
                .map(|end| FlowKey { protocol: 6, source: end.local, destination: end.peer })
                .collect();
            let _ = streams.set(keys);
        }
    };
    let config = ClientConfig {
        end: EndAfter::Seconds(case.seconds),
        streams: case.streams,
        direction: if case.reverse { Direction::Reverse } else { Direction::Forward },
        rate: case.rate,
        fq_rate: case.pacing,
        block: case.block,
        window: case.window,
        file: sink.clone().filter(|_| case.reverse),
        sample_every: Duration::from_millis(50),
        report_every: Duration::from_secs(60),
        watch_load: Duration::ZERO,
        receive_timeout: Duration::from_secs(10),
        ..ClientConfig::new(lab.server().ipv4.to_string())
    };
    let settings = ServerConfig {
        one_off: true,
        file: sink.filter(|_| !case.reverse),
        ..ServerConfig::default()
    };
    let [client, server] = [lab.client(), lab.server()].map(|host| &host.namespace);
    let listening = server.run(|| Server::bind(&settings))??;
    let served = StopFlag::new();
    let observe = |event: ServerEvent| {
        if let ServerEvent::Started { started, .. } = event
            && case.reverse
        {
            begin(&started);
        }
    };
    let mut progress = |event: Event| {
        if let Event::Connected(started) = event
            && !case.reverse
        {
            begin(&started);
        }
    };
    let measured = thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(|| listening.serve(&served, &observe)));
        let measured = client.run(|| client::run(&config, &mut progress, &StopFlag::new()));
        served.raise();
        let _ = serving.join();
        measured
    })??;
    let streams = streams.into_inner().ok_or("the test never began")?;
    Ok((measured.measurement, streams))
}
