//! Loss ratios.

use crate::{ParseError, number, rate::short};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

const EXAMPLE: &str = "1% or 0.01";

/// The share of packets lost: 0 to below 1.
///
/// Stored in parts of 10^12, so that 10^-12, the bit-error rate of good fibre, is
/// representable. Serialised as a fraction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LossRatio(u64);

const ONE: u64 = 1_000_000_000_000;

impl LossRatio {
    /// No loss.
    pub const NONE: LossRatio = LossRatio(0);

    /// The ratio as a fraction.
    #[must_use]
    pub fn fraction(self) -> f64 {
        Probability(self.0).fraction()
    }

    /// Whether a uniform random `u64` means a loss.
    #[must_use]
    pub fn takes(self, uniform: u64) -> bool {
        Probability(self.0).takes(uniform)
    }
}

impl fmt::Display for LossRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ten decimals of a percentage represent every ratio; f64 prints them exactly.
        let text = format!("{:.10}", self.fraction() * 100.0);
        f.pad(&format!("{} %", text.trim_end_matches('0').trim_end_matches('.')))
    }
}

impl FromStr for LossRatio {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match parts(text, "loss")? {
            Some(parts) if parts < ONE => Ok(LossRatio(parts)),
            _ => {
                let remedy = format!("it must be less than 100 %; write {EXAMPLE}");
                Err(ParseError::new(text, "loss", remedy))
            }
        }
    }
}

/// Parses a share in parts of 10^12; `None` on overflow.
fn parts(text: &str, what: &'static str) -> Result<Option<u64>, ParseError> {
    let wrong = |remedy: String| ParseError::new(text, what, remedy);
    let (value, unit) = number::split(text).map_err(|e| wrong(e.explain(EXAMPLE)))?;
    let scale = match unit {
        "%" => ONE / 100,
        "" => ONE,
        _ => {
            let remedy = format!("'{}' is not a unit of {what}; write {EXAMPLE}", short(unit));
            return Err(wrong(remedy));
        }
    };
    match value.times(scale) {
        Some(0) if !value.is_zero() => Err(wrong("the minimum is 0.0000000001%".to_owned())),
        parts => Ok(parts),
    }
}

/// A probability: 0 to 1 inclusive; a [`LossRatio`] excludes 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u64);

impl Probability {
    /// Zero.
    pub const NEVER: Probability = Probability(0);
    /// One.
    pub const ALWAYS: Probability = Probability(ONE);

    /// The ratio as a fraction.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "10^12 fits 53 bits")]
    pub fn fraction(self) -> f64 {
        self.0 as f64 / ONE as f64
    }

    /// Whether a uniform random `u64` falls within it.
    #[must_use]
    pub fn takes(self, uniform: u64) -> bool {
        u128::from(uniform) * u128::from(ONE) < u128::from(self.0) << 64
    }
}

impl From<LossRatio> for Probability {
    fn from(ratio: LossRatio) -> Self {
        Probability(ratio.0)
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == ONE { f.pad("100 %") } else { LossRatio(self.0).fmt(f) }
    }
}

impl FromStr for Probability {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match parts(text, "probability")? {
            Some(parts) if parts <= ONE => Ok(Probability(parts)),
            _ => {
                let remedy = format!("it must be at most 100 %; write {EXAMPLE}");
                Err(ParseError::new(text, "probability", remedy))
            }
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for LossRatio {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LossRatio".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "number",
            "minimum": 0,
            "exclusiveMaximum": 1,
            "description": "A share of packets."
        })
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
        reason = "checked to be in 0..1 first"
    )]
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fraction = f64::deserialize(deserializer)?;
        if !(0.0..1.0).contains(&fraction) {
            return Err(serde::de::Error::custom("a loss ratio must be from 0 to below 1"));
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
    fn a_probability_may_be_certain() {
        assert_eq!("100%".parse(), Ok(Probability::ALWAYS));
        assert!(Probability::ALWAYS.takes(u64::MAX) && !Probability::NEVER.takes(0));
        assert_eq!(Probability::ALWAYS.to_string(), "100 %");
        assert!("100.1%".parse::<Probability>().is_err());
    }

    #[test]
    fn prints_as_percent() {
        assert_eq!("0.001%".parse::<LossRatio>().unwrap().to_string(), "0.001 %");
        assert_eq!(LossRatio::NONE.to_string(), "0 %");
    }
}
