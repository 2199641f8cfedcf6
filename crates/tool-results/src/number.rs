//! Numbers in the JSON of other tools: null, negative and of other types where they have none.

use iperf3_proto::lenient::Scalar;
use serde::{Deserialize, Deserializer};

/// A finite number; anything else counts as missing.
pub(crate) fn maybe<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Scalar::deserialize(deserializer)?.real())
}

/// A flag; anything else counts as false.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Scalar::deserialize(deserializer)?.integer().is_some_and(|number| number != 0))
}

/// A count that is not negative.
pub(crate) fn count(number: Option<f64>) -> Option<u64> {
    number.filter(|number| *number >= 0.0).map(|number| number as u64)
}

/// The same in 32 bits; larger ones saturate.
pub(crate) fn count32(number: Option<f64>) -> Option<u32> {
    number.filter(|number| *number >= 0.0).map(|number| number as u32)
}
