//! Damage to a journal.

use crate::persist::BootFileError;

/// The part of a journal that Longhaul cannot have written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum Damage {
    #[error("it is no text")]
    NotText,
    #[error("it is cut short")]
    CutShort,
    #[error("its first line does not match its checksum")]
    FirstChecksum,
    #[error("line {line} does not match its checksum")]
    Checksum { line: usize },
    #[error("line {line}: {damage}")]
    Line { line: usize, damage: Box<Damage> },
    #[error("it has more lines than Longhaul writes")]
    TooManyLines,
    #[error("{key} is in it twice")]
    Twice { key: String },
    #[error("it has control characters, or a long text")]
    Text,
    #[error("'{key}' was not planned")]
    NotPlanned { key: String },
    #[error("a second beginning")]
    SecondBeginning,
    #[error("it sets '{key}', which Longhaul does not")]
    OtherSetting { key: String },
    #[error("it gives {key} a value of another form")]
    Value { key: String },
    #[error(transparent)]
    BootFile(#[from] BootFileError),
}
