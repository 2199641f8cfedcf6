//! Time series computed from a measurement's samples.
//!
//! Each stream is sampled at its own times; here all are resampled to one grid
//! and summed. Counters become rates from the bytes between two grid points
//! (linear interpolation); gauges such as the congestion window keep their value
//! until the next sample.

use record::{Measurement, Sample, Stream};
use units::{BitRate, ByteCount, Rtt};

/// Half of iperf3's default interval (1 s), which still shows the ramp-up.
const DEFAULT_BIN_S: f64 = 0.5;
/// With fewer bins than this, a short test gets finer ones.
const MIN_BINS: f64 = 10.0;
/// More bins are finer than a screen can show.
const MAX_BINS: f64 = 240.0;
/// Samples with a later time than this (30 years) are damaged.
const MAX_T_S: f64 = 1e9;

/// The counter from which throughput is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Bytes read by the receiving application: goodput.
    Received,
    /// Bytes delivered, from the sender's TCP_INFO.
    Delivered,
    /// Bytes acknowledged in order.
    Acknowledged,
}

/// Throughput of all streams over one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Start, in seconds since the test began.
    pub from_s: f64,
    /// End, likewise.
    pub to_s: f64,
    /// The bin's bytes divided by its duration.
    pub rate: BitRate,
}

impl Bin {
    /// The time at which the bin is plotted.
    #[must_use]
    pub fn middle_s(&self) -> f64 {
        f64::midpoint(self.from_s, self.to_s)
    }
}

/// A gauge's value at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<T> {
    /// Seconds since the test began.
    pub t_s: f64,
    /// The value.
    pub value: T,
}

/// Throughput over time and the counter it is computed from; `None` without samples.
#[must_use]
pub fn throughput(measurement: &Measurement) -> Option<(Source, Vec<Bin>)> {
    // Reads stall behind a lost packet and then exceed the link rate (head-of-line
    // blocking); bytes delivered show the path.
    for source in [Source::Delivered, Source::Received, Source::Acknowledged] {
        let counters: Vec<Vec<(f64, f64)>> =
            measurement.streams.iter().map(|s| counter(s, source)).collect();
        let usable = |c: &Vec<(f64, f64)>| c.len() >= 2 && c.last().is_some_and(|p| p.1 > 0.0);
        // A stream without this counter would make the sum too low.
        let enough = match source {
            Source::Acknowledged => counters.iter().any(usable),
            _ => !counters.is_empty() && counters.iter().all(usable),
        };
        if enough {
            return Some((source, bins(&counters)));
        }
    }
    None
}

/// Payload delivered to each of several sets of streams, all in the same bins, which the longest of
/// them has; in bit/s. Empty without samples.
#[must_use]
pub fn side_by_side(sets: &[Vec<&Stream>]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let counters: Vec<Vec<Vec<(f64, f64)>>> = sets
        .iter()
        .map(|set| set.iter().map(|stream| counter(stream, Source::Delivered)).collect())
        .collect();
    let edges = edges(counters.iter().flatten());
    let rates = counters.iter().map(|set| {
        let total = |t: f64| set.iter().map(|counter| at(counter, t)).sum::<f64>();
        edges
            .windows(2)
            .map(|ends| (total(ends[1]) - total(ends[0])) * 8.0 / (ends[1] - ends[0]))
            .collect()
    });
    let rates = rates.collect();
    (edges, rates)
}

/// What was read of the file that is sent, over time; empty if it is not a file.
#[must_use]
pub fn disk(measurement: &Measurement) -> Vec<Bin> {
    let read = |stream: &Stream| -> Vec<(f64, u64)> {
        let samples = stream.sender.iter();
        let read: Vec<_> = samples.filter_map(|s| Some((s.t_s, s.source_bytes?))).collect();
        // What was read before the first sample is not of its time.
        let first = read.first().map_or(0, |first| first.1);
        read.into_iter().map(|(t_s, bytes)| (t_s, bytes.saturating_sub(first))).collect()
    };
    let counters: Vec<Vec<(f64, f64)>> =
        measurement.streams.iter().map(read).map(increasing).collect();
    if counters.iter().any(|counter| counter.len() >= 2) { bins(&counters) } else { Vec::new() }
}

/// The NAKs that the senders of UDT received in each bin.
#[must_use]
pub fn naks(measurement: &Measurement, bins: &[Bin]) -> Vec<u64> {
    let mut counts = vec![0; bins.len()];
    let pairs = measurement.streams.iter().flat_map(|stream| stream.sender.windows(2));
    for pair in pairs {
        let received = pair[1].naks.unwrap_or(0).saturating_sub(pair[0].naks.unwrap_or(0));
        let time = f64::midpoint(pair[0].t_s, pair[1].t_s);
        let bin = bins.iter().position(|bin| (bin.from_s..=bin.to_s).contains(&time));
        if let Some(count) = bin.and_then(|at| counts.get_mut(at)).filter(|_| received > 0) {
            *count = received.saturating_add(*count);
        }
    }
    counts
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

/// The receive window advertised to the sender, over all streams.
#[must_use]
pub fn receive_window(measurement: &Measurement) -> Vec<Point<ByteCount>> {
    sum(measurement, |s| s.peer_window_bytes)
}

/// The smoothed RTT, averaged over the streams.
#[must_use]
pub fn rtt(measurement: &Measurement) -> Vec<Point<Rtt>> {
    let micros = |s: &Sample| (s.rtt_us > 0).then(|| u64::from(s.rtt_us));
    gauges(measurement, micros)
        .into_iter()
        .map(|(t_s, values)| {
            let mean = values.iter().map(|v| u128::from(*v)).sum::<u128>() / values.len() as u128;
            Point { t_s, value: Rtt::from_micros(u64::try_from(mean).unwrap_or(u64::MAX)) }
        })
        .collect()
}

/// The time of the last sample in seconds; the requested duration without samples.
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
    (0.0..=MAX_T_S).contains(&t_s)
}

/// One stream's counter as (seconds, bytes): times increase, bytes never decrease,
/// and the first point is the start of the test: zero bytes, or those of a warm-up.
fn counter(stream: &Stream, source: Source) -> Vec<(f64, f64)> {
    let raw: Vec<(f64, u64)> = match source {
        Source::Received => stream.receiver.iter().map(|s| (s.t_s, s.received_bytes)).collect(),
        Source::Delivered => stream.sender.iter().map(|s| (s.t_s, s.delivered_bytes)).collect(),
        Source::Acknowledged => stream.sender.iter().map(|s| (s.t_s, s.acked_bytes)).collect(),
    };
    increasing(raw)
}

fn increasing(raw: Vec<(f64, u64)>) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, 0.0)];
    for (t_s, bytes) in raw {
        let (last_t, last_bytes) = points.last().copied().unwrap_or_default();
        if t_s == 0.0 && points.len() == 1 {
            // What was transferred in the warm-up.
            points[0].1 = ByteCount::from_bytes(bytes).as_f64();
        } else if sane(t_s) && t_s > last_t {
            points.push((t_s, ByteCount::from_bytes(bytes).as_f64().max(last_bytes)));
        }
    }
    points
}

fn bins(counters: &[Vec<(f64, f64)>]) -> Vec<Bin> {
    let total = |t: f64| counters.iter().map(|c| at(c, t)).sum::<f64>();
    let edges = edges(counters.iter());
    let pairs = edges.windows(2).map(|ends| (ends[0], ends[1]));
    pairs
        .map(|(from_s, to_s)| {
            let bits = (total(to_s) - total(from_s)) * 8.0;
            Bin { from_s, to_s, rate: BitRate::from_bps_f64(bits / (to_s - from_s)) }
        })
        .collect()
}

/// The edges of the bins of several counters, from 0 to the last point; increasing.
fn edges<'a>(counters: impl Iterator<Item = &'a Vec<(f64, f64)>> + Clone) -> Vec<f64> {
    let end = counters.clone().filter_map(|c| c.last()).map(|p| p.0).fold(0.0, f64::max);
    let gap = counters.filter_map(|c| gap(c)).fold(0.0, f64::max);
    let step = bin_length(end, gap);
    if end <= 0.0 {
        return Vec::new();
    }
    // A remainder shorter than half a bin is merged into the last one.
    let count = (end / step).round().clamp(1.0, 2.0 * MAX_BINS) as u32;
    let inner = (0..count).map(|i| f64::from(i) * step).filter(|edge| *edge < end);
    let mut edges: Vec<f64> = inner.chain([end]).collect();
    // Steps of a test that is next to nothing are zero.
    edges.dedup();
    edges
}

/// The usual time between two points; of the second half, as the start is sampled more often.
fn gap(counter: &[(f64, f64)]) -> Option<f64> {
    let end = counter.last()?.0;
    let later = counter.len() - counter.partition_point(|p| p.0 <= end / 2.0);
    (later > 0).then(|| end / 2.0 / later as f64)
}

/// 0.5 s; shorter for a short test, longer for a long one, never below the sample interval.
fn bin_length(end: f64, gap: f64) -> f64 {
    if end <= 0.0 {
        return DEFAULT_BIN_S;
    }
    let short = [DEFAULT_BIN_S, 0.2, 0.1, 0.05, 0.02, 0.01]
        .into_iter()
        .find(|step| end / step >= MIN_BINS)
        .unwrap_or(end / MIN_BINS);
    let least = short.max(gap).max(end / MAX_BINS);
    if least <= short {
        return short;
    }
    let round = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0];
    round.into_iter().find(|step| *step >= least).unwrap_or(least)
}

/// The counter at time `t`, interpolated linearly.
fn at(counter: &[(f64, f64)], t: f64) -> f64 {
    let next = counter.partition_point(|p| p.0 < t);
    match (next.checked_sub(1).and_then(|i| counter.get(i)), counter.get(next)) {
        (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (t - a.0) / (b.0 - a.0),
        (Some(last), None) => last.1,
        (None, _) => 0.0,
    }
}

fn sum(measurement: &Measurement, get: impl Fn(&Sample) -> Option<u64>) -> Vec<Point<ByteCount>> {
    gauges(measurement, get)
        .into_iter()
        .map(|(t_s, values)| {
            let all = values.iter().fold(ByteCount::ZERO, |a, v| a.plus(ByteCount::from_bytes(*v)));
            Point { t_s, value: all }
        })
        .collect()
}

/// Each grid time with the value of every stream that has been sampled by then.
fn gauges(measurement: &Measurement, get: impl Fn(&Sample) -> Option<u64>) -> Vec<(f64, Vec<u64>)> {
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
    let count = longest.min(MAX_BINS as usize);
    (0..count)
        .map(|i| {
            let t = if count > 1 { end * i as f64 / (count - 1) as f64 } else { end };
            let latest = |s: &Vec<(f64, u64)>| {
                s.partition_point(|p| p.0 <= t).checked_sub(1).map(|i| s[i].1)
            };
            (t, streams.iter().filter_map(latest).collect::<Vec<_>>())
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
    fn bins_are_no_shorter_than_the_later_intervals() {
        // 100 points a second in the first 2 s, then one in 10 s, up to 1002 s.
        let start = (0..200).map(|i| f64::from(i) / 100.0);
        let times = start.chain((0..=100).map(|i| 2.0 + 10.0 * f64::from(i)));
        let counter: Vec<(f64, f64)> = times.map(|t| (t, t)).collect();
        let bins = bins(&[counter]);
        assert!((bins[0].to_s - 10.0).abs() < 1e-9, "{:?}", bins[0]);
    }

    #[test]
    fn a_short_tail_joins_the_last_bin() {
        let bins = bins(&[vec![(0.0, 0.0), (5.0, 5e6), (10.0, 10e6), (10.1, 10.1e6)]]);
        assert!((bins.last().unwrap().to_s - 10.1).abs() < 1e-9);
        assert_eq!(bins.last().unwrap().rate, BitRate::from_bps(8_000_000));
    }

    #[test]
    fn the_warm_up_is_in_no_bin() {
        let after = increasing(vec![(0.0, 900), (1.0, 1_000), (2.0, 1_100)]);
        assert_eq!(after, [(0.0, 900.0), (1.0, 1_000.0), (2.0, 1_100.0)]);
        let without = increasing(vec![(0.1, 5), (1.0, 1_000)]);
        assert_eq!(without, [(0.0, 0.0), (0.1, 5.0), (1.0, 1_000.0)]);
    }

    #[test]
    fn naks_are_counted_in_their_bins() {
        let bin = |from_s, to_s| Bin { from_s, to_s, rate: BitRate::ZERO };
        let times = [(0.0, 4), (0.5, 4), (1.5, 6), (1.9, 7), (9.0, 8)];
        let sample = |(t_s, naks)| Sample { t_s, naks: Some(naks), ..Sample::default() };
        let stream = Stream { sender: times.map(sample).to_vec(), ..Stream::default() };
        let measurement = Measurement { streams: vec![stream], ..Measurement::default() };
        let bins = [bin(0.0, 0.9), bin(0.9, 1.6), bin(1.6, 2.0)];
        assert_eq!(naks(&measurement, &bins), [0, 2, 1]);
        assert!(naks(&measurement, &[]).is_empty() && disk(&measurement).is_empty());
    }
}
