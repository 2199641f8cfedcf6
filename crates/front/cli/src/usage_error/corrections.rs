//! Corrections: the command line with one word changed, if that makes it right.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::ffi::OsString;

/// From this similarity (Jaro and Winkler) on a name may be the one that was meant.
const SIMILAR: f64 = 0.8;

/// The name that is most like the given one, if any is.
pub(crate) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The time of a comparison grows with the length.
    if name.len() > 100 {
        return None;
    }
    let likeness = |known: &str| {
        // Of a short name, one mistake is a large part.
        let is_close = strsim::osa_distance(name, known) <= 1;
        strsim::jaro_winkler(name, known).max(if is_close { SIMILAR } else { 0.0 })
    };
    let near = names.into_iter().map(|known| (likeness(known), known));
    let best = near.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 >= SIMILAR).then_some(best.1)
}

/// Returns true if one name may be meant by another: clap proposes less similar ones, too.
pub(super) fn are_alike(wrong: &str, meant: &str) -> bool {
    let plain = |name: &str| name.trim_start_matches('-').to_owned();
    let meant = plain(meant.split_whitespace().next().unwrap_or_default());
    nearest(&plain(wrong), [meant.as_str()]).is_some()
}

/// The words that clap would accept instead.
pub(super) fn of_error(
    error: &Error,
    negative: Option<&str>,
    command: &Command,
    arguments: &[OsString],
) -> Option<Vec<String>> {
    let single = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(all) => all.first().cloned(),
        _ => None,
    };
    let pairs = [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ];
    for (wrong, meant) in pairs {
        let Some((wrong, meant)) = single(wrong).zip(single(meant)) else { continue };
        if !are_alike(&wrong, &meant) {
            continue;
        }
        if let Some(word) = meant.split_whitespace().next()
            && let Some(words) = replaced(command, arguments, &wrong, word)
        {
            return Some(words);
        }
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(word) = single(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))
        && let Some(words) = separated(command, arguments, &word)
    {
        return Some(words);
    }
    let value = negative.map(str::to_owned).or_else(|| single(ContextKind::InvalidValue))?;
    meant_values(&value).iter().find_map(|meant| replaced(command, arguments, &value, meant))
}

/// The command line with a word, or the value in one, replaced; `None` unless it is accepted.
pub(super) fn replaced(
    command: &Command,
    arguments: &[OsString],
    wrong: &str,
    meant: &str,
) -> Option<Vec<String>> {
    let mut is_replaced = false;
    let mut words = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let word = argument.to_str()?;
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let replaced = match value {
            _ if is_replaced => None,
            _ if word == wrong => Some(meant.to_owned()),
            Some(value) if name == wrong => Some(format!("{meant}={value}")),
            Some(value) if value == wrong => Some(format!("{name}={meant}")),
            _ => None,
        };
        is_replaced |= replaced.is_some();
        words.push(replaced.unwrap_or_else(|| word.to_owned()));
    }
    (is_replaced && is_accepted(command, &words)).then(|| named(command, words))
}

/// With `--` before a word: a program's command line after the options of `lab run`.
fn separated(command: &Command, arguments: &[OsString], word: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::with_capacity(arguments.len() + 1);
    for argument in arguments {
        words.push(argument.to_str()?.to_owned());
    }
    let at = words.iter().position(|one| one == word).filter(|at| *at > 1)?;
    words.insert(at, "--".to_owned());
    is_accepted(command, &words).then(|| named(command, words))
}

fn is_accepted(command: &Command, words: &[String]) -> bool {
    command.clone().try_get_matches_from(words).is_ok()
}

/// The words with the program's own name in front.
pub(super) fn named(command: &Command, mut words: Vec<String>) -> Vec<String> {
    if let Some(program) = words.first_mut() {
        command.get_name().clone_into(program);
    }
    words
}

/// Values that may have been meant, the most probable first; the command line's own parsers
/// decide which is one.
fn meant_values(value: &str) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(positive) = value.strip_prefix(['-', '\u{2212}']) {
        all.push(positive.to_owned());
    }
    // A decimal comma, and a space before the unit.
    all.push(value.replace(',', "."));
    all.push(value.split_whitespace().collect());
    let digits = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    if let Ok(number) = number.parse::<f64>()
        && number.is_finite()
    {
        // Bytes per second, as bits, unless they may be bits.
        let times = if unit.contains('B') { 8.0 } else { 1.0 };
        let bits = |prefix: &str| format!("{}{prefix}bit", number * times);
        match unit.trim().to_lowercase().trim_end_matches("/s").trim_end_matches("ps") {
            // Zero is refused with a unit as well.
            "" if number != 0.0 => all.extend([format!("{value}ms"), format!("{value}mbit")]),
            "kb" => all.push(bits("k")),
            "mb" => all.push(bits("m")),
            "gb" => all.push(bits("g")),
            "sec" | "secs" | "second" | "seconds" => all.push(format!("{number}s")),
            "msec" | "millis" | "milliseconds" => all.push(format!("{number}ms")),
            _ => {}
        }
    }
    // The name of a path, before its settings.
    let (name, settings) = value.split_at(value.find(',').unwrap_or(value.len()));
    let paths = topology::PATHS.iter().map(|path| path.name);
    all.extend(nearest(name, paths).map(|path| format!("{path}{settings}")));
    all.retain(|meant| meant != value && !meant.is_empty());
    all
}
