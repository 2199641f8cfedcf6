//! What a box says that it carried.

use crate::{Fault, Problem};
use serde::Deserialize;
use std::path::Path;
use units::ByteCount;

/// The most bytes of a report.
const MAX_REPORT: ByteCount = ByteCount::from_bytes(1 << 20);

/// The members of a [`crate::boost::BoostDocument`] that count here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct Carried {
    in_bytes: u64,
    out_bytes: u64,
    /// The program of `boost run`.
    #[serde(default)]
    pub(super) program: Option<Program>,
}

/// The times of a program behind boost.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Program {
    pub(super) setup_s: f64,
    pub(super) delivered_s: f64,
}

impl Carried {
    pub(super) fn read(file: &Path) -> Result<Self, Problem> {
        let lost = |error: String| {
            Problem::new(Fault::Internal, format!("the report of the near box: {error}"))
        };
        let text = host::file::read_text_bounded(file, MAX_REPORT);
        let text = text.map_err(|error| lost(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| lost(error.to_string()))
    }

    /// In both directions.
    pub(super) const fn bytes(&self) -> u64 {
        self.in_bytes.saturating_add(self.out_bytes)
    }

    /// True if applications received more than they sent.
    pub(super) const fn is_download(&self) -> bool {
        self.out_bytes > self.in_bytes
    }
}
