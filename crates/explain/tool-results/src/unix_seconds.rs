//! Times of other tools.

/// Seconds since 1970 of `2026-11-25T08:30:50.316Z` (RFC 3339, in UTC as Go's JSON has it).
pub(crate) fn unix_seconds(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970 by Hinnant's algorithm ("chrono-Compatible Low-Level Date Algorithms").
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some(days.checked_sub(719_468)? * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_rfc_3339() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_seconds("2026-11-25T08:29:57.123Z"), Some(1_795_595_397));
        assert_eq!(unix_seconds("2000-02-29T12:00:00Z"), Some(951_825_600));
        for wrong in ["", "2026", "2026-13-01T00:00:00Z", "x026-11-25T08:29:57Z"] {
            assert_eq!(unix_seconds(wrong), None, "{wrong}");
        }
    }
}
