//! Bit rates.

use crate::{ByteCount, ParseError, number};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, time::Duration};

const EXAMPLE: &str = "100mbit or 2.5gbit";

/// A rate in bit/s, decimal prefixes only (1 Mbit/s = 1 000 000 bit/s).
///
/// Printed with three significant digits (`3.03 Mbit/s`); serialised as a
/// plain number of bit/s.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BitRate(u64);

impl BitRate {
    /// Zero; a measured rate can be zero, a parsed one cannot.
    pub const ZERO: BitRate = BitRate(0);
    /// The highest rate that parses: 100 Tbit/s. Its product with a time of up to an
    /// hour fits 64 bits of bytes.
    pub const MAX: BitRate = BitRate(100_000_000_000_000);

    /// From a number of bit/s.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Self {
        BitRate(bps)
    }

    /// From a computed number of bit/s; zero if it is negative or NaN.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, as intended"
    )]
    pub fn from_bps_f64(bps: f64) -> Self {
        BitRate(bps.round() as u64)
    }

    /// The rate in bit/s.
    #[must_use]
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// The rate in bit/s for an equation.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "53 bits of a rate are enough for any equation")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The rate of `bytes` in `time`; zero if `time` is zero.
    #[must_use]
    pub fn of(bytes: ByteCount, time: Duration) -> Self {
        if time.is_zero() {
            return BitRate::ZERO;
        }
        let bits = u128::from(bytes.bytes()) * 8 * 1_000_000_000;
        BitRate(u64::try_from(bits / time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The bytes sent at this rate within `time`, rounded down: the bandwidth-delay
    /// product if `time` is the RTT.
    #[must_use]
    pub fn bytes_in(self, time: Duration) -> ByteCount {
        let bits = u128::from(self.0) * time.as_nanos() / 1_000_000_000;
        ByteCount::from_bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }

    /// The transmission time of `bytes`, rounded up to the nanosecond.
    #[must_use]
    pub fn time_for(self, bytes: ByteCount) -> Duration {
        let bits = u128::from(bytes.bytes()) * 8 * 1_000_000_000;
        let nanos = bits.div_ceil(u128::from(self.0.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// This rate times a factor, such as the payload share of a packet.
    #[must_use]
    pub fn scaled(self, share: f64) -> Self {
        BitRate::from_bps_f64(self.as_f64() * share)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => (1.0, "bit/s"),
            1_000..1_000_000 => (1e3, "kbit/s"),
            1_000_000..1_000_000_000 => (1e6, "Mbit/s"),
            1_000_000_000..1_000_000_000_000 => (1e9, "Gbit/s"),
            _ => (1e12, "Tbit/s"),
        };
        f.pad(&format!("{} {unit}", number::significant(self.as_f64() / scale, 3)))
    }
}

impl FromStr for BitRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |remedy: String| ParseError::new(text, "rate", remedy);
        let (value, unit) = number::split(text).map_err(|e| wrong(e.explain(EXAMPLE)))?;
        if value.is_zero() {
            return Err(wrong(format!("a rate of zero is not allowed; write {EXAMPLE}")));
        }
        let scale = scale_of(unit).ok_or_else(|| {
            wrong(match unit {
                "" => format!("give the unit, as in {EXAMPLE}"),
                _ if is_of_bytes(unit) => format!(
                    "{} are bytes: write 8 times as many bits, as in {EXAMPLE}",
                    short(unit)
                ),
                _ => format!(
                    "'{unit}' is not a unit of rate (bit, kbit, mbit, gbit, tbit); write {EXAMPLE}",
                    unit = short(unit)
                ),
            })
        })?;
        match value.times(scale) {
            Some(bps) if bps > BitRate::MAX.0 => Err(wrong("the maximum is 100tbit".to_owned())),
            None => Err(wrong("the maximum is 100tbit".to_owned())),
            Some(0) => Err(wrong("the minimum is 1bit".to_owned())),
            Some(bps) => Ok(BitRate(bps)),
        }
    }
}

pub(crate) fn short(unit: &str) -> String {
    unit.chars().filter(|c| !c.is_control()).take(12).collect()
}

/// Whether a unit is one of bytes, such as MB or MB/s: as bits it would be wrong by a factor of
/// eight.
fn is_of_bytes(unit: &str) -> bool {
    ["B", "B/s", "Bps"].iter().any(|bytes| unit.ends_with(bytes))
}

/// `mbit`, `Mbit/s`, `mbps`, iperf3's `m`: always bits, always powers of 1000.
fn scale_of(unit: &str) -> Option<u64> {
    if is_of_bytes(unit) {
        return None;
    }
    let unit = unit.to_ascii_lowercase();
    // `mbps` is of bits everywhere; `mb` and `mb/s` may be of bytes.
    let is_ps = unit.ends_with("ps");
    let unit = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")).unwrap_or(&unit);
    Some(match unit {
        "bit" | "bits" => 1,
        "k" | "kbit" | "kbits" => 1_000,
        "m" | "mbit" | "mbits" => 1_000_000,
        "g" | "gbit" | "gbits" => 1_000_000_000,
        "t" | "tbit" | "tbits" => 1_000_000_000_000,
        "kb" if is_ps => 1_000,
        "mb" if is_ps => 1_000_000,
        "gb" if is_ps => 1_000_000_000,
        "tb" if is_ps => 1_000_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_forms_people_write() {
        for (text, bps) in [
            ("100mbit", 100_000_000),
            ("2.5gbit", 2_500_000_000),
            ("2.5 Gbit/s", 2_500_000_000),
            ("200m", 200_000_000),
            ("56kbps", 56_000),
            ("10 Mbps", 10_000_000),
            ("1bit", 1),
            ("100tbit", 100_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(BitRate(bps)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_rate() {
        for text in [
            "",
            "0",
            "0mbit",
            "-1mbit",
            "mbit",
            "100",
            "1.2.3m",
            "100mbitt",
            "101tbit",
            "99999999999999999999t",
            "10MB/s",
            "10MB",
            "1 GB",
            "3kB",
            "10mb",
            "10mb/s",
            "0.1bit",
            "1e8",
            "NaN",
            "inf",
            "１mbit",
        ] {
            assert!(text.parse::<BitRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn says_what_would_be_right() {
        let error = "100".parse::<BitRate>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'100' is not a rate: give the unit, as in 100mbit or 2.5gbit"
        );
        let error = "10MB".parse::<BitRate>().unwrap_err().to_string();
        assert!(error.contains("MB are bytes"), "{error}");
    }

    #[test]
    fn says_it_in_one_line() {
        let error = "1m\nbit".parse::<BitRate>().unwrap_err().to_string();
        assert!(!error.contains(char::is_control), "{error}");
    }

    #[test]
    fn serialisation_times() {
        let rate = BitRate::from_bps(100_000_000);
        assert_eq!(rate.time_for(ByteCount::from_bytes(1500)), Duration::from_micros(120));
        assert_eq!(rate.bytes_in(Duration::from_millis(173)), ByteCount::from_bytes(2_162_500));
    }

    #[test]
    fn prints_three_digits() {
        for (bps, text) in [
            (0, "0 bit/s"),
            (3_030_566, "3.03 Mbit/s"),
            (96_533_333, "96.5 Mbit/s"),
            (100_000_000, "100 Mbit/s"),
            (9_990_000_000, "9.99 Gbit/s"),
        ] {
            assert_eq!(BitRate(bps).to_string(), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in ".*") {
            let _ = text.parse::<BitRate>();
        }

        #[test]
        fn whole_rates_survive_a_round_trip(bps in 1u64..=100_000_000_000_000) {
            proptest::prop_assert_eq!(format!("{bps}bit").parse(), Ok(BitRate(bps)));
        }
    }
}
