//! When the applications of a connection had nothing to send.

use serde::{Deserialize, Serialize};

/// The activity of a connection's applications over its whole life, as its packets show it.
///
/// The sender of the data is idle from a segment after which its application had no more to
/// send until the next segment that no acknowledgement released.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Share of the time in which the sending application had nothing to send, 0 to 1.
    pub idle_share: f64,
    /// Payload rate over the rest of the time, bit/s.
    pub sending_bps: f64,
    /// Pieces of data that the application wrote one after another, with idle time between.
    pub bursts: u32,
    /// Median payload of a burst, in bytes.
    pub burst_bytes: u64,
    /// Median time from the start of a burst to the start of the next, in seconds; `None` with
    /// fewer than three.
    pub burst_period_s: Option<f64>,
    /// Bursts that answer a request of the other side.
    pub responses: u32,
    /// Median time that the sender of the data took to answer a request, in seconds.
    pub sender_think_s: Option<f64>,
    /// Median time that the other side took to send its next request, in seconds.
    pub receiver_think_s: Option<f64>,
}
