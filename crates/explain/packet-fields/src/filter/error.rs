//! Why a text is no filter, and where.

use core::fmt;
use core::ops::Range;

/// An error at a place of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FilterError {
    /// What is wrong, and the remedy.
    pub message: String,
    /// Where, in bytes of the text.
    pub at: Range<usize>,
}

impl FilterError {
    pub(super) fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        FilterError { message: message.into(), at }
    }
}

/// A part of the text in an error message.
pub(super) fn quoted(text: &str) -> impl fmt::Display {
    const MAX: usize = 40;
    let cut = text.chars().nth(MAX).is_some();
    let shown: String = text.chars().take(MAX).collect();
    format!("'{shown}{}'", if cut { "..." } else { "" })
}
