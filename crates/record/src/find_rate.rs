//! The search for the highest rate of datagrams that a path carries.

use serde::{Deserialize, Serialize};
use units::BitRate;

/// The version of [`FindRateReport`] in JSON.
pub const FIND_RATE_SCHEMA: &str = "longhaul.find-rate/1";

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindRateReport {
    /// [`FIND_RATE_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that measured.
    pub version: String,
    /// When it began: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The server as it was named.
    pub target: String,
    /// The far end, as it names itself.
    pub peer: String,
    /// Whether the server sent.
    pub reverse: bool,
    /// The most loss that counts as none, 0 to 1.
    pub loss_target: f64,
    /// Length of one try in seconds.
    pub try_s: f64,
    /// The highest rate of payload that arrived with no more loss, confirmed;
    /// `None` where none did.
    pub rate_bps: Option<BitRate>,
    /// Its loss, the mean over the tries that confirmed it.
    pub loss: Option<f64>,
    /// The lowest rate that lost more; `None` where none did.
    pub lossy_bps: Option<BitRate>,
    /// Why it ended: `found`, `sender-limited`, `highest-asked`, `lossy-at-least`,
    /// `tries-used-up`, `interrupted`, `failed`.
    pub ending: String,
    /// Every try in its order.
    pub tries: Vec<RateTry>,
    /// All that in one sentence.
    pub sentence: String,
}

/// One rate, tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateTry {
    /// The rate of payload that was asked for, all streams together.
    pub asked_bps: BitRate,
    /// What the sender sent.
    pub sent_bps: BitRate,
    /// What arrived.
    pub received_bps: BitRate,
    /// Datagrams that never arrived, 0 to 1.
    pub loss: f64,
    /// Whether that was within the target.
    pub within: bool,
}
