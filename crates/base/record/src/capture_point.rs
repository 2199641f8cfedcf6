//! Where on its path a connection was captured.

use serde::{Deserialize, Serialize};

/// Where a capture was made, seen from the sender of the data.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapturePoint {
    /// At the sender, or so near that it makes no difference.
    Sender,
    /// At the receiver.
    Receiver,
    /// In between.
    Between,
    /// No packets of both directions that answer each other.
    Unknown,
}
