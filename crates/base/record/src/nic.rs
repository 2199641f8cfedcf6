//! What the driver of a network device reports.

use serde::Serialize;
use units::BitRate;

/// Ring sizes of a device, packets.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// Receive ring.
    pub rx: u32,
    /// Maximum of the receive ring.
    pub rx_most: u32,
    /// Transmit ring.
    pub tx: u32,
    /// Maximum of the transmit ring.
    pub tx_most: u32,
}

/// Pause frames (IEEE 802.3, annex 31B).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// Whether both ends negotiated them.
    pub negotiated: bool,
    /// Whether the device honours received pause frames.
    pub rx: bool,
    /// Whether the device sends them.
    pub tx: bool,
}

/// Offloads of the device, or of the kernel in its place.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Offloads {
    /// Receive checksum.
    pub rx_checksum: Option<bool>,
    /// Transmit checksum.
    pub tx_checksum: Option<bool>,
    /// TCP segmentation offload.
    pub tso: Option<bool>,
    /// Generic segmentation offload (in the kernel).
    pub gso: Option<bool>,
    /// Generic receive offload.
    pub gro: Option<bool>,
}

/// Energy-Efficient Ethernet (IEEE 802.3az).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Eee {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Whether both ends negotiated it.
    pub active: bool,
    /// Idle time after which the link enters low power, µs.
    pub sleeps_after_us: u32,
}

/// Interrupt coalescing.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Coalescing {
    /// Maximum delay of a receive interrupt, µs.
    pub rx_us: u32,
    /// Whether the driver adapts it to the traffic.
    pub rx_adaptive: bool,
}

/// Speeds of a link.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Fastest supported speed, Mbit/s.
    pub able_mbps: Option<u32>,
    /// Fastest advertised speed, Mbit/s.
    pub offered_mbps: Option<u32>,
    /// Fastest speed advertised by the link partner, Mbit/s; `None` if unknown.
    pub peer_mbps: Option<u32>,
    /// Whether the speed was autonegotiated.
    pub negotiated: bool,
}

/// How a Wi-Fi device sends to its access point.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WifiLink {
    /// The rate, framing included: see `model::WIFI_TCP_SHARE` for what TCP gets of it.
    pub rate_bps: BitRate,
    /// The standard of the last frame, such as `802.11ax (Wi-Fi 6)`.
    pub standard: &'static str,
    /// The channel's width.
    pub width_mhz: u16,
    /// Spatial streams; `None` where the standard has one only.
    pub streams: Option<u8>,
}
