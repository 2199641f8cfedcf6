//! Round-trip times and delays.

use crate::{ParseError, number, rate::short};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, time::Duration};

const EXAMPLE: &str = "173ms";

/// A round-trip time or delay in nanoseconds, 0 to 1 h.
///
/// A number without a unit is rejected: `173` could be 173 s. Serialised as
/// nanoseconds.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Rtt(u64);

impl Rtt {
    /// Zero.
    pub const ZERO: Rtt = Rtt(0);
    /// The longest that parses: one hour, longer than any path's.
    pub const MAX: Rtt = Rtt(3_600_000_000_000);

    /// From nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Rtt(nanos)
    }

    /// From microseconds (the kernel's unit), saturating.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Rtt(micros.saturating_mul(1_000))
    }

    /// From seconds; zero if negative or NaN.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and turns NaN into zero"
    )]
    pub fn from_secs(seconds: f64) -> Self {
        Self::from_nanos((seconds * 1e9).round() as u64)
    }

    /// The time in nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The time in milliseconds, for a table or JSON.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an hour of nanoseconds fits 53 bits")]
    pub fn millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time in seconds, for an equation.
    #[must_use]
    pub fn secs_f64(self) -> f64 {
        self.duration().as_secs_f64()
    }

    /// As a [`Duration`].
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl fmt::Display for Rtt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.duration().as_secs_f64() * 1e9;
        let (scale, unit) = match self.0 {
            0 => return f.pad("0 ms"),
            1..1_000 => (1.0, "ns"),
            1_000..1_000_000 => (1e3, "µs"),
            1_000_000..10_000_000_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        f.pad(&format!("{} {unit}", number::significant(nanos / scale, 3)))
    }
}

impl FromStr for Rtt {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |remedy: String| ParseError::new(text, "time", remedy);
        let (value, unit) = number::split(text).map_err(|e| wrong(e.explain(EXAMPLE)))?;
        let scale = scale_of(unit).ok_or_else(|| {
            wrong(match unit {
                "" => format!("give the unit (ns, us, ms, s), as in {EXAMPLE}"),
                _ => {
                    format!(
                        "'{}' is not a unit of time (ns, us, ms, s); write {EXAMPLE}",
                        short(unit)
                    )
                }
            })
        })?;
        match value.times(scale) {
            Some(nanos) if nanos <= Rtt::MAX.0 => Ok(Rtt(nanos)),
            _ => Err(wrong("the maximum is 3600s".to_owned())),
        }
    }
}

fn scale_of(unit: &str) -> Option<u64> {
    Some(match unit.to_lowercase().as_str() {
        "ns" => 1,
        "us" | "µs" | "μs" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_with_their_unit() {
        for (text, nanos) in [
            ("173ms", 173_000_000),
            ("0ms", 0),
            ("250 us", 250_000),
            ("250µs", 250_000),
            ("1.5s", 1_500_000_000),
            ("3600s", 3_600_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Rtt(nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_time() {
        for text in ["173", "-1ms", "", "ms", "3601s", "1h", "1m"] {
            assert!(text.parse::<Rtt>().is_err(), "{text}");
        }
    }

    #[test]
    fn prints_in_the_unit_people_say() {
        for (nanos, text) in [
            (173_000_000, "173 ms"),
            (163_600_000, "164 ms"),
            (250_000, "250 µs"),
            (0, "0 ms"),
            (1_500_000_000, "1500 ms"),
        ] {
            assert_eq!(Rtt(nanos).to_string(), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in ".*") {
            let _ = text.parse::<Rtt>();
        }
    }
}
