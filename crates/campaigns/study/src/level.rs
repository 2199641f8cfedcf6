//! The values that a setting takes in a study: single ones, lists and ranges.

use crate::program::Program;
use crate::setting::{Setting, ValueKind};
use crate::value::{Value, ValueError, number_of};
use std::sync::Arc;
use std::time::Duration;
use topology::toml_text::Written;
use units::{BitRate, ByteCount};

/// One value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// As written, or as a range computed it.
    pub text: String,
    /// Its text.
    pub value: Value,
}

impl Level {
    /// In the unit of its [`ValueKind`], or a multiple of the path's bandwidth-delay product; `None`
    /// for a word.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self.value {
            Value::Number(number) | Value::Bdp(number) => Some(number),
            _ => None,
        }
    }

    /// Returns true if it is a multiple of the bandwidth-delay product of the path rather than
    /// bytes.
    #[must_use]
    pub fn per_bdp(&self) -> bool {
        matches!(self.value, Value::Bdp(_))
    }
}

/// The most values of one factor.
pub(crate) const MAX_LEVELS: usize = 1_000;

impl Setting {
    /// The values that a plan gives it.
    ///
    /// # Errors
    /// A value or a range is not valid, in words.
    pub(crate) fn levels(
        &self,
        written: &Written,
        programs: &[Arc<Program>],
    ) -> Result<Vec<Level>, ValueError> {
        match written {
            // A file name may have two dots as well.
            Written::One(text) if text.contains("..") && text.starts_with(is_digit) => {
                self.range(text)
            }
            Written::One(text) => Ok(vec![self.level(text, programs)?]),
            Written::List(items) if items.is_empty() => {
                Err(ValueError::NoValues { setting: self.to_string() })
            }
            Written::List(items) if items.len() > MAX_LEVELS => {
                Err(ValueError::TooManyValues { setting: self.to_string(), count: items.len() })
            }
            Written::List(items) => {
                items.iter().map(|(text, _)| self.level(text, programs)).collect()
            }
        }
    }

    /// One value; `programs` are those of the plan.
    ///
    /// # Errors
    /// It is not valid, in words.
    pub(crate) fn level(&self, text: &str, programs: &[Arc<Program>]) -> Result<Level, ValueError> {
        let text = text.trim();
        let multiple = text.strip_suffix("bdp").filter(|_| self.kind() == ValueKind::Bytes);
        let value = match multiple {
            Some(multiple) => Value::Bdp(number_of(ValueKind::Count, multiple.trim())?),
            None => Value::of(self, text, programs)?,
        };
        Ok(Level { text: text.to_owned(), value })
    }

    /// `FIRST..LAST [bdp] [xFACTOR | +STEP | log COUNT | linear COUNT]`.
    fn range(&self, text: &str) -> Result<Vec<Level>, ValueError> {
        let kind = self.kind();
        if kind == ValueKind::Word {
            return Err(ValueError::RangeOfWords { setting: self.to_string() });
        }
        let wrong = || {
            let wanted = "a range; write FIRST..LAST and how it is divided: x2, +STEP, log COUNT \
                          or linear COUNT";
            ValueError::form(text, wanted)
        };
        let (first, rest) = text.split_once("..").ok_or_else(wrong)?;
        let mut words = rest.split_whitespace().peekable();
        let last = words.next().ok_or_else(wrong)?;
        let per_bdp = kind == ValueKind::Bytes && words.next_if_eq(&"bdp").is_some();
        let unit = if per_bdp { ValueKind::Count } else { kind };
        let (first, last) = (number_of(unit, first.trim())?, number_of(unit, last)?);
        if first > last {
            return Err(ValueError::EmptyRange(text.to_owned()));
        }
        let numbers = match (words.next(), words.next(), words.next()) {
            (None, None, None) => multiplied(first, last, 2.0),
            (Some(step), None, None) => match (step.strip_prefix('x'), step.strip_prefix('+')) {
                (Some(factor), _) => multiplied(first, last, number_of(ValueKind::Count, factor)?),
                (_, Some(step)) => added(first, last, number_of(unit, step)?),
                _ => return Err(wrong()),
            },
            (Some("log"), Some(count), None) => divided(first, last, count, true),
            (Some("linear"), Some(count), None) => divided(first, last, count, false),
            _ => return Err(wrong()),
        };
        let numbers = numbers.ok_or_else(|| ValueError::Division(text.to_owned()))?;
        Ok(numbers.into_iter().map(|number| of_number(unit, number, per_bdp)).collect())
    }
}

/// The longest test.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// The longest warm-up, as of the client.
const LONGEST_OMIT: Duration = Duration::from_secs(600);
/// The most streams of one flow, as of the client.
pub(crate) const MAX_STREAMS: f64 = 128.0;

impl Setting {
    /// Refuses a number outside of the bounds of the setting.
    pub(crate) fn check_level(&self, level: &Level) -> Result<(), ValueError> {
        let (Some(number), text) = (level.number(), &level.text) else { return Ok(()) };
        match self {
            Setting::OfFlow(_, setting) => setting.check_level(level),
            Setting::Streams if !(1.0..=MAX_STREAMS).contains(&number) => {
                Err(ValueError::Streams(text.clone()))
            }
            Setting::Start => check_time(number, "start", 0.0, LONGEST),
            Setting::Duration => check_time(number, "duration", 0.1, LONGEST),
            Setting::Omit => check_time(number, "omit", 0.0, LONGEST_OMIT),
            _ => Ok(()),
        }
    }
}

fn check_time(
    seconds: f64,
    setting: &'static str,
    min: f64,
    max: Duration,
) -> Result<(), ValueError> {
    let is_within = Duration::try_from_secs_f64(seconds).is_ok_and(|time| time <= max);
    match is_within && seconds >= min {
        true => Ok(()),
        false => Err(ValueError::Time { setting, min, max: max.as_secs() }),
    }
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

/// FIRST, FIRST x FACTOR, ... up to LAST, which is a value also where it is not reached.
fn multiplied(first: f64, last: f64, factor: f64) -> Option<Vec<f64>> {
    let mut all = vec![first];
    while factor > 1.0 && first > 0.0 && all.len() < MAX_LEVELS {
        let next = all.last()? * factor;
        if next > last * (1.0 + 1e-9) {
            return Some(ending_with(all, last));
        }
        all.push(next);
    }
    None
}

fn added(first: f64, last: f64, step: f64) -> Option<Vec<f64>> {
    let count = (last - first) / step + 1e-9;
    // False for NaN as well.
    let few = step > 0.0 && count < MAX_LEVELS as f64 - 1.0;
    few.then(|| {
        let all = (0..=count as usize).map(|index| first + index as f64 * step).collect();
        ending_with(all, last)
    })
}

fn ending_with(mut all: Vec<f64>, last: f64) -> Vec<f64> {
    if all.last().is_some_and(|highest| last - highest > 1e-9 * last) {
        all.push(last);
    }
    all
}

fn divided(first: f64, last: f64, count: &str, log: bool) -> Option<Vec<f64>> {
    let count: usize = count.parse().ok()?;
    let possible = (2..=MAX_LEVELS).contains(&count) && (!log || first > 0.0);
    possible.then(|| {
        let at = |index: usize| {
            let share = index as f64 / (count - 1) as f64;
            if log { first * (last / first).powf(share) } else { first + (last - first) * share }
        };
        (0..count).map(at).collect()
    })
}

/// A value of a range: as text that [`Setting::level`] reads again as the same number, the
/// short form where it is exact.
fn of_number(kind: ValueKind, number: f64, per_bdp: bool) -> Level {
    let short = |text: String| text.replace(' ', "");
    let exact = |text: &String| number_of(kind, text).is_ok_and(|same| same == number.round());
    let text = match kind {
        _ if per_bdp => format!("{} bdp", units::significant(number, 4)),
        ValueKind::Count | ValueKind::Word => format!("{}", number.round()),
        ValueKind::Bytes => Some(short(ByteCount::from_f64(number).to_string()))
            .filter(exact)
            .unwrap_or_else(|| format!("{}", number.round())),
        ValueKind::Rate => Some(short(BitRate::from_bps_f64(number).to_string()))
            .filter(exact)
            .unwrap_or_else(|| format!("{}bit", number.round())),
        ValueKind::Time => format!("{}ms", units::significant(number * 1e3, 6)),
        ValueKind::Share => format!("{}%", units::significant(number * 100.0, 6)),
    };
    let value = if per_bdp { Value::Bdp(number) } else { Value::Number(number) };
    Level { text, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(setting: &Setting, text: &str) -> Result<Vec<f64>, ValueError> {
        let levels = setting.levels(&Written::One(text.to_owned()), &[])?;
        Ok(levels.iter().filter_map(Level::number).collect())
    }

    #[test]
    fn a_range_is_divided_by_factor_step_or_count() {
        let window = Setting::Window;
        let kib = |n: f64| n * 1024.0;
        assert_eq!(numbers(&window, "64KiB..256KiB").unwrap(), [64.0, 128.0, 256.0].map(kib));
        assert_eq!(numbers(&window, "64KiB..200KiB x2").unwrap(), [64.0, 128.0, 200.0].map(kib));
        assert_eq!(numbers(&window, "0.25..4 bdp x4").unwrap(), [0.25, 1.0, 4.0]);
        let rtt = Setting::Path("rtt".to_owned());
        let steps = numbers(&rtt, "0ms..100ms +50ms").unwrap();
        assert!(steps.iter().zip([0.0, 0.05, 0.1]).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(numbers(&Setting::Streams, "1..16 log 3").unwrap(), [1.0, 4.0, 16.0]);
        assert_eq!(numbers(&Setting::Streams, "1..5 linear 3").unwrap(), [1.0, 3.0, 5.0]);
    }

    #[test]
    fn values_of_a_range_are_written_as_they_are_read() {
        for (setting, range, texts) in [
            (Setting::Window, "64KiB..1MiB x4", ["64KiB", "256KiB", "1MiB"]),
            (Setting::Window, "1000..1003 linear 3", ["1kB", "1002", "1003"]),
            (Setting::Path("rtt".to_owned()), "0.25ms..100ms x20", ["0.25ms", "5ms", "100ms"]),
            (Setting::Path("loss".to_owned()), "0.01%..1% x10", ["0.01%", "0.1%", "1%"]),
            (Setting::Bitrate, "1mbit..3mbit +1mbit", ["1Mbit/s", "2Mbit/s", "3Mbit/s"]),
        ] {
            let levels = setting.levels(&Written::One(range.to_owned()), &[]).unwrap();
            let found: Vec<&str> = levels.iter().map(|level| level.text.as_str()).collect();
            assert_eq!(found, texts, "{range}");
            for level in &levels {
                let again = setting.level(&level.text, &[]).unwrap().number().unwrap();
                assert!((again - level.number().unwrap()).abs() <= 0.5, "{level:?}");
            }
        }
    }

    #[test]
    fn a_range_that_cannot_be_divided_is_refused() {
        let refused = |setting: &Setting, text| numbers(setting, text).unwrap_err().to_string();
        assert!(refused(&Setting::Streams, "8..1").contains("empty"));
        for text in ["0..8", "1..8 x1", "1..8 +0", "1..8 log 1", "1..1000000 +1", "1..inf"] {
            refused(&Setting::Streams, text);
        }
        for text in ["1..8 x", "1..8 by 2", "1..8 log", "1..", "1..8 log 3 4"] {
            refused(&Setting::Streams, text);
        }
        let queue = Setting::Path("queue".to_owned());
        assert!(refused(&queue, "10p..100p").contains("list"));
    }

    #[test]
    fn a_value_is_checked_against_its_kind() {
        assert!(Setting::Window.level("64KiB", &[]).unwrap().number() == Some(65_536.0));
        assert!(Setting::Window.level("64 apples", &[]).is_err());
        assert!(Setting::Streams.level("-1", &[]).is_err());
        let queue = Setting::Path("queue".to_owned()).level("fq_codel", &[]).unwrap();
        assert_eq!((queue.text.as_str(), queue.number()), ("fq_codel", None));
        assert_eq!(Setting::Path("loss".to_owned()).level("1%", &[]).unwrap().number(), Some(0.01));
    }
}
