//! The runs behind an advice: each control alone and beside a CUBIC flow, with several seeds.

use crate::StopFlag;
use crate::sim::event::SimEvent;
use crate::sim::figures::rtts_ms;
use crate::sim::flow_group::STAGGER;
use crate::sim::prepared::Prepared;
use crate::sim::schedule;
use control::{Algorithm, NamedControl};
use model::statistics::{median, percentile};
use record::{AdvisedControl, RunRange, Stream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tcp::{Acknowledgement, Segments};
use topology::PathSpec;
use twin::{Ecn, Host, Observer, Scenario};
use units::Nanos;

/// RTTs of the runs differ by up to this share: without loss and jitter, runs would be alike.
const RTT_SPREAD: f64 = 0.02;

/// The first part of a run, in which flows converge, does not count for harm.
const CONVERGENCE: f64 = 1.0 / 3.0;

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    control: NamedControl,
    beside_cubic: bool,
    seed: u64,
    /// Factor of the path's delay.
    delay: f64,
}

/// What a run showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Done {
    /// Goodput over the whole run, bit/s.
    goodput: f64,
    /// Goodput after the convergence, bit/s.
    settled: f64,
    /// The same of the CUBIC flow beside it.
    neighbour: Option<f64>,
    queueing_ms: f64,
    retransmitted: f64,
    pub(super) packets: u64,
}

impl Job {
    /// All runs of the controls: alone and beside a CUBIC flow, with each seed.
    pub(super) fn all(controls: &[NamedControl], seeds: &[u64]) -> Vec<Job> {
        let last = seeds.len().saturating_sub(1).max(1) as f64;
        let runs = controls.iter().flat_map(|control| {
            [false, true].into_iter().flat_map(move |beside_cubic| {
                seeds.iter().enumerate().map(move |(index, seed)| {
                    let delay = 1.0 + RTT_SPREAD * (2.0 * index as f64 / last - 1.0);
                    let delay = if seeds.len() == 1 { 1.0 } else { delay };
                    Job { control: *control, beside_cubic, seed: *seed, delay }
                })
            })
        });
        runs.collect()
    }

    fn words(&self) -> String {
        let beside = if self.beside_cubic { " beside cubic" } else { "" };
        format!("{}{beside}", self.control)
    }
}

/// Runs all jobs on all cores; the results are in their order. `None`: interrupted.
pub(super) fn run(
    prepared: &Prepared,
    path: &PathSpec,
    jobs: &[Job],
    on_event: &mut dyn FnMut(SimEvent),
    stop: &StopFlag,
) -> Option<Vec<Done>> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    let mut done: Vec<Option<Done>> = vec![None; jobs.len()];
    thread::scope(|scope| {
        for _ in 0..workers {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                while let Some((index, job)) = take(next, jobs) {
                    let Some(one) = simulate(prepared, path, job, stop) else { return };
                    if sender.send((index, one)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (number, (index, one)) in (1..).zip(results) {
            let what = jobs.get(index).map_or_else(String::new, Job::words);
            on_event(SimEvent::Run { number, of: jobs.len(), what });
            if let Some(slot) = done.get_mut(index) {
                *slot = Some(one);
            }
        }
    });
    done.into_iter().collect()
}

fn take<'a>(next: &AtomicUsize, jobs: &'a [Job]) -> Option<(usize, &'a Job)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, jobs.get(index)?))
}

fn simulate(prepared: &Prepared, path: &PathSpec, job: &Job, stop: &StopFlag) -> Option<Done> {
    let mut links = schedule::of(&[(Duration::ZERO, path.clone())], job.seed)?;
    for schedule in &mut links {
        let states = schedule.changes.iter_mut().map(|(_, config)| config);
        for config in states.chain([&mut schedule.start]) {
            config.delay = config.delay.mul_f64(job.delay);
        }
    }
    let idle = (links[0].start.delay + links[1].start.delay).as_secs_f64() * 1e3;
    let template = prepared.connections.first()?;
    let with = |algorithm| {
        let ecn = Ecn::needed_by(algorithm);
        twin::ConnectionConfig { algorithm, ecn, ..*template }
    };
    let own = (0..job.control.connections()).map(|index| {
        let start = STAGGER * index;
        twin::ConnectionConfig { start, ..with(job.control.algorithm()) }
    });
    let mut connections: Vec<_> = own.collect();
    let own = connections.len();
    if job.beside_cubic {
        // Half a round trip apart, so that both do not start in step.
        let start = (links[0].start.delay + links[1].start.delay) / 2;
        connections.push(twin::ConnectionConfig { start, ..with(Algorithm::Cubic) });
    }
    let [forward, reverse] = links;
    let most = prepared.scenario().max_packets;
    let scenario = Scenario {
        connections,
        max_packets: most,
        ..Scenario::new(forward, reverse, prepared.duration)
    };
    let outcome = twin::run_observed(&scenario, &mut Stopped(stop));
    if outcome.interrupted {
        return None;
    }
    let (flow, neighbour) = outcome.measurement.streams.split_at_checked(own)?;
    let sum = |of: &dyn Fn(&Stream) -> u64| flow.iter().map(of).sum::<u64>();
    let sent = sum(&|stream| stream.sent_bytes / u64::from(template.mss.max(1)));
    let retransmits = sum(&|stream| stream.retransmits.unwrap_or(0));
    let rtts: Vec<f64> = flow.iter().flat_map(rtts_ms).collect();
    let rtt = percentile(&rtts, 0.95).unwrap_or(idle);
    Some(Done {
        goodput: sum(&|stream| stream.received_bytes) as f64 * 8.0 / prepared.seconds,
        settled: flow.iter().map(|stream| settled(stream, prepared.seconds)).sum(),
        neighbour: neighbour.first().map(|flow| settled(flow, prepared.seconds)),
        queueing_ms: (rtt - idle).max(0.0),
        retransmitted: retransmits as f64 / (sent + retransmits).max(1) as f64,
        packets: outcome.packets,
    })
}

/// Goodput after the convergence, bit/s.
fn settled(stream: &Stream, seconds: f64) -> f64 {
    let from = seconds * CONVERGENCE;
    let before = stream.receiver.partition_point(|sample| sample.t_s <= from);
    let sample = before.checked_sub(1).and_then(|index| stream.receiver.get(index));
    let (at, received) = sample.map_or((0.0, 0), |sample| (sample.t_s, sample.received_bytes));
    (stream.received_bytes - received) as f64 * 8.0 / (seconds - at).max(1e-3)
}

/// Ends a simulation when the flag is raised.
struct Stopped<'a>(&'a StopFlag);

impl Observer for Stopped<'_> {
    fn data(&mut self, _: Nanos, _: Host, _: u32, _: &Segments, _: bool) {}

    fn acknowledgement(&mut self, _: Nanos, _: Host, _: u32, _: &Acknowledgement) {}

    fn passed(&mut self, _: Nanos, _: u64) -> ControlFlow<()> {
        if self.0.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The figures of each control.
pub(super) fn controls(
    controls: &[NamedControl],
    jobs: &[Job],
    done: &[Done],
) -> Vec<AdvisedControl> {
    let of = |control: NamedControl, beside: bool, figure: &dyn Fn(&Done) -> f64| {
        let runs = jobs.iter().zip(done);
        let own = runs.filter(|(job, _)| job.control == control && job.beside_cubic == beside);
        range(&own.map(|(_, done)| figure(done)).collect::<Vec<f64>>())
    };
    // What the neighbour has without a newcomer, with the same seeds.
    let solo = of(Algorithm::Cubic.into(), false, &|done| done.settled).median;
    let harm = |done: &Done| {
        let left = done.neighbour.unwrap_or(solo);
        if solo > 0.0 { ((solo - left) / solo).max(0.0) } else { 0.0 }
    };
    let all = controls.iter().map(|control| AdvisedControl {
        control: control.name().to_owned(),
        goodput_bps: of(*control, false, &|done| done.goodput),
        queueing_ms: of(*control, false, &|done| done.queueing_ms),
        retransmitted: of(*control, false, &|done| done.retransmitted),
        beside_cubic_bps: of(*control, true, &|done| done.settled),
        harm: of(*control, true, &harm),
    });
    all.collect()
}

fn range(values: &[f64]) -> RunRange {
    let fold = |by: fn(f64, f64) -> f64| values.iter().copied().reduce(by).unwrap_or(0.0);
    RunRange { median: median(values).unwrap_or(0.0), low: fold(f64::min), high: fold(f64::max) }
}
