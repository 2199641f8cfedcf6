//! Captures of network interfaces, and the interfaces that there are.

use serde::{Deserialize, Serialize};
use units::BitRate;

/// The version of a capture's report in JSON.
pub const CAPTURE_SCHEMA: &str = "longhaul.capture/1";

/// The version of [`InterfacesReport`] in JSON.
pub const INTERFACES_SCHEMA: &str = "longhaul.interfaces/1";

/// What was captured, and where it is.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaptureReport {
    /// The interface; `any` for all.
    pub interface: String,
    /// The capture filter; empty for every packet.
    pub filter: String,
    /// Bytes of a packet that are kept at most.
    pub snaplen_bytes: u32,
    /// The files, oldest first; none for a pipe.
    pub files: Vec<String>,
    /// Packets that were written.
    pub packets: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// Packets that the filter accepted.
    pub accepted_packets: u64,
    /// Those of them that the kernel dropped, as its buffer was full.
    pub dropped_packets: u64,
    /// Packets with a timestamp of the adapter; the others have the kernel's.
    pub hardware_timestamps: u64,
    /// Length of the capture in seconds.
    pub seconds: f64,
    /// Why it ended: `limit`, `interrupted`, `reader-closed`, `interface-removed`,
    /// `write-failed` or `read-failed`.
    pub ending: String,
}

/// The interfaces of a network namespace.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterfacesReport {
    /// [`INTERFACES_SCHEMA`].
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// Over how many seconds the rates were measured.
    pub seconds: f64,
    /// The interfaces, in the kernel's order.
    pub interfaces: Vec<InterfaceTraffic>,
}

/// An interface and its traffic.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterfaceTraffic {
    /// Its name.
    pub name: String,
    /// Whether it is up.
    pub up: bool,
    /// Its addresses with their prefix lengths.
    pub addresses: Vec<String>,
    /// Received bits a second; `None` for less than one.
    pub received_bps: Option<BitRate>,
    /// Sent bits a second, likewise.
    pub sent_bps: Option<BitRate>,
    /// Received packets a second.
    pub received_packets_per_s: f64,
    /// Sent packets a second.
    pub sent_packets_per_s: f64,
}
