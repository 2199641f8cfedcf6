//! The sizes of segments that arrive and of those that do not.

use serde::{Deserialize, Serialize};

/// What a connection, or a probe of its path, shows of segments that are lost because of their
/// size (RFC 4821, section 7.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentSizes {
    /// The largest payload that arrived, in bytes.
    pub largest_delivered_bytes: u32,
    /// The smallest payload that was sent twice or more and never arrived, in bytes.
    pub smallest_lost_bytes: u32,
    /// The largest IP packet that a probe of the path got through, in bytes; `None` without one.
    #[serde(default)]
    pub path_mtu_bytes: Option<u32>,
}

impl SegmentSizes {
    /// Whether size decides: everything that was lost is larger than all that arrived.
    #[must_use]
    pub const fn is_black_hole(&self) -> bool {
        self.smallest_lost_bytes > self.largest_delivered_bytes
    }
}
