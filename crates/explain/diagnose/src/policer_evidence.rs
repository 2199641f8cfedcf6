//! Whether losses coincide with an empty token bucket: the evidence of a policer.
//!
//! A policer passes traffic up to its rate and drops the excess once its bucket is
//! empty (Flach et al., "An Internet-Wide Analysis of Traffic Policing",
//! SIGCOMM 2016). Between the first and the last loss the mean delivery rate is
//! close to the policer's rate, so a simulated bucket filled at that rate and drained
//! by the delivered bytes is lowest at the losses. Random losses occur at any level.

use model::statistics::percentile;
use record::{Measurement, Sample, Stream};

/// The minimum number of intervals with losses.
const MIN_LOSSES: usize = 4;

/// The minimum range of the bucket's level, in segments.
const MIN_SEGMENTS: f64 = 10.0;

/// The bucket's level at a stream's losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AtLosses {
    /// Mean rank over the intervals with losses: the share of all intervals with a
    /// lower level. 0.5 for random loss.
    pub(crate) rank: f64,
    /// The range of the levels at losses over the range of all levels.
    pub(crate) spread: f64,
    losses: usize,
}

/// The bucket's level at the losses of the stream with the most of them; `None` if
/// none has enough.
pub(crate) fn at_losses(m: &Measurement, from: f64, to: f64) -> Option<AtLosses> {
    m.streams.iter().filter_map(|stream| of(stream, from, to)).max_by_key(|at| at.losses)
}

fn of(stream: &Stream, from: f64, to: f64) -> Option<AtLosses> {
    let samples: Vec<&Sample> =
        stream.sender.iter().filter(|s| (from..=to).contains(&s.t_s)).collect();
    let lossy = |pair: &[&Sample]| matches!(pair, [a, b] if b.retransmits > a.retransmits);
    let first = samples.windows(2).position(lossy)?;
    let last = samples.windows(2).rposition(lossy)? + 1;
    let span = samples.get(first..=last)?;
    let (start, end) = (*span.first()?, *span.last()?);
    let bytes = |s: &Sample| s.delivered_bytes.max(s.acked_bytes) as f64;
    let rate = (bytes(end) - bytes(start)) / (end.t_s - start.t_s);
    if !rate.is_finite() || rate <= 0.0 {
        return None;
    }
    // A loss was sent before its interval: take the level at the interval's start.
    let level = |s: &Sample| rate * (s.t_s - start.t_s) - (bytes(s) - bytes(start));
    let mut levels: Vec<f64> = span.iter().map(|s| level(s)).collect();
    let mut lost: Vec<f64> = span
        .windows(2)
        .filter(|pair| lossy(pair))
        .filter_map(|pair| pair.first().map(|s| level(s)))
        .collect();
    if lost.len() < MIN_LOSSES || levels.iter().any(|level| !level.is_finite()) {
        return None;
    }
    levels.sort_by(f64::total_cmp);
    // A constant rate leaves all levels equal.
    let (low, high) = (levels.first()?, levels.last()?);
    if high - low < MIN_SEGMENTS * f64::from(end.mss_bytes.max(536)) {
        return None;
    }
    let range = high - low;
    let below = |level: &f64| levels.partition_point(|other| other < level) as f64;
    let ranks: f64 = lost.iter().map(below).sum();
    lost.sort_by(f64::total_cmp);
    let at = |share: f64| percentile(&lost, share);
    Some(AtLosses {
        rank: ranks / (lost.len() * levels.len()) as f64,
        spread: (at(0.8)? - at(0.2)?) / range,
        losses: lost.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sawtooth of `mbit` on average, sampled each 50 ms, that loses a segment
    /// at each step for which `loses` holds, and continues at 0.7 of its rate.
    fn sawtooth(mut loses: impl FnMut(usize, f64) -> bool) -> Stream {
        let (mut bytes, mut rate, mut lost, mut bucket) = (0.0, 1e6, 0, 50_000.0);
        let mut stream = Stream::default();
        for step in 0..800usize {
            stream.sender.push(Sample {
                t_s: step as f64 * 0.05,
                delivered_bytes: bytes as u64,
                retransmits: lost,
                ..Sample::default()
            });
            bucket = f64::min(bucket + 1.25e6 * 0.05 - rate * 0.05, 50_000.0);
            if loses(step, bucket) {
                lost += 1;
                rate *= 0.7;
                bucket = bucket.max(0.0);
            }
            bytes += rate * 0.05;
            rate += 15_000.0;
        }
        stream
    }

    #[test]
    fn the_bucket_is_empty_at_policer_drops() {
        let level = of(&sawtooth(|_, bucket| bucket < 0.0), 0.0, 40.0).unwrap();
        assert!(level.rank < 0.3, "{level:?}");
    }

    #[test]
    fn random_loss_occurs_at_any_level() {
        // A linear congruential generator with Knuth's MMIX constants.
        let mut state = 1u64;
        let random = move |_, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33).is_multiple_of(24)
        };
        let level = of(&sawtooth(random), 0.0, 40.0).unwrap();
        assert!((0.35..0.7).contains(&level.rank), "{level:?}");
    }

    #[test]
    fn too_few_losses_are_no_evidence() {
        assert_eq!(of(&sawtooth(|step, _| step % 300 == 299), 0.0, 40.0), None);
        assert_eq!(of(&Stream::default(), 0.0, 40.0), None);
    }
}
