//! How many connections carry a session, as text.

use super::MAX_CONNECTIONS;
use std::str::FromStr;

/// A number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionCount {
    /// As many as capped buffers make necessary.
    Automatic,
    /// So many.
    Fixed(usize),
}

impl FromStr for ConnectionCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(ConnectionCount::Automatic);
        }
        let count = text.parse().ok().filter(|count| (1..=MAX_CONNECTIONS).contains(count));
        let count = count.ok_or_else(|| format!("give auto, or 1 to {MAX_CONNECTIONS}"))?;
        Ok(ConnectionCount::Fixed(count))
    }
}

impl ConnectionCount {
    /// As a request has it.
    #[must_use]
    pub const fn number(self) -> Option<usize> {
        match self {
            ConnectionCount::Automatic => None,
            ConnectionCount::Fixed(count) => Some(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_a_session_has() {
        let number = |text: &str| text.parse::<ConnectionCount>().map(ConnectionCount::number);
        assert_eq!(number("auto"), Ok(None));
        assert_eq!((number("1"), number("16")), (Ok(Some(1)), Ok(Some(16))));
        for wrong in ["0", "17", "-1", "", "many"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
    }
}
