//! What would help a transfer, and by how much.

use serde::{Deserialize, Serialize};
use units::BitRate;

/// Where a remedy is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemedyPlace {
    /// On the sending host.
    Sender,
    /// On the receiving host.
    Receiver,
    /// In how the test or the program is called.
    Call,
}

/// One thing that would help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// Where.
    pub place: RemedyPlace,
    /// What to type there: a whole command line for a host, options for a call.
    pub command: String,
    /// The sysctl that the command sets, with dots; `None` for a call.
    pub setting: Option<String>,
    /// The goodput predicted with it; `None` where none is promised.
    pub expects_bps: Option<BitRate>,
    /// How that is computed, or why nothing is promised.
    pub why: String,
}
