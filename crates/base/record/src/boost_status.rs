//! What running boxes carry. What `longhaul boost status --json` prints.

use serde::{Deserialize, Serialize};
use units::BitRate;

/// The version of [`BoostStatus`] in JSON.
pub const BOOST_STATUS_SCHEMA: &str = "longhaul.boost-status/1";

/// Running boxes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostStatus {
    /// [`BOOST_STATUS_SCHEMA`].
    pub schema: String,
    /// Seconds since 1970-01-01 UTC.
    pub time: f64,
    /// The boxes.
    pub boxes: Vec<BoxStatus>,
    /// Boxes that run and do not answer.
    pub silent: Vec<SilentBox>,
}

/// A box that does not answer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilentBox {
    /// Its name, or its URL.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// Which box it is.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoxRole {
    /// The box at the applications.
    Near,
    /// The box at the targets.
    Far,
    /// The near box of one program.
    Run,
}

impl BoxRole {
    /// All of them.
    pub const ALL: [BoxRole; 3] = [BoxRole::Near, BoxRole::Far, BoxRole::Run];

    /// The name in documents and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BoxRole::Near => "near",
            BoxRole::Far => "far",
            BoxRole::Run => "run",
        }
    }
}

/// Connections that were not boosted for one reason.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotBoostedCount {
    /// The reason.
    pub reason: String,
    /// Their number.
    pub count: u64,
}

/// A running box.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoxStatus {
    /// Its name on this host, or its URL.
    pub name: String,
    /// Its process; `None` of a URL.
    pub pid: Option<u32>,
    /// Which box it is.
    pub role: BoxRole,
    /// Its start, in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// Flows that have not ended.
    pub active_flows: u64,
    /// Flows that began.
    pub flows: u64,
    /// Flows on a connection between the boxes that had carried another one.
    pub reused: u64,
    /// Flows that ended with an RST.
    pub reset: u64,
    /// Open connections between the boxes.
    pub active_lanes: u64,
    /// Bytes from applications (near) or targets (far).
    pub in_bytes: u64,
    /// Bytes to them.
    pub out_bytes: u64,
    /// Bytes sent to the other box, with headers and encryption, without those of TCP and IP.
    pub wan_sent_bytes: u64,
    /// Bytes received from the other box.
    pub wan_received_bytes: u64,
    /// CPU time of the process.
    pub cpu_s: f64,
    /// Connections that were not boosted, by reason.
    pub not_boosted: Vec<NotBoostedCount>,
    /// UDP datagrams that the network of a program has refused.
    pub udp_refused: u64,
    /// Time that flows which ended in order were spared, at least; `None` at far, which does not know
    /// how long they took.
    pub saved_s: Option<f64>,
    /// The goodput of a direct transfer that `saved_s` compares with; `None`: it counts the round trips
    /// of slow start.
    pub direct_rate_bps: Option<BitRate>,
}

impl BoxStatus {
    /// A box that has carried nothing.
    #[must_use]
    pub fn new(name: String, role: BoxRole) -> Self {
        BoxStatus {
            name,
            pid: None,
            role,
            started_unix_s: 0.0,
            active_flows: 0,
            flows: 0,
            reused: 0,
            reset: 0,
            active_lanes: 0,
            in_bytes: 0,
            out_bytes: 0,
            wan_sent_bytes: 0,
            wan_received_bytes: 0,
            cpu_s: 0.0,
            not_boosted: Vec::new(),
            udp_refused: 0,
            saved_s: None,
            direct_rate_bps: None,
        }
    }
}
