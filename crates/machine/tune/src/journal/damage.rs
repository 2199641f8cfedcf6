//! Damage to a journal.

use crate::persist::BootFileError;
use record::RoutePrefix;

/// The part of a journal that Longhaul cannot have written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum Damage {
    #[error("it is not text")]
    NotText,
    #[error("it is truncated")]
    CutShort,
    #[error("its first line does not match its checksum")]
    FirstChecksum,
    #[error("line {line} does not match its checksum")]
    Checksum { line: usize },
    #[error("line {line}: {damage}")]
    Line { line: usize, damage: Box<Damage> },
    #[error("it has more lines than Longhaul writes")]
    TooManyLines,
    #[error("it contains {key} twice")]
    Twice { key: String },
    #[error("it has control characters or an overlong text")]
    Text,
    #[error("'{key}' was not planned")]
    NotPlanned { key: String },
    #[error("a second header")]
    SecondBeginning,
    #[error("it sets '{key}', which Longhaul does not change")]
    OtherSetting { key: String },
    #[error("it gives {key} a value in the wrong format")]
    Value { key: String },
    #[error("it gives the route to {prefix} metrics out of range")]
    Metrics { prefix: RoutePrefix },
    #[error("it has the route to {prefix} twice, or more routes than Longhaul changes")]
    Routes { prefix: RoutePrefix },
    #[error("the route to {prefix} was not planned")]
    RouteNotPlanned { prefix: RoutePrefix },
    #[error("it is of several kinds of settings")]
    Mixed,
    #[error(transparent)]
    BootFile(#[from] BootFileError),
}
