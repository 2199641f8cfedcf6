//! A flow's goodput, second by second.

use record::{Measurement, Stream};

/// The longest test, in seconds.
pub(super) const LONGEST_S: f64 = 86_400.0;

/// Bytes that had arrived by a time since the flow began, in order of time.
type Arrived = Vec<(f64, f64)>;

/// Goodput of all streams in each whole second since the flow began, in bit/s; empty where
/// neither end has samples.
pub(super) fn per_second(m: &Measurement) -> Vec<f64> {
    seconds(&m.streams.iter().map(arrived).collect::<Vec<_>>())
}

/// What was read of the file that is sent, likewise; empty if it is not a file.
pub(super) fn disk_per_second(m: &Measurement) -> Vec<f64> {
    seconds(&m.streams.iter().map(read).collect::<Vec<_>>())
}

/// The rate at which that file was read, over the longest time of a stream; `None` likewise.
pub(super) fn disk_rate(m: &Measurement) -> Option<f64> {
    let streams: Vec<Arrived> = m.streams.iter().map(read).collect();
    let ends = || streams.iter().filter_map(|points| Some((points.first()?, points.last()?)));
    let time = ends().map(|(first, last)| last.0 - first.0).fold(0.0, f64::max);
    (time > 0.0).then(|| ends().map(|(_, last)| last.1).sum::<f64>() * 8.0 / time)
}

fn seconds(streams: &[Arrived]) -> Vec<f64> {
    let ends = streams.iter().filter_map(|points| points.last()).map(|last| last.0);
    let seconds = ends.fold(0.0, f64::max).min(LONGEST_S) as u32;
    let by = |second: u32| streams.iter().map(|points| at(points, f64::from(second))).sum::<f64>();
    (0..seconds).map(|second| (by(second + 1) - by(second)) * 8.0).collect()
}

/// What the receiver read; else what the sender's kernel counted as delivered.
fn arrived(stream: &Stream) -> Arrived {
    let read: Arrived =
        stream.receiver.iter().map(|sample| (sample.t_s, sample.received_bytes as f64)).collect();
    if read.is_empty() {
        stream.sender.iter().map(|sample| (sample.t_s, sample.delivered_bytes as f64)).collect()
    } else {
        read
    }
}

/// What was read of the file that is sent, since the first sample.
fn read(stream: &Stream) -> Arrived {
    let read = stream.sender.iter().filter_map(|sample| Some((sample.t_s, sample.source_bytes?)));
    let first = read.clone().next().map_or(0, |first| first.1);
    read.map(|(t_s, bytes)| (t_s, bytes.saturating_sub(first) as f64)).collect()
}

/// Between two samples in proportion.
fn at(points: &Arrived, time: f64) -> f64 {
    let after = points.partition_point(|point| point.0 < time);
    let Some(&(to, more)) = points.get(after) else {
        return points.last().map_or(0.0, |last| last.1);
    };
    let (from, less) = after.checked_sub(1).map_or((0.0, 0.0), |before| points[before]);
    let share = if to > from { (time - from) / (to - from) } else { 1.0 };
    less + (more - less) * share.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::ReceiverSample;

    #[test]
    fn samples_are_divided_into_seconds() {
        let points: Arrived = vec![(0.5, 100.0), (1.5, 300.0), (2.0, 300.0)];
        assert_eq!(
            [0.0, 0.5, 1.0, 1.75, 9.0].map(|t| at(&points, t)),
            [0.0, 100.0, 200.0, 300.0, 300.0]
        );
        let sample = |&(t_s, received): &(f64, f64)| ReceiverSample {
            t_s,
            received_bytes: received as u64,
            ..ReceiverSample::default()
        };
        let stream = Stream { receiver: points.iter().map(sample).collect(), ..Stream::default() };
        assert_eq!(arrived(&stream), points);
    }

    #[test]
    fn what_was_read_of_a_file_counts_from_the_first_sample() {
        let sample = |t_s: f64, bytes: u64| record::Sample {
            t_s,
            source_bytes: Some(bytes),
            ..record::Sample::default()
        };
        let samples = [sample(0.0, 900), sample(0.5, 1000), sample(2.0, 1000), sample(3.0, 1200)];
        let stream = Stream { sender: samples.to_vec(), ..Stream::default() };
        let points = read(&stream);
        assert_eq!(seconds(std::slice::from_ref(&points)), [800.0, 0.0, 1600.0]);
        assert!(read(&Stream::default()).is_empty());
    }
}
