//! Scales of a study's plots: linear from zero, or logarithmic.

use crate::axis::{Axis, COUNT, Unit, readable};

/// The ratio of the largest to the smallest value, from which a scale is logarithmic.
const LOG_FROM: f64 = 8.0;

/// From values to 0..1 along an axis.
#[derive(Debug, Clone)]
pub(in crate::html) enum Scale {
    /// From zero.
    Linear(Axis),
    /// Between two positive values, by their natural logarithms.
    Log {
        /// Of the lowest value.
        low: f64,
        /// Of the highest.
        high: f64,
        /// Of the labels.
        units: &'static [Unit],
    },
}

impl Scale {
    /// A scale of measured values.
    pub(in crate::html) fn of_values(
        values: impl Iterator<Item = f64> + Clone,
        units: &'static [Unit],
    ) -> Self {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let low = positive.clone().fold(f64::INFINITY, f64::min);
        let high = positive.fold(0.0, f64::max);
        if high > low * LOG_FROM {
            // The grid lines are powers of ten: one below the lowest value.
            let first = low.log10().floor() * std::f64::consts::LN_10;
            Scale::Log { low: first, high: high.ln() + 0.1, units }
        } else {
            Scale::Linear(Axis::over(high, units, 5.0))
        }
    }

    /// A logarithmic scale of positive values, with a little room at both ends.
    pub(in crate::html) fn logarithmic(
        values: impl Iterator<Item = f64>,
        units: &'static [Unit],
    ) -> Self {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = positive
            .fold((f64::INFINITY, 0.0f64), |(low, high), one| (low.min(one), high.max(one)));
        let (low, high) = if high > 0.0 { (low, high) } else { (1.0, 10.0) };
        Scale::Log { low: low.ln() - 0.2, high: high.ln() + 0.1, units }
    }

    /// A scale of a factor's values.
    pub(in crate::html) fn of_factor(values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        if low > 0.0 && high > low * LOG_FROM {
            Scale::Log { low: low.ln(), high: high.ln(), units: COUNT }
        } else {
            Scale::Linear(Axis::to(high, COUNT, 5.0))
        }
    }

    /// How far along the axis a value lies, 0 to 1.
    pub(in crate::html) fn share(&self, value: f64) -> f64 {
        match self {
            Scale::Linear(axis) => axis.share(value),
            Scale::Log { low, high, .. } if value > 0.0 && value.is_finite() => {
                ((value.ln() - low) / (high - low).max(1e-9)).clamp(0.0, 1.0)
            }
            Scale::Log { .. } => 0.0,
        }
    }

    /// Grid lines of measured values, with their labels.
    pub(in crate::html) fn value_ticks(&self) -> Vec<(f64, String)> {
        match self {
            Scale::Linear(axis) => axis
                .ticks()
                .into_iter()
                .map(|(value, label)| {
                    (value, format!("{label} {}", axis.unit).trim_end().to_owned())
                })
                .collect(),
            Scale::Log { low, high, units } => {
                let ten = std::f64::consts::LN_10;
                let (first, last) =
                    ((low / ten + 1e-9).floor() as i32, (high / ten).floor() as i32);
                let decades = (first..=last.min(first + 20)).map(|power| 10f64.powi(power));
                let steps: &[f64] = if last - first < 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                decades
                    .flat_map(|decade| steps.iter().map(move |step| decade * step))
                    .filter(|value| (low - 1e-9..=*high).contains(&value.ln()))
                    .map(|value| (value, readable(value, units)))
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::RATE;

    #[test]
    fn a_wide_range_is_logarithmic() {
        let scale = Scale::of_values([3e6, 6e6, 96e6].into_iter(), RATE);
        assert!((scale.share(1e6) - 0.0).abs() < 1e-9 && scale.share(96e6) > 0.9);
        let labels: Vec<String> = scale.value_ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(labels.first().map(String::as_str), Some("1.00 Mbit/s"));
        assert!(labels.len() <= 8, "{labels:?}");
        let narrow = Scale::of_values([90e6, 96e6].into_iter(), RATE);
        assert!((narrow.share(0.0) - 0.0).abs() < 1e-9);
    }

    proptest::proptest! {
        #[test]
        fn any_values_have_a_few_ticks(values in proptest::collection::vec(proptest::num::f64::ANY, 0..6)) {
            let scale = Scale::of_values(values.iter().copied(), RATE);
            proptest::prop_assert!(scale.value_ticks().len() <= 64);
            for value in values {
                proptest::prop_assert!((0.0..=1.0).contains(&scale.share(value)));
            }
        }
    }
}
