//! Dates in UTC, as filters and columns have them.

use core::fmt;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const NANOS: i64 = 1_000_000_000;

/// Days from 1970-01-01 to a date of the Gregorian calendar; years begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day = days - era * 146_097;
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12 + 1;
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Writes nanoseconds since 1970 as Wireshark does: `Nov 14, 2023 22:13:20.000000000 UTC`.
pub(crate) fn write(ns: i64, out: &mut impl fmt::Write) -> fmt::Result {
    let seconds = ns.div_euclid(NANOS);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let name = usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at)).unwrap_or(&"");
    let [hour, minute, second] = [3600, 60, 1].map(|it| seconds.rem_euclid(86_400) / it);
    let (minute, second, nanos) = (minute % 60, second % 60, ns.rem_euclid(NANOS));
    write!(out, "{name} {day:>2}, {year} {hour:02}:{minute:02}:{second:02}.{nanos:09} UTC")
}

/// Nanoseconds since 1970 of a date: `2023-11-14 22:13:20.5`, `2023-11-14T22:13:20Z` or
/// `Nov 14, 2023 22:13:20`; with `Z`, `UTC` or nothing behind it, which all mean UTC. The time
/// may be left out, and its seconds.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    let text = text.strip_suffix("UTC").or_else(|| text.strip_suffix('Z')).unwrap_or(text);
    let words: Vec<&str> = text.split([' ', 'T', ',']).filter(|word| !word.is_empty()).collect();
    let (date, time) = match words[..] {
        [date] => (iso(date)?, "00:00"),
        [date, time] => (iso(date)?, time),
        [month, day, year] => (named(month, day, year)?, "00:00"),
        [month, day, year, time] => (named(month, day, year)?, time),
        _ => return None,
    };
    let (year, month, day) = date;
    let is_date = (1970..=2262).contains(&year) && (1..=12).contains(&month);
    if !is_date || !(1..=31).contains(&day) {
        return None;
    }
    let since = days(year, month, day).checked_mul(86_400)?.checked_mul(NANOS)?;
    since.checked_add(time_of_day(time)?)
}

fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn iso(text: &str) -> Option<(i64, i64, i64)> {
    let mut parts = text.split('-');
    let date = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    parts.next().is_none().then_some(date)
}

fn named(month: &str, day: &str, year: &str) -> Option<(i64, i64, i64)> {
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    Some((number(year)?, month as i64 + 1, number(day)?))
}

fn time_of_day(text: &str) -> Option<i64> {
    let (clock, part) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second = parts.next().map_or(Some(0), number)?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 || part.len() > 9 {
        return None;
    }
    let nanos = number(&format!("{part:0<9}"))?;
    Some((hour * 3600 + minute * 60 + second) * NANOS + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_and_parsed_again() {
        for ns in [0, 1_700_000_000_123_456_789, 951_782_400_000_000_000, 4_102_444_799_999_999_999]
        {
            let mut text = String::new();
            write(ns, &mut text).unwrap();
            assert_eq!(parse(&text), Some(ns), "{text}");
        }
        let mut text = String::new();
        write(1_700_000_000_000_000_000, &mut text).unwrap();
        assert_eq!(text, "Nov 14, 2023 22:13:20.000000000 UTC");
        assert_eq!(parse("2023-11-14T22:13:20Z"), Some(1_700_000_000_000_000_000));
        assert_eq!(parse("2023-11-14"), Some(1_699_920_000_000_000_000));
        for wrong in ["", "2023", "2023-13-01", "9999999999-01-01", "2023-11-14 25:00", "x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
