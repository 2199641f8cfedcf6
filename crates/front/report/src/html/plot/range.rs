//! An axis between two values, neither of which need be zero.

use crate::axis::Unit;

/// An axis that ends at ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::html) struct Range {
    low: f64,
    high: f64,
    step: f64,
    scale: f64,
    pub(in crate::html) unit: &'static str,
}

impl Range {
    /// Covers finite values that are not negative, with about `want` ticks; the unit is that of the
    /// highest.
    pub(in crate::html) fn over(
        values: impl Iterator<Item = f64>,
        units: &'static [Unit],
        want: f64,
    ) -> Self {
        let values = values.filter(|value| value.is_finite() && *value >= 0.0);
        let (low, high) =
            values.fold((f64::INFINITY, 0.0f64), |(low, high), one| (low.min(one), high.max(one)));
        let low = if low.is_finite() { low.min(1e300) } else { 0.0 };
        let first = units.first().copied().unwrap_or((1.0, ""));
        let high = if high > 0.0 { high.min(1e300) } else { first.0 };
        let (scale, unit) =
            units.iter().rev().find(|(scale, _)| high >= *scale).copied().unwrap_or(first);
        // Values that are nearly alike are in the middle of a tenth of them.
        let spread = (high - low).max(high * 0.1);
        let low = if high - low < spread { f64::midpoint(low, high) - spread / 2.0 } else { low };
        let high = low + spread;
        let span = spread / scale;
        let raw = span / want.max(1.0);
        let ten = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0].into_iter().find(|one| one * ten >= raw).unwrap_or(10.0);
        let step = step * ten * scale;
        let low = (low / step).floor() * step;
        Range { low, high: ((high / step).ceil() * step).max(low + step), step, scale, unit }
    }

    /// How far along the axis a value lies, 0 to 1.
    pub(in crate::html) fn share(&self, value: f64) -> f64 {
        if value.is_finite() {
            ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Each tick: how far along the axis it lies, and its label without the unit.
    pub(in crate::html) fn shares(&self) -> impl Iterator<Item = (f64, String)> {
        let this = *self;
        let step = self.step / self.scale;
        let places = (0..6u8).find(|places| {
            let shifted = step * 10f64.powi(i32::from(*places));
            (shifted - shifted.round()).abs() < 1e-6 * shifted
        });
        let places = usize::from(places.unwrap_or(6));
        let count = ((self.high - self.low) / self.step).round().clamp(0.0, 100.0) as u32;
        (0..=count).map(move |number| {
            let value = this.low + f64::from(number) * this.step;
            (this.share(value), format!("{:.places$}", value / this.scale))
        })
    }

    /// At most so many of them, evenly: for labels beside each other.
    pub(in crate::html) fn some_shares(&self, most: usize) -> impl Iterator<Item = (f64, String)> {
        let every = self.shares().count().div_ceil(most.max(1)).max(1);
        self.shares().step_by(every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{MILLIS, RATE};

    #[test]
    fn ends_are_round_and_zero_is_not_forced() {
        let range = Range::over([173.2, 341.0].into_iter(), MILLIS, 5.0);
        let labels: Vec<String> = range.shares().map(|tick| tick.1).collect();
        assert_eq!(labels, ["150", "200", "250", "300", "350"]);
        assert_eq!((range.unit, range.share(250.0)), ("ms", 0.5));
        let alike = Range::over([95e6, 95e6].into_iter(), RATE, 5.0);
        assert!(alike.share(95e6) < 1.0 && alike.unit == "Mbit/s", "{alike:?}");
    }

    proptest::proptest! {
        #[test]
        fn any_values_have_a_few_ticks(values in proptest::collection::vec(proptest::num::f64::ANY, 0..6)) {
            let range = Range::over(values.iter().copied(), RATE, 5.0);
            proptest::prop_assert!((3..=12).contains(&range.shares().count()), "{:?}", range);
            for value in values {
                proptest::prop_assert!((0.0..=1.0).contains(&range.share(value)));
            }
        }
    }
}
