//! What became of a UDP stream's datagrams.

use serde::{Deserialize, Serialize};
use units::Rtt;

/// The receiver's account of one UDP stream, the warm-up included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Payload of one, in bytes.
    pub length_bytes: u32,
    /// Sent; `None` where the sender did not tell.
    pub sent: Option<u64>,
    /// Received, each counted once.
    pub received: u64,
    /// Never received, though one sent later was.
    pub lost: u64,
    /// Received again.
    pub duplicates: u64,
    /// Received after one that was sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Most datagrams that arrived before one they should have followed
    /// (RFC 4737 section 4.2.1, counted in numbers).
    pub reorder_extent: u64,
    /// Interarrival jitter at the end (RFC 3550 section 6.4.1).
    #[serde(rename = "jitter_ms", with = "crate::millis")]
    pub jitter: Rtt,
    /// How many were lost in a row, and how often; the shortest first.
    pub loss_bursts: Vec<LossBurst>,
}

/// Losses of one length, or of a range of lengths where they are long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossBurst {
    /// Fewest datagrams in a row.
    pub from: u64,
    /// Most datagrams in a row.
    pub to: u64,
    /// How often that happened.
    pub count: u64,
}

impl Datagrams {
    /// Share of the datagrams that never arrived, 0 to 1: of those up to the
    /// last one that did.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
    pub fn loss(&self) -> f64 {
        match self.received + self.lost {
            0 => 0.0,
            all => self.lost as f64 / all as f64,
        }
    }
}
