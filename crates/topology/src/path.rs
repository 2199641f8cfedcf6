//! A placeholder for the grammar of one link, until the real one is merged.

use std::io;
use std::str::FromStr;
use units::{ByteCount, Rtt};

/// One link.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSpec {
    rtt: Rtt,
    rate: units::BitRate,
}

/// A link that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PathError(String);

impl PathSpec {
    /// Reads a link.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn parse(
        text: &str,
        _read: &mut dyn FnMut(&str) -> io::Result<String>,
    ) -> Result<Self, PathError> {
        text.parse()
    }

    /// Round trip.
    #[must_use]
    pub const fn rtt(&self) -> Rtt {
        self.rtt
    }

    /// Memory of what is in flight.
    #[must_use]
    pub fn memory(&self) -> ByteCount {
        self.rate.bytes_in(self.rtt.duration()).times(3)
    }

    /// Longest packet in bytes.
    #[must_use]
    pub const fn mtu(&self) -> u32 {
        1500
    }
}

impl FromStr for PathSpec {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let mut spec = PathSpec { rtt: Rtt::ZERO, rate: units::BitRate::ZERO };
        if text.trim().is_empty() {
            return Err(PathError("rate is missing".to_owned()));
        }
        let mut seen = Vec::new();
        for (key, value) in text.split(',').filter_map(|part| part.split_once('=')) {
            if seen.contains(&key) {
                return Err(PathError(format!("{key} stands twice")));
            }
            seen.push(key);
            let wrong = |error: units::ParseError| PathError(format!("{key}: {error}"));
            match key.trim() {
                "rate" => spec.rate = value.parse().map_err(wrong)?,
                "rtt" => spec.rtt = value.parse().map_err(wrong)?,
                _ => {}
            }
        }
        Ok(spec)
    }
}
