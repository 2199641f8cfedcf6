//! What is wrong with a path as it was written.

use std::fmt::Display;
use units::ParseError;

/// A path that cannot be: one line that names the key, shows the value and
/// says what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A quantity does not parse.
    #[error("{key}: {source}")]
    Value {
        /// The key it stands at, its prefixes included.
        key: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The rest: a key, a form or what stands beside it is wrong.
    #[error("{0}")]
    Shape(String),
}

impl PathError {
    /// `KEY: what is wrong; what would be right`.
    pub(super) fn at(key: &str, text: impl Display) -> Self {
        PathError::Shape(format!("{}: {text}", short(key)))
    }
}

/// At most 40 characters of what was given, none of them a control character:
/// a hostile argument can be megabytes long, the message stays one line.
pub(super) fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}
