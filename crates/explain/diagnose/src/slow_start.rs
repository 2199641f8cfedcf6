//! Where the first slow start ends.
//!
//! Within it the limit is known: the window doubles each round trip, nothing was lost, and
//! the bottleneck is not yet saturated. It ends with the first of these: a stream leaves slow
//! start, a stream retransmits, or the rate reaches that of the rest of the test.

use crate::statistics::Prepared;
use record::Sample;

/// The shortest span that counts as ramp-up, in seconds and RTTs: as in the ground truth
/// (docs/design/ground-truth.md).
const MIN_S: f64 = 0.3;
const MIN_RTTS: f64 = 2.0;

/// Share of the rate of the rest of the test that counts as its speed, over so many RTTs.
const AT_SPEED: f64 = 0.9;
const SPEED_RTTS: f64 = 2.0;

/// Most samples of a stream that are looked at: 10 ms apart in the first 2 s.
const MAX: usize = 2_000;

/// The end of the first slow start, in seconds; `None` without the samples of every sender,
/// or if it was too short.
pub(crate) fn end(test: &Prepared<'_>) -> Option<f64> {
    let streams = &test.facts.m.streams;
    let left = streams.iter().map(|stream| left(&stream.sender)).collect::<Option<Vec<f64>>>()?;
    let left = left.into_iter().fold(f64::INFINITY, f64::min);
    let end = left.min(at_speed(test));
    (end.is_finite() && end >= MIN_S.max(MIN_RTTS * test.min_rtt)).then_some(end)
}

/// When a stream left slow start or retransmitted; infinite if it never did.
fn left(samples: &[Sample]) -> Option<f64> {
    let first = samples.first()?;
    let leaves = |s: &&Sample| {
        s.ssthresh_bytes.is_some_and(|threshold| s.cwnd_bytes >= threshold)
            || s.retransmits > first.retransmits
    };
    Some(samples.iter().take(MAX).find(leaves).map_or(f64::INFINITY, |s| s.t_s))
}

/// When the rate of all streams first reached that of the rest of the test; infinite if that
/// was not soon.
fn at_speed(test: &Prepared<'_>) -> f64 {
    let width = (SPEED_RTTS * test.min_rtt).max(0.05);
    let rest = |from: f64| test.rate(from, test.end()).min(test.peak());
    let fast = |to: &f64| test.rate(to - width, *to) >= AT_SPEED * rest(*to);
    let times = (0..MAX).map(|index| width * (1.0 + index as f64 / 4.0));
    times.take_while(|to| *to < test.end()).find(fast).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        example::{sampled, samples},
        prepared,
    };

    /// 10 Mbit/s from `fast` tenths of a second on, a tenth of it before.
    fn grows(fast: u64, change: impl Fn(u64, &mut Sample)) -> Option<f64> {
        let m = sampled(samples(10.0, 10.0, |index, s| {
            let missing = 112_500 * index.min(fast);
            s.delivered_bytes -= missing;
            s.acked_bytes -= missing;
            change(index, s);
        }));
        end(&prepared(&m))
    }

    #[test]
    fn it_ends_with_a_loss_an_exit_or_at_full_speed() {
        let near = |found: Option<f64>, expected: f64| {
            let found = found.unwrap();
            assert!((found - expected).abs() < 0.11, "{found} {expected}");
        };
        near(grows(30, |_, _| {}), 3.0);
        near(grows(30, |index, s| s.retransmits = u64::from(index >= 20)), 2.0);
        let leaves = |index, s: &mut Sample| {
            s.ssthresh_bytes = (index >= 15).then_some(90_000);
        };
        near(grows(30, leaves), 1.5);
        // A threshold above the window is still slow start.
        near(grows(30, |_, s| s.ssthresh_bytes = Some(200_000)), 3.0);
    }

    #[test]
    fn a_short_one_is_none() {
        assert_eq!(grows(0, |_, _| {}), None);
        assert_eq!(grows(30, |index, s| s.retransmits = u64::from(index >= 2)), None);
        let m = sampled(Vec::new());
        assert_eq!(end(&prepared(&m)), None, "without samples");
    }
}
