//! Numbers as foreign programs write them.
//!
//! iperf3 keeps every JSON number as a double and prints some integers as
//! `1e+06`, some counters as -1, and a division by zero as `null`. All of that
//! is read; what is no number at all counts as not given.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[expect(
    clippy::cast_possible_truncation,
    reason = "`as` saturates, which is what is wanted of a hostile 1e300"
)]
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_u64().map(|_| i64::MAX))
            .or_else(|| number.as_f64().map(|float| float.round() as i64)),
        Value::Bool(flag) => Some(i64::from(*flag)),
        _ => None,
    }
}

/// An integer that may be missing.
pub(crate) fn maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(integer(&Value::deserialize(deserializer)?))
}

/// An integer; zero where it is no number.
pub(crate) fn int<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(maybe(deserializer)?.unwrap_or(0))
}

/// A finite real number; zero where it is none.
pub(crate) fn real<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(maybe_real(deserializer)?.unwrap_or(0.0))
}

/// A finite real number that may be missing.
pub(crate) fn maybe_real<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_f64().filter(|float| float.is_finite()))
}

/// A flag: `true`, or a number other than zero.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(int(deserializer)? != 0)
}

/// A text that may be missing; anything else counts as missing.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}
