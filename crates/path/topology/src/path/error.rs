//! Errors in the text of a path.

use std::fmt::Display;
use units::ParseError;

/// An invalid path: one line with the key, the value and a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A quantity does not parse.
    #[error("{key}: {source}")]
    Value {
        /// The key, with its prefixes.
        key: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// Any other error.
    #[error("{0}")]
    Shape(String),
}

impl PathError {
    /// `KEY: what is wrong; what would be right`.
    pub(super) fn at(key: &str, text: impl Display) -> Self {
        PathError::Shape(format!("{}: {text}", short(key)))
    }
}

/// At most 40 characters without control characters: a hostile argument can be
/// megabytes long; the message stays one line.
pub(super) fn short(text: &str) -> String {
    crate::toml_text::short(text, 40)
}
