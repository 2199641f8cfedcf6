//! Keys and the prefixes before them: `@10s.up.loss`.

use super::error::{PathError, short};
use super::words::exact_time;
use units::Rtt;

/// A setting of one direction. In the order in which they apply and are
/// printed: a queue comes before its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Rate,
    Burst,
    /// `delay`, and `rtt` for both ways at once.
    Delay,
    Jitter,
    Overtake,
    Loss,
    Bursts,
    Blackhole,
    Reorder,
    Duplicate,
    Corrupt,
    WindowScale,
    /// `up.mtu` and `down.mtu`; without a prefix `mtu` is the devices'.
    Mtu,
    Police,
    Queue,
    Limit,
    Mark,
    Target,
    Interval,
    Ecn,
    Flows,
    Quantum,
    Min,
    Max,
    Probability,
    Weight,
    Update,
    MaxBurst,
}

const NAMES: [(Key, &str); 28] = [
    (Key::Rate, "rate"),
    (Key::Burst, "burst"),
    (Key::Delay, "delay"),
    (Key::Jitter, "jitter"),
    (Key::Overtake, "overtake"),
    (Key::Loss, "loss"),
    (Key::Bursts, "bursts"),
    (Key::Blackhole, "blackhole"),
    (Key::Reorder, "reorder"),
    (Key::Duplicate, "duplicate"),
    (Key::Corrupt, "corrupt"),
    (Key::WindowScale, "window-scale"),
    (Key::Mtu, "mtu"),
    (Key::Police, "police"),
    (Key::Queue, "queue"),
    (Key::Limit, "limit"),
    (Key::Mark, "mark"),
    (Key::Target, "target"),
    (Key::Interval, "interval"),
    (Key::Ecn, "ecn"),
    (Key::Flows, "flows"),
    (Key::Quantum, "quantum"),
    (Key::Min, "min"),
    (Key::Max, "max"),
    (Key::Probability, "probability"),
    (Key::Weight, "weight"),
    (Key::Update, "update"),
    (Key::MaxBurst, "max-burst"),
];

impl Key {
    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(key, _)| *key == self).map_or("", |(_, name)| name)
    }

    /// Whether it belongs to the queue given before it.
    pub(super) fn is_queue_option(self) -> bool {
        self > Key::Queue
    }
}

/// What a key may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Something of a direction.
    Way(Key),
    /// The delay of both, half each.
    Rtt,
    /// The MTU of both hosts' devices.
    DeviceMtu,
    Overhead,
    Seed,
    Repeat,
}

/// A key with its prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// From when on, in ns; 0 from the beginning.
    pub(super) at: u64,
    /// 0 up, 1 down; `None` both.
    pub(super) way: Option<usize>,
    pub(super) target: Target,
}

impl Place {
    pub(super) fn read(text: &str) -> Result<Self, PathError> {
        let (at, rest) = match text.strip_prefix('@') {
            Some(rest) => timed(text, rest)?,
            None => (0, text),
        };
        let (way, word) = match rest.split_once('.') {
            Some(("up", word)) => (Some(0), word),
            Some(("down", word)) => (Some(1), word),
            Some((prefix, _)) => {
                let wrong = format!(
                    "'{}' is no prefix; they are up., down. and a time such as @5s.",
                    short(prefix)
                );
                return Err(PathError::at(text, wrong));
            }
            None => (None, rest),
        };
        let place = Place { at, way, target: target(word, way)? };
        place.check(text)?;
        Ok(place)
    }

    fn check(self, text: &str) -> Result<(), PathError> {
        let refuse = |remedy: &str| Err(PathError::at(text, remedy));
        match self.target {
            Target::Rtt if self.way.is_some() => {
                refuse("a round trip has both ways; write up.delay= or down.delay=")
            }
            Target::Overhead | Target::Seed | Target::Repeat if self.way.is_some() => {
                refuse("it is the same both ways; leave up. and down. out")
            }
            Target::DeviceMtu if self.at > 0 => {
                refuse("devices keep theirs; write up.mtu= or down.mtu= after the time")
            }
            Target::Overhead | Target::Seed | Target::Repeat if self.at > 0 => {
                refuse("it does not change over time; leave the @ prefix out")
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
        return Err(PathError::at(text, "the beginning needs no @; leave the prefix out"));
    }
    Ok((time.nanos(), &rest[dot + 1..]))
}

fn target(word: &str, way: Option<usize>) -> Result<Target, PathError> {
    Ok(match word {
        "rtt" => Target::Rtt,
        "mtu" if way.is_none() => Target::DeviceMtu,
        "overhead" => Target::Overhead,
        "seed" => Target::Seed,
        "repeat" => Target::Repeat,
        _ => match NAMES.iter().find(|(_, name)| *name == word) {
            Some((key, _)) => Target::Way(*key),
            None => return Err(unknown(word)),
        },
    })
}

fn unknown(word: &str) -> PathError {
    let mut known: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
    known.insert(2, "rtt");
    known.extend(["overhead", "seed", "repeat"]);
    PathError::Shape(format!("there is no '{}'; the keys are {}", short(word), known.join(", ")))
}

/// Whether a word is a key, so that `rate` alone is no name of a path.
pub(super) fn is_key(word: &str) -> bool {
    target(word, None).is_ok()
}

/// `@5s.` before a key; nothing at the beginning.
pub(super) fn time_prefix(at: u64) -> String {
    if at == 0 { String::new() } else { format!("@{}.", exact_time(at)) }
}
