//! Quantities read from text, and times as text.

use super::error::{PathError, short};
use std::str::FromStr;
use units::ParseError;

/// Parses a quantity.
pub(super) fn quantity<T>(name: &str, text: &str) -> Result<T, PathError>
where
    T: FromStr<Err = ParseError>,
{
    text.parse().map_err(|source| PathError::Value { key: short(name), source })
}

/// Parses an integer within bounds.
pub(super) fn integer(
    name: &str,
    text: &str,
    least: u32,
    most: u32,
    example: &str,
) -> Result<u32, PathError> {
    text.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        let wrong = format!(
            "'{}' is not a whole number from {least} to {most}; write {example}",
            short(text)
        );
        PathError::at(name, wrong)
    })
}

/// A time in the largest unit that holds it whole: `5s`, `1500ms`.
pub(super) fn exact_time(nanos: u64) -> String {
    match nanos {
        0 => "0s".to_owned(),
        _ if nanos.is_multiple_of(1_000_000_000) => format!("{}s", nanos / 1_000_000_000),
        _ if nanos.is_multiple_of(1_000_000) => format!("{}ms", nanos / 1_000_000),
        _ if nanos.is_multiple_of(1_000) => format!("{}us", nanos / 1_000),
        _ => format!("{nanos}ns"),
    }
}
