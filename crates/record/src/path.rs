//! A path as it was asked of a lab, and as the lab carried it.

use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// An emulated path: asked and achieved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Bottleneck rate in each direction, counting IP bytes plus `overhead_bytes` a packet.
    pub rate_bps: BitRate,
    /// Round trip without serialisation and queueing.
    #[serde(rename = "rtt_ms", with = "crate::millis")]
    pub rtt: Rtt,
    /// Random loss asked, per direction and MTU packet.
    pub loss: LossRatio,
    /// The drop-tail queue before the bottleneck, per direction, in words: `1bdp (2.16 MB)`.
    pub queue: String,
    /// The same in bytes, where it is one.
    pub queue_bytes: Option<ByteCount>,
    /// Bytes of framing counted on each packet beside the IP packet itself.
    pub overhead_bytes: u32,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// The seed of its random loss.
    pub seed: u64,
    /// Whether the emulation can be trusted.
    pub valid: bool,
    /// Why not, where it cannot.
    pub reasons: Vec<String>,
    /// What the lab saw of itself.
    pub achieved: Achieved,
}

/// What an emulated path did, by its own measurement. Where there are two
/// directions, the worse one is told; counters are sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Achieved {
    /// Rate over the time the bottleneck was busy, in real time, of the busier
    /// direction; `None` where it never was busy for long enough to tell.
    pub rate_bps: Option<BitRate>,
    /// Median idle round trip after serialisation; `None` where no probe came back.
    pub idle_rtt_ms: Option<f64>,
    /// Packets carried.
    pub packets: u64,
    /// Bytes carried, headers and framing included.
    pub bytes: u64,
    /// Packets taken by the random loss that was asked.
    pub lost: u64,
    /// Packets dropped because the emulated queue was full, as asked.
    pub queue_drops: u64,
    /// Packets the emulator lost although nobody asked.
    pub unasked_drops: u64,
    /// Median lateness of release against the virtual clock, in µs.
    pub lateness_p50_us: u64,
    /// 99th percentile of it.
    pub lateness_p99_us: u64,
    /// Worst of it.
    pub lateness_max_us: u64,
}
