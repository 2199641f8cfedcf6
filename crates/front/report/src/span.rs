//! The axes of a calculator's curves: logarithmic, or linear from zero.

use crate::axis::{Axis, ELAPSED, RATE, SIZE};
use model::calc::Scale;

/// Most decades of a logarithmic axis in a plot of few rows.
const MAX_DECADES: f64 = 9.0;

/// One axis: its range and ticks.
pub(crate) struct Span {
    /// Both ends; decadic logarithms if `log`.
    from: f64,
    to: f64,
    pub(crate) log: bool,
    pub(crate) unit: &'static str,
    ticks: Vec<(f64, String)>,
}

impl Span {
    /// Covers the values; ends at the last value if `tight`, else at the next tick.
    pub(crate) fn over(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        tight: bool,
    ) -> Option<Self> {
        let log =
            matches!(scale, Scale::LogRate | Scale::LogLoss | Scale::LogSeconds | Scale::LogBytes);
        let fits = |value: &f64| value.is_finite() && (*value > 0.0 || !log);
        let values: Vec<f64> = values.filter(fits).collect();
        let most = values.iter().copied().reduce(f64::max)?;
        let least = values.into_iter().reduce(f64::min)?;
        Some(if log {
            Span::decades(scale, least, most, tight)
        } else {
            Span::linear(scale, most, tight)
        })
    }

    fn linear(scale: Scale, most: f64, tight: bool) -> Self {
        let units = match scale {
            Scale::Bytes => SIZE,
            Scale::Seconds => ELAPSED,
            _ => RATE,
        };
        let axis =
            if tight { Axis::to(most, units, 8.0) } else { Axis::over(most * 1.04, units, 6.0) };
        Span { from: 0.0, to: axis.max, log: false, unit: axis.unit, ticks: axis.ticks() }
    }

    fn decades(scale: Scale, least: f64, most: f64, tight: bool) -> Self {
        let (mut from, mut to) = (least.log10(), most.log10());
        if !tight {
            (from, to) = (from.floor(), to.ceil());
            from = from.max(to - MAX_DECADES);
        }
        if to - from < 1e-9 {
            to = from + 1.0;
        }
        // Decadic logarithms of doubles: within ±308.
        let powers = (from - 1e-9).ceil() as i32..=(to + 1e-9).floor() as i32;
        let ticks = powers.map(|power| (10f64.powi(power), power_label(scale, power))).collect();
        let unit = match scale {
            Scale::LogRate => "bit/s",
            Scale::LogBytes => "B",
            _ => "",
        };
        Span { from, to, log: true, unit, ticks }
    }

    /// Each tick: how far along the axis it lies, and its label.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (f64, String)> {
        self.ticks.iter().map(|(value, label)| (self.share(*value), label.clone()))
    }

    pub(crate) fn share(&self, value: f64) -> f64 {
        let value = if self.log { value.max(1e-300).log10() } else { value };
        ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// Whether a value is below the axis, where it would be clamped.
    pub(crate) fn below(&self, value: f64) -> bool {
        self.log && value.max(1e-300).log10() < self.from - 1e-9
    }
}

/// The axis label of a power of ten: `10M`, `0.01%`, `100 ms`.
fn power_label(scale: Scale, power: i32) -> String {
    match scale {
        Scale::LogLoss => {
            let places = usize::try_from(-2 - power).unwrap_or(0);
            format!("{:.places$}%", 10f64.powi(power + 2))
        }
        Scale::LogSeconds => {
            let (units, base) = match power {
                0.. => ("s", 0),
                -3..0 => ("ms", -3),
                -6..-3 => ("µs", -6),
                _ => ("ns", -9),
            };
            format!("{:.0} {units}", 10f64.powi(power - base))
        }
        _ => {
            let prefixes = ["", "k", "M", "G", "T", "P"];
            let thousands = power.div_euclid(3).clamp(0, 5);
            let prefix = usize::try_from(thousands).ok().and_then(|i| prefixes.get(i));
            format!("{}{}", 10f64.powi(power - 3 * thousands), prefix.unwrap_or(&""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_have_short_labels() {
        for (scale, power, text) in [
            (Scale::LogRate, 7, "10M"),
            (Scale::LogRate, 0, "1"),
            (Scale::LogRate, 18, "1000P"),
            (Scale::LogLoss, -6, "0.0001%"),
            (Scale::LogLoss, -1, "10%"),
            (Scale::LogSeconds, -2, "10 ms"),
            (Scale::LogSeconds, 0, "1 s"),
        ] {
            assert_eq!(power_label(scale, power), text);
        }
    }

    #[test]
    fn decades_end_at_powers_of_ten() {
        let span = Span::over(Scale::LogRate, [2e6, 9e8].into_iter(), false).unwrap();
        let labels: Vec<&str> = span.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(labels, ["1M", "10M", "100M", "1G"]);
        assert!((span.share(31_622_776.6) - 0.5).abs() < 1e-6);
        assert!(Span::over(Scale::LogRate, [0.0, f64::NAN].into_iter(), false).is_none());
    }
}
