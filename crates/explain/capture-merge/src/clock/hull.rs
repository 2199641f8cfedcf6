//! Lines below points: convex hulls, and the line that is nearest to all of them.

/// Time in ns and a difference in ns, to which a delay is added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The points of a direction from below.
#[derive(Debug)]
struct Lower {
    hull: Vec<Point>,
    mean: Point,
    first: f64,
    last: f64,
    /// Least points of intervals, for the scatter.
    minima: Vec<Point>,
}

/// Intervals whose least points say how much least delays scatter.
const INTERVALS: usize = 20;

impl Lower {
    /// `points` are sorted by x.
    fn of(points: &[Point]) -> Option<Self> {
        let (first, last) = (points.first()?.x, points.last()?.x);
        let count = points.len() as f64;
        let sum = points.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.x, sum.1 + it.y));
        let mut hull: Vec<Point> = Vec::new();
        for point in points {
            // Andrew's monotone chain, its lower half.
            while let [.., a, b] = hull.as_slice() {
                if (b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x) > 0.0 {
                    break;
                }
                hull.pop();
            }
            hull.push(*point);
        }
        let width = ((last - first) / INTERVALS as f64).max(1.0);
        let intervals = points
            .chunk_by(|a, b| ((a.x - first) / width).floor() == ((b.x - first) / width).floor());
        let minima =
            intervals.filter_map(|of| of.iter().min_by(|a, b| a.y.total_cmp(&b.y)).copied());
        let mean = Point { x: sum.0 / count, y: sum.1 / count };
        Some(Lower { minima: minima.collect(), hull, mean, first, last })
    }

    /// The highest line of this slope below all points: its height at x = 0.
    fn intercept(&self, slope: f64) -> f64 {
        // Edges of a lower hull become steeper.
        let (mut low, mut high) = (0, self.hull.len().saturating_sub(1));
        while low < high {
            let middle = low.midpoint(high);
            let [a, b] = [middle, middle + 1].map(|place| self.hull.get(place));
            let is_flatter = a.zip(b).is_some_and(|(a, b)| b.y - a.y < slope * (b.x - a.x));
            if is_flatter { low = middle + 1 } else { high = middle }
        }
        self.hull.get(low).map_or(0.0, |point| point.y - slope * point.x)
    }

    /// Mean distance of the points from that line.
    fn distance(&self, slope: f64) -> f64 {
        self.mean.y - slope * self.mean.x - self.intercept(slope)
    }

    /// Median distance of the intervals' least points from that line.
    fn scatter(&self, slope: f64) -> f64 {
        let intercept = self.intercept(slope);
        let mut distances: Vec<f64> =
            self.minima.iter().map(|point| point.y - slope * point.x - intercept).collect();
        let middle = distances.len() / 2;
        distances.sort_by(f64::total_cmp);
        distances.get(middle).copied().unwrap_or(0.0)
    }
}

/// The bounds of a clock: packets from A to B from above, and from B to A from below.
#[derive(Debug)]
pub(super) struct Bounds {
    there: Option<Lower>,
    /// Upside down.
    back: Option<Lower>,
}

/// Slopes that are searched: beyond any clock.
const STEEPEST: f64 = 1e-3;

impl Bounds {
    /// `back` has its differences negated. `None` without a point.
    pub(super) fn of(there: &[Point], back: &[Point]) -> Option<Self> {
        let bounds = Bounds { there: Lower::of(there), back: Lower::of(back) };
        (bounds.there.is_some() || bounds.back.is_some()).then_some(bounds)
    }

    /// The slope of the nearest parallel lines, and its uncertainty.
    pub(super) fn drift(&self) -> (f64, f64) {
        let distance = |slope: f64| {
            let there = self.there.as_ref().map_or(0.0, |lower| lower.distance(slope));
            there + self.back.as_ref().map_or(0.0, |lower| lower.distance(-slope))
        };
        let slope = least(&distance);
        let span = [&self.there, &self.back]
            .into_iter()
            .flatten()
            .map(|lower| lower.last - lower.first)
            .fold(f64::INFINITY, f64::min);
        if span <= 0.0 {
            return (0.0, f64::INFINITY);
        }
        let there = self.there.as_ref().map(|it| (least(&|s| it.distance(s)), it.scatter(slope)));
        let back = self.back.as_ref().map(|it| (least(&|s| it.distance(-s)), it.scatter(-slope)));
        let scatter = (there.map_or(0.0, |it| it.1) + back.map_or(0.0, |it| it.1)) / span;
        match there.zip(back) {
            Some((there, back)) => (slope, (there.0 - back.0).abs() / 2.0 + scatter),
            // A queue that fills looks like a clock that drifts, and nothing contradicts.
            None => (slope, f64::INFINITY),
        }
    }

    /// Half way between the bounds at x = 0 for this slope, and half of what is between
    /// them. With one direction the bound itself, and nothing is known of the distance.
    pub(super) fn middle(&self, slope: f64) -> (f64, Option<f64>) {
        let above = self.there.as_ref().map(|lower| lower.intercept(slope));
        let below = self.back.as_ref().map(|lower| -lower.intercept(-slope));
        match (above, below) {
            (Some(above), Some(below)) => {
                (f64::midpoint(above, below), Some((above - below) / 2.0))
            }
            (Some(only), None) | (None, Some(only)) => (only, None),
            (None, None) => (0.0, None),
        }
    }

    /// Whether no clock of constant rate lets all packets arrive after they were sent.
    pub(super) fn contradict(&self) -> bool {
        let gap = |slope: f64| -self.middle(slope).1.unwrap_or(0.0);
        let widest = least(&gap);
        gap(widest) > 0.0
    }
}

/// Where a convex function of the slope is least: ternary search.
fn least(function: &dyn Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-STEEPEST, STEEPEST);
    for _ in 0..80 {
        let third = (high - low) / 3.0;
        if function(low + third) <= function(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    f64::midpoint(low, high)
}
