//! The disciplines of queues, with their options.

use super::error::{PathError, short};
use super::key::Key;
use super::size::{SIZES, Size};

/// A queue discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Discipline {
    DropTail,
    DropHead,
    CoDel,
    FqCoDel,
    Red,
    Pie,
}

/// A discipline as a path names it.
pub(super) struct DisciplineEntry {
    discipline: Discipline,
    /// What stands after `queue=`.
    pub(super) name: &'static str,
    /// Its options, each with its default as the help prints it.
    pub(super) options: &'static [(Key, &'static str)],
}

const FIFO_OPTIONS: &[(Key, &str)] = &[(Key::Limit, BUFFER), (Key::Mark, "none")];

/// Every discipline: the one table that parsing, messages and help are made from. A
/// variant that is missing here is never constructed, which the compiler reports.
pub(super) const DISCIPLINES: &[DisciplineEntry] = &[
    DisciplineEntry { discipline: Discipline::DropTail, name: "drop-tail", options: FIFO_OPTIONS },
    DisciplineEntry { discipline: Discipline::DropHead, name: "drop-head", options: FIFO_OPTIONS },
    DisciplineEntry {
        discipline: Discipline::CoDel,
        name: "codel",
        options: &[
            (Key::Limit, SAFETY_LIMIT),
            (Key::Target, "5ms"),
            (Key::Interval, "100ms"),
            (Key::Ecn, "no"),
        ],
    },
    DisciplineEntry {
        discipline: Discipline::FqCoDel,
        name: "fq_codel",
        options: &[
            (Key::Limit, SAFETY_LIMIT),
            (Key::Target, "5ms"),
            (Key::Interval, "100ms"),
            (Key::Ecn, "yes"),
            (Key::Flows, "1024"),
            (Key::Quantum, "one packet and 14 bytes"),
        ],
    },
    DisciplineEntry {
        discipline: Discipline::Red,
        name: "red",
        options: &[
            (Key::Limit, BUFFER),
            (Key::Min, "max / 3"),
            (Key::Max, "limit / 2"),
            (Key::Probability, "10%"),
            (Key::Weight, "9"),
            (Key::Ecn, "no"),
        ],
    },
    DisciplineEntry {
        discipline: Discipline::Pie,
        name: "pie",
        options: &[
            (Key::Limit, SAFETY_LIMIT),
            (Key::Target, "15ms"),
            (Key::Update, "15ms"),
            (Key::MaxBurst, "150ms"),
            (Key::Ecn, "no"),
        ],
    },
];

/// Defaults of `limit`, see `QueueSetting::limit`.
const BUFFER: &str = "1bdp, at least 64p";
const SAFETY_LIMIT: &str = "10240p, at least 4bdp";

/// What stands after `queue=`, for every discipline.
pub(super) fn names() -> Vec<&'static str> {
    DISCIPLINES.iter().map(|entry| entry.name).collect()
}

impl Key {
    /// Whether it is an option of the queue given before it.
    pub(super) fn is_queue_option(self) -> bool {
        DISCIPLINES.iter().any(|entry| entry.default_of(self).is_some())
    }
}

impl DisciplineEntry {
    /// The default of an option; `None` if the discipline does not have it.
    pub(super) fn default_of(&self, key: Key) -> Option<&'static str> {
        self.options.iter().find(|(option, _)| *option == key).map(|(_, default)| *default)
    }
}

impl Discipline {
    /// A discipline, or the size of a drop-tail queue.
    pub(super) fn read(name: &str, text: &str) -> Result<(Self, Option<Size>), PathError> {
        if let Some(named) = DISCIPLINES.iter().find(|entry| entry.name == text) {
            return Ok((named.discipline, None));
        }
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.starts_with("nan") {
            let wrong = format!(
                "'{}' is not a queue; write {SIZES} for a drop-tail queue, or one of {}",
                short(text),
                names().join(", ")
            );
            return Err(PathError::at(name, wrong));
        }
        Size::read(name, text).map(|size| (Discipline::DropTail, Some(size)))
    }

    pub(super) fn entry(self) -> &'static DisciplineEntry {
        let entry = DISCIPLINES.iter().find(|entry| entry.discipline == self);
        entry.unwrap_or(&DISCIPLINES[0])
    }

    pub(super) fn name(self) -> &'static str {
        self.entry().name
    }
}
