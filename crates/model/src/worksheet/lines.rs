//! What a worksheet holds: one struct a line, each with its equation in words.

#[cfg(doc)]
use super::{Question, WORKSHEET_SCHEMA};
use serde::Serialize;
use units::{BitRate, ByteCount, LossRatio};

/// The answers to one [`Question`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worksheet {
    /// [`WORKSHEET_SCHEMA`].
    pub schema: &'static str,
    /// The rate asked.
    pub rate_bps: BitRate,
    /// The round trip asked, in milliseconds.
    pub rtt_ms: f64,
    /// The streams asked.
    pub streams: u32,
    /// The MTU asked.
    pub mtu_bytes: u32,
    /// The bandwidth-delay product.
    pub bdp: BdpLine,
    /// The window that fills the path with one stream.
    pub window: WindowLine,
    /// The window each of the streams needs.
    pub window_per_stream: WindowLine,
    /// What a window of 64 KiB, the most without scaling, gives.
    pub unscaled: WindowRateLine,
    /// What the given window gives.
    pub given: Option<WindowRateLine>,
    /// The socket buffers each of the streams needs.
    pub buffers: BuffersLine,
    /// Payload rates, by what the link's rate counts.
    pub payload: Vec<PayloadLine>,
    /// Slow start.
    pub ramp: RampLine,
    /// The random loss that the rate bears.
    pub loss: LossLine,
}

/// The bandwidth-delay product in every unit people use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BdpLine {
    /// In bits.
    pub bits: f64,
    /// In bytes.
    pub bytes: ByteCount,
    /// In bytes of 1000 x 1000.
    pub megabytes: f64,
    /// In bytes of 1024 x 1024.
    pub mebibytes: f64,
    /// `BDP = rate x RTT = …`.
    pub equation: String,
}

/// A window that is needed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowLine {
    /// Its size.
    pub bytes: ByteCount,
    /// The window scale it takes, 0 to 14; `None` where no scale holds it.
    pub scale: Option<u8>,
    /// In words.
    pub equation: String,
}

/// What a window carries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowRateLine {
    /// The window of each stream.
    pub window_bytes: ByteCount,
    /// Window over round trip, over all streams; payload.
    pub rate_bps: BitRate,
    /// The share of the link that it uses, 0 to 1.
    pub link_share: f64,
    /// In words.
    pub equation: String,
}

/// Socket buffers to set, per stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BuffersLine {
    /// Last value of `tcp_rmem` on the receiver and `tcp_wmem` on the sender.
    pub bytes: ByteCount,
    /// Whether the kernel takes it: these settings are 32-bit integers.
    pub settable: bool,
    /// In words.
    pub equation: String,
}

/// The payload rate by one way of counting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PayloadLine {
    /// What the link's rate counts, in words.
    pub case: &'static str,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// What that segment takes of the link.
    pub wire_bytes: u64,
    /// Payload over wire.
    pub share: f64,
    /// The payload rate.
    pub rate_bps: BitRate,
    /// In words.
    pub equation: String,
}

/// Slow start to the window of each stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RampLine {
    /// Round trips.
    pub rounds: u32,
    /// Their time.
    pub seconds: f64,
    /// In words.
    pub equation: String,
}

/// Most random loss at which a stream still carries its part of the rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossLine {
    /// With Reno's congestion control.
    pub reno: LossRatio,
    /// With CUBIC's.
    pub cubic: LossRatio,
    /// In words.
    pub equation: String,
}
