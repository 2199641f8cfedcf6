//! Counters over time.

/// Samples after this time, about 115 days, are ignored.
const LATEST_S: f64 = 1e7;

/// One counter of one stream: pairs of seconds and value, both increasing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Curve {
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// From samples, oldest first. Samples out of range or out of order are skipped,
    /// and a counter that decreases keeps its maximum: neither occurs in a valid file.
    /// Counters start with their connection, so each curve starts at 0.
    pub(crate) fn new(samples: impl IntoIterator<Item = (f64, u64)>) -> Self {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (t, value) in samples {
            if !(0.0..=LATEST_S).contains(&t) {
                continue;
            }
            if points.is_empty() && t > 0.0 {
                points.push((0.0, 0.0));
            }
            match points.last() {
                Some(&(before, _)) if t <= before => {}
                Some(&(_, most)) => points.push((t, most.max(value as f64))),
                None => points.push((t, value as f64)),
            }
        }
        Curve { points }
    }

    /// The last sample's time; `None` with fewer than two samples.
    pub(crate) fn end(&self) -> Option<f64> {
        if self.points.len() < 2 { None } else { self.points.last().map(|&(t, _)| t) }
    }

    /// The counter at `t`, interpolated linearly.
    pub(crate) fn at(&self, t: f64) -> f64 {
        let next = self.points.partition_point(|&(time, _)| time <= t);
        match (next.checked_sub(1).and_then(|i| self.points.get(i)), self.points.get(next)) {
            (Some(&(t0, v0)), Some(&(t1, v1))) => v0 + (v1 - v0) * (t - t0) / (t1 - t0),
            (Some(&(_, value)), None) | (None, Some(&(_, value))) => value,
            (None, None) => 0.0,
        }
    }

    /// Growth per second from `from` to `to`, or over the sampled part of it; `None`
    /// if no part was sampled.
    pub(crate) fn slope(&self, from: f64, to: f64) -> Option<f64> {
        let to = to.min(self.end()?);
        (to > from).then(|| (self.at(to) - self.at(from)) / (to - from))
    }
}

/// The sum over streams at `t`.
pub(crate) fn total(curves: &[Curve], t: f64) -> f64 {
    curves.iter().map(|curve| curve.at(t)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_zero_and_interpolates_linearly() {
        let curve = Curve::new([(1.0, 100), (2.0, 300)]);
        for (t, value) in [(0.0, 0.0), (0.5, 50.0), (1.5, 200.0), (2.0, 300.0), (9.0, 300.0)] {
            assert!((curve.at(t) - value).abs() < 1e-9, "{t}");
        }
        assert_eq!(curve.slope(1.0, 5.0), Some(200.0));
        assert_eq!(curve.slope(2.0, 5.0), None);
    }

    #[test]
    fn invalid_samples_are_skipped() {
        let curve = Curve::new([
            (f64::NAN, 1),
            (-1.0, 2),
            (1.0, 10),
            (1.0, 99),
            (0.5, 99),
            (2.0, 5),
            (f64::INFINITY, 7),
            (1e300, 7),
        ]);
        assert_eq!(curve.points, [(0.0, 0.0), (1.0, 10.0), (2.0, 10.0)]);
        assert_eq!(Curve::default().end(), None);
        assert_eq!(Curve::default().slope(0.0, 1.0), None);
    }
}
