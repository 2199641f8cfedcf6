//! Moments and lengths of a lab's time.

use super::error::Problem;
use crate::toml_text::short;
use std::time::Duration;
use units::Rtt;

/// The longest: beyond any experiment, and no clock overflows.
const MAX_LENGTH: Duration = Duration::from_secs(30 * 24 * 3600);

/// `500ms`, `1.5s`, `90min`, `2h`; the last two in whole numbers.
pub(super) fn parse(key: &'static str, text: &str) -> Result<Duration, Problem> {
    let wrong = |wrong: String| Problem::Time { key, wrong };
    let lower = text.trim().to_ascii_lowercase();
    for (unit, seconds) in [("min", 60), ("h", 3600)] {
        let number = lower.strip_suffix(unit).and_then(|number| number.trim().parse::<u64>().ok());
        let Some(number) = number else { continue };
        let time = Duration::from_secs(number.saturating_mul(seconds));
        if time > MAX_LENGTH {
            return Err(wrong(format!("'{}' is longer than 720h", short(text, 40))));
        }
        return Ok(time);
    }
    // One number of seconds beyond an hour is the same mistake to a reader as
    // a unit that is not known: both are told how to write it.
    match text.parse::<Rtt>() {
        Ok(time) => Ok(time.duration()),
        Err(_) => Err(wrong(format!(
            "'{}' is not a time; write it as 500ms, 30s (up to 3600s), 90min or 2h",
            short(text, 40)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("1.5s", 1500),
            ("90min", 5_400_000),
            ("720h", 2_592_000_000),
        ] {
            assert_eq!(parse("start", text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "30", "-1s", "721h", "1.5h", "min", "99999999999999999999h", "5m"] {
            assert!(parse("start", text).is_err(), "{text}");
        }
    }
}
