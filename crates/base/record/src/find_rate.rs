//! The search for the highest UDP rate that meets a loss target.

use serde::{Deserialize, Serialize};
use units::BitRate;

/// The version of [`FindRateReport`] in JSON.
pub const FIND_RATE_SCHEMA: &str = "longhaul.find-rate/1";

/// The result of a search.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindRateReport {
    /// [`FIND_RATE_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that measured.
    pub version: String,
    /// Start time: seconds since 1970-01-01 UTC.
    pub started_unix_s: u64,
    /// The server as named on the command line.
    pub target: String,
    /// The peer's name and version.
    pub peer: String,
    /// Whether the server sent.
    pub reverse: bool,
    /// The loss target: the maximum accepted loss, 0 to 1.
    pub loss_target: f64,
    /// Length of one trial in seconds.
    pub try_s: f64,
    /// The highest payload rate confirmed to meet the target; `None` if none did.
    pub rate_bps: Option<BitRate>,
    /// Its mean loss over the confirming trials.
    pub loss: Option<f64>,
    /// The lowest rate that missed the target; `None` if none did.
    pub lossy_bps: Option<BitRate>,
    /// Why it ended: `found`, `sender-limited`, `highest-asked`, `lossy-at-least`,
    /// `tries-used-up`, `interrupted`, `failed`.
    pub ending: String,
    /// The trials in order.
    pub tries: Vec<RateTry>,
    /// The result in one sentence.
    pub sentence: String,
}

/// One trial.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateTry {
    /// The requested payload rate of all streams.
    pub asked_bps: BitRate,
    /// The sent payload rate.
    pub sent_bps: BitRate,
    /// The received payload rate.
    pub received_bps: BitRate,
    /// The loss ratio, 0 to 1.
    pub loss: f64,
    /// Whether it met the target.
    pub within: bool,
    /// Why it failed; `None` if it passed, and in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<TryFailure>,
}

/// Why a rate cannot be sustained.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TryFailure {
    /// More than the target was lost.
    Loss,
    /// Less than the target was lost, but data arrived more slowly than it was sent: a queue
    /// grows, and overflows in the end.
    QueueGrows,
    /// Nothing arrived.
    NothingArrived,
}
