//! The answer of a second test that tells two limits apart (`test --decide`).

use crate::Limit;
use serde::{Deserialize, Serialize};
use units::BitRate;

/// What a second test showed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// The limits it was to tell apart, the finding's first; empty if none was in doubt.
    pub between: Vec<Limit>,
    /// The options that it changed: `-C bbr`; `None` if there was no second test.
    pub options: Option<String>,
    /// Its goodput; `None` if it did not run to its end.
    pub throughput_bps: Option<BitRate>,
    /// The limit that it showed; `None` if it decided nothing.
    pub limit: Option<Limit>,
    /// The answer and its reason in one sentence.
    pub sentence: String,
}
