//! Numbers in the JSON of other tools: null, negative and of other types where they have none.

use iperf3_proto::lenient::{Scalar, bounded};
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

/// A list of at most `MAX` elements.
struct List<T, const MAX: usize>(Vec<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bounded::<T, MAX, D>(deserializer).map(List)
    }
}

/// A list of which the first `MAX` elements are kept; null, as Go writes it, is an empty one.
pub(crate) fn list<'de, T: Deserialize<'de>, const MAX: usize, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list: Option<List<T, MAX>> = Option::deserialize(deserializer)?;
    Ok(list.map_or_else(Vec::new, |list| list.0))
}
