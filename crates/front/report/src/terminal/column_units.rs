//! One unit for each column of a table of intervals, so that its figures can be
//! compared at a glance.

use units::{BitRate, ByteCount, Rtt};

/// Value from which a column changes to a larger unit: five digits.
const LARGE: f64 = 1e4;

/// A unit, and how many of the base unit it is.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Unit {
    name: &'static str,
    scale: f64,
}

impl Unit {
    /// Kilo, mega or giga: mega unless `largest` would have five digits or be
    /// below 0.1.
    fn of(largest: f64, [kilo, mega, giga]: [&'static str; 3]) -> Self {
        if largest >= LARGE * 1e6 {
            Unit { name: giga, scale: 1e9 }
        } else if largest < 1e5 {
            Unit { name: kilo, scale: 1e3 }
        } else {
            Unit { name: mega, scale: 1e6 }
        }
    }

    fn text(self, value: f64) -> String {
        format!("{} {}", three_digits(value / self.scale), self.name)
    }
}

/// The units of a table: bytes, rate and congestion window. Times are in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ColumnUnits {
    bytes: Unit,
    rate: Unit,
    cwnd: Unit,
}

impl ColumnUnits {
    /// Units for a table whose largest figures are about these.
    pub(super) fn of(bytes: ByteCount, rate: BitRate, cwnd: Option<ByteCount>) -> Self {
        let cwnd = cwnd.map_or(0.0, ByteCount::as_f64);
        ColumnUnits {
            bytes: Unit::of(bytes.as_f64(), ["kB", "MB", "GB"]),
            rate: Unit::of(rate.as_f64(), ["kbit/s", "Mbit/s", "Gbit/s"]),
            // A window is 14 kB at first and some MB later on.
            cwnd: Unit::of(cwnd / 10.0, ["kB", "MB", "GB"]),
        }
    }

    pub(super) fn bytes(&self, bytes: ByteCount) -> String {
        self.bytes.text(bytes.as_f64())
    }

    pub(super) fn rate(&self, rate: BitRate) -> String {
        self.rate.text(rate.as_f64())
    }

    pub(super) fn cwnd(&self, cwnd: ByteCount) -> String {
        self.cwnd.text(cwnd.as_f64())
    }

    /// RTT and jitter.
    pub(super) fn time(time: Rtt) -> String {
        format!("{} ms", three_digits(time.secs_f64() * 1e3))
    }
}

/// Three significant digits, trailing zeros included; more before the point,
/// and at most three after it.
fn three_digits(value: f64) -> String {
    let places = match value {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(bytes: u64) -> ColumnUnits {
        ColumnUnits::of(ByteCount::from_bytes(bytes), BitRate::from_bps(8 * bytes), None)
    }

    #[test]
    fn a_column_keeps_its_unit_and_three_digits() {
        let table = units(1_016_000_000);
        for (bytes, size, rate) in [
            (1_016_000_000, "1016 MB", "8128 Mbit/s"),
            (812_000_000, "812 MB", "6496 Mbit/s"),
            // What Display writes as 779 MiB.
            (779 << 20, "817 MB", "6535 Mbit/s"),
            (1_250_000, "1.25 MB", "10.0 Mbit/s"),
            (125_000, "0.125 MB", "1.00 Mbit/s"),
            (0, "0 MB", "0 Mbit/s"),
        ] {
            let count = ByteCount::from_bytes(bytes);
            assert_eq!(table.bytes(count), size);
            assert_eq!(table.rate(BitRate::from_bps(8 * bytes)), rate);
        }
    }

    #[test]
    fn the_largest_figure_chooses_the_unit() {
        let rate = |bytes: u64| units(bytes).rate(BitRate::from_bps(8 * bytes));
        assert_eq!(rate(1000), "8.00 kbit/s");
        assert_eq!(rate(1_249_000_000), "9992 Mbit/s");
        assert_eq!(rate(1_250_000_000), "10.0 Gbit/s");
        assert_eq!(rate(12_500_000_000), "100 Gbit/s");
        let cwnd = |bytes| {
            let cwnd = ByteCount::from_bytes(bytes);
            ColumnUnits::of(cwnd, BitRate::ZERO, Some(cwnd)).cwnd(cwnd)
        };
        assert_eq!(cwnd(14_480), "14.5 kB");
        assert_eq!(cwnd(2_162_500), "2.16 MB");
    }
}
