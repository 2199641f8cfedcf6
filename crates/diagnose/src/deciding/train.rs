//! A train of datagrams above the bottleneck's rate tells a policer from a shallow queue.
//!
//! A token bucket of B bytes and a drop-tail queue of B bytes drop exactly the same packets, so
//! no statistic of losses tells them apart. But a queue delays each datagram until it overflows,
//! and a bucket delays none. The growth of the one-way delay before the first loss is compared
//! with what a queue would have added, which follows from the times of sending and the rate at
//! which datagrams arrive once losses are regular. Only differences of delays count, so the two
//! clocks need not agree; they drift by at most 0.1 ms a second, and a queue grows by 200 ms a
//! second at 1.25 times its rate.

use model::statistics::{median, percentile};
use record::{Limit, TimedDatagram};
use units::{Rtt, percent, significant};

/// Shares of a queue's growth: below, the bottleneck polices; from it on, it queues. Policers
/// showed at most 0.05 and queues at least 0.4 (docs/design/diagnosis.md).
const THRESHOLD: f64 = 0.2;

/// The growth must be this many standard errors away from the threshold.
const ERRORS: f64 = 2.0;

/// A share of a queue's growth that neither a policer nor a queue shows: other traffic.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = -0.5..=2.0;

/// The fewest datagrams before the first loss, and the fewest that arrived after it.
const LEAST_BEFORE: usize = 10;
const LEAST_AFTER: usize = 40;

/// How far a train is above the bottleneck's rate: less is no overload, more leaves too few
/// datagrams before the first loss.
const OVERDRIVE: std::ops::RangeInclusive<f64> = 1.04..=3.0;

/// Distances between losses at an overloaded bottleneck are nearly constant: their interquartile
/// range is at most this share of the median. At random loss it is 1 to 1.6.
const REGULAR: f64 = 0.7;

/// The fewest distances between losses.
const LEAST_LOSSES: usize = 8;

/// The datagrams before the first loss, in distances between later losses: a bucket or queue
/// held at least as many datagrams. At random loss the chance is e^-3.
const LEAST_DISTANCES: f64 = 3.0;

/// Groups of datagrams before the first loss; the median of each is robust against stalls.
const GROUPS: usize = 5;

/// What a train showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Train {
    /// Datagrams that arrived.
    pub received: usize,
    /// Datagrams that arrived before the first loss; all of them without any.
    pub before_loss: usize,
    /// The sending rate over the arrival rate once the bottleneck was full; `None` where it did
    /// not become full.
    pub overdrive: Option<f64>,
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
        let follows = |pair: &[TimedDatagram]| matches!(pair, [a, b] if a.number.checked_add(1) == Some(b.number));
        let gap = all.windows(2).position(|pair| !follows(pair));
        let (before, after) = all.split_at(gap.map_or(all.len(), |index| index + 1));
        let full = Full::of(before, after);
        Train {
            received: all.len(),
            before_loss: before.len(),
            overdrive: full.as_ref().map(|full| full.overdrive),
            growth: full.and_then(|full| growth(before, &full)),
        }
    }

    /// The limit that it shows.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        self.growth.and_then(|growth| growth.limit())
    }

    /// What was seen, as a clause.
    #[must_use]
    pub fn saw(&self) -> String {
        let Some(overdrive) = self.overdrive else {
            return if self.before_loss == self.received {
                format!("none of the first {} datagrams was lost", self.received)
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
             the one-way delay grew by {delay}, {} (±{}) of what a queue adds",
            self.before_loss,
            percent(growth.ratio.max(0.0)),
            percent(growth.error)
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

impl Full {
    /// `None` where the losses are few or irregular.
    fn of(before: &[TimedDatagram], after: &[TimedDatagram]) -> Option<Self> {
        if after.len() < LEAST_AFTER {
            return None;
        }
        let distance = regular_distance(after)?;
        if (before.len() as f64) < LEAST_DISTANCES * distance {
            return None;
        }
        // A loss of another cause may come first: the later half.
        let tail = after.get(after.len() / 2..)?;
        let (first, last) = (tail.first()?, tail.last()?);
        let numbers = last.number.checked_sub(first.number)? as f64;
        let sent = (micros(last.sent_us) - micros(first.sent_us)) / numbers.max(1.0);
        let (interval, interval_error) = slope(tail)?;
        let overdrive = interval / sent;
        OVERDRIVE.contains(&overdrive).then_some(Full { interval, interval_error, overdrive })
    }
}

/// The median distance between losses, in datagrams sent, if it is nearly constant. Losses in a row
/// count as one, as random losses in clusters would be regular otherwise.
fn regular_distance(after: &[TimedDatagram]) -> Option<f64> {
    let lost_next = |pair: &[TimedDatagram]| match pair {
        [one, next] if next.number - one.number > 1 => Some(micros(one.number)),
        _ => None,
    };
    let losses: Vec<f64> = after.windows(2).filter_map(lost_next).collect();
    let distances: Vec<f64> =
        losses.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?)).collect();
    if distances.len() < LEAST_LOSSES {
        return None;
    }
    let at = |share| percentile(&distances, share);
    let (low, middle, high) = (at(0.25)?, at(0.5)?, at(0.75)?);
    (high - low <= REGULAR * middle).then_some(middle)
}

/// The mean time between arrivals in µs, by least squares, and its standard error.
fn slope(arrivals: &[TimedDatagram]) -> Option<(f64, f64)> {
    let origin = micros(arrivals.first()?.arrived_us);
    let count = arrivals.len() as f64;
    let points =
        || (0u32..).map(f64::from).zip(arrivals).map(|(x, d)| (x, micros(d.arrived_us) - origin));
    let mean_x = (count - 1.0) / 2.0;
    let mean_y = points().map(|(_, y)| y).sum::<f64>() / count;
    let squares: f64 = points().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = points().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / squares;
    let residual = |(x, y): (f64, f64)| (y - mean_y - slope * (x - mean_x)).powi(2);
    let variance = points().map(residual).sum::<f64>() / (count - 2.0).max(1.0);
    let error = (variance / squares).sqrt();
    (slope.is_finite() && slope > 0.0 && error.is_finite()).then_some((slope, error))
}

/// The growth of the delay before the first loss, against that of a queue that serves one datagram
/// each `full.interval`.
fn growth(before: &[TimedDatagram], full: &Full) -> Option<Growth> {
    if before.len() < LEAST_BEFORE {
        return None;
    }
    let origin = before.first()?;
    let mut queue = 0.0;
    let mut previous = micros(origin.sent_us);
    let mut delays = Vec::with_capacity(before.len());
    let mut queues = Vec::with_capacity(before.len());
    for (index, datagram) in before.iter().enumerate() {
        let sent = micros(datagram.sent_us);
        if index > 0 {
            // Lindley's recursion: what was left of the queue, and this datagram.
            queue = f64::max(0.0, queue + full.interval - (sent - previous));
        }
        previous = sent;
        delays.push(
            micros(datagram.arrived_us)
                - micros(origin.arrived_us)
                - (sent - micros(origin.sent_us)),
        );
        queues.push(queue);
    }
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
    let of_rate = ratio * full.interval_error * 0.8 * before.len() as f64 / expected;
    let error = of_delays.hypot(of_rate);
    (ratio.is_finite() && error.is_finite()).then_some(Growth { delay_us, ratio, error })
}

/// A count or a time as a number: those of a train are far below 2^53.
fn micros(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
