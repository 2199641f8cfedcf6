//! RTT and loss of probes to a host.

use crate::{Problem, StopFlag};
pub use probe::{Event as PingEvent, Family, PingConfig as PingRequest, PingMethod};
use record::PingReport;

/// Sends the probes, and returns the statistics of their replies.
///
/// # Errors
/// An invalid field, a name without address, no privilege, no route.
pub fn run(
    request: &PingRequest,
    on_event: &mut dyn FnMut(PingEvent),
    stop: &StopFlag,
) -> Result<PingReport, Problem> {
    Ok(probe::ping(request, on_event, &|| stop.is_raised())?)
}

/// Parses a DSCP or its name (RFC 2474, 2597, 3246, 8622) into the upper six bits of
/// the TOS byte.
///
/// # Errors
/// What is accepted.
pub fn dscp(text: &str) -> Result<u8, String> {
    let name = text.to_ascii_uppercase();
    let digits: Vec<u8> = name.bytes().skip(2).map(|digit| digit.wrapping_sub(b'0')).collect();
    let value = match (name.get(..2), digits.as_slice()) {
        (Some("EF"), []) => Some(46),
        (Some("LE"), []) => Some(1),
        (Some("CS"), [class @ 0..=7]) => Some(class * 8),
        (Some("AF"), [class @ 1..=4, drop @ 1..=3]) => Some(class * 8 + drop * 2),
        _ => text.parse().ok().filter(|value| *value < 64),
    };
    let wrong = || "give 0 to 63, EF, LE, CS0 to CS7, or AF11 to AF43".to_owned();
    value.map(|value| value << 2).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dscps_have_numbers_and_names() {
        // RFC 2597: AF41 is 34, AF13 is 14; RFC 3246: EF is 46.
        for (text, value) in
            [("EF", 46), ("ef", 46), ("AF41", 34), ("af13", 14), ("CS1", 8), ("LE", 1), ("63", 63)]
        {
            assert_eq!(dscp(text), Ok(value << 2), "{text}");
        }
        for wrong in ["64", "-1", "CS8", "CS", "AF51", "AF14", "AF4", "AF411", "EFF", "", "é"] {
            assert!(dscp(wrong).is_err(), "{wrong}");
        }
    }
}
