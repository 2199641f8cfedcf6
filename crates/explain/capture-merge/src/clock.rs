//! The clock of B against that of A.
//!
//! Each packet from A to B says that the difference of the clocks is at most what its two
//! times differ by; each packet from B to A, that it is at least that. The least delays
//! of both directions bound it from above and below:
//!
//! ```text
//! time in B   ·  · ·   ·    ·     A to B: difference + delay
//! minus time  ‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾   lower bound of these     ┐
//! in A        - - - - - - - - -   the clock: half way       │ least RTT
//!             _________________   upper bound of those     ┘
//!                ·  ·    ·  ·     B to A: difference - delay
//! ```
//!
//! The lines are parallel, as the clock has one rate, and lie as near to the points as
//! they can: the linear program of Moon, Skelly and Towsley ("Estimation and removal of
//! clock skew from network delay measurements", INFOCOM 1999), over the convex hulls of
//! both directions together. The offset from both directions, the consistency that is
//! asked of them, and steps of a clock follow Paxson ("On calibrating measurements of
//! packet transit times", SIGMETRICS 1998). No method can tell the offset more closely
//! than by half of the least RTT: the two least delays may differ.

mod hull;
mod steps;

use hull::{Bounds, Point};
use steps::Step;

/// Times of one packet in both captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockSample {
    /// Time in A, ns since 1970.
    pub(crate) a_ns: i64,
    /// Time in B, by the clock of B.
    pub(crate) b_ns: i64,
}

/// What the difference of the clocks rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockBasis {
    /// Least delays of both directions.
    BothDirections,
    /// Packets of one direction alone: the least delay counts as 0.
    OneDirection,
    /// The caller says that both captures have one clock.
    SameClock,
    /// No packet is in both captures.
    Nothing,
}

/// A straight part of the difference of the clocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockSegment {
    /// From when on it applies, ns since 1970 by the clock of A; the first one also before.
    pub from_ns: i64,
    /// B minus A at that time, in ns.
    pub offset_ns: i64,
    /// How far the offset may be off: half of the least RTT; `None` with one direction.
    pub uncertainty_ns: Option<i64>,
    /// Rate of B against A, less 1; `None` where it is not larger than its uncertainty.
    pub drift: Option<f64>,
    /// How far the drift may be off, from what both directions say by themselves and the
    /// scatter of their least delays.
    pub drift_uncertainty: f64,
}

/// The clock of B against that of A.
#[derive(Debug, Clone, PartialEq)]
pub struct Clock {
    /// What it rests on.
    pub basis: ClockBasis,
    /// Its parts, at least one; between two of them a clock was set.
    pub segments: Vec<ClockSegment>,
    /// Why the delays are not reliable: no clock without further steps explains them.
    pub unsuitable: Option<&'static str>,
}

impl ClockSegment {
    /// B minus A at a time of A.
    fn at(&self, a_ns: i64) -> i64 {
        let since = a_ns.saturating_sub(self.from_ns) as f64;
        self.offset_ns.saturating_add((self.drift.unwrap_or(0.0) * since) as i64)
    }
}

/// Largest drift that counts as one: Linux disciplines a clock by at most 500 ppm
/// (`MAXFREQ` in include/linux/timex.h), and crystals are off by at most 100.
const MAX_DRIFT: f64 = 600e-6;

impl Clock {
    /// One clock for both.
    pub(crate) fn same(basis: ClockBasis) -> Self {
        let segment = ClockSegment {
            from_ns: 0,
            offset_ns: 0,
            uncertainty_ns: (basis == ClockBasis::SameClock).then_some(0),
            drift: None,
            drift_uncertainty: 0.0,
        };
        Clock { basis, segments: vec![segment], unsuitable: None }
    }

    /// Estimates it from packets of both directions.
    pub(crate) fn estimate(a_to_b: &[ClockSample], b_to_a: &[ClockSample]) -> Self {
        let all = || a_to_b.iter().chain(b_to_a);
        let Some(origin) = all().map(|it| it.a_ns).min() else {
            return Clock::same(ClockBasis::Nothing);
        };
        // Differences of a few ms are exact beside one of years.
        let mut differences: Vec<i64> = all().map(|it| it.b_ns - it.a_ns).collect();
        let middle = differences.len() / 2;
        let base = *differences.select_nth_unstable(middle).1;
        let points = |samples: &[ClockSample], sign: f64| {
            let mut points: Vec<Point> = samples
                .iter()
                .map(|it| Point {
                    x: (it.a_ns - origin) as f64,
                    y: sign * (it.b_ns - it.a_ns).saturating_sub(base) as f64,
                })
                .collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            points
        };
        // The reverse direction upside down, so that both are bounded from below.
        let (there, back) = (points(a_to_b, 1.0), points(b_to_a, -1.0));
        let basis = if there.is_empty() || back.is_empty() {
            ClockBasis::OneDirection
        } else {
            ClockBasis::BothDirections
        };
        let (mut steps, too_many) = steps::find(&there, &back);
        let (mut segments, mut contradicts) = segments([&there, &back], &steps, (origin, base));
        // A queue that empties can look like a step; the least delays on both sides do not.
        let is_step = |step: &Step| {
            let at = origin.saturating_add(step.at as i64);
            let after = segments.partition_point(|segment| segment.from_ns < at);
            let [Some(before), Some(after)] = [after.checked_sub(1), Some(after)]
                .map(|place| place.and_then(|place| segments.get(place)))
            else {
                return false;
            };
            let by = after.offset_ns.saturating_sub(before.at(after.from_ns));
            by as f64 * step.by > 0.0 && by.saturating_abs() as f64 > step.by.abs() / 2.0
        };
        let count = steps.len();
        let kept: Vec<Step> = steps.iter().copied().filter(|step| is_step(step)).collect();
        steps = kept;
        if steps.len() < count {
            (segments, contradicts) = self::segments([&there, &back], &steps, (origin, base));
        }
        if segments.is_empty() {
            return Clock::same(ClockBasis::Nothing);
        }
        let unsuitable = if too_many {
            Some("a clock was set too often")
        } else if contradicts {
            Some("the clocks do not differ by a constant offset and drift")
        } else {
            None
        };
        Clock { basis, segments, unsuitable }
    }

    /// B minus A at a time of A.
    pub(crate) fn difference_ns(&self, a_ns: i64) -> i64 {
        let place = self.segments.partition_point(|segment| segment.from_ns <= a_ns);
        let Some(segment) = self.segments.get(place.saturating_sub(1)) else { return 0 };
        segment.at(a_ns)
    }

    /// A time of B by the clock of A.
    pub(crate) fn in_a(&self, b_ns: i64) -> i64 {
        let first = self.segments.first().map_or(0, |segment| segment.offset_ns);
        // The segment is one of A's times; a second step settles all but a step itself.
        let once = b_ns.saturating_sub(self.difference_ns(b_ns.saturating_sub(first)));
        b_ns.saturating_sub(self.difference_ns(once))
    }
}

/// The parts between steps, and whether any of them contradicts itself.
fn segments(
    [there, back]: [&[Point]; 2],
    steps: &[Step],
    place: (i64, i64),
) -> (Vec<ClockSegment>, bool) {
    let (mut segments, mut contradicts) = (Vec::new(), false);
    let mut from = f64::NEG_INFINITY;
    for to in steps.iter().map(|step| step.at).chain([f64::INFINITY]) {
        let within = |points: &[Point]| -> Vec<Point> {
            let inside = points.iter().filter(|point| point.x >= from && point.x < to);
            let clear = inside.filter(|point| !steps.iter().any(|step| step.is_unclear(point.x)));
            clear.copied().collect()
        };
        if let Some(bounds) = Bounds::of(&within(there), &within(back)) {
            contradicts |= bounds.contradict();
            segments.push(segment(&bounds, from.max(0.0), place));
        }
        from = to;
    }
    (segments, contradicts)
}

fn segment(bounds: &Bounds, from: f64, (origin, base): (i64, i64)) -> ClockSegment {
    let (slope, uncertainty) = bounds.drift();
    let is_drift = slope.abs() > uncertainty && slope.abs() < MAX_DRIFT;
    let slope = if is_drift { slope } else { 0.0 };
    let (middle, half) = bounds.middle(slope);
    ClockSegment {
        from_ns: origin.saturating_add(from as i64),
        offset_ns: base.saturating_add((middle + slope * from).round() as i64),
        uncertainty_ns: half.map(|half| half.max(0.0).round() as i64),
        drift: is_drift.then_some(slope),
        drift_uncertainty: uncertainty,
    }
}

#[cfg(test)]
mod tests;
