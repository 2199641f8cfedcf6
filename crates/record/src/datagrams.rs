//! The datagram counters of a UDP stream.

use serde::{Deserialize, Serialize};
use units::Rtt;

/// The receiver's counters of one UDP stream, including the warm-up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Payload bytes per datagram.
    pub length_bytes: u32,
    /// Sent; `None` if the sender did not report it.
    pub sent: Option<u64>,
    /// Received, without duplicates.
    pub received: u64,
    /// Lost: not received, though a later one was.
    pub lost: u64,
    /// Duplicates received.
    pub duplicates: u64,
    /// Received after one that was sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Maximum reordering extent in datagrams (RFC 4737 section 4.2.1).
    pub reorder_extent: u64,
    /// Interarrival jitter at the end (RFC 3550 section 6.4.1).
    #[serde(rename = "jitter_ms", with = "crate::millis")]
    pub jitter: Rtt,
    /// Loss bursts by length, shortest first.
    pub loss_bursts: Vec<LossBurst>,
}

/// Loss bursts of one length, or of a range of lengths if long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossBurst {
    /// Minimum number of consecutive datagrams.
    pub from: u64,
    /// Maximum number of consecutive datagrams.
    pub to: u64,
    /// Number of such bursts.
    pub count: u64,
}

/// A datagram of a train, with the times at both ends. The clocks differ: only differences
/// between datagrams mean anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedDatagram {
    /// Its sequence number, from 1.
    pub number: u64,
    /// When it was sent, by the sender's clock, in µs.
    pub sent_us: u64,
    /// When it arrived in the receiver's kernel, by the receiver's clock, in µs.
    pub arrived_us: u64,
}

impl Datagrams {
    /// The loss ratio, 0 to 1, of the datagrams up to the last one received.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
    pub fn loss(&self) -> f64 {
        match self.received.saturating_add(self.lost) {
            0 => 0.0,
            all => self.lost as f64 / all as f64,
        }
    }
}
