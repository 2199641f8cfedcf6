//! Loss ratios.

use crate::{ParseError, number, rate::short};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

const EXAMPLE: &str = "1% or 0.01";

/// The share of packets lost: 0 up to, but not including, 1.
///
/// Kept in parts of 10^12, so that `1e-12`, the bit-error floor of good fibre,
/// still counts. Serialised as a fraction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LossRatio(u64);

const ONE: u64 = 1_000_000_000_000;

impl LossRatio {
    /// Nothing is lost.
    pub const NONE: LossRatio = LossRatio(0);

    /// As a fraction.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "10^12 fits 53 bits")]
    pub fn fraction(self) -> f64 {
        self.0 as f64 / ONE as f64
    }

    /// Whether a draw, uniform over all of `u64`, falls on the lost side.
    #[must_use]
    pub fn takes(self, uniform: u64) -> bool {
        u128::from(uniform) * u128::from(ONE) < u128::from(self.0) << 64
    }
}

impl fmt::Display for LossRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ten decimals of a percent hold every ratio there is; f64 prints them exactly.
        let text = format!("{:.10}", self.fraction() * 100.0);
        f.pad(&format!("{} %", text.trim_end_matches('0').trim_end_matches('.')))
    }
}

impl FromStr for LossRatio {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |remedy: String| ParseError::new(text, "loss", remedy);
        let (value, unit) = number::split(text).map_err(|e| wrong(e.explain(EXAMPLE)))?;
        let scale = match unit {
            "%" => ONE / 100,
            "" => ONE,
            _ => {
                return Err(wrong(format!(
                    "'{}' is no unit of loss; write {EXAMPLE}",
                    short(unit)
                )));
            }
        };
        match value.times(scale) {
            Some(0) if !value.is_zero() => Err(wrong("the least is 0.0000000001%".to_owned())),
            Some(parts) if parts < ONE => Ok(LossRatio(parts)),
            _ => Err(wrong(format!("it is less than 100 %; write {EXAMPLE}"))),
        }
    }
}

impl Serialize for LossRatio {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.fraction())
    }
}

impl<'de> Deserialize<'de> for LossRatio {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to lie in 0..1 first"
    )]
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fraction = f64::deserialize(deserializer)?;
        if !(0.0..1.0).contains(&fraction) {
            return Err(serde::de::Error::custom("a loss ratio lies in 0..1"));
        }
        Ok(LossRatio(((fraction * 1e12).round() as u64).min(ONE - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_percent_and_fraction() {
        for (text, parts) in [
            ("1%", ONE / 100),
            ("0.01", ONE / 100),
            ("0", 0),
            ("0%", 0),
            ("0.1 %", ONE / 1000),
            ("0.00001%", 100_000),
            ("99.9%", 999_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(LossRatio(parts)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_loss() {
        for text in ["120%", "100%", "1", "-1%", "%", "1ms", "5", "0.0000000000001%"] {
            assert!(text.parse::<LossRatio>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_draw_is_taken_in_proportion() {
        let half: LossRatio = "50%".parse().unwrap();
        assert!(half.takes(u64::MAX / 2 - 1));
        assert!(!half.takes(u64::MAX / 2 + 2));
        assert!(!LossRatio::NONE.takes(0));
    }

    #[test]
    fn prints_as_percent() {
        assert_eq!("0.001%".parse::<LossRatio>().unwrap().to_string(), "0.001 %");
        assert_eq!(LossRatio::NONE.to_string(), "0 %");
    }
}
