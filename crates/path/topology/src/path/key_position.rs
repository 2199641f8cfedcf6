//! Keys and the prefixes before them: `@10s.up.loss`.

use super::error::{PathError, short};
use super::key::{Key, Target};
use super::key_table::KEYS;
use super::quantity::exact_time;
use crate::similar::did_you_mean;
use units::Rtt;

/// A key with its prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyPosition {
    /// When it applies, in ns; 0 is the start.
    pub(super) at: u64,
    /// 0 up, 1 down; `None` both.
    pub(super) direction: Option<usize>,
    pub(super) target: Target,
}

impl KeyPosition {
    pub(super) fn read(text: &str) -> Result<Self, PathError> {
        let (at, rest) = match text.strip_prefix('@') {
            Some(rest) => timed(text, rest)?,
            None => (0, text),
        };
        let (direction, word) = match rest.split_once('.') {
            Some(("up", word)) => (Some(0), word),
            Some(("down", word)) => (Some(1), word),
            // Not a prefix but a part of the key: up.udp.police.
            Some(("udp" | "tcp", _)) | None => (None, rest),
            Some((prefix, _)) => {
                let wrong = format!(
                    "'{}' is not a prefix; the prefixes are up., down. and a time such as @5s.",
                    short(prefix)
                );
                return Err(PathError::at(text, wrong));
            }
        };
        let position = KeyPosition { at, direction, target: target(word, direction)? };
        position.check(text)?;
        Ok(position)
    }

    fn check(self, text: &str) -> Result<(), PathError> {
        let refuse = |remedy: &str| Err(PathError::at(text, remedy));
        match self.target {
            Target::Rtt if self.direction.is_some() => {
                refuse("a round trip covers both directions; write up.delay= or down.delay=")
            }
            Target::Overhead | Target::Seed | Target::Repeat if self.direction.is_some() => {
                refuse("it applies to both directions; omit up. and down.")
            }
            Target::DeviceMtu if self.at > 0 => {
                refuse("the devices' MTU cannot change; write up.mtu= or down.mtu= after the time")
            }
            Target::Overhead | Target::Seed | Target::Repeat if self.at > 0 => {
                refuse("it cannot change over time; omit the @ prefix")
            }
            _ => Ok(()),
        }
    }
}

/// The time of `@5s.` and what comes after it.
fn timed<'a>(text: &str, rest: &'a str) -> Result<(u64, &'a str), PathError> {
    // The number may have a point of its own: the prefix ends after the unit.
    let unit = rest.find(|c: char| c != '.' && !c.is_ascii_digit());
    let dot = unit.and_then(|unit| rest[unit..].find('.').map(|dot| unit + dot));
    let Some(dot) = dot else {
        return Err(PathError::at(text, "write a time and a key after @, as in @5s.rate=2mbit"));
    };
    let time: Rtt =
        rest[..dot].parse().map_err(|source| PathError::Value { key: short(text), source })?;
    if time == Rtt::ZERO {
        return Err(PathError::at(text, "the start needs no @; omit the prefix"));
    }
    Ok((time.nanos(), &rest[dot + 1..]))
}

fn target(word: &str, direction: Option<usize>) -> Result<Target, PathError> {
    match KEYS.iter().find(|key| key.name == word).map(|key| key.target) {
        Some(Target::Direction(Key::Mtu)) if direction.is_none() => Ok(Target::DeviceMtu),
        Some(target) => Ok(target),
        None => Err(unknown(word)),
    }
}

fn unknown(word: &str) -> PathError {
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    let hint = did_you_mean(word, known.iter().copied());
    let known = known.join(", ");
    PathError::Shape(format!("unknown key '{}'; the keys are {known}{hint}", short(word)))
}

/// Whether a word is a key, so that `rate` alone is no name of a path.
pub(super) fn is_key(word: &str) -> bool {
    target(word, None).is_ok()
}

/// `@5s.` before a key; nothing at the beginning.
pub(super) fn time_prefix(at: u64) -> String {
    if at == 0 { String::new() } else { format!("@{}.", exact_time(at)) }
}
