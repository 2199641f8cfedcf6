//! Shards of a study, for batch systems that spread it over many machines.

use crate::plan::MAX_CELLS;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One of N shards of a study: every N-th cell, counted over all parts.
///
/// Written as `I/N`, with I from 1 to N.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// From 1.
    number: usize,
    /// From 1.
    count: usize,
}

/// A text that is not a shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a shard; write I/N, such as 2/8: the second of eight (at most {MAX_CELLS})")]
pub struct ShardError(String);

impl Shard {
    /// The number of shards.
    #[must_use]
    pub const fn count(self) -> usize {
        self.count
    }

    /// Returns true if it has a cell; `position` counts from 0 over all parts of the study.
    #[must_use]
    pub const fn has(self, position: usize) -> bool {
        position % self.count == self.number - 1
    }

    /// Part of a file's name: `2of8`.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("{}of{}", self.number, self.count)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=MAX_CELLS).contains(n));
        let shard = text.split_once('/').and_then(|(index, count)| {
            Some(Shard { number: number(index)?, count: number(count)? })
        });
        let shard = shard.filter(|shard| shard.number <= shard.count);
        shard.ok_or_else(|| ShardError(text.chars().take(40).collect()))
    }
}

impl TryFrom<String> for Shard {
    type Error = ShardError;

    fn try_from(text: String) -> Result<Self, ShardError> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_every_cell_once() {
        let shards: Vec<Shard> = (1..=3).map(|n| format!("{n}/3").parse().unwrap()).collect();
        for cell in 0..20 {
            assert_eq!(shards.iter().filter(|shard| shard.has(cell)).count(), 1, "{cell}");
        }
        assert!(shards[0].has(0) && shards[1].has(1) && shards[2].has(5));
        assert_eq!((shards[1].to_string(), shards[1].file_name()), ("2/3".into(), "2of3".into()));
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        for text in ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/100001", "1/99999999999999999999"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert!("1/1".parse::<Shard>().is_ok() && "100000/100000".parse::<Shard>().is_ok());
    }
}
