//! The result of a run, made of its steps.

use super::advice::{self, Gain, ShownRemedy};
use super::conductor::trial;
use super::differs::{self, Method, OfBbr};
use super::ecn::Ecn;
use super::families::ShownFamilies;
use super::interval::Intervals;
use super::message::{Platform, StepKind};
use super::queue_place::QueuePlace;
use super::step::{Outcome, SHOW_SECONDS, loaded_from};
use super::validity::BUSY;
use diagnose::latency;
use model::aim::{self, Figures, Verdicts};
use model::statistics;
use record::{Decided, Finding, Limit};
use serde::Serialize;

/// The least number of RTTs for a responsiveness.
const MIN_FOR_RPM: usize = 10;
/// The share of RTTs that the trimmed mean keeps (draft-ietf-ippm-responsiveness-09, section 4.4).
const KEPT: f64 = 0.95;
/// The share of delays of an idle thread from which a machine is busy with other work.
const BUSY_MACHINE: f64 = 0.5;

/// Rates of a direction, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Rates {
    pub(super) one_flow: Option<f64>,
    pub(super) several_flows: Option<f64>,
    /// The several.
    pub(super) flows: Option<u32>,
}

impl Rates {
    pub(super) fn best(&self) -> Option<f64> {
        [self.one_flow, self.several_flows].into_iter().flatten().max_by(f64::total_cmp)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Bufferbloat {
    pub(super) grade: &'static str,
    /// Mean of both directions' increases of the RTT, ms.
    pub(super) increase: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Loss {
    pub(super) ratio: f64,
    /// The 95 % interval, where losses are counted and independent of load.
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// `webtransport` or `retransmissions`.
    pub(super) from: &'static str,
    /// Datagrams.
    pub(super) sent: Option<u32>,
    pub(super) lost: Option<u32>,
}

/// The limit, for the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ShownFinding {
    pub(super) limit: Option<Limit>,
    pub(super) sentence: String,
    pub(super) equation: Option<String>,
    pub(super) probability: Option<f64>,
    pub(super) posterior: Vec<record::Probability>,
    pub(super) experiments: Vec<String>,
}

/// A run's result. What was not measured, or is unknown, is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RunResult {
    pub(super) run: String,
    pub(super) download: Option<Rates>,
    pub(super) upload: Option<Rates>,
    pub(super) rtt_idle: Option<f64>,
    pub(super) jitter: Option<f64>,
    pub(super) rtt_download: Option<f64>,
    pub(super) rtt_upload: Option<f64>,
    pub(super) bufferbloat: Option<Bufferbloat>,
    pub(super) rpm: Option<f64>,
    pub(super) rpm_method: Option<&'static str>,
    pub(super) loss: Option<Loss>,
    pub(super) ecn: Option<Ecn>,
    /// IPv4 beside IPv6.
    pub(super) families: Option<ShownFamilies>,
    pub(super) verdicts: Option<Verdicts>,
    pub(super) finding: Option<ShownFinding>,
    /// Evidence of where the queue is.
    pub(super) queue: Option<QueuePlace>,
    /// What would raise the rate of downloads, the most effective first, and of uploads.
    pub(super) remedies: Vec<ShownRemedy>,
    pub(super) upload_remedies: Vec<ShownRemedy>,
    /// Confidence intervals of the figures.
    pub(super) intervals: Intervals,
    pub(super) gain: Option<Gain>,
    pub(super) differs: Vec<Method>,
    pub(super) valid: bool,
    pub(super) invalid_because: Vec<String>,
}

const RPM_METHOD: &str = "60,000 ms over the mean RTT of probes, without the longest 5 %: the mean of \
    probes on a connection of their own, and of probes within the loaded connections or else the \
    kernel's RTTs of these in downloads; without the handshakes of draft-ietf-ippm-responsiveness-09";

/// The result of the steps, in their order.
pub(super) fn of(
    outcomes: &[Outcome],
    decided: &[Decided],
    platform: Platform,
    id: &str,
) -> RunResult {
    let steps = Steps(outcomes);
    let (down, up) = (steps.loaded(StepKind::Download), steps.loaded(StepKind::Upload));
    let rtt = |outcome: Option<&Outcome>| outcome.and_then(|outcome| outcome.result.rtt_loaded);
    let idle = outcomes.iter().find(|outcome| outcome.plan.kind == StepKind::Idle);
    let rtt_idle = idle.and_then(|outcome| outcome.result.rtt_idle);
    let rises = [rtt(down), rtt(up)].into_iter().flatten();
    let rises: Vec<f64> = rises.filter_map(|loaded| Some(loaded - rtt_idle?)).collect();
    let increase = statistics::mean(&rises);
    let (download, upload) = (steps.rates(StepKind::Download), steps.rates(StepKind::Upload));
    let loss = loss(outcomes).or_else(|| down?.loss.map(retransmissions));
    let jitter = idle.and_then(|outcome| outcome.result.jitter);
    let figures = Figures {
        latency_ms: rtt_idle,
        jitter_ms: jitter,
        increase_ms: increase.map(|increase| increase.max(0.0)),
        loss: loss.as_ref().map(|loss| loss.ratio),
        download_bps: download.and_then(|rates| rates.best()),
    };
    let rpm = rpm(&[down, up]);
    let explained = steps.explained();
    let finding = explained.and_then(Outcome::finding);
    let mut invalid_because: Vec<String> = Vec::new();
    for reason in outcomes.iter().flat_map(|outcome| &outcome.result.invalid_because) {
        if !invalid_because.contains(reason) {
            invalid_because.push(reason.clone());
        }
    }
    let remedies = advice::of(outcomes, StepKind::Download, decided, platform);
    let finding = finding.map(|finding| shown(finding, decided, explained));
    RunResult {
        run: id.to_owned(),
        download,
        upload,
        rtt_idle,
        jitter,
        rtt_download: rtt(down),
        rtt_upload: rtt(up),
        bufferbloat: increase
            .map(|increase| Bufferbloat { grade: latency::grade(increase), increase }),
        rpm,
        rpm_method: rpm.map(|_| RPM_METHOD),
        loss,
        ecn: None,
        families: None,
        queue: None,
        verdicts: aim::verdicts(&figures),
        differs: steps.differs(finding.as_ref().and_then(|finding| finding.limit)),
        finding,
        gain: remedies.first().and_then(|remedy| remedy.gain),
        remedies,
        upload_remedies: advice::of(outcomes, StepKind::Upload, &[], platform),
        intervals: steps.intervals(idle, down, up),
        valid: invalid_because.is_empty(),
        invalid_because,
    }
}

/// The loss that datagrams showed.
fn loss(outcomes: &[Outcome]) -> Option<Loss> {
    let counted = outcomes.iter().rev().find_map(|outcome| outcome.datagrams)?;
    let interval = counted.interval();
    Some(Loss {
        ratio: counted.ratio(),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        from: "webtransport",
        sent: Some(counted.sent),
        lost: Some(counted.lost),
    })
}

/// The loss that the server's retransmissions show, under load.
fn retransmissions(ratio: f64) -> Loss {
    Loss { ratio, low: None, high: None, from: "retransmissions", sent: None, lost: None }
}

/// The steps of a run. Those that experiment with the congestion control or with
/// pacing count in no figure.
pub(super) struct Steps<'a>(pub(super) &'a [Outcome]);

impl<'a> Steps<'a> {
    pub(super) fn of(&self, kind: StepKind, several: bool) -> Option<&'a Outcome> {
        let fits =
            |outcome: &&Outcome| outcome.is_plain(kind) && (outcome.plan.flows > 1) == several;
        self.0.iter().rev().find(fits)
    }

    /// The step that loads the path most.
    fn loaded(&self, kind: StepKind) -> Option<&'a Outcome> {
        self.of(kind, true).or(self.of(kind, false))
    }

    fn rates(&self, kind: StepKind) -> Option<Rates> {
        let (one, several) = (self.of(kind, false), self.of(kind, true));
        one.or(several)?;
        Some(Rates {
            one_flow: one.and_then(|outcome| outcome.result.rate),
            several_flows: several.and_then(|outcome| outcome.result.rate),
            flows: several.map(|outcome| outcome.plan.flows),
        })
    }

    /// The transfer whose limit is told: the download with one flow, else an upload.
    fn explained(&self) -> Option<&'a Outcome> {
        self.of(StepKind::Download, false)
            .or(self.of(StepKind::Download, true))
            .or(self.of(StepKind::Upload, false))
    }

    fn intervals(
        &self,
        idle: Option<&Outcome>,
        down: Option<&Outcome>,
        up: Option<&Outcome>,
    ) -> Intervals {
        let rate = |kind, several| self.of(kind, several)?.result.interval;
        Intervals {
            download_one: rate(StepKind::Download, false),
            download_several: rate(StepKind::Download, true),
            upload_one: rate(StepKind::Upload, false),
            upload_several: rate(StepKind::Upload, true),
            rtt_idle: idle.and_then(|outcome| outcome.result.rtt_interval),
            rtt_download: down.and_then(|outcome| outcome.result.rtt_interval),
            rtt_upload: up.and_then(|outcome| outcome.result.rtt_interval),
            jitter: idle.and_then(|outcome| outcome.result.jitter_interval),
        }
    }

    /// What other tests would have shown, with the limit that the run names.
    fn differs(&self, limit: Option<Limit>) -> Vec<Method> {
        let series = |outcome: Option<&'a Outcome>| outcome.map(|outcome| &outcome.total[..]);
        let one = self.of(StepKind::Download, false);
        let bbr = self.0.iter().find(|outcome| {
            outcome.plan.congestion.as_deref() == Some("bbr") && outcome.plan.flows == 1
        });
        let is_bbr = one.is_some_and(|one| one.result.congestion.as_deref() == Some("bbr"));
        let bbr = match (series(bbr.or(one.filter(|_| is_bbr))), series(one)) {
            (Some(bbr), _) => OfBbr::Measured(bbr),
            (None, Some(series)) if one.is_some_and(trial::is_of_the_hosts) => {
                OfBbr::AsAnother(series)
            }
            _ => OfBbr::Unknown,
        };
        let by_losses = matches!(limit, Some(Limit::Loss | Limit::ClusteredLoss));
        differs::methods(series(one), by_losses, bbr, series(self.of(StepKind::Download, true)))
    }
}

/// Round trips per minute; `None` with too few replies of a kind.
fn rpm(loaded: &[Option<&Outcome>]) -> Option<f64> {
    let loaded: Vec<&Outcome> = loaded.iter().flatten().copied().collect();
    let of = |rtts: Vec<f64>| {
        let mean = statistics::trimmed_mean(&rtts, KEPT).filter(|_| rtts.len() >= MIN_FOR_RPM)?;
        (mean > 0.0).then(|| 60_000.0 / mean)
    };
    let foreign = of(loaded.iter().flat_map(|outcome| outcome.rtts_under_load()).collect())?;
    let own = of(loaded.iter().flat_map(|outcome| outcome.rtts_within_load()).collect())
        .or_else(|| of(loaded.iter().flat_map(|outcome| kernel_rtts(outcome)).collect()));
    Some(own.map_or(foreign, |own| (foreign + own) / 2.0))
}

/// The sending kernel's RTTs of the flows under load, ms.
fn kernel_rtts(outcome: &Outcome) -> Vec<f64> {
    let streams = outcome.measurement.iter().flat_map(|measurement| &measurement.streams);
    // Samples are denser in the first seconds: as many of each second.
    let evenly = |stream: &'_ record::Stream| {
        let mut next = loaded_from(outcome.result.seconds);
        let mut is_next = |at: f64| {
            let is_due = at >= next;
            next = if is_due { at + SHOW_SECONDS } else { next };
            is_due
        };
        let rtts = stream.sender.iter().filter(|sample| sample.rtt_us > 0);
        let rtts = rtts.filter(|sample| is_next(sample.t_s));
        rtts.map(|sample| f64::from(sample.rtt_us) / 1e3).collect::<Vec<_>>()
    };
    streams.flat_map(evenly).collect()
}

fn shown(finding: &Finding, decided: &[Decided], outcome: Option<&Outcome>) -> ShownFinding {
    let decision = decided.iter().rev().find(|decided| decided.limit.is_some());
    let told = decision.and_then(|decided| decided.limit);
    let overruling = decision.filter(|decided| decided.limit != finding.limit);
    let limit = told.or(finding.limit);
    let likely = finding.posterior.iter().find(|likely| Some(likely.limit) == limit);
    let is_loaded = outcome.and_then(|outcome| outcome.machine_busy) >= Some(BUSY_MACHINE);
    // The finding's sentence and equation are of its own limit.
    let mut sentence = overruling.map_or(&finding.sentence, |decided| &decided.sentence).clone();
    let browser = outcome
        .filter(|outcome| outcome.plan.kind == StepKind::Download)
        .and_then(|outcome| outcome.measurement.as_ref()?.receiver_cpu);
    if limit == Some(Limit::Cpu) && browser.is_some_and(|busy| busy >= BUSY) {
        sentence = format!("Your browser was the limit: its thread used a whole core. {sentence}");
    } else if is_loaded && matches!(limit, Some(Limit::Cpu | Limit::SlowReceiver)) {
        sentence = format!("This computer was busy: other work delayed the browser. {sentence}");
    } else if limit == Some(Limit::SlowReceiver) {
        sentence = format!("Your browser was the limit: it reads too slowly. {sentence}");
    }
    ShownFinding {
        limit,
        sentence,
        equation: finding.equation.clone().filter(|_| overruling.is_none()),
        probability: likely.map(|likely| likely.probability).filter(|_| told.is_none()),
        posterior: finding.posterior.clone(),
        experiments: decided.iter().map(|decided| decided.sentence.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_steps_has_no_figures() {
        let empty = of(&[], &[], Platform::Other, "0");
        assert_eq!((empty.rpm, &empty.finding, empty.verdicts), (None, &None, None));
        assert!(empty.valid);
    }
}
