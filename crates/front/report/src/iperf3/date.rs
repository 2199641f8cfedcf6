//! Times in the documents of iperf3.

/// A time without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and a time before 1970 is 1970"
)]
pub(super) fn whole(seconds: f64) -> u64 {
    seconds as u64
}

/// A date in the format of RFC 1123: `Sat, 21 Nov 2026 12:44:40 GMT`.
#[must_use]
pub(super) fn date(unix_s: f64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // The year 9999 at most, so that nothing overflows.
    let seconds = whole(unix_s).min(253_402_300_799);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let weekday = DAYS.get(usize::try_from(days % 7).unwrap_or(0)).copied().unwrap_or_default();
    let (mut year, mut left) = (1970, days);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = "Dec";
    for (name, length) in MONTHS.iter().zip(lengths) {
        if left < length {
            month = name;
            break;
        }
        left -= length;
    }
    let (hours, minutes) = (rest / 3600, rest % 3600 / 60);
    format!(
        "{weekday}, {:02} {month} {year} {hours:02}:{minutes:02}:{:02} GMT",
        left + 1,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, text) in [
            (0.0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (1_795_265_080.9, "Sat, 21 Nov 2026 12:44:40 GMT"),
            (951_782_400.0, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (4_107_542_399.0, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400.0, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (f64::NAN, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (1e300, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(date(unix_s), text);
        }
    }
}
