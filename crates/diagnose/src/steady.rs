//! Where the ramp-up ends.
//!
//! The rate is smoothed over about a second (two round trips on longer paths,
//! at most a quarter of the test) and compared with its own median over the
//! second half. The steady part begins where it first reaches nine tenths of
//! that. What has *arrived* is smoothed, in order or not: after slow start has
//! overshot and thousands of segments are missing, the acknowledged bytes
//! stand still and then jump, while the bottleneck was full all along.

use crate::curve::{Curve, median, total};

/// Share of the second half's median rate at which a transfer is at speed.
const AT_SPEED: f64 = 0.9;

/// A rate below this share of the median, within the first [`SETTLING`] of the
/// test, is still the recovery from slow start's overshoot.
const STALLED: f64 = 0.5;

/// A rate above this multiple of the median, likewise early, is slow start
/// filling a queue before the first losses: random loss then never lets the
/// congestion window be as large again.
const BURST: f64 = 1.5;

/// The part of the test in which a stall or a burst is laid to slow start; any
/// later and it is what the path is like.
pub(crate) const SETTLING: f64 = 1.0 / 3.0;

/// Beyond this share of the test, the steady part is too short to speak for it.
const LATE: f64 = 0.6;

/// The part of a test after its ramp-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    /// Where it begins, in seconds.
    pub(crate) from: f64,
    /// Where it ends.
    pub(crate) to: f64,
    /// Whether it begins so late that the test was all ramp-up.
    pub(crate) late: bool,
    /// Standard deviation of the smoothed rate over its mean; `None` of fewer
    /// than three values or where nothing moved.
    pub(crate) variation: Option<f64>,
}

/// Finds it in what arrived. `planned` is the length asked, after which only
/// the teardown follows; `rtt` is the least round trip in seconds. `None`
/// where no time passed.
pub(crate) fn find(arrived: &[Curve], planned: f64, rtt: Option<f64>) -> Option<Part> {
    let last = arrived.iter().filter_map(Curve::end).fold(0.0, f64::max);
    let to = if planned > 0.0 { last.min(planned) } else { last };
    if to <= 0.0 {
        return None;
    }
    let width = (2.0 * rtt.unwrap_or(0.0)).max(1.0).min(to / 4.0);
    // Ten looks at each width: 40 at least, and no more than a long test needs.
    let looks = ((to / width * 10.0) as usize).clamp(40, 2_000);
    let time = |look: usize| to * look as f64 / looks as f64;
    let rates: Vec<f64> =
        (0..=looks).map(|look| smoothed(arrived, time(look), width, to)).collect();
    let usual = median(rates.iter().skip(looks / 2).copied())?;
    let fast_after =
        |look: usize| (look..looks).find(|&i| rates.get(i).is_some_and(|r| *r >= AT_SPEED * usual));
    let mut start = fast_after(0)?;
    let settling = (looks as f64 * SETTLING) as usize;
    let stall = (start..settling).rfind(|&i| rates.get(i).is_some_and(|r| *r < STALLED * usual));
    if let Some(stall) = stall {
        start = fast_after(stall).unwrap_or(start);
    }
    let burst = (start..settling).rfind(|&i| rates.get(i).is_some_and(|r| *r > BURST * usual));
    if let Some(burst) = burst {
        start = fast_after(burst + 1).unwrap_or(start);
    }
    let from = time(start);
    Some(Part { from, to, late: from > LATE * to, variation: variation(arrived, from, to, width) })
}

/// The rate over `width` around `t`, cut off at the test's ends.
fn smoothed(arrived: &[Curve], t: f64, width: f64, end: f64) -> f64 {
    let (from, to) = ((t - width / 2.0).max(0.0), (t + width / 2.0).min(end));
    (total(arrived, to) - total(arrived, from)) / (to - from)
}

fn variation(arrived: &[Curve], from: f64, to: f64, width: f64) -> Option<f64> {
    let count = (((to - from) / width) as usize).min(2_000);
    if count < 3 {
        return None;
    }
    let step = (to - from) / count as f64;
    let edge = |i: usize| total(arrived, from + step * i as f64);
    let moved: Vec<f64> = (0..count).map(|i| edge(i + 1) - edge(i)).collect();
    let mean = moved.iter().sum::<f64>() / count as f64;
    let spread = moved.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64;
    (mean > 0.0).then(|| spread.sqrt() / mean)
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
    fn begins_after_a_burst_that_never_comes_again() {
        let burst = |height: f64| move |t: f64| if t < 2.0 { height } else { 3e6 };
        let part = find(&curve(10.0, burst(12e6)), 10.0, Some(0.06)).unwrap();
        assert!((1.9..2.8).contains(&part.from), "{part:?}");
        let part = find(&curve(10.0, burst(4.4e6)), 10.0, Some(0.06)).unwrap();
        assert!(part.from < 0.1, "{part:?}");
        // As late as this it is what the path is like.
        let late = |t: f64| if (5.0..6.0).contains(&t) { 12e6 } else { 3e6 };
        assert!(find(&curve(10.0, late), 10.0, Some(0.06)).unwrap().from < 0.1);
    }

    #[test]
    fn begins_after_slow_start() {
        let part = find(&curve(10.0, slow_start), 10.0, Some(0.173)).unwrap();
        assert!((1.7..2.4).contains(&part.from), "{part:?}");
        assert!((part.to - 10.0).abs() < 1e-9 && !part.late);
        assert!(part.variation.unwrap() < 0.02, "{part:?}");
    }

    #[test]
    fn a_flat_rate_is_steady_at_once() {
        let part = find(&curve(10.0, |_| 1e6), 10.0, None).unwrap();
        assert_eq!((part.from, part.late), (0.0, false));
    }

    #[test]
    fn linear_growth_is_late_and_growth_that_ends_is_not() {
        let growing = find(&curve(10.0, |t| 1e6 * t), 10.0, None).unwrap();
        assert!(growing.late, "{growing:?}");
        let done = find(&curve(10.0, |t| 1e6 * t.min(5.0)), 10.0, None).unwrap();
        assert!(!done.late, "{done:?}");
    }

    #[test]
    fn a_stall_after_overshoot_is_left_out_and_a_late_one_is_not() {
        let stalled =
            |at: f64| move |t: f64| if (at..at + 1.5).contains(&t) { 1e5 } else { slow_start(t) };
        let early = find(&curve(20.0, stalled(3.0)), 20.0, Some(0.173)).unwrap();
        assert!(early.from > 4.3, "{early:?}");
        let late = find(&curve(20.0, stalled(12.0)), 20.0, Some(0.173)).unwrap();
        assert!(late.from < 2.5, "{late:?}");
    }

    #[test]
    fn the_teardown_is_no_part_of_it() {
        let closing = curve(12.0, |t| if t < 10.0 { 1e6 } else { 0.0 });
        assert!((find(&closing, 10.0, None).unwrap().to - 10.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_in_nothing_out() {
        assert_eq!(find(&[], 10.0, None), None);
        assert_eq!(find(&[Curve::default()], 10.0, None), None);
        assert_eq!(find(&curve(0.0, |_| 1.0), f64::NAN, None), None);
        let still = find(&curve(10.0, |_| 0.0), f64::NAN, Some(1e9)).unwrap();
        assert_eq!((still.from, still.variation), (0.0, None));
    }
}
