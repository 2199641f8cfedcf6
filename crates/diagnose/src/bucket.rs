//! Whether losses come where a token bucket would be empty: the trace of a policer.
//!
//! A policer lets a rate through and drops what exceeds it once its bucket is
//! empty (Flach et al., "An Internet-Wide Analysis of Traffic Policing",
//! SIGCOMM 2016). Between the first and the last loss the mean rate delivered is
//! about its own, so that a bucket filled at that rate and emptied by what was
//! delivered is at its lowest where segments were lost. Random losses come at
//! any level.

use crate::curve::quantile;
use record::{Measurement, Sample, Stream};

/// Fewer intervals with losses tell nothing.
const LEAST_LOSSES: usize = 4;

/// A bucket that rises and falls by less tells nothing, in segments.
const LEAST_SEGMENTS: f64 = 10.0;

/// How low the bucket is where a stream loses segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AtLosses {
    /// Mean over the intervals with losses of the share of all intervals in
    /// which it was lower: 0.5 by chance.
    pub(crate) rank: f64,
    /// What those levels differ by, of what all of them do.
    spread: f64,
    losses: usize,
}

impl AtLosses {
    /// Whether it was empty at all of them, which chance hardly makes it: ranks of
    /// so many even draws have a mean this low once in a thousand times.
    pub(crate) fn is_empty(self) -> bool {
        let by_chance = 0.5 - 3.0 * (1.0 / 12.0f64).sqrt() / (self.losses as f64).sqrt();
        let low = self.rank <= by_chance.min(0.3) && self.spread <= 0.35;
        // Often lost at nearly one level, though a small bucket leaves others below it.
        let level = self.losses >= 20 && self.spread <= 0.15 && self.rank <= 0.45;
        low || level
    }
}

/// Where segments are lost: of the stream that lost most often; `None` where
/// all lost too seldom.
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
    // What is lost now was sent a moment before: the level before the interval.
    let level = |s: &Sample| rate * (s.t_s - start.t_s) - (bytes(s) - bytes(start));
    let mut levels: Vec<f64> = span.iter().map(|s| level(s)).collect();
    let mut lost: Vec<f64> = span
        .windows(2)
        .filter(|pair| lossy(pair))
        .filter_map(|pair| pair.first().map(|s| level(s)))
        .collect();
    if lost.len() < LEAST_LOSSES || levels.iter().any(|level| !level.is_finite()) {
        return None;
    }
    levels.sort_by(f64::total_cmp);
    // A rate that never varies leaves no level to tell by.
    let (low, high) = (levels.first()?, levels.last()?);
    if high - low < LEAST_SEGMENTS * f64::from(end.mss_bytes.max(536)) {
        return None;
    }
    let range = high - low;
    let below = |level: &f64| levels.partition_point(|other| other < level) as f64;
    let ranks: f64 = lost.iter().map(below).sum();
    lost.sort_by(f64::total_cmp);
    let at = |share: f64| quantile(lost.iter().copied(), share);
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
    /// where `loses` says so, and after each begins at 0.7 of where it was.
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
    fn it_is_empty_where_a_policer_drops() {
        let level = of(&sawtooth(|_, bucket| bucket < 0.0), 0.0, 40.0).unwrap();
        assert!(level.is_empty(), "{level:?}");
    }

    #[test]
    fn it_is_at_any_level_where_chance_does() {
        // A plain generator: the numbers are Knuth's.
        let mut state = 1u64;
        let chance = move |_, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33).is_multiple_of(24)
        };
        let level = of(&sawtooth(chance), 0.0, 40.0).unwrap();
        assert!(!level.is_empty() && (0.35..0.7).contains(&level.rank), "{level:?}");
    }

    #[test]
    fn few_losses_tell_nothing() {
        assert_eq!(of(&sawtooth(|step, _| step % 300 == 299), 0.0, 40.0), None);
        assert_eq!(of(&Stream::default(), 0.0, 40.0), None);
    }
}
