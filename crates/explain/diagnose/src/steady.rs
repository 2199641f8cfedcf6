//! Where the ramp-up ends.
//!
//! The rate is smoothed over about a second (two RTTs on longer paths, at most a
//! quarter of the test) and compared with its median over the second half. The
//! steady part begins where it first reaches nine tenths of that. The rate is that of
//! *delivered* bytes, in order or not: after slow start overshoots and loses thousands
//! of segments, the acknowledged bytes stall and then jump, while the bottleneck
//! stays saturated.

use crate::curve::{Curve, total};
use model::statistics::median;

/// Share of the second half's median rate from which a transfer is at full speed.
const AT_SPEED: f64 = 0.9;

/// A rate below this share of the median, within the first [`SETTLING`] of the
/// test, is still the recovery from slow start's overshoot.
const STALLED: f64 = 0.5;

/// A rate above this multiple of the median, equally early, is slow start filling a
/// queue before the first losses: with random loss, the congestion window never
/// grows as large again.
const BURST: f64 = 1.5;

/// The part of the test in which a stall or burst is attributed to slow start; a later
/// one is a property of the path.
pub(crate) const SETTLING: f64 = 1.0 / 3.0;

/// The part of a test after its ramp-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    /// Where it begins, in seconds.
    pub(crate) from: f64,
    /// Where it ends.
    pub(crate) to: f64,
}

/// Finds the steady part. `planned` is the requested duration in seconds, after which
/// only the teardown follows; `None` if a number of bytes ended the test, which then
/// counts whole. `rtt` is the minimum RTT in seconds. `None` if no time passed.
pub(crate) fn find(arrived: &[Curve], planned: Option<f64>, rtt: Option<f64>) -> Option<Part> {
    let last = arrived.iter().filter_map(Curve::end).fold(0.0, f64::max);
    let to = planned.filter(|planned| *planned > 0.0).map_or(last, |planned| last.min(planned));
    if to <= 0.0 {
        return None;
    }
    let width = (2.0 * rtt.unwrap_or(0.0)).max(1.0).min(to / 4.0);
    // Ten steps per width: at least 40, and at most 2000 for a long test.
    let steps = ((to / width * 10.0) as usize).clamp(40, 2_000);
    let time = |step: usize| to * step as f64 / steps as f64;
    let rates: Vec<f64> =
        (0..=steps).map(|step| smoothed(arrived, time(step), width, to)).collect();
    let usual = median(rates.get(steps / 2..)?)?;
    let fast_after =
        |step: usize| (step..steps).find(|&i| rates.get(i).is_some_and(|r| *r >= AT_SPEED * usual));
    let mut start = fast_after(0)?;
    let settling = (steps as f64 * SETTLING) as usize;
    let stall = (start..settling).rfind(|&i| rates.get(i).is_some_and(|r| *r < STALLED * usual));
    if let Some(stall) = stall {
        start = fast_after(stall).unwrap_or(start);
    }
    let burst = (start..settling).rfind(|&i| rates.get(i).is_some_and(|r| *r > BURST * usual));
    if let Some(burst) = burst {
        start = fast_after(burst + 1).unwrap_or(start);
    }
    Some(Part { from: time(start), to })
}

/// The rate over `width` around `t`, clipped to the test.
fn smoothed(arrived: &[Curve], t: f64, width: f64, end: f64) -> f64 {
    let (from, to) = ((t - width / 2.0).max(0.0), (t + width / 2.0).min(end));
    (total(arrived, to) - total(arrived, from)) / (to - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten samples a second of a rate that may change with time.
    fn curve(seconds: f64, rate: impl Fn(f64) -> f64) -> [Curve; 1] {
        let mut bytes = 0.0;
        let samples = (0..=(seconds * 10.0) as u32).map(|i| {
            let t = f64::from(i) / 10.0;
            let now = bytes;
            bytes += rate(t) * 0.1;
            (t, now as u64)
        });
        [Curve::new(samples)]
    }

    fn slow_start(t: f64) -> f64 {
        (1e4 * 2f64.powf(t / 0.173)).min(12e6)
    }

    #[test]
    fn begins_after_an_early_burst() {
        let burst = |height: f64| move |t: f64| if t < 2.0 { height } else { 3e6 };
        let part = find(&curve(10.0, burst(12e6)), Some(10.0), Some(0.06)).unwrap();
        assert!((1.9..2.8).contains(&part.from), "{part:?}");
        let part = find(&curve(10.0, burst(4.4e6)), Some(10.0), Some(0.06)).unwrap();
        assert!(part.from < 0.1, "{part:?}");
        // This late, it is a property of the path.
        let late = |t: f64| if (5.0..6.0).contains(&t) { 12e6 } else { 3e6 };
        assert!(find(&curve(10.0, late), Some(10.0), Some(0.06)).unwrap().from < 0.1);
    }

    #[test]
    fn begins_after_slow_start() {
        let part = find(&curve(10.0, slow_start), Some(10.0), Some(0.173)).unwrap();
        assert!((1.7..2.4).contains(&part.from), "{part:?}");
        assert!((part.to - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_flat_rate_is_steady_at_once() {
        let part = find(&curve(10.0, |_| 1e6), Some(10.0), None).unwrap();
        assert_eq!(part.from, 0.0);
    }

    #[test]
    fn a_stall_after_overshoot_is_skipped_and_a_late_one_is_not() {
        let stalled =
            |at: f64| move |t: f64| if (at..at + 1.5).contains(&t) { 1e5 } else { slow_start(t) };
        let early = find(&curve(20.0, stalled(3.0)), Some(20.0), Some(0.173)).unwrap();
        assert!(early.from > 4.3, "{early:?}");
        let late = find(&curve(20.0, stalled(12.0)), Some(20.0), Some(0.173)).unwrap();
        assert!(late.from < 2.5, "{late:?}");
    }

    #[test]
    fn the_teardown_is_excluded() {
        let closing = curve(12.0, |t| if t < 10.0 { 1e6 } else { 0.0 });
        assert!((find(&closing, Some(10.0), None).unwrap().to - 10.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_in_nothing_out() {
        assert_eq!(find(&[], Some(10.0), None), None);
        assert_eq!(find(&[Curve::default()], Some(10.0), None), None);
        assert_eq!(find(&curve(0.0, |_| 1.0), Some(f64::NAN), None), None);
        let still = find(&curve(10.0, |_| 0.0), Some(f64::NAN), Some(1e9)).unwrap();
        assert_eq!(still.from, 0.0);
    }
}
