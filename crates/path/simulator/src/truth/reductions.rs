//! What caused the latest reductions of the congestion window.

use super::facts::{Facts, Settings};
use super::windows::{self, measured};
use record::Limit;
use twin::{ConnectionTruth, TruthInterval};

/// Others send at least this share of the bottleneck's bytes where it is called shared.
pub(super) const SHARED: f64 = 0.15;
/// A drop-tail queue of at least this many BDP is deep.
pub(super) const DEEP: f64 = 0.3;

/// A timeout that was backed off follows its loss by this much more, s.
const BACKED_OFF_S: f64 = 1.0;

/// The causes of reductions, each by its recent events.
#[derive(Debug, Clone, Default)]
pub(super) struct Causes {
    weights: Vec<(Limit, f64)>,
    at_s: f64,
}

impl Causes {
    /// Events count less the longer ago they are: a half after the time constant.
    fn add(&mut self, at_s: f64, constant_s: f64, cause: Limit, weight: f64) {
        let factor = libm::exp2((self.at_s - at_s).min(0.0) / constant_s);
        self.weights.iter_mut().for_each(|(_, weight)| *weight *= factor);
        self.at_s = at_s;
        match self.weights.iter_mut().find(|(limit, _)| *limit == cause) {
            Some((_, sum)) => *sum += weight,
            None => self.weights.push((cause, weight)),
        }
    }

    /// The cause of most of the latest reductions.
    pub(super) fn latest(&self) -> Option<Limit> {
        let most = self.weights.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        most.map(|(limit, _)| *limit)
    }

    /// A cause's share of the latest reductions.
    pub(super) fn share(&self, cause: Limit) -> f64 {
        let sum = |all: &mut dyn Iterator<Item = &(Limit, f64)>| all.map(|one| one.1).sum::<f64>();
        let own = sum(&mut self.weights.iter().filter(|(limit, _)| *limit == cause));
        own / sum(&mut self.weights.iter()).max(f64::MIN_POSITIVE)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }
}

/// The first reductions of a run: those that follow each other closely.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    /// When they ended, s.
    to_s: f64,
    /// Long enough no others followed.
    alone: bool,
}

impl Beginning {
    fn of(facts: &Facts, intervals: &[TruthInterval]) -> Option<Self> {
        let rtt_s = facts.at(0.0).rtt_s;
        let mut times = intervals.iter().filter(|i| measured(i).any(|c| c.reductions > 0));
        let first = times.next()?.to_s;
        let to_s = first + (8.0 * rtt_s).max(1.0);
        let end = intervals.last().map_or(0.0, |last| last.to_s);
        let alone = times.all(|i| i.to_s <= to_s) && end - to_s >= (20.0 * rtt_s).max(2.0);
        Some(Beginning { to_s, alone })
    }
}

/// The causes up to each interval, and whether a queue drop reduced a window within it.
pub(super) fn by_interval(facts: &Facts, intervals: &[TruthInterval]) -> Vec<(Causes, bool)> {
    let changes = facts.changes();
    let mut others = facts.drops_change().into_iter().peekable();
    let beginning = Beginning::of(facts, intervals);
    let mut causes = Causes::default();
    // A handover or a step of the rate is an event of its own, and explains for a time
    // what follows from it.
    let mut change = changes.iter().copied().peekable();
    let mut changed_s = f64::NEG_INFINITY;
    let mut all = Vec::with_capacity(intervals.len());
    for (index, interval) in intervals.iter().enumerate() {
        let settings = facts.at(interval.to_s - 0.05);
        let constant_s = (8.0 * settings.rtt_s).max(1.0);
        while let Some(at) = change.next_if(|at| *at < interval.to_s) {
            // What reduced windows on the old path says nothing of the new one.
            causes = Causes { weights: vec![(Limit::PathChange, 1.0)], at_s: at };
            changed_s = at;
        }
        // Nor do reductions before the queue, the loss or the policer changed.
        while others.next_if(|at| *at < interval.to_s).is_some() {
            if interval.to_s - changed_s >= constant_s {
                causes = Causes::default();
            }
        }
        let explained = interval.to_s - changed_s < constant_s;
        let mut overflow = false;
        for (place, connection) in interval.connections.iter().enumerate() {
            if !connection.measured || connection.reductions == 0 {
                continue;
            }
            let span_s = 2.0 * settings.rtt_s + 0.2;
            let mut recent = recent_of(intervals, index, place, span_s);
            if packets_lost(&recent) == 0 {
                recent = recent_of(intervals, index, place, span_s + BACKED_OFF_S);
            }
            overflow |= recent.drops.queue > 0;
            let beginning = beginning.filter(|beginning| interval.to_s <= beginning.to_s);
            let mut cause = cause(facts, intervals, index, &settings, &recent, beginning);
            if explained && is_queue(cause) {
                cause = Limit::PathChange;
            }
            causes.add(interval.to_s, constant_s, cause, connection.reductions as f64);
        }
        all.push((causes.clone(), overflow));
    }
    all
}

fn packets_lost(recent: &ConnectionTruth) -> u64 {
    let drops = &recent.drops;
    drops.queue + drops.aqm + drops.policer + recent.lost + drops.bursts + drops.blackhole
}

/// What happened to a connection's packets within the last `span_s` up to an interval.
fn recent_of(
    intervals: &[TruthInterval],
    index: usize,
    place: usize,
    span_s: f64,
) -> ConnectionTruth {
    let mut sum = ConnectionTruth::default();
    let end = intervals[index].to_s;
    for interval in intervals[..=index].iter().rev().take_while(|i| i.to_s > end - span_s - 0.1) {
        let Some(connection) = interval.connections.get(place) else { continue };
        sum.lost += connection.lost;
        sum.marked += connection.marked;
        sum.duplicates += connection.duplicates;
        sum.drops.queue += connection.drops.queue;
        sum.drops.aqm += connection.drops.aqm;
        sum.drops.policer += connection.drops.policer;
        sum.drops.bursts += connection.drops.bursts;
        sum.drops.blackhole += connection.drops.blackhole;
    }
    sum
}

/// The cause of one reduction, by the packets that its connection lost shortly before.
fn cause(
    facts: &Facts,
    intervals: &[TruthInterval],
    index: usize,
    settings: &Settings,
    recent: &ConnectionTruth,
    beginning: Option<Beginning>,
) -> Limit {
    let drops = &recent.drops;
    let end = intervals[index].to_s;
    // A timeout follows an outage by a retransmission timer, 200 ms at least.
    let wire = if facts.outage_between(end - 2.0 * settings.rtt_s - 1.0, end) {
        Limit::PathChange
    } else if settings.clustered {
        Limit::ClusteredLoss
    } else {
        Limit::Loss
    };
    let by_packets = [
        (drops.queue + drops.aqm, None),
        (drops.policer, Some(Limit::Policer)),
        (recent.lost, Some(wire)),
        (drops.bursts, Some(Limit::ClusteredLoss)),
        (drops.blackhole, Some(Limit::PathChange)),
    ];
    let (lost, cause) =
        by_packets.into_iter().max_by_key(|(packets, _)| *packets).unwrap_or((0, None));
    if lost == 0 {
        let back = intervals[..=index].iter().rev().take_while(|i| i.to_s > end - 1.0);
        let acks_lost = back.into_iter().any(|i| i.reverse.dropped + i.reverse.lost > 0);
        return without_loss(facts, recent, acks_lost);
    }
    match cause {
        None => queue_cause(facts, intervals, index, settings, drops.aqm > 0, beginning.is_some()),
        // One event says nothing of a loss ratio or a policer: it began the slow growth.
        Some(Limit::Loss | Limit::ClusteredLoss | Limit::Policer)
            if beginning.is_some_and(|beginning| beginning.alone) =>
        {
            Limit::CongestionAvoidance
        }
        Some(cause) => cause,
    }
}

/// A window reduced though none of the packets was lost.
fn without_loss(facts: &Facts, recent: &ConnectionTruth, acks_lost: bool) -> Limit {
    if recent.marked > 0 {
        Limit::EcnMarks
    } else if facts.reorders() {
        Limit::Reordering
    } else if acks_lost {
        Limit::AckPath
    } else if facts.changes().is_empty() {
        // A needless timeout: what follows is its slow growth.
        Limit::CongestionAvoidance
    } else {
        Limit::PathChange
    }
}

fn queue_cause(
    facts: &Facts,
    intervals: &[TruthInterval],
    index: usize,
    settings: &Settings,
    managed: bool,
    first: bool,
) -> Limit {
    let (span, from) = windows::around(intervals, index, (4.0 * settings.rtt_s).max(1.0));
    if windows::sums(span, from, facts.is_shared()).others >= SHARED {
        return Limit::SharedBottleneck;
    }
    if first && settings.depth >= DEEP {
        // Slow start's overshoot, which says little of the queue.
        return Limit::CongestionAvoidance;
    }
    match () {
        () if managed => Limit::Aqm,
        () if settings.depth < 1.0 => Limit::ShallowQueue,
        () => Limit::CongestionAvoidance,
    }
}

fn is_queue(limit: Limit) -> bool {
    matches!(
        limit,
        Limit::CongestionAvoidance | Limit::ShallowQueue | Limit::Aqm | Limit::SharedBottleneck
    )
}

/// Whether all measured connections are in slow start, and none had to reduce its window.
pub(super) fn in_ramp(interval: &TruthInterval, causes: &Causes) -> bool {
    causes.is_empty() && measured(interval).all(|connection| connection.slow_start)
}
