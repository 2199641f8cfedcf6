//! The tests of a baseline: rounds in random order, a busy server waited for, failures kept.

use super::{BaselineEvent, BaselineProgress, Server, Unmeasured, interrupted};
use crate::StopFlag;
use crate::cross_traffic::InterfaceCounters;
use crate::rtt_under_load::{self, pause};
use baseline::{Backoff, Schedule, TestCost, TestRun};
use diagnose::repeats;
use host::clock;
use perf::client::{self, ClientConfig, EndAfter};
use perf::{Event, PerfError};
use record::{
    AddressFamily, BaselineCondition, BaselinePath, HostFacts, Measurement, TestCondition,
};
use std::time::{Duration, Instant};

/// Pause between two tests: queues drain, and an iperf3 server listens again.
const PAUSE: Duration = Duration::from_millis(300);

/// The time that connections and a slow end add to a test, as expected before the first one.
const OVERHEAD: Duration = Duration::from_millis(700);

/// Interval reports, for the progress line alone.
const REPORTS: Duration = Duration::from_millis(500);

/// Failures that are told one by one; more are counted.
const MAX_NOTES: usize = 12;

/// The path to test.
pub(super) struct Asked<'a> {
    pub(super) server: &'a Server,
    pub(super) paths: &'a [BaselinePath],
    pub(super) duration: Duration,
    pub(super) within: Duration,
    pub(super) streams: u32,
    pub(super) seed: u64,
}

/// Idle time before and after a test with RTT probes: less around short tests.
fn idle(duration: Duration) -> Duration {
    rtt_under_load::IDLE.min(duration / 2)
}

/// The cost of tests of this duration.
fn cost(duration: Duration) -> TestCost {
    let plain = duration.saturating_add(PAUSE + OVERHEAD);
    let idle = idle(duration);
    TestCost { plain, with_latency: plain + idle * 2 + rtt_under_load::TAIL.min(idle) }
}

/// Every condition over the paths that can be used.
fn conditions(paths: &[BaselinePath], streams: u32) -> Vec<TestCondition> {
    let usable = paths.iter().filter(|path| path.skipped.is_none());
    let families: Vec<AddressFamily> = usable.map(|path| path.family).collect();
    baseline::conditions(&families, streams)
}

/// The duration of the tests that fit, if none is requested.
pub(super) fn fitting_duration(paths: &[BaselinePath], streams: u32, left: Duration) -> Duration {
    baseline::fitting_duration(&conditions(paths, streams), left, cost)
}

impl Asked<'_> {
    fn config(&self, condition: &TestCondition) -> ClientConfig {
        let path = self.paths.iter().find(|path| path.family == condition.family);
        // The same address in every test, whatever the name resolves to next.
        let address = path.and_then(|path| path.address.clone());
        ClientConfig {
            ports: self.server.ports.clone(),
            end: EndAfter::Seconds(self.duration.as_secs_f64()),
            streams: condition.streams,
            direction: condition.direction,
            token: self.server.token.clone(),
            server_name: Some(self.server.host.clone()),
            report_every: REPORTS.min(self.duration).max(Duration::from_millis(10)),
            watch_load: Duration::ZERO,
            ..ClientConfig::new(address.unwrap_or_else(|| self.server.host.clone()))
        }
    }

    /// A port for handshakes that the test's server does not listen on.
    fn probed_port(&self) -> u16 {
        if self.server.ports.contains(&rtt_under_load::PORT) { 80 } else { rtt_under_load::PORT }
    }
}

/// The tests of one condition.
struct Tested {
    condition: TestCondition,
    runs: Vec<TestRun>,
    failed: u32,
}

/// The measurement.
pub(super) struct Rounds {
    tested: Vec<Tested>,
    /// IP versions that no test succeeded over, and why.
    unusable: Vec<(AddressFamily, String)>,
    pub(super) rounds: u32,
    pub(super) peer: String,
    pub(super) host: HostFacts,
    pub(super) notes: Vec<String>,
    /// Duration of a test.
    pub(super) duration: Duration,
}

impl Rounds {
    /// Runs every test. Fails only if none succeeds.
    pub(super) fn run(
        asked: &Asked<'_>,
        begun: Instant,
        on_event: &mut dyn FnMut(BaselineEvent),
        stop: &StopFlag,
    ) -> Result<Self, Unmeasured> {
        let conditions = conditions(asked.paths, asked.streams);
        let cost = cost(asked.duration);
        let mut schedule = Schedule::new(&conditions, asked.seed, asked.within, cost);
        let tested = |condition: &TestCondition| Tested {
            condition: *condition,
            runs: Vec::new(),
            failed: 0,
        };
        let mut all = Rounds {
            tested: conditions.iter().map(tested).collect(),
            unusable: Vec::new(),
            rounds: 0,
            peer: String::new(),
            host: HostFacts::default(),
            notes: Vec::new(),
            duration: asked.duration,
        };
        let elapsed = || clock::now().saturating_duration_since(begun);
        let (mut number, mut last) = (0, None);
        while let Some(round) = schedule.next_round(elapsed()) {
            all.rounds = schedule.rounds();
            if all.rounds == 1 {
                let left = schedule.remaining(&round, elapsed());
                on_event(BaselineEvent::Begun {
                    tests: left.tests,
                    expected_s: left.time.as_secs_f64(),
                    seed: asked.seed,
                    exceeds: elapsed() + left.time > asked.within,
                });
            }
            for (at, condition) in round.iter().enumerate() {
                if stop.is_raised() || !schedule.has(condition) {
                    continue;
                }
                number += 1;
                let left = schedule.remaining(round.get(at..).unwrap_or_default(), elapsed());
                let mut progress = BaselineProgress {
                    number,
                    tests: number + left.tests.saturating_sub(1),
                    condition: *condition,
                    left_s: left.time.as_secs_f64(),
                    latest: None,
                    waiting_s: None,
                };
                let from = clock::now();
                match tested_once(asked, condition, &mut progress, on_event, stop) {
                    Ok(run) => {
                        let took = clock::now().saturating_duration_since(from);
                        schedule.completed(condition, took);
                        let figures = Box::new(run.0.figures.clone());
                        on_event(BaselineEvent::Tested { progress, figures });
                        all.keep(condition, run);
                    }
                    Err(_) if stop.is_raised() => {}
                    Err(error) if error.is_usage() && all.peer.is_empty() => {
                        return Err(Unmeasured::Fatal(error.into()));
                    }
                    Err(error) => {
                        all.fail(condition, &error, &mut schedule);
                        // The last one is the error of the command.
                        if !(schedule.is_empty() && all.peer.is_empty()) {
                            let (condition, reason) = (*condition, problem::stored(&error));
                            on_event(BaselineEvent::Failed { condition, reason });
                        }
                        last = Some(error);
                    }
                }
            }
            if stop.is_raised() {
                break;
            }
        }
        match last {
            _ if all.tested.iter().any(|one| !one.runs.is_empty()) => Ok(all),
            Some(error) if !stop.is_raised() => Err(Unmeasured::Server(error.into())),
            _ => Err(Unmeasured::Fatal(interrupted(
                "interrupted before the first test ended; run it again",
            ))),
        }
    }

    fn keep(&mut self, condition: &TestCondition, (run, measurement): (TestRun, Measurement)) {
        if self.peer.is_empty() {
            self.peer = measurement.peer;
            self.host = measurement.host;
        }
        if let Some(one) = self.tested.iter_mut().find(|one| one.condition == *condition) {
            one.runs.push(run);
        }
    }

    /// An IP version whose first test fails is given up: a firewall drops it, or nothing
    /// listens there.
    fn fail(&mut self, condition: &TestCondition, error: &PerfError, schedule: &mut Schedule) {
        let family = condition.family;
        let of_family = |one: &&Tested| one.condition.family == family;
        let succeeded = self.tested.iter().filter(of_family).any(|one| !one.runs.is_empty());
        if !succeeded {
            schedule.drop_family(family);
            self.unusable.push((family, problem::stored(error)));
            return;
        }
        if let Some(one) = self.tested.iter_mut().find(|one| one.condition == *condition) {
            one.failed += 1;
        }
        let given_up = schedule.failed(condition);
        let end = if given_up { "; no further tests" } else { "" };
        if self.notes.len() < MAX_NOTES {
            self.notes.push(format!("{condition}: a test failed: {error}{end}"));
        }
    }

    /// The paths, with those that no test succeeded over.
    pub(super) fn with_failures(&self, mut paths: Vec<BaselinePath>) -> Vec<BaselinePath> {
        for (family, why) in &self.unusable {
            if let Some(path) = paths.iter_mut().find(|path| path.family == *family) {
                path.skipped = Some(why.clone());
            }
        }
        paths
    }

    pub(super) fn summaries(&self) -> Vec<BaselineCondition> {
        let summary = |one: &Tested| baseline::summary(one.condition, &one.runs, one.failed);
        self.tested.iter().filter_map(summary).collect()
    }
}

/// One test, again with longer and longer waits while the server is busy.
fn tested_once(
    asked: &Asked<'_>,
    condition: &TestCondition,
    progress: &mut BaselineProgress,
    on_event: &mut dyn FnMut(BaselineEvent),
    stop: &StopFlag,
) -> Result<(TestRun, Measurement), PerfError> {
    let mut waits = Backoff::new();
    pause(PAUSE, stop);
    loop {
        let ended = attempt(asked, condition, progress, on_event, stop);
        let Err(PerfError::Busy { .. }) = ended else { return ended };
        let Some(wait) = waits.next().filter(|_| !stop.is_raised()) else { return ended };
        progress.waiting_s = Some(wait.as_secs_f64());
        on_event(BaselineEvent::Testing(*progress));
        pause(wait, stop);
        progress.waiting_s = None;
    }
}

fn attempt(
    asked: &Asked<'_>,
    condition: &TestCondition,
    progress: &mut BaselineProgress,
    on_event: &mut dyn FnMut(BaselineEvent),
    stop: &StopFlag,
) -> Result<(TestRun, Measurement), PerfError> {
    let config = asked.config(condition);
    let mut counters = None;
    let shortest = config.report_every.as_secs_f64() / 10.0;
    progress.latest = None;
    on_event(BaselineEvent::Testing(*progress));
    let on_test = &mut |event| match event {
        Event::Connected(started) => {
            counters = InterfaceCounters::towards(started.peer, started.local);
        }
        // The last interval may last a few milliseconds only: its rate means nothing.
        Event::Interval(interval) if interval.to_s - interval.from_s < shortest => {}
        // The sum over several streams, which follows them.
        Event::Interval(interval) if interval.stream.is_none() || condition.streams == 1 => {
            let rate = interval.arrival_rate.unwrap_or(interval.rate);
            progress.latest = Some((interval.to_s, rate));
            on_event(BaselineEvent::Testing(*progress));
        }
        Event::Interval(_) => {}
    };
    let report = if baseline::measures_latency(condition) {
        rtt_under_load::around(&config, asked.probed_port(), idle(asked.duration), on_test, stop)?
    } else {
        client::run(&config, on_test, stop)?
    };
    if report.theirs.is_none() {
        // Interrupted: its figures are those of a part of the test.
        return Err(PerfError::Interrupted);
    }
    let measurement = report.measurement;
    let mut figures = repeats::figures(&measurement);
    figures.other_bytes =
        counters.and_then(|counters: InterfaceCounters| counters.cross_traffic(&measurement));
    let finding = diagnose::explain(&measurement);
    Ok((TestRun { figures, finding }, measurement))
}
