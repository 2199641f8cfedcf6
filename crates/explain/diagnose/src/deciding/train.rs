//! A train of datagrams above the bottleneck's rate tells a policer from a shallow queue.
//!
//! A token bucket of B bytes and a drop-tail queue of B bytes drop exactly the same packets, so
//! no statistic of losses tells them apart. But a queue delays each datagram until it overflows,
//! and a bucket delays none. The growth of the one-way delay before the first loss is compared
//! with what a queue would have added, which follows from the times of sending and the rate at
//! which datagrams arrive once losses are regular. The sender's rate may rise, as the bottleneck's
//! is not known: what counts is the time from when it was passed. Only differences of delays count,
//! so the two clocks need not agree; they drift by at most 0.1 ms a second, and a queue grows by
//! 200 ms a second at 1.25 times its rate.

use model::statistics::median;
use record::{Limit, TimedDatagram};
use units::{Rtt, significant};

/// Shares of a queue's growth: below, the bottleneck polices; from it on, it queues. Policers
/// showed at most 0.11 and queues at least 0.85 (docs/design/diagnosis.md).
const THRESHOLD: f64 = 0.2;

/// The growth must be this many standard errors away from the threshold.
const ERRORS: f64 = 2.0;

/// A share of a queue's growth that neither a policer nor a queue shows: other traffic.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = -0.5..=2.0;

/// The fewest datagrams before the first loss.
const MIN_BEFORE: usize = 10;

/// How far a train is above the bottleneck's rate while datagrams are lost: less is no overload.
const OVERDRIVE: std::ops::RangeInclusive<f64> = 1.04..=8.0;

/// Losses that are read, in a row or alone, and the fewest of them.
const MAX_LOSSES: usize = 40;
const MIN_LOSSES: usize = 20;

/// How far the level of a full bottleneck differs from loss to loss, in datagrams. With 20 random
/// losses it differs by about 6.
const WANDERS: f64 = 2.0;

/// The datagrams before the first loss, in distances between later losses: a bucket or queue
/// held at least as many datagrams.
const MIN_DISTANCES: f64 = 2.0;

/// The largest share of other losses before the bottleneck was full.
const STRAY: f64 = 0.02;

/// Groups of datagrams before the first loss; the median of each is robust against stalls.
const GROUPS: usize = 5;

/// The result of a train.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Train {
    /// Datagrams that arrived.
    pub received: usize,
    /// Datagrams that were lost.
    pub lost: u64,
    /// Datagrams that arrived between the time when the bottleneck's rate was passed and the first
    /// loss; zero where it did not become full.
    pub before_loss: usize,
    /// The sending rate over the arrival rate once the bottleneck was full; `None` where it did
    /// not become full.
    pub overdrive: Option<f64>,
    /// Time between arrivals then, in µs.
    pub interval_us: Option<f64>,
    /// The growth of the delay before the first loss; `None` with too few datagrams.
    pub growth: Option<Growth>,
}

/// The growth of the one-way delay before the first loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Of the first to the last fifth of the datagrams, in µs.
    pub delay_us: f64,
    /// The same over what a queue would have added.
    pub ratio: f64,
    /// The standard error of the ratio.
    pub error: f64,
}

impl Growth {
    /// The limit that it shows; `None` if it is within its error of the threshold.
    fn limit(&self) -> Option<Limit> {
        if !PLAUSIBLE.contains(&self.ratio) {
            None
        } else if self.ratio - ERRORS * self.error >= THRESHOLD {
            Some(Limit::ShallowQueue)
        } else {
            (self.ratio + ERRORS * self.error < THRESHOLD).then_some(Limit::Policer)
        }
    }
}

impl Train {
    /// Reads the arrivals of a train, in any order.
    #[must_use]
    pub fn read(arrivals: &[TimedDatagram]) -> Self {
        let mut all = arrivals.to_vec();
        all.sort_by_key(|datagram| datagram.number);
        all.dedup_by_key(|datagram| datagram.number);
        let span = all.first().zip(all.last()).map_or(0, |(a, b)| b.number - a.number);
        let lost = (span.saturating_add(1)).saturating_sub(all.len() as u64);
        let lost = if all.is_empty() { 0 } else { lost };
        let full = full(&all);
        Train {
            received: all.len(),
            lost,
            before_loss: full.as_ref().map_or(0, |(busy, _)| busy.len()),
            overdrive: full.as_ref().map(|(_, full)| full.overdrive),
            interval_us: full.as_ref().map(|(_, full)| full.interval),
            growth: full.and_then(|(busy, full)| growth(&busy, &full)),
        }
    }

    /// The limit that it shows.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        self.growth.and_then(|growth| growth.limit())
    }

    /// The observation, as a clause.
    #[must_use]
    pub fn saw(&self) -> String {
        let Some(overdrive) = self.overdrive else {
            return if self.lost == 0 {
                format!("none of {} datagrams was lost", self.received)
            } else {
                "the losses are not those of a full bottleneck".to_owned()
            };
        };
        let times = significant(overdrive, 3);
        let Some(growth) = self.growth else {
            return format!(
                "only {} datagrams arrived before the first loss, at {times} times the rate",
                self.before_loss
            );
        };
        let delay = Rtt::from_secs(growth.delay_us.max(0.0) * 1e-6);
        format!(
            "over the {} datagrams before the first loss, at {times} times the bottleneck's rate, \
             the one-way delay grew by {delay}, {:.0} % (± {:.0} %) of the delay that a queue adds",
            self.before_loss,
            (100.0 * growth.ratio).max(0.0),
            (100.0 * growth.error).max(1.0)
        )
    }
}

/// The bottleneck once it is full.
struct Full {
    /// Time between arrivals, in µs, and its standard error.
    interval: f64,
    interval_error: f64,
    overdrive: f64,
}

/// A datagram with the queue that it would meet, in µs.
struct Queued {
    datagram: TimedDatagram,
    queue: f64,
}

/// The bottleneck once it is full, with the datagrams from when its rate was passed until the first
/// loss; `None` where the losses are few or irregular. A loss of another cause may come earlier.
fn full(all: &[TimedDatagram]) -> Option<(Vec<Queued>, Full)> {
    let gaps = all.windows(2).enumerate().filter(|(_, pair)| is_gap(pair));
    let mut stray = 0;
    for (index, pair) in gaps {
        let (before, after) = all.split_at(index + 1);
        if stray as f64 > STRAY * before.len() as f64 {
            return None;
        }
        if let Some((full, distance)) = Full::of(after) {
            let busy = busy(before, &full);
            if busy.len() as f64 >= MIN_DISTANCES * distance {
                return Some((busy, full));
            }
        }
        stray += missing(pair);
    }
    None
}

fn missing(pair: &[TimedDatagram]) -> u64 {
    pair.last().zip(pair.first()).map_or(0, |(next, one)| next.number - one.number - 1)
}

fn is_gap(pair: &[TimedDatagram]) -> bool {
    missing(pair) > 0
}

impl Full {
    /// Of the datagrams from the first loss on, with the mean distance between losses.
    ///
    /// At each loss the bottleneck is full, so between two losses it has served as many datagrams as
    /// arrived. At random loss this difference wanders.
    fn of(after: &[TimedDatagram]) -> Option<(Self, f64)> {
        let at = |index: usize| Some((index as f64, micros(after.get(index)?.sent_us)));
        let gaps = after.windows(2).enumerate().filter(|(_, pair)| is_gap(pair));
        let gaps = gaps.take(MAX_LOSSES);
        let losses: Vec<(f64, f64)> = gaps.filter_map(|(index, _)| at(index)).collect();
        let (first, last) = (losses.first()?, losses.last()?);
        let (arrived, time) = (last.0 - first.0, last.1 - first.1);
        if losses.len() < MIN_LOSSES {
            return None;
        }
        let interval = Some(time / arrived).filter(|interval| *interval > 0.0)?;
        let filled = |loss: &(f64, f64)| loss.0 - first.0 - (loss.1 - first.1) / interval;
        let (low, high) = losses
            .iter()
            .map(filled)
            .fold((0.0, 0.0), |(low, high), level| (f64::min(low, level), f64::max(high, level)));
        let numbers = after.get(last.0 as usize)?.number - after.get(first.0 as usize)?.number;
        let (overdrive, numbers) = (micros(numbers) / arrived, micros(numbers));
        let full = Full { interval, interval_error: interval / arrived, overdrive };
        let is_full = high - low <= WANDERS && OVERDRIVE.contains(&overdrive);
        is_full.then(|| (full, numbers / (losses.len() - 1) as f64))
    }
}

/// The datagrams since a queue that serves one each `full.interval` was last empty.
fn busy(before: &[TimedDatagram], full: &Full) -> Vec<Queued> {
    let mut busy: Vec<Queued> = Vec::new();
    let mut previous = None;
    for datagram in before {
        let sent = micros(datagram.sent_us);
        // Lindley's recursion: what was left of the queue, and the datagram before.
        let queue = match (busy.last(), previous) {
            (Some(last), Some(previous)) => last.queue + full.interval - (sent - previous),
            _ => 0.0,
        };
        if queue <= 0.0 {
            busy.clear();
        }
        previous = Some(sent);
        busy.push(Queued { datagram: *datagram, queue: queue.max(0.0) });
    }
    busy
}

/// The growth of the delay before the first loss, against that of a queue.
fn growth(busy: &[Queued], full: &Full) -> Option<Growth> {
    if busy.len() < MIN_BEFORE {
        return None;
    }
    let origin = busy.first()?.datagram;
    let delay = |one: &Queued| {
        let passed = |now: u64, then: u64| micros(now) - micros(then);
        passed(one.datagram.arrived_us, origin.arrived_us)
            - passed(one.datagram.sent_us, origin.sent_us)
    };
    let delays: Vec<f64> = busy.iter().map(delay).collect();
    let queues: Vec<f64> = busy.iter().map(|one| one.queue).collect();
    let medians = |values: &[f64]| -> Option<Vec<f64>> {
        let at = |group: usize| group * values.len() / GROUPS;
        (0..GROUPS).map(|group| median(values.get(at(group)..at(group + 1))?)).collect()
    };
    let (delays, queues) = (medians(&delays)?, medians(&queues)?);
    let grown = |values: &[f64]| Some(values.last()? - values.first()?);
    let (delay_us, expected) = (grown(&delays)?, grown(&queues)?);
    if expected <= 0.0 {
        return None;
    }
    let ratio = delay_us / expected;
    let residuals: Vec<f64> = delays.iter().zip(&queues).map(|(d, q)| d - ratio * q).collect();
    let mean = residuals.iter().sum::<f64>() / GROUPS as f64;
    let spread = residuals.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
    // Two of the five are used up by the line.
    let of_delays = (2.0 * spread / (GROUPS as f64 - 2.0)).sqrt() / expected;
    let of_rate = ratio * full.interval_error * 0.8 * busy.len() as f64 / expected;
    let error = of_delays.hypot(of_rate);
    (ratio.is_finite() && error.is_finite()).then_some(Growth { delay_us, ratio, error })
}

/// A count or a time as a number: those of a train are far below 2^53.
fn micros(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
