//! A flow's goodput, second by second.

use record::{Measurement, Stream};

/// Bytes that had arrived by a time since the flow began, in order of time.
type Arrived = Vec<(f64, f64)>;

/// Goodput of all streams in each whole second since the flow began, in bit/s; empty where
/// neither end has samples.
pub(super) fn per_second(m: &Measurement) -> Vec<f64> {
    let streams: Vec<Arrived> = m.streams.iter().map(arrived).collect();
    let end = streams.iter().filter_map(|points| points.last()).map(|last| last.0);
    let seconds = end.fold(0.0, f64::max).min(86_400.0) as u32;
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
}
