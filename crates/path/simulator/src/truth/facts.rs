//! What is known of a scenario before it runs.

use crate::Scenario;
use control::Algorithm;
use link::{LinkConfig, Loss, Queue, Rate, Schedule};
use record::Limit;
use topology::{PathError, PathSpec};
use units::Nanos;

/// TCP payload of an IP packet of 1500 bytes: timestamps are on.
pub(super) const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;
/// Changes by less are not called a change of path.
const MIN_CHANGE: f64 = 1.15;

/// Losses are clustered if so many packets are lost at a time on average.
const CLUSTER: f64 = 2.0;

/// The static facts of a scenario.
pub(super) struct Facts<'a> {
    pub(super) scenario: &'a Scenario,
    forward: Schedule,
    reverse: Schedule,
}

/// The settings of the path at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Settings {
    /// Bottleneck rate, bit/s; infinite if unlimited.
    pub(super) rate: f64,
    /// RTT without queueing, s.
    pub(super) rtt_s: f64,
    /// Size of the queue in BDP.
    pub(super) depth: f64,
    /// The queue is managed: CoDel, FQ-CoDel, PIE or RED.
    pub(super) managed: bool,
    /// The loss model draws clusters.
    pub(super) clustered: bool,
    /// Nearly everything is lost: an outage.
    pub(super) outage: bool,
}

impl<'a> Facts<'a> {
    pub(super) fn of(scenario: &'a Scenario) -> Result<Self, PathError> {
        let [up, down] = scenario.path.parse::<PathSpec>()?.schedules(0);
        let (forward, reverse) = if scenario.reverse { (down, up) } else { (up, down) };
        Ok(Facts { scenario, forward, reverse })
    }

    pub(super) fn at(&self, t_s: f64) -> Settings {
        self.settings(nanos(t_s))
    }

    fn settings(&self, now: Nanos) -> Settings {
        let (forward, reverse) = (self.forward.at(now).0, self.reverse.at(now).0);
        let rtt_s = (forward.delay + reverse.delay).as_secs_f64();
        let rate = rate(forward);
        let queue = match forward.queue.limit() {
            link::Limit::Bytes(bytes) => bytes.as_f64(),
            link::Limit::Packets(packets) => packets as f64 * 1500.0,
        };
        Settings {
            rate,
            rtt_s,
            depth: queue * 8.0
                / (rate * (rtt_s + held_back_s(forward) + held_back_s(reverse))).max(1.0),
            managed: !matches!(forward.queue, Queue::DropTail(_) | Queue::DropHead(_)),
            clustered: matches!(&forward.loss, Loss::GilbertElliott(ge) if ge.losses_per_cluster() >= CLUSTER),
            outage: matches!(&forward.loss, Loss::Bernoulli(loss) if loss.fraction() > 0.5),
        }
    }

    /// When the rate, the delay or whether there is an outage changes, s.
    pub(super) fn changes(&self) -> Vec<f64> {
        let mut before = self.at(0.0);
        let differs = |at: &f64| {
            let settings = self.at(*at);
            let differs = settings.differs(&before);
            before = if differs { settings } else { before };
            differs
        };
        self.scheduled().into_iter().filter(differs).collect()
    }

    /// When what drops packets changes, s: the loss model, the policer or the queue.
    pub(super) fn drops_change(&self) -> Vec<f64> {
        let drops = |at: f64| {
            let config = self.forward.at(nanos(at)).0;
            (config.loss.clone(), config.policer, config.queue)
        };
        let mut before = drops(0.0);
        let differs = |at: &f64| {
            let now = drops(*at);
            let differs = now != before;
            before = now;
            differs
        };
        self.scheduled().into_iter().filter(differs).collect()
    }

    /// Every scheduled change of a setting, s.
    fn scheduled(&self) -> Vec<f64> {
        let end = self.scenario.seconds;
        let (mut now, mut times) = (Nanos(0), Vec::new());
        loop {
            let next = [&self.forward, &self.reverse].map(|schedule| schedule.at(now).1);
            let Some(next) = next.into_iter().flatten().min() else { return times };
            now = next;
            let at = now.secs_f64();
            if at >= end || times.len() > 10_000 {
                return times;
            }
            times.push(at);
        }
    }

    /// Whether there was an outage at any time between two, s.
    pub(super) fn outage_between(&self, from_s: f64, to_s: f64) -> bool {
        let within = |at: &f64| (from_s..=to_s).contains(at);
        let changes = self.changes().into_iter().filter(within);
        changes.chain([from_s]).any(|at| self.at(at).outage)
    }

    /// The largest bottleneck rate until `to_s`, bit/s.
    pub(super) fn best_rate(&self, to_s: f64) -> f64 {
        let changes = self.changes().into_iter().filter(|at| *at <= to_s);
        changes.map(|at| self.at(at).rate).fold(self.at(0.0).rate, f64::max)
    }

    /// The payload that the path's best rate carries, bit/s.
    pub(super) fn payload_rate(&self) -> f64 {
        self.best_rate(self.scenario.seconds) * PAYLOAD_SHARE
    }

    /// Payload that the measured streams' settings allow: `-b` and pacing, bit/s.
    pub(super) fn allowed(&self, rate: Option<units::BitRate>) -> Option<f64> {
        rate.map(|rate| rate.as_f64() * f64::from(self.scenario.streams))
    }

    /// The data's direction delivers packets out of order.
    pub(super) fn reorders(&self) -> bool {
        let start = &self.forward.start;
        start.reorder.is_some() || start.jitter.is_some_and(|jitter| jitter.overtake)
    }

    /// There is cross traffic.
    pub(super) const fn is_shared(&self) -> bool {
        !self.scenario.cross.is_empty()
    }

    /// A middlebox alters window scaling.
    pub(super) fn window_scaling(&self) -> bool {
        self.forward.start.window_scale.is_some() || self.reverse.start.window_scale.is_some()
    }

    /// Spans of that limit shorter than this are not segments of their own, s.
    pub(super) fn shortest_segment_s(&self, limit: Limit) -> f64 {
        let rtt_s = self.at(0.0).rtt_s;
        let is_bbr = matches!(self.scenario.congestion, Algorithm::Bbr | Algorithm::Bbr3);
        if limit == Limit::CongestionAvoidance && is_bbr {
            // Every 10 s BBR empties the path for 200 ms and a round trip (version 3: every 5 s,
            // down to half a BDP), to see its minimum RTT, and fills it again.
            return (6.0 * rtt_s).max(1.0);
        }
        (2.0 * rtt_s).max(0.3)
    }
}

impl Settings {
    fn differs(&self, other: &Settings) -> bool {
        let far = |one: f64, other: f64| one.max(other) > one.min(other) * MIN_CHANGE;
        far(self.rate, other.rate) || far(self.rtt_s, other.rtt_s) || self.outage != other.outage
    }
}

/// Rounded: a change is in effect at its own time.
fn nanos(t_s: f64) -> Nanos {
    Nanos((t_s.max(0.0) * 1e9).round() as u64)
}

/// Packets that may not overtake wait for those that jitter held up: by about three times
/// its scale where many are in flight.
fn held_back_s(config: &LinkConfig) -> f64 {
    let jitter = config.jitter.filter(|jitter| !jitter.overtake);
    jitter.map_or(0.0, |jitter| 3.0 * jitter.scale.as_secs_f64())
}

fn rate(config: &LinkConfig) -> f64 {
    match &config.rate {
        Rate::Unlimited => f64::INFINITY,
        Rate::Constant(rate) => rate.as_f64(),
        Rate::TokenBucket(bucket) => bucket.rate.as_f64(),
        Rate::Trace(trace) => trace.mean_rate().as_f64(),
    }
}
