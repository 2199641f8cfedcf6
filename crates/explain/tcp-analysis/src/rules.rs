//! Which version of Wireshark the flags follow.

use serde::{Deserialize, Serialize};

/// The version whose rules apply. What differs is decided here, and used at one place
/// each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// Wireshark 3.7 to 4.0.
    Wireshark40,
    /// Wireshark 4.4, by its user's guide: SACK counts as evidence.
    #[default]
    Wireshark44,
}

impl Rules {
    /// Whether an ACK with SACK blocks is a duplicate though its window changed.
    pub(crate) fn sack_makes_duplicate(self) -> bool {
        self == Rules::Wireshark44
    }

    /// Whether an ACK with SACK blocks can be a window update.
    pub(crate) fn sack_may_update_window(self) -> bool {
        self == Rules::Wireshark40
    }

    /// Whether the answer to a zero-window probe may acknowledge the probe's byte.
    pub(crate) fn probe_may_be_accepted(self) -> bool {
        self == Rules::Wireshark44
    }

    /// Whether more than two segments reported by SACK make a retransmission a fast one,
    /// like two duplicate ACKs.
    pub(crate) fn sack_makes_fast(self) -> bool {
        self == Rules::Wireshark44
    }

    /// Whether a SYN or FIN with data can be a spurious retransmission.
    pub(crate) fn control_may_be_spurious(self) -> bool {
        self == Rules::Wireshark40
    }

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Rules::Wireshark40 => "wireshark-4.0",
            Rules::Wireshark44 => "wireshark-4.4",
        }
    }
}
