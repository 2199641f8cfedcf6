//! Sizes in bytes.

use crate::{ParseError, number, rate::short};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

const EXAMPLE: &str = "64KiB (1024) or 64KB (1000)";

/// A number of bytes.
///
/// `KiB`, `MiB`, `GiB` count 1024; `KB`, `MB`, `GB` count 1000; iperf3's
/// single letters (`96K`, `4M`) count 1024 as they do there; a bare number is in
/// bytes.
///
/// Printed with decimal prefixes, or with a binary one if that gives a whole number
/// (`64 KiB`): settings read as they were written. Counts of transferred or used bytes
/// are printed with [`ByteCount::decimal`], as a multiple of 1024 among them is chance.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ByteCount(u64);

impl ByteCount {
    /// Zero bytes.
    pub const ZERO: ByteCount = ByteCount(0);

    /// From a number of bytes.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Self {
        ByteCount(bytes)
    }

    /// From a computed number; zero if it is negative or NaN.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, as intended"
    )]
    pub fn from_f64(bytes: f64) -> Self {
        ByteCount(bytes.round() as u64)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The number of bytes for an equation.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "53 bits of a size are enough for any equation")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The saturating sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        ByteCount(self.0.saturating_add(other.0))
    }

    /// The saturating product.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        ByteCount(self.0.saturating_mul(factor))
    }

    /// Rounded up to a multiple of `unit` bytes.
    #[must_use]
    pub const fn rounded_up_to(self, unit: u64) -> Self {
        ByteCount(self.0.div_ceil(unit).saturating_mul(unit))
    }
}

impl ByteCount {
    /// With a decimal prefix and three significant digits, whatever the value: `8 MB`
    /// also for 7808 KiB.
    #[must_use]
    pub fn decimal(self) -> String {
        let (scale, unit) = match self.0 {
            0..1_000 => (1.0, "bytes"),
            1_000..1_000_000 => (1e3, "kB"),
            1_000_000..1_000_000_000 => (1e6, "MB"),
            1_000_000_000..1_000_000_000_000 => (1e9, "GB"),
            _ => (1e12, "TB"),
        };
        format!("{} {unit}", number::significant(self.as_f64() / scale, 3))
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        for (scale, unit) in BINARY {
            if self.0 >= scale && self.0.is_multiple_of(scale) && self.0 / scale < 10_000 {
                return f.pad(&format!("{} {unit}", self.0 / scale));
            }
        }
        f.pad(&self.decimal())
    }
}

impl FromStr for ByteCount {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |remedy: String| ParseError::new(text, "size", remedy);
        let (value, unit) = number::split(text).map_err(|e| wrong(e.explain(EXAMPLE)))?;
        let scale = scale_of(unit).ok_or_else(|| {
            wrong(format!("'{}' is not a unit of size; write {EXAMPLE}", short(unit)))
        })?;
        value
            .times(scale)
            .map(ByteCount)
            .ok_or_else(|| wrong("the maximum is below 16 EiB".to_owned()))
    }
}

fn scale_of(unit: &str) -> Option<u64> {
    // `Kbit` is rejected: read as bytes it would be wrong by a factor of eight.
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "p" | "pib" => 1 << 50,
        "e" | "eib" => 1 << 60,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_and_1024s_are_told_apart() {
        for (text, bytes) in [
            ("64KiB", 65_536),
            ("64KB", 64_000),
            ("96K", 98_304),
            ("65536", 65_536),
            ("1.5 MiB", 1_572_864),
            ("0", 0),
            ("10EiB", 10 << 60),
        ] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_size() {
        for text in ["", "-1", "K", "64Kbit", "16EiB", "1.2.3", "64 KiB/s", "0x10"] {
            assert!(text.parse::<ByteCount>().is_err(), "{text}");
        }
    }

    #[test]
    fn prints_binary_only_when_whole() {
        for (bytes, text) in [
            (65_536, "64 KiB"),
            (2_162_500, "2.16 MB"),
            (999, "999 bytes"),
            (0, "0 bytes"),
            (33_554_432, "32 MiB"),
        ] {
            assert_eq!(ByteCount(bytes).to_string(), text);
        }
        for (bytes, text) in [(7_995_392, "8 MB"), (65_536, "65.5 kB"), (1_024, "1.02 kB")] {
            assert_eq!(ByteCount(bytes).decimal(), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in ".*") {
            let _ = text.parse::<ByteCount>();
        }
    }
}
