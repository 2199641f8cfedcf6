//! A run from its first message to its result: which steps, and in which order.

pub(super) mod trial;

use super::bulk::Budget;
use super::families::Families;
use super::loss;
use super::message::{PageMessage, Plan, Platform, Purpose, ServerMessage, StepKind, VERSION};
use super::step::{Ended, Outcome, REQUESTS, Stage, problem};
use super::{kept, queue_place, result};
use crate::{Shared, WebEvent};
use diagnose::deciding::{Change, Decision, Observation, decision_over_tcp};
use host::clock;
use record::{Confidence, Decided, Finding, Limit};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The time in which the page says hello.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// A whole run, beyond which no experiment and no trial begins.
const MAX_SECONDS: f64 = 50.0;
/// Experiments of a run.
const MAX_EXPERIMENTS: usize = 2;
/// The time of probes without load.
const IDLE_SHARE: f64 = 0.4;
/// The time of an upload, and of an experiment, as shares of a download's.
const UPLOAD_SHARE: f64 = 0.8;
const EXPERIMENT_SHARE: f64 = 0.7;
/// The times of a leg's steps, as shares of a download's.
const LEG_IDLE_SHARE: f64 = 0.1;
const LEG_SINGLE_SHARE: f64 = 0.4;
const LEG_DOWNLOAD_SHARE: f64 = 0.5;
const LEG_UPLOAD_SHARE: f64 = 0.3;
/// The times of the steps over one family, as shares of a download's.
const FAMILY_IDLE_SHARE: f64 = 0.2;
const FAMILY_DOWNLOAD_SHARE: f64 = 0.4;
/// The time of datagrams that measure loss, as a share of a download's.
const LOSS_SHARE: f64 = 0.6;
/// How long a download with one flow goes on while its rate has not settled, as a multiple of the
/// planned time: ten seconds, as iperf3 and ndt7 test.
const LONGEST: f64 = 2.0;
/// The flows of a step with several.
const SEVERAL: u32 = 6;
/// The share of the budget that a step needs at least.
const MIN_BUDGET_SHARE: f64 = 0.02;

/// A step as it is without experiments.
pub(super) fn planned(kind: StepKind, flows: u32, seconds: f64, why: &str) -> Plan {
    let why = why.to_owned();
    Plan { kind, flows, seconds, longest: seconds, congestion: None, pacing: None, why }
}

/// The steps of every run. Experiments come after the first download, a trial after the second.
fn plan(step_seconds: f64, with_datagrams: bool) -> Vec<Plan> {
    let step = |kind, flows, share: f64, why: &str| planned(kind, flows, step_seconds * share, why);
    let one = step(StepKind::Download, 1, 1.0, "one connection, as a download of one file has it");
    let mut steps = vec![
        step(StepKind::Idle, 0, IDLE_SHARE, "RTT and jitter without load"),
        Plan { longest: step_seconds * LONGEST, ..one },
        step(StepKind::Download, SEVERAL, 1.0, "several connections, as most speed tests use"),
        step(StepKind::Upload, 1, UPLOAD_SHARE, "one connection, counted at the server"),
        step(StepKind::Upload, SEVERAL, UPLOAD_SHARE, "several connections"),
    ];
    // Before uploads: what they leave in the visitor's queue would hold up the session's beginning.
    let uploads = steps.iter().position(|step| step.kind == StepKind::Upload);
    if let Some(at) = uploads.filter(|_| with_datagrams) {
        let why = "numbered datagrams at a low rate, of which those that are lost are counted";
        steps.insert(at, step(StepKind::Loss, 0, LOSS_SHARE, why));
    }
    steps
}

/// The steps of a round of one leg: both ends of the path take turns, so that what changes with
/// time changes both.
fn leg(step_seconds: f64) -> Vec<Plan> {
    let step = |kind, flows, share: f64, why: &str| planned(kind, flows, step_seconds * share, why);
    vec![
        step(StepKind::Idle, 0, LEG_IDLE_SHARE, "RTT without load"),
        step(StepKind::Download, 1, LEG_SINGLE_SHARE, "whether each connection is limited"),
        step(StepKind::Download, SEVERAL, LEG_DOWNLOAD_SHARE, "what this leg carries"),
        step(StepKind::Upload, SEVERAL, LEG_UPLOAD_SHARE, "what this leg carries"),
    ]
}

/// The steps over one family.
fn family(step_seconds: f64) -> Vec<Plan> {
    let step = |kind, flows, share: f64, why: &str| planned(kind, flows, step_seconds * share, why);
    vec![
        step(StepKind::Idle, 0, FAMILY_IDLE_SHARE, "RTT without load"),
        step(StepKind::Download, 1, FAMILY_DOWNLOAD_SHARE, "what this family carries"),
    ]
}

/// An experiment that tells two limits apart.
struct Experiment {
    first: Limit,
    second: Limit,
    decision: Decision,
    plan: Plan,
    options: String,
}

/// Conducts a run to its end, which is told to the caller of the server.
pub(super) async fn conduct(shared: &Shared, mut stage: Stage, id: &str, is_proxied: bool) {
    let began = clock::now();
    let client = stage.client;
    shared.tell(WebEvent::RunStarted { run: id.to_owned(), client });
    let run = Conductor { shared, began, outcomes: Vec::new(), decided: Vec::new(), reserved: 0 };
    let failed =
        |why: &str| WebEvent::RunFailed { run: id.to_owned(), client, why: why.to_owned() };
    let event = match run.whole(&mut stage, id, is_proxied).await {
        Ok(finished) => {
            stage.control.close(websocket::CloseCode::NORMAL, "").await;
            WebEvent::RunFinished {
                run: id.to_owned(),
                client,
                download_bps: finished.download.and_then(|direction| direction.best()),
                upload_bps: finished.upload.and_then(|direction| direction.best()),
                limit: finished.finding.as_ref().and_then(|finding| finding.limit),
                bytes: stage.budget.used(),
                seconds: began.elapsed().as_secs_f64(),
            }
        }
        Err(Ended::Left) => failed("the page has left"),
        Err(Ended::Problem(why)) => {
            stage.fail(&why).await;
            failed(&why)
        }
    };
    shared.tell(event);
}

struct Conductor<'a> {
    shared: &'a Shared,
    began: Instant,
    outcomes: Vec<Outcome>,
    decided: Vec<Decided>,
    /// Bytes that are kept for datagrams.
    reserved: u64,
}

impl Conductor<'_> {
    async fn whole(
        mut self,
        stage: &mut Stage,
        id: &str,
        is_proxied: bool,
    ) -> Result<result::RunResult, Ended> {
        let hello = timeout(HELLO_TIME, stage.control.text()).await;
        let Ok(hello) = hello else { return problem("the page did not say hello in time") };
        let hello = PageMessage::parse(&hello.ok_or(Ended::Left)?).map_err(Ended::Problem)?;
        let PageMessage::Hello {
            version,
            platform,
            max_bytes,
            thorough,
            transports,
            purpose,
            families,
        } = hello
        else {
            return problem("the first message is hello");
        };
        if version != VERSION {
            return problem("the page is of another version; reload it");
        }
        let most = self.shared.request.max_bytes_per_run.bytes();
        let max_bytes = max_bytes.map_or(most, |bytes| bytes.min(most));
        stage.by_requests = transports.iter().any(|name| name == REQUESTS);
        let seconds = self.shared.request.step_seconds;
        let is_whole = purpose == Purpose::Test;
        let thorough = thorough && is_whole;
        let with_datagrams = self.shared.datagrams.get().is_some()
            && !is_proxied
            && is_whole
            && transports.iter().any(|name| name == loss::TRANSPORT);
        if with_datagrams {
            self.reserved = loss::reserved(seconds * LOSS_SHARE, max_bytes);
        }
        stage.budget = Budget::new(max_bytes - self.reserved);
        let steps = match purpose {
            Purpose::Test => plan(seconds, with_datagrams),
            Purpose::Leg => leg(seconds),
            Purpose::Family => family(seconds),
        };
        let planned: f64 = steps.iter().map(|step| step.seconds).sum();
        let client = stage.client;
        let welcome = ServerMessage::Welcome {
            run: id,
            client: client.ip().to_string(),
            ip_version: if client.is_ipv4() { 4 } else { 6 },
            proxied: is_proxied,
            tls: self.shared.request.tls != crate::Tls::None,
            max_bytes,
            seconds: planned,
            history: self.shared.history.is_some(),
            steps: &steps,
        };
        if is_whole {
            stage.run.hops.want(is_proxied);
        }
        stage.say(&welcome).await?;
        let mut transfers = steps.iter().filter(|step| step.kind.is_transfer()).count();
        if thorough {
            transfers += MAX_EXPERIMENTS;
        }
        for step in steps {
            let is_first_download = step.kind == StepKind::Download && step.flows == 1;
            let later_seconds = 2.0 * seconds * UPLOAD_SHARE
                + if with_datagrams { seconds * LOSS_SHARE } else { 0.0 };
            let (step_kind, is_transfer) = (step.kind, step.kind.is_transfer());
            self.run_step(stage, step, max_bytes, transfers).await?;
            transfers -= usize::from(is_transfer);
            if is_first_download && thorough {
                self.experiments(stage, seconds + later_seconds, max_bytes, transfers).await?;
                transfers -= MAX_EXPERIMENTS;
            } else if step_kind == StepKind::Download && thorough {
                self.trial(stage, later_seconds, max_bytes, transfers).await?;
            }
        }
        let mut finished = result::of(&self.outcomes, &self.decided, platform, id);
        let setting = host::sysctl::read("net.ipv4.tcp_ecn").ok();
        finished.ecn = stage.ecn.result(setting.as_deref()).filter(|_| !is_proxied);
        let route = stage.run.hops.finish().await;
        finished.queue = queue_place::of(&self.outcomes, &route).filter(|_| is_whole);
        finished.families = families.map(Families::shown);
        if let Some(history) = self.shared.history.clone() {
            // Before the page is told: it may keep the result at once.
            let (run, result) = (id.to_owned(), serde_json::json!(finished));
            let outcomes = std::mem::take(&mut self.outcomes);
            let offer = move || history.offer(&run, kept::of(result, outcomes));
            let _ = tokio::task::spawn_blocking(offer).await;
        }
        stage.place = None;
        stage.say(&ServerMessage::Result(&finished)).await?;
        Ok(finished)
    }

    /// Carries out a step, unless the bytes of the run are used up. It ends early when it has
    /// used its share of them, of `transfers` steps that are left with it.
    async fn run_step(
        &mut self,
        stage: &mut Stage,
        step: Plan,
        max_bytes: u64,
        transfers: usize,
    ) -> Result<(), Ended> {
        if step.kind == StepKind::Loss {
            return self.loss(stage, step).await;
        }
        let left = stage.budget.left();
        if step.kind != StepKind::Idle && (left as f64) < max_bytes as f64 * MIN_BUDGET_SHARE {
            return Ok(());
        }
        let share = left / u64::try_from(transfers.max(1)).unwrap_or(u64::MAX);
        let outcome = stage.step(step, share).await?;
        self.outcomes.push(outcome);
        Ok(())
    }

    /// Measures loss by datagrams, at a rate far below that of the fastest download: a single flow may
    /// be slow by the very losses.
    async fn loss(&mut self, stage: &mut Stage, step: Plan) -> Result<(), Ended> {
        let downloads =
            self.outcomes.iter().filter(|outcome| outcome.plan.kind == StepKind::Download);
        let rate = downloads.filter_map(|outcome| outcome.result.rate).reduce(f64::max);
        let datagrams = rate
            .zip(self.shared.datagrams.get())
            .and_then(|(rate, datagrams)| loss::plan(datagrams, step.seconds, rate, self.reserved));
        if let Some(datagrams) = datagrams {
            let outcome = stage.loss(step, datagrams).await?;
            self.outcomes.push(outcome);
        }
        Ok(())
    }

    /// True if so many seconds are left of those in which a run is over.
    fn has_time(&self, seconds: f64) -> bool {
        self.began.elapsed().as_secs_f64() + seconds <= MAX_SECONDS
    }

    /// Runs the experiments that tell the likely limits of the last download apart, while there is
    /// time for the steps that follow and take `reserved` seconds.
    async fn experiments(
        &mut self,
        stage: &mut Stage,
        reserved: f64,
        max_bytes: u64,
        transfers: usize,
    ) -> Result<(), Ended> {
        let Some(first) = self.outcomes.len().checked_sub(1) else { return Ok(()) };
        for number in 0..MAX_EXPERIMENTS {
            let step_seconds = self.shared.request.step_seconds;
            let tried: Vec<String> =
                self.decided.iter().filter_map(|decided| decided.options.clone()).collect();
            let base = self.outcomes.get(first);
            let next = base.and_then(|outcome| next(outcome, &tried, step_seconds));
            let has_time = |next: &Experiment| self.has_time(reserved + next.plan.longest);
            let Some(experiment) = next.filter(has_time) else { return Ok(()) };
            let transfers = transfers.saturating_sub(number);
            self.run_step(stage, experiment.plan.clone(), max_bytes, transfers).await?;
            let second = self.outcomes.get(first + 1 + number);
            let (Some(first), Some(second)) = (self.outcomes.get(first), second) else {
                return Ok(());
            };
            let decided = answer(&experiment, first, second);
            let is_other = decided.limit.is_some_and(|limit| limit != experiment.first);
            self.decided.push(decided);
            // A further one would compare what this one has excluded.
            if is_other {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Tries another congestion control. Where several flows were faster than one, both are remedies,
    /// and no limit says which gains more.
    async fn trial(
        &mut self,
        stage: &mut Stage,
        reserved: f64,
        max_bytes: u64,
        transfers: usize,
    ) -> Result<(), Ended> {
        let plan = trial::of(&self.outcomes, self.shared.request.step_seconds);
        let has_time = |plan: &Plan| self.has_time(reserved + plan.longest);
        match plan.filter(|plan| has_time(plan) && is_available(trial::CONGESTION)) {
            Some(plan) => self.run_step(stage, plan, max_bytes, transfers + 1).await,
            None => Ok(()),
        }
    }
}

/// The next experiment: that which tells the limit of a download from the most probable other one
/// that some experiment over TCP tells it from.
fn next(outcome: &Outcome, tried: &[String], step_seconds: f64) -> Option<Experiment> {
    let (finding, measurement) = (outcome.finding()?, outcome.measurement.as_ref()?);
    let first = finding.limit.filter(|limit| *limit != Limit::Unknown)?;
    if finding.confidence == Some(Confidence::Sure) {
        return None;
    }
    others(finding, first).into_iter().find_map(|second| {
        let decision = decision_over_tcp(first, second)?;
        let change = decision.test.change(measurement, finding.throughput_bps)?;
        let Change { congestion, streams, pacing, udp_rate: None, seconds: None, window: None } =
            &change
        else {
            return None;
        };
        let options = change.to_string();
        let is_available = congestion.as_ref().is_none_or(|name| is_available(name));
        (is_available && !tried.contains(&options)).then(|| Experiment {
            first,
            second,
            decision,
            plan: Plan {
                kind: StepKind::Download,
                flows: streams.unwrap_or(outcome.plan.flows),
                seconds: step_seconds * EXPERIMENT_SHARE,
                longest: longest(step_seconds, congestion.as_deref()),
                congestion: congestion.clone(),
                pacing: *pacing,
                why: format!(
                    "to tell {} from {}: {}",
                    first.name(),
                    second.name(),
                    decision.reason
                ),
            },
            options,
        })
    })
}

/// The other limits, the most probable first.
fn others(finding: &Finding, first: Limit) -> Vec<Limit> {
    let mut others: Vec<_> = finding
        .posterior
        .iter()
        .filter(|other| other.limit != first && other.limit != Limit::Unknown)
        .collect();
    others.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    others.into_iter().map(|other| other.limit).collect()
}

/// When an experiment ends at the latest. One with another congestion control tells what ndt7 would
/// have shown as well.
fn longest(step_seconds: f64, congestion: Option<&str>) -> f64 {
    step_seconds * if congestion.is_some() { LONGEST } else { EXPERIMENT_SHARE }
}

fn is_available(congestion: &str) -> bool {
    let allowed = host::sysctl::read("net.ipv4.tcp_allowed_congestion_control");
    let available = host::sysctl::read("net.ipv4.tcp_available_congestion_control");
    let has = |list: std::io::Result<String>| {
        list.is_ok_and(|list| list.split_whitespace().any(|name| name == congestion))
    };
    has(allowed) || (host::identity::is_root() && has(available))
}

/// What an experiment showed.
fn answer(experiment: &Experiment, first: &Outcome, second: &Outcome) -> Decided {
    let (one, other) = (experiment.first, experiment.second);
    let (limit, why) = match (&first.measurement, &second.measurement) {
        (Some(first), Some(second)) => {
            experiment.decision.read(&Observation::of(first), &Observation::of(second))
        }
        _ => (None, "nothing was measured".to_owned()),
    };
    let sentence = match limit {
        Some(limit) => format!("It is {}: with {}, {why}.", limit.name(), experiment.options),
        None => format!(
            "The experiment does not decide between {} and {}: with {}, {why}.",
            one.name(),
            other.name(),
            experiment.options
        ),
    };
    Decided {
        between: vec![one, other],
        options: Some(experiment.options.clone()),
        throughput_bps: second.finding().map(|finding| finding.throughput_bps),
        limit,
        sentence,
    }
}

/// What the platform is called by those that have commands for it.
pub(super) fn system(platform: Platform) -> Option<longhaul::doctor::System> {
    use longhaul::doctor::System;
    match platform {
        Platform::Linux => Some(System::Linux),
        Platform::MacOs => Some(System::MacOs),
        Platform::Windows => Some(System::Windows),
        Platform::Android | Platform::Ios | Platform::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_time_for_its_experiments_and_a_trial() {
        let seconds = |with_datagrams| -> f64 {
            plan(5.0, with_datagrams).iter().map(|step| step.longest).sum()
        };
        // One at most is with another congestion control.
        let experiments = longest(5.0, Some("bbr")) + longest(5.0, None) * MAX_EXPERIMENTS as f64;
        assert!(seconds(true) + experiments <= MAX_SECONDS, "{}", seconds(true));
        assert_eq!(seconds(true) - seconds(false), 5.0 * LOSS_SHARE);
    }
}
