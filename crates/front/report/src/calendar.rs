//! Dates of the proleptic Gregorian calendar, in UTC.

/// `2026-11-21 03:40 UTC`, from seconds since 1970.
#[must_use]
pub fn utc(unix_s: u64) -> String {
    format!("{} UTC", to_minute(unix_s))
}

/// `2026-11-21 03:40:09 UTC`, likewise.
pub(crate) fn utc_seconds(unix_s: u64) -> String {
    format!("{}:{:02} UTC", to_minute(unix_s), unix_s % 60)
}

fn to_minute(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // Years are counted from March, so that the leap day is a year's last;
    // 719 468 days lie between 0000-03-01 and 1970-01-01, 146 097 in 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    let (hour, minute) = (second / 3_600, second % 3_600 / 60);
    format!("{year:04}-{month:02}-{date:02} {hour:02}:{minute:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(utc(951_868_800), "2000-03-01 00:00 UTC");
        assert_eq!(utc(1_795_268_595), "2026-11-21 13:43 UTC");
        assert_eq!(utc(4_107_542_399), "2100-02-28 23:59 UTC");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00 UTC");
        assert_eq!(utc_seconds(951_782_399), "2000-02-28 23:59:59 UTC");
        assert!(utc(u64::MAX).ends_with("UTC"));
    }
}
