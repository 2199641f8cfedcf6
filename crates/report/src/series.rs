//! Curves over time out of a measurement's samples.
//!
//! Streams are sampled each at its own moments; here they are put on one grid
//! and added up. Counters become rates by the bytes between two grid lines
//! (linear between samples); levels such as the congestion window are held
//! from one sample to the next.

use record::{Measurement, Sample, Stream};
use units::{BitRate, ByteCount, Rtt};

/// The bin people know from iperf3 is 1 s; half of it shows a ramp-up.
const USUAL_BIN_S: f64 = 0.5;
/// With fewer bins than this, a short test gets finer ones.
const FEWEST_BINS: f64 = 10.0;
/// More bins than this are finer than a screen shows.
const MOST_BINS: f64 = 240.0;
/// Samples of a later moment than this (30 years) are damaged.
const LATEST_S: f64 = 1e9;

/// Which counter a throughput was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// What the receiving program read: goodput.
    Received,
    /// What the sending kernel knows to have arrived.
    Delivered,
    /// What was acknowledged in order.
    Acknowledged,
}

/// Throughput of all streams between two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Seconds since the test's start.
    pub from_s: f64,
    /// Where it ends.
    pub to_s: f64,
    /// The bytes of the bin over its length.
    pub rate: BitRate,
}

impl Bin {
    /// The moment the bin is drawn at.
    #[must_use]
    pub fn middle_s(&self) -> f64 {
        f64::midpoint(self.from_s, self.to_s)
    }
}

/// A level at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<T> {
    /// Seconds since the test's start.
    pub t_s: f64,
    /// The level.
    pub value: T,
}

/// Throughput over time, and the counter it comes from; `None` without samples.
#[must_use]
pub fn throughput(measurement: &Measurement) -> Option<(Source, Vec<Bin>)> {
    // What a program reads stands still behind a lost packet and then leaps past
    // the link's rate; what has arrived shows the path.
    for source in [Source::Delivered, Source::Received, Source::Acknowledged] {
        let counters: Vec<Vec<(f64, f64)>> =
            measurement.streams.iter().map(|s| counter(s, source)).collect();
        let told = |c: &Vec<(f64, f64)>| c.len() >= 2 && c.last().is_some_and(|p| p.1 > 0.0);
        // One silent stream would make the sum a lie, unless every source has it so.
        let enough = match source {
            Source::Acknowledged => counters.iter().any(told),
            _ => !counters.is_empty() && counters.iter().all(told),
        };
        if enough {
            return Some((source, bins(&counters)));
        }
    }
    None
}

/// Bytes sent and not yet acknowledged, over all streams.
#[must_use]
pub fn in_flight(measurement: &Measurement) -> Vec<Point<ByteCount>> {
    sum(measurement, |s| Some(s.in_flight_bytes))
}

/// The congestion window, over all streams.
#[must_use]
pub fn congestion_window(measurement: &Measurement) -> Vec<Point<ByteCount>> {
    sum(measurement, |s| Some(s.cwnd_bytes))
}

/// The window the receivers advertised, over all streams, as the sender saw it.
#[must_use]
pub fn receive_window(measurement: &Measurement) -> Vec<Point<ByteCount>> {
    sum(measurement, |s| s.peer_window_bytes)
}

/// The smoothed round trip, the mean of the streams.
#[must_use]
pub fn round_trip(measurement: &Measurement) -> Vec<Point<Rtt>> {
    let micros = |s: &Sample| (s.rtt_us > 0).then(|| u64::from(s.rtt_us));
    levels(measurement, micros)
        .into_iter()
        .map(|(t_s, values)| {
            let mean = values.iter().map(|v| u128::from(*v)).sum::<u128>() / values.len() as u128;
            Point { t_s, value: Rtt::from_micros(u64::try_from(mean).unwrap_or(u64::MAX)) }
        })
        .collect()
}

/// The last moment anything is known of, in seconds; the length asked where nothing is.
#[must_use]
pub fn end_s(measurement: &Measurement) -> f64 {
    let streams = &measurement.streams;
    let sender = streams.iter().flat_map(|s| s.sender.iter().map(|p| p.t_s));
    let receiver = streams.iter().flat_map(|s| s.receiver.iter().map(|p| p.t_s));
    let last = sender.chain(receiver).filter(|t| sane(*t)).fold(0.0, f64::max);
    match (last > 0.0, sane(measurement.spec.seconds)) {
        (true, _) => last,
        (false, true) => measurement.spec.seconds,
        (false, false) => 0.0,
    }
}

fn sane(t_s: f64) -> bool {
    (0.0..=LATEST_S).contains(&t_s)
}

/// One stream's counter as (seconds, bytes): times grow, bytes never shrink,
/// and it begins with nothing at the test's start.
fn counter(stream: &Stream, source: Source) -> Vec<(f64, f64)> {
    let raw: Vec<(f64, u64)> = match source {
        Source::Received => stream.receiver.iter().map(|s| (s.t_s, s.received_bytes)).collect(),
        Source::Delivered => stream.sender.iter().map(|s| (s.t_s, s.delivered_bytes)).collect(),
        Source::Acknowledged => stream.sender.iter().map(|s| (s.t_s, s.acked_bytes)).collect(),
    };
    let mut points = vec![(0.0, 0.0)];
    for (t_s, bytes) in raw {
        let (last_t, last_bytes) = points.last().copied().unwrap_or_default();
        if sane(t_s) && t_s > last_t {
            points.push((t_s, ByteCount::from_bytes(bytes).as_f64().max(last_bytes)));
        }
    }
    points
}

fn bins(counters: &[Vec<(f64, f64)>]) -> Vec<Bin> {
    let end = counters.iter().filter_map(|c| c.last()).map(|p| p.0).fold(0.0, f64::max);
    let gap = counters
        .iter()
        .filter(|c| c.len() > 1)
        .filter_map(|c| c.last().map(|p| p.0 / (c.len() - 1) as f64))
        .fold(0.0, f64::max);
    let step = bin_length(end, gap);
    // A last piece of less than half a bin is too short for a rate of its own.
    let count = (end / step).round().clamp(1.0, 2.0 * MOST_BINS) as u32;
    let total = |t: f64| counters.iter().map(|c| at(c, t)).sum::<f64>();
    (0..count)
        .map(|i| {
            let from_s = f64::from(i) * step;
            let to_s = if i + 1 == count { end } else { from_s + step };
            let bits = (total(to_s) - total(from_s)) * 8.0;
            Bin { from_s, to_s, rate: BitRate::from_bps_f64(bits / (to_s - from_s)) }
        })
        .filter(|bin| bin.to_s > bin.from_s)
        .collect()
}

/// 0.5 s; less for a short test, more for a long one, never less than samples are apart.
fn bin_length(end: f64, gap: f64) -> f64 {
    if end <= 0.0 {
        return USUAL_BIN_S;
    }
    let short = [USUAL_BIN_S, 0.2, 0.1, 0.05, 0.02, 0.01]
        .into_iter()
        .find(|step| end / step >= FEWEST_BINS)
        .unwrap_or(end / FEWEST_BINS);
    let least = short.max(gap).max(end / MOST_BINS);
    if least <= short {
        return short;
    }
    let round = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0];
    round.into_iter().find(|step| *step >= least).unwrap_or(least)
}

/// The counter at a moment, linear between samples.
fn at(counter: &[(f64, f64)], t: f64) -> f64 {
    let next = counter.partition_point(|p| p.0 < t);
    match (next.checked_sub(1).and_then(|i| counter.get(i)), counter.get(next)) {
        (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (t - a.0) / (b.0 - a.0),
        (Some(last), None) => last.1,
        (None, _) => 0.0,
    }
}

fn sum(measurement: &Measurement, get: impl Fn(&Sample) -> Option<u64>) -> Vec<Point<ByteCount>> {
    levels(measurement, get)
        .into_iter()
        .map(|(t_s, values)| {
            let all = values.iter().fold(ByteCount::ZERO, |a, v| a.plus(ByteCount::from_bytes(*v)));
            Point { t_s, value: all }
        })
        .collect()
}

/// Each grid moment with the level of every stream that has one by then.
fn levels(measurement: &Measurement, get: impl Fn(&Sample) -> Option<u64>) -> Vec<(f64, Vec<u64>)> {
    let streams: Vec<Vec<(f64, u64)>> = measurement
        .streams
        .iter()
        .map(|stream| {
            let mut points: Vec<(f64, u64)> = Vec::new();
            for sample in &stream.sender {
                let later = points.last().is_none_or(|p| sample.t_s > p.0);
                if let (true, true, Some(v)) = (sane(sample.t_s), later, get(sample)) {
                    points.push((sample.t_s, v));
                }
            }
            points
        })
        .collect();
    let end = streams.iter().filter_map(|s| s.last()).map(|p| p.0).fold(0.0, f64::max);
    let longest = streams.iter().map(Vec::len).max().unwrap_or(0);
    let count = longest.min(MOST_BINS as usize);
    (0..count)
        .map(|i| {
            let t = if count > 1 { end * i as f64 / (count - 1) as f64 } else { end };
            let held = |s: &Vec<(f64, u64)>| {
                s.partition_point(|p| p.0 <= t).checked_sub(1).map(|i| s[i].1)
            };
            (t, streams.iter().filter_map(held).collect::<Vec<_>>())
        })
        .filter(|(_, values)| !values.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_counter_is_a_flat_line() {
        let counter: Vec<(f64, f64)> =
            (0..=100).map(|i| f64::from(i) / 10.0).map(|t| (t, t * 125e3)).collect();
        let bins = bins(&[counter.clone(), counter]);
        assert_eq!(bins.len(), 20);
        assert!(bins.iter().all(|b| b.rate == BitRate::from_bps(2_000_000)));
    }

    #[test]
    fn bins_follow_the_length_of_the_test() {
        for (end, gap, step) in [
            (10.0, 0.1, 0.5),
            (5.0, 0.1, 0.5),
            (2.0, 0.05, 0.2),
            (60.0, 1.0, 1.0),
            (600.0, 0.1, 5.0),
        ] {
            assert!((bin_length(end, gap) - step).abs() < 1e-9, "{end} s");
        }
    }

    #[test]
    fn a_short_tail_joins_the_last_bin() {
        let bins = bins(&[vec![(0.0, 0.0), (5.0, 5e6), (10.0, 10e6), (10.1, 10.1e6)]]);
        assert!((bins.last().unwrap().to_s - 10.1).abs() < 1e-9);
        assert_eq!(bins.last().unwrap().rate, BitRate::from_bps(8_000_000));
    }
}
