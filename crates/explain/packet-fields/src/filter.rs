//! Display filters in Wireshark's syntax.
//!
//! ```text
//!  text ─> lexer ─> parser ─> Expression ─> Program ─> verdict for each packet
//! ```
//!
//! Everything about the text is bounded: its length, its nesting, the elements of a set.
//! A program is a flat list of tests with jumps; a packet's verdict takes no recursion but that of
//! nested functions, which is bounded, too.

mod error;
mod expression;
mod function;
mod lexer;
mod literal;
mod parser;
mod pattern;
mod program;
mod slice;
mod unknown;

pub use error::FilterError;

use crate::view::PacketView;
use core::fmt;
use expression::Expression;
use program::Program;

/// Longest text of a filter, in bytes.
pub const MAX_LENGTH: usize = 16 * 1024;

/// Deepest nesting of parentheses and negations.
pub const MAX_DEPTH: usize = 64;

/// Most elements of a set.
pub const MAX_ELEMENTS: usize = 1024;

/// A compiled display filter.
#[derive(Debug, Clone)]
pub struct Filter {
    expression: Expression,
    program: Program,
}

impl Filter {
    /// Compiles `text`.
    ///
    /// # Errors
    /// Where the text is wrong, why, and what may have been meant.
    pub fn new(text: &str) -> Result<Self, FilterError> {
        let expression = parser::parse(text)?;
        let program = Program::of(&expression);
        Ok(Filter { expression, program })
    }

    /// Whether a packet passes.
    #[must_use]
    #[inline]
    pub fn matches(&self, view: &PacketView<'_>) -> bool {
        self.program.matches(view)
    }
}

/// A filter that means the same.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)
    }
}

/// Whether both say the same.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.expression == other.expression
    }
}
