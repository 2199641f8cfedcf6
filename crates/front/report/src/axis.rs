//! Plot axes with round tick values in a readable unit.

/// A unit and how many base units it is.
pub(crate) type Unit = (f64, &'static str);

/// Base unit bit/s.
pub(crate) const RATE: &[Unit] =
    &[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"), (1e12, "Tbit/s")];
/// Base unit bytes.
pub(crate) const SIZE: &[Unit] = &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")];
/// Base unit seconds, for RTTs.
pub(crate) const DELAY: &[Unit] = &[(1e-6, "µs"), (1e-3, "ms"), (1.0, "s")];
/// Base unit milliseconds.
pub(crate) const MILLIS: &[Unit] = &[(1e-3, "µs"), (1.0, "ms"), (1e3, "s")];
/// Shares of one, as percentages.
pub(crate) const SHARE: &[Unit] = &[(0.01, "%")];
/// Numbers of something.
pub(crate) const COUNT: &[Unit] = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
/// Base unit seconds, for time since the start of a test.
pub(crate) const ELAPSED: &[Unit] = &[(1.0, "s")];

/// An axis from zero to `max`, both in base units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    /// Upper end.
    pub(crate) max: f64,
    /// Its unit in base units.
    pub(crate) scale: f64,
    /// Its unit's name.
    pub(crate) unit: &'static str,
    step: f64,
    places: usize,
}

impl Axis {
    /// An axis over 0..=`top` that ends exactly there, with about `want` ticks, and at least
    /// three.
    pub(crate) fn to(top: f64, units: &'static [Unit], want: f64) -> Self {
        let top = if top.is_finite() && top > 0.0 { top } else { units[0].0.max(1.0) };
        // The next tick above must stay finite.
        let top = top.min(1e300);
        let (scale, unit) =
            units.iter().rev().find(|(s, _)| top >= *s).copied().unwrap_or(units[0]);
        let raw = top / scale / want.max(1.0);
        let power = raw.log10().floor();
        let ten = 10f64.powf(power);
        // Steps of 25 and 250 are readable; 2.5 would need a decimal on every tick.
        let quarter = if ten >= 10.0 { 2.5 } else { 5.0 };
        let wanted =
            [1.0, 2.0, quarter, 5.0].into_iter().find(|m| m * ten >= raw * 0.999).unwrap_or(10.0);
        // Two steps of a smaller one are never more than half the axis.
        let smaller = [10.0, 5.0, quarter, 2.0, 1.0, 0.5, 0.2, 0.1].into_iter();
        let step = smaller
            .filter(|m| *m <= wanted)
            .find(|m| m * ten * 2.0 <= top / scale * 1.0005)
            .unwrap_or(wanted)
            * ten;
        let places = (0..6)
            .find(|&p| {
                let shifted = step * 10f64.powi(p);
                (shifted - shifted.round()).abs() < 1e-6 * shifted
            })
            .unwrap_or(6);
        Axis { max: top, scale, unit, step: step * scale, places: places.unsigned_abs() as usize }
    }

    /// As [`Axis::to`], extended above `top` to the next tick.
    pub(crate) fn over(top: f64, units: &'static [Unit], want: f64) -> Self {
        let mut axis = Axis::to(top, units, want);
        axis.max = axis.step * (axis.max / axis.step * 0.999).ceil().max(1.0);
        axis
    }

    /// Each tick: its value in base units and its label without the unit.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        // At most ten times the wanted number of ticks.
        let count = (self.max / self.step * 1.001).floor().clamp(0.0, 100.0) as u32;
        (0..=count)
            .map(|i| f64::from(i) * self.step)
            .map(|at| (at, format!("{:.*}", self.places, at / self.scale)))
            .collect()
    }

    /// Each tick: how far along the axis it lies, 0 to 1, and its label without the unit.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (f64, String)> {
        self.ticks().into_iter().map(|(value, label)| (self.share(value), label))
    }

    /// How far along the axis a value lies, 0 to 1.
    pub(crate) fn share(&self, value: f64) -> f64 {
        if value.is_finite() { (value / self.max).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// A value in the axis's unit with four digits, for tables and tooltips.
    pub(crate) fn number(&self, value: f64) -> String {
        let value = value / self.scale;
        match value.abs() {
            v if v >= 999.5 => format!("{value:.0}"),
            v if v >= 99.95 => format!("{value:.1}"),
            v if v >= 9.995 => format!("{value:.2}"),
            _ => format!("{value:.3}"),
        }
    }
}

/// A value in a readable unit with three digits: `6.29 MB`, where `ByteCount`
/// prints `6 MiB`, which does not fit an axis in MB.
pub(crate) fn readable(value: f64, units: &'static [Unit]) -> String {
    let first = units.first().copied().unwrap_or((1.0, ""));
    let (scale, unit) = units.iter().rev().find(|(s, _)| value >= *s).copied().unwrap_or(first);
    let value = value / scale;
    // The smallest unit of several has whole numbers.
    let places = if value >= 99.95 || (scale == first.0 && units.len() > 1) {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.places$} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_in_a_human_unit() {
        let axis = Axis::over(100e6, RATE, 5.0);
        assert_eq!(axis.unit, "Mbit/s");
        let labels: Vec<_> = axis.ticks().into_iter().map(|t| t.1).collect();
        assert_eq!(labels, ["0", "20", "40", "60", "80", "100"]);
        let axis = Axis::over(0.18, DELAY, 4.0);
        assert_eq!(axis.ticks().last().unwrap().1, "200");
        assert_eq!(readable(6_291_456.0, SIZE), "6.29 MB");
        // Of 9 s, not only 0 and 5.
        let labels: Vec<_> = Axis::to(9.0, ELAPSED, 4.4).ticks().into_iter().map(|t| t.1).collect();
        assert_eq!(labels, ["0", "2", "4", "6", "8"]);
        let axis = Axis::over(3.05e6, RATE, 4.0);
        assert_eq!(axis.ticks().last().unwrap().1, "4");
    }

    proptest::proptest! {
        #[test]
        fn any_top_has_a_few_ticks(top in proptest::num::f64::ANY) {
            for units in [RATE, SIZE, DELAY, ELAPSED, MILLIS, SHARE, COUNT] {
                let axis = Axis::over(top, units, 5.0);
                proptest::prop_assert!((3..=12).contains(&axis.ticks().len()));
                proptest::prop_assert!(axis.max > 0.0);
                proptest::prop_assert!(axis.share(top) <= 1.0);
            }
        }
    }
}
