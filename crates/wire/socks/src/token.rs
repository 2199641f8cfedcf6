//! The token that a listener asks for.

/// A token, kept as its hash: hashes are compared in constant time, and the length of the token does
/// not show either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(blake3::Hash);

impl Token {
    /// A token as configured.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Token(blake3::hash(text.as_bytes()))
    }

    /// True if a client gave this token.
    #[must_use]
    pub fn matches(&self, given: &[u8]) -> bool {
        self.0 == blake3::hash(given)
    }
}
