//! One step of a run: its flows are opened, run for a time and are measured.

use super::bulk::{self, Budget, BulkFlow};
use super::ecn::Observed;
use super::gaps::{self, Gaps};
use super::hops;
use super::interval;
use super::loss::Counted;
use super::message::{
    MAX_FLOWS, PageMessage, PageReport, Plan, ProbePlace, Probes, ServerMessage, StepKind,
    StepResult,
};
use super::requests::MAX_REQUESTS;
use super::series::Series;
use super::settings;
use super::validity::{self, Bounds, Ending};
use super::{Arrival, Carrier, Registered, Run};
use crate::limits::Admission;
use crate::websocket::{PEER_TIME, WebSocket};
use host::clock;
use model::statistics;
use record::{Finding, LatencyProbe, Measurement};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use units::ByteCount;

/// The time in which the page opens the first of a step's flows; and all of them, after which the step
/// begins with those there are: where handshakes are lost, the fourth SYN leaves after 7 s (RFC 6298).
const OPEN_TIME: Duration = Duration::from_secs(15);
const ALL_OPEN_TIME: Duration = Duration::from_secs(8);
/// The interval of samples in the first seconds, in which a connection ramps up, and after.
const FIRST_INTERVAL: Duration = Duration::from_millis(10);
const FIRST_SECONDS: f64 = 2.0;
/// The interval of what the page is shown, and of samples after the first seconds.
pub(super) const SHOW_SECONDS: f64 = 0.1;
/// The time in which flows end, and the page reports on a step.
const END_TIME: Duration = Duration::from_secs(4);
/// Probes of a kind that are kept of a step.
const MAX_PROBES: usize = 4000;
/// RTTs count as loaded after this share of a step. CUBIC, which HyStart ends early, fills a deep
/// queue with a third of a second in each of several seconds, and no step is long enough for all of it.
const LOADED_FROM: f64 = 0.6;
/// Unsent bytes before the rate is known.
const FIRST_UNSENT: ByteCount = ByteCount::from_bytes(128 << 10);

/// The reason a run ends without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// The page has gone.
    Left,
    /// It did something wrong, or the server cannot go on.
    Problem(String),
}

pub(super) fn problem<T>(message: impl Into<String>) -> Result<T, Ended> {
    Err(Ended::Problem(message.into()))
}

/// The transport that is HTTP requests.
pub(super) const REQUESTS: &str = "http";

/// What a step showed.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) plan: Plan,
    pub(super) result: StepResult,
    pub(super) measurement: Option<Measurement>,
    pub(super) own: Vec<LatencyProbe>,
    pub(super) loaded: Vec<LatencyProbe>,
    pub(super) total: Vec<(f64, u64)>,
    pub(super) loss: Option<f64>,
    /// The load of the browser's machine, as a share of the delays of an idle thread.
    pub(super) machine_busy: Option<f64>,
    pub(super) datagrams: Option<Counted>,
    /// How data arrived, in a step without an experiment.
    pub(super) gaps: Option<Gaps>,
}

impl Outcome {
    /// Whether it is a step of a kind without an experiment.
    pub(super) fn is_plain(&self, kind: StepKind) -> bool {
        self.plan.kind == kind && !self.plan.is_experiment()
    }

    /// The RTTs of probes on a connection of their own once it was loaded, ms.
    pub(super) fn rtts_under_load(&self) -> impl Iterator<Item = f64> {
        self.since_loaded(&self.own)
    }

    /// The RTTs of probes within the loaded connections, ms.
    pub(super) fn rtts_within_load(&self) -> impl Iterator<Item = f64> {
        self.since_loaded(&self.loaded)
    }

    fn since_loaded(&self, probes: &[LatencyProbe]) -> impl Iterator<Item = f64> {
        let from_s = loaded_from(self.result.seconds);
        let replies = probes.iter().filter(move |probe| probe.at_s >= from_s);
        replies.filter_map(|probe| probe.rtt_ms)
    }

    /// The finding of its measurement.
    pub(super) fn finding(&self) -> Option<&Finding> {
        self.result.finding.as_ref()
    }
}

/// What the page says of the current step.
#[derive(Debug, Default)]
pub(super) struct Board {
    step: u32,
    own: Vec<LatencyProbe>,
    loaded: Vec<LatencyProbe>,
    /// What it says of the datagrams, once it does.
    pub(super) datagrams: Option<Option<String>>,
    report: Option<PageReport>,
}

impl Board {
    pub(super) fn new(step: u32) -> Self {
        Board { step, ..Board::default() }
    }

    pub(super) fn take(&mut self, text: &str) -> Result<(), Ended> {
        let message = PageMessage::parse(text).map_err(Ended::Problem)?;
        let step = match &message {
            PageMessage::Hello { .. } => return problem("hello is said once"),
            PageMessage::Received { step, .. } => *step,
            PageMessage::Probes(probes) => probes.step,
            PageMessage::Datagrams(datagrams) => datagrams.step,
            PageMessage::Page(report) => report.step,
        };
        if step > self.step {
            return problem(format!("step {step} has not begun"));
        }
        match message {
            _ if step < self.step => {}
            PageMessage::Probes(probes) => self.probes(&probes),
            PageMessage::Datagrams(datagrams) => self.datagrams = Some(datagrams.received),
            PageMessage::Page(report) => self.report = Some(report),
            _ => {}
        }
        Ok(())
    }

    fn probes(&mut self, probes: &Probes) {
        let kept = match probes.on {
            ProbePlace::Own => &mut self.own,
            ProbePlace::Loaded => &mut self.loaded,
        };
        let room = MAX_PROBES.saturating_sub(kept.len());
        kept.extend(
            probes.replies.iter().take(room).map(|(sent_ms, rtt_ms)| LatencyProbe {
                at_s: sent_ms / 1e3,
                rtt_ms: Some(*rtt_ms),
            }),
        );
    }
}

/// What steps need of their run.
pub(super) struct Stage {
    pub(super) control: WebSocket,
    /// The run's place among those of the server, which whoever learns of its end may take at once.
    pub(super) place: Option<Registered>,
    pub(super) client: SocketAddr,
    pub(super) run: Arc<Run>,
    pub(super) admission: Arc<Admission>,
    pub(super) arrivals: mpsc::Receiver<Arrival>,
    pub(super) budget: Arc<Budget>,
    /// The number of the next step.
    pub(super) next: u32,
    /// Whether flows may be HTTP requests.
    pub(super) by_requests: bool,
    /// Median RTT without load, ms.
    pub(super) rtt_idle: Option<f64>,
    pub(super) ecn: Observed,
}

impl Stage {
    pub(super) async fn say(&mut self, message: &ServerMessage<'_>) -> Result<(), Ended> {
        let text = serde_json::to_string(message)
            .map_err(|error| Ended::Problem(format!("cannot serialise: {error}")))?;
        self.control.send_text(&text).await.map_err(|_| Ended::Left)
    }

    /// Carries out a step, which ends early when it has taken `max_bytes`.
    pub(super) async fn step(&mut self, mut plan: Plan, max_bytes: u64) -> Result<Outcome, Ended> {
        let step = self.next;
        self.next += 1;
        let mut board = Board::new(step);
        let flows = if plan.kind.is_transfer() { plan.flows.min(MAX_FLOWS) } else { 0 };
        self.run.expect(step, flows);
        let by_requests = self.by_requests && flows <= MAX_REQUESTS;
        let transport = if by_requests { REQUESTS } else { "websocket" };
        self.say(&ServerMessage::Step { step, transport, plan: &plan, datagrams: None }).await?;
        let arrivals = self.gather(flows, &mut board).await?;
        plan.flows = arrivals.len() as u32;
        // One that opens later would be measured by nobody.
        self.run.expect(step, 0);
        let (stop, stopping) = watch::channel(false);
        let sends = plan.kind == StepKind::Download;
        let mut congestion = None;
        let mut running = Vec::new();
        for Arrival { carrier, connection, .. } in arrivals {
            settings::apply(&plan, &connection).map_err(Ended::Problem)?;
            congestion = connection.congestion();
            let _ = connection.set_unsent_limit(Some(FIRST_UNSENT));
            let budget = Arc::clone(&self.budget);
            running.push(match carrier {
                Carrier::Socket(parts) => {
                    bulk::start(parts, connection, sends, stopping.clone(), budget).map_err(
                        |error| {
                            Ended::Problem(format!("the server cannot start a thread: {error}"))
                        },
                    )?
                }
                Carrier::Request(waiting) if waiting.sends == sends => {
                    waiting.start(connection, stopping.clone(), budget)
                }
                Carrier::Request(_) => return problem("a flow is of the other direction"),
            });
        }
        let mut series = Series::new(plan.kind, running.len());
        let began = clock::now();
        let bounds = Bounds { seconds: plan.seconds, longest: plan.longest, bytes: max_bytes };
        let connections = running.iter().map(|flow| flow.state.connection.clone()).collect();
        let watch = gaps::Watch::begin(&plan, connections);
        let phase = hop_phase(&plan);
        let ending = self.measure(bounds, began, &running, &mut series, &mut board, phase).await;
        self.run.hops.enter(None);
        let gaps = watch.and_then(gaps::Watch::end);
        let ending = ending?;
        let _ = stop.send(true);
        let seconds = began.elapsed().as_secs_f64();
        self.ecn.take(plan.kind, running.iter().map(|flow| &flow.state.connection));
        self.finish(running, &mut board).await?;
        let mut outcome = self.outcome(plan, series, board, congestion, (ending, seconds));
        outcome.gaps = gaps;
        self.say(&ServerMessage::StepResult(&outcome.result)).await?;
        Ok(outcome)
    }

    /// Waits until the page has opened the flows of the step, or those that can be opened in time.
    async fn gather(&mut self, flows: u32, board: &mut Board) -> Result<Vec<Arrival>, Ended> {
        let mut arrived = Vec::new();
        let (all, first) = (tokio::time::sleep(ALL_OPEN_TIME), tokio::time::sleep(OPEN_TIME));
        tokio::pin!(all, first);
        while arrived.len() < flows as usize {
            tokio::select! {
                arrival = self.arrivals.recv() => match arrival {
                    Some(arrival) if arrival.step == board.step => arrived.push(arrival),
                    Some(_) => {}
                    None => return problem("the run has ended"),
                },
                text = self.control.text() => board.take(&text.ok_or(Ended::Left)?)?,
                () = &mut all, if !arrived.is_empty() => break,
                () = &mut first => return problem("the page did not open its flows in time"),
            }
        }
        arrived.sort_by_key(|arrival| arrival.number);
        Ok(arrived)
    }

    async fn measure(
        &mut self,
        bounds: Bounds,
        began: Instant,
        flows: &[BulkFlow],
        series: &mut Series,
        board: &mut Board,
        phase: Option<u8>,
    ) -> Result<Ending, Ended> {
        let mut ticks = interval(FIRST_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut sampled, mut shown) = (f64::NEG_INFINITY, 0.0);
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => {}
                text = self.control.text() => {
                    board.take(&text.ok_or(Ended::Left)?)?;
                    continue;
                }
            }
            let t = began.elapsed().as_secs_f64();
            if flows.is_empty() || is_loaded(bounds, t, series.bytes()) {
                self.run.hops.enter(phase);
            }
            let ending = validity::ending(bounds, t, flows, series, self.budget.left() == 0);
            let is_due = t < FIRST_SECONDS || t - sampled >= SHOW_SECONDS || ending.is_some();
            if !flows.is_empty() && is_due {
                series.sample(t, flows);
                sampled = t;
            }
            if let Some(ending) = ending {
                return Ok(ending);
            }
            if !flows.is_empty() && t - shown >= SHOW_SECONDS {
                shown = t;
                self.show(board.step, t, series).await?;
            }
        }
    }

    async fn show(&mut self, step: u32, t: f64, series: &mut Series) -> Result<(), Ended> {
        let flows = series.show(t);
        let rtts: Vec<f64> = flows.iter().filter_map(|flow| flow.rtt).collect();
        let total = |of: fn(&super::message::FlowSample) -> Option<u64>| -> Option<u64> {
            flows.iter().map(of).sum()
        };
        let sample = ServerMessage::Sample {
            step,
            t,
            rate: flows.iter().map(|flow| flow.rate).sum(),
            bytes: series.bytes(),
            rtt: statistics::mean(&rtts),
            cwnd: total(|flow| flow.cwnd),
            retransmits: total(|flow| flow.retransmits),
            flows: &flows,
        };
        self.say(&sample).await
    }

    /// Waits for the ends of flows, and for what the page says of the step.
    pub(super) async fn finish(
        &mut self,
        flows: Vec<BulkFlow>,
        board: &mut Board,
    ) -> Result<(), Ended> {
        let ends = async {
            for flow in flows {
                let _ = flow.done.await;
            }
        };
        tokio::pin!(ends);
        let deadline = tokio::time::sleep(END_TIME);
        tokio::pin!(deadline);
        let mut has_ended = false;
        while !has_ended || board.report.is_none() {
            tokio::select! {
                () = &mut ends, if !has_ended => has_ended = true,
                text = self.control.text() => board.take(&text.ok_or(Ended::Left)?)?,
                () = &mut deadline => break,
            }
        }
        Ok(())
    }

    pub(super) fn outcome(
        &mut self,
        plan: Plan,
        series: Series,
        board: Board,
        congestion: Option<String>,
        (ending, seconds): (Ending, f64),
    ) -> Outcome {
        let loaded = plan.kind.is_transfer();
        let from_s = if loaded { loaded_from(seconds) } else { 0.0 };
        let rtts: Vec<f64> = board
            .own
            .iter()
            .filter(|probe| probe.at_s >= from_s)
            .filter_map(|probe| probe.rtt_ms)
            .collect();
        if plan.kind == StepKind::Idle {
            self.rtt_idle = statistics::median(&rtts);
        }
        let browser = board.report.and_then(|report| report.busy);
        let is_alone = self.admission.runs() <= 1;
        let measurement = loaded.then(|| {
            series.measurement(&plan, congestion.as_deref(), self.client, browser, is_alone)
        });
        let finding = measurement.as_ref().map(diagnose::explain);
        let invalid_because = validity::invalid(&plan, board.report, ending, seconds);
        let rate = finding.as_ref().map(|finding| finding.throughput_bps.as_f64());
        let measured = finding.as_ref().map(|finding| (finding.steady, finding.throughput_bps));
        let result = StepResult {
            interval: measured
                .and_then(|(steady, rate)| interval::of_rate(&series.total, steady, rate.as_f64())),
            rtt_interval: interval::of_figure(&rtts, statistics::median),
            jitter_interval: interval::of_figure(&rtts, jitter),
            step: board.step,
            kind: plan.kind,
            congestion: congestion.filter(|_| plan.kind == StepKind::Download),
            rate: rate.filter(|rate| *rate > 0.0),
            average: finding.as_ref().map(|finding| finding.average_bps.as_f64()),
            bytes: series.bytes(),
            seconds,
            flows: plan.flows,
            valid: invalid_because.is_empty(),
            invalid_because,
            rtt_idle: self.rtt_idle,
            rtt_loaded: statistics::median(&rtts).filter(|_| loaded),
            jitter: jitter(&rtts),
            sentence: finding.as_ref().map(|finding| finding.sentence.clone()),
            finding,
        };
        Outcome {
            loss: series.loss(),
            machine_busy: board.report.and_then(|report| report.machine_busy),
            total: series.total,
            own: board.own,
            loaded: board.loaded,
            datagrams: None,
            gaps: None,
            plan,
            result,
            measurement,
        }
    }

    /// Says why the run ends.
    pub(super) async fn fail(&mut self, why: &str) {
        self.place = None;
        let message = ServerMessage::Problem { message: why, retry_after: None };
        let _ = timeout(PEER_TIME, self.say(&message)).await;
        self.control.close(::websocket::CloseCode::POLICY, why).await;
    }
}

/// The time in a step of so many seconds from which its RTTs are those under load.
pub(super) fn loaded_from(seconds: f64) -> f64 {
    seconds * LOADED_FROM
}

/// Whether a step is in the part in which its RTTs are those under load: of its time, or of its
/// bytes, which may end it first.
fn is_loaded(bounds: Bounds, t: f64, bytes: u64) -> bool {
    t >= loaded_from(bounds.seconds) || bytes as f64 >= bounds.bytes as f64 * LOADED_FROM
}

/// What probes of routers measure in a step; `None` in an experiment.
fn hop_phase(plan: &Plan) -> Option<u8> {
    match plan.kind {
        _ if plan.is_experiment() => None,
        StepKind::Idle => Some(hops::IDLE),
        StepKind::Download => Some(hops::DOWNLOAD),
        StepKind::Upload => Some(hops::UPLOAD),
        StepKind::Loss => None,
    }
}

/// The mean difference of successive RTTs, ms, as Cloudflare counts jitter.
fn jitter(rtts: &[f64]) -> Option<f64> {
    let steps: Vec<f64> =
        rtts.windows(2).filter_map(|pair| Some((pair.get(1)? - pair.first()?).abs())).collect();
    statistics::mean(&steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_other_steps_do_not_count() {
        let mut board = Board { step: 2, ..Board::default() };
        let page = |step: u32| format!(r#"{{"type":"page","step":{step},"busy":0.5}}"#);
        board.take(&page(1)).unwrap();
        assert_eq!(board.report, None);
        board.take(&page(2)).unwrap();
        assert_eq!(board.report.unwrap().busy, Some(0.5));
        assert!(board.take(&page(3)).is_err());
        assert!(board.take(r#"{"type":"hello","version":1}"#).is_err());
    }

    #[test]
    fn probes_are_bounded() {
        let mut board = Board::default();
        let replies = vec!["[1,1]"; 1000].join(",");
        let text = format!(r#"{{"type":"probes","step":0,"on":"own","replies":[{replies}]}}"#);
        (0..10).for_each(|_| board.take(&text).unwrap());
        assert_eq!(board.own.len(), MAX_PROBES);
    }

    #[test]
    fn a_step_is_loaded_by_its_time_or_by_its_bytes() {
        let bounds = Bounds { seconds: 5.0, longest: 5.0, bytes: 1000 };
        assert!(!is_loaded(bounds, 2.9, 599));
        assert!(is_loaded(bounds, 3.0, 0) && is_loaded(bounds, 0.1, 600));
    }

    #[test]
    fn jitter_is_the_mean_step() {
        assert_eq!(jitter(&[10.0, 12.0, 11.0]), Some(1.5));
        assert_eq!(jitter(&[10.0]), None);
    }
}
