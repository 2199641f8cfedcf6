//! The lines of a BDP report, each with its equation.

#[cfg(doc)]
use super::{BDP_SCHEMA, Question};
use serde::Serialize;
use units::{BitRate, ByteCount, LossRatio};

/// The figures for one [`Question`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BdpReport {
    /// [`BDP_SCHEMA`].
    pub schema: &'static str,
    /// The given rate.
    pub rate_bps: BitRate,
    /// The given RTT, in milliseconds.
    pub rtt_ms: f64,
    /// The given number of streams.
    pub streams: u32,
    /// The given MTU.
    pub mtu_bytes: u32,
    /// The bandwidth-delay product.
    pub bdp: BdpLine,
    /// The window with which one stream fills the path.
    pub window: WindowLine,
    /// The window that each stream needs.
    pub window_per_stream: WindowLine,
    /// The rate with 64 KiB, the maximum window without scaling.
    pub unscaled: WindowRateLine,
    /// The rate with the given window.
    pub given: Option<WindowRateLine>,
    /// The socket buffers that each stream needs.
    pub buffers: BuffersLine,
    /// Payload rates, by what the link rate includes.
    pub payload: Vec<PayloadLine>,
    /// Slow start.
    pub ramp: RampLine,
    /// The maximum random loss for the rate.
    pub loss: LossLine,
}

/// The bandwidth-delay product in all common units.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BdpLine {
    /// In bits.
    pub bits: f64,
    /// In bytes.
    pub bytes: ByteCount,
    /// In MB (10^6 bytes).
    pub megabytes: f64,
    /// In MiB (2^20 bytes).
    pub mebibytes: f64,
    /// `BDP = rate x RTT = …`.
    pub equation: String,
}

/// A required window.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowLine {
    /// Its size.
    pub bytes: ByteCount,
    /// The window scale that it needs, 0 to 14; `None` if 14 is not enough.
    pub scale: Option<u8>,
    /// The equation with its numbers.
    pub equation: String,
}

/// The rate that a window allows.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowRateLine {
    /// The window of each stream.
    pub window_bytes: ByteCount,
    /// Window / RTT of all streams, in payload.
    pub rate_bps: BitRate,
    /// Its share of the link rate, 0 to 1.
    pub link_share: f64,
    /// The equation with its numbers.
    pub equation: String,
}

/// Socket buffers to set, per stream.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BuffersLine {
    /// Maximum of `tcp_rmem` on the receiver and of `tcp_wmem` on the sender.
    pub bytes: ByteCount,
    /// Whether the kernel accepts it: these settings are signed 32-bit integers.
    pub settable: bool,
    /// The equation with its numbers.
    pub equation: String,
}

/// The payload rate for one framing.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PayloadLine {
    /// What the link rate includes.
    pub case: &'static str,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// Bytes of that segment on the wire.
    pub wire_bytes: u64,
    /// Payload over wire.
    pub share: f64,
    /// The payload rate.
    pub rate_bps: BitRate,
    /// The equation with its numbers.
    pub equation: String,
}

/// Slow start to the window of each stream.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RampLine {
    /// Number of RTTs.
    pub rounds: u32,
    /// Their duration in seconds.
    pub seconds: f64,
    /// The equation with its numbers.
    pub equation: String,
}

/// The maximum random loss at which each stream reaches its share of the rate.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossLine {
    /// With Reno.
    pub reno: LossRatio,
    /// With CUBIC.
    pub cubic: LossRatio,
    /// The equation with its numbers.
    pub equation: String,
}
