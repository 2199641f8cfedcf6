//! Regular expressions of `matches`: over bytes, without regard to case, as in Wireshark. The
//! engine takes time linear in what it searches; what an expression compiles to is bounded.

use super::error::FilterError;
use core::fmt;
use core::ops::Range;
use regex::bytes::{Regex, RegexBuilder};

/// Most memory of a compiled expression, and of the cache of its automaton, in bytes.
const MAX_COMPILED: usize = 256 * 1024;
const MAX_CACHE: usize = 1024 * 1024;

/// Deepest nesting.
const MAX_DEPTH: u32 = 32;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    pub(super) fn new(text: &str, at: Range<usize>) -> Result<Self, FilterError> {
        let compiled = RegexBuilder::new(text)
            .case_insensitive(true)
            .unicode(false)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_CACHE)
            .nest_limit(MAX_DEPTH)
            .build();
        compiled.map(Pattern).map_err(|error| {
            let message = match error {
                regex::Error::CompiledTooBig(_) => "the regular expression is too large".to_owned(),
                other => {
                    let text = other.to_string();
                    let reason = text.lines().last().unwrap_or_default();
                    let reason = reason.trim().trim_start_matches("error: ");
                    format!("no regular expression: {reason}")
                }
            };
            FilterError::new(at, message)
        })
    }

    #[inline]
    pub(super) fn is_match(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

/// As a text in quotes.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.as_str().chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}
