//! Arguments of programs as strings, for `#[serde(with = "arguments")]`. Those that are not UTF-8
//! can be run, but not serialised.

use serde::{Deserialize, Deserializer, Serializer, ser::Error};
use std::ffi::OsString;

pub(super) fn serialize<S: Serializer>(
    arguments: &[OsString],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let words = arguments.iter().map(|word| word.to_str());
    let words: Option<Vec<&str>> = words.collect();
    serializer.collect_seq(words.ok_or_else(|| S::Error::custom("an argument is not UTF-8"))?)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<OsString>, D::Error> {
    Ok(Vec::<String>::deserialize(deserializer)?.into_iter().map(OsString::from).collect())
}
