//! A path as it was asked of a lab, and as the lab carried it.

use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// An emulated path: asked and achieved.
///
/// The first fields are what a transfer from client to server needs to be
/// judged; `asked` has both directions and every effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Bottleneck rate, counting IP bytes plus `overhead_bytes` a packet: of
    /// the direction from client to server, in the long run; `None` where it
    /// is not limited.
    pub rate_bps: Option<BitRate>,
    /// Round trip without serialisation and queueing.
    #[serde(rename = "rtt_ms", with = "crate::millis")]
    pub rtt: Rtt,
    /// Random loss asked of the direction from client to server, per MTU packet.
    pub loss: LossRatio,
    /// The queue before the bottleneck, in words: `1 BDP (2.16 MB)`.
    pub queue: String,
    /// The same in bytes, where it is a drop-tail queue of so many.
    pub queue_bytes: Option<ByteCount>,
    /// Bytes of framing counted on each packet beside the IP packet itself.
    pub overhead_bytes: u32,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// The seed of its draws.
    pub seed: u64,
    /// Whether the emulation can be trusted.
    pub valid: bool,
    /// Why not, where it cannot.
    pub reasons: Vec<String>,
    /// All that was asked.
    #[serde(default)]
    pub asked: Asked,
    /// What the lab saw of itself.
    pub achieved: Achieved,
    /// CPU time of the emulator's busiest thread, as a share of one core.
    #[serde(default)]
    pub cpu: f64,
}

/// What was asked of an emulated path, whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The path as it can be asked again with `--link`.
    pub link: String,
    /// From client to server, or from a link's first end to its second.
    pub up: AskedWay,
    /// The other way.
    pub down: AskedWay,
    /// Whether the emulator was to spend a core on accuracy.
    pub accurate: bool,
    /// How far the idle round trip may be off in this mode, in ms.
    pub idle_rtt_within_ms: f64,
    /// What was changed while it ran, in order.
    pub changes: Vec<PathChange>,
}

/// One direction of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AskedWay {
    /// Rate in the long run; `None` where it is not limited.
    pub rate_bps: Option<BitRate>,
    /// One way, in ms.
    pub delay_ms: f64,
    /// The queue in words.
    pub queue: String,
    /// Every other effect in words.
    pub effects: Vec<String>,
}

/// A change of a path's settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathChange {
    /// When, in seconds since the path began.
    pub at_s: f64,
    /// What was set, such as `loss=1%`.
    pub set: String,
}

/// What an emulated path did, by its own measurement. Where there are two
/// directions, the worse one is told; counters are sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
    /// Packets taken by the loss model that was asked.
    pub lost: u64,
    /// Share of the packets sent that it took; `None` where nothing was sent.
    pub loss: Option<f64>,
    /// The share it should have taken, by the probabilities it drew with.
    pub loss_expected: Option<f64>,
    /// Packets that never came, by cause.
    pub drops: Drops,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// Second copies.
    pub duplicated: u64,
    /// Packets delivered with a bit turned over.
    pub corrupted: u64,
    /// Packets held back so that others passed them.
    pub reordered: u64,
    /// Lateness of release against the virtual clock, in µs.
    pub lateness_us: Lateness,
}

/// Packets dropped, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// The emulated queue was full, as asked.
    pub queue: u64,
    /// Active queue management.
    pub aqm: u64,
    /// The policer.
    pub policer: u64,
    /// Longer than the MTU of the path.
    pub too_long: u64,
    /// Bursts of losses.
    pub bursts: u64,
    /// Blackholes.
    pub blackhole: u64,
    /// Lost by the emulator although nobody asked.
    pub unasked: u64,
}

/// How late packets were released, in µs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Worst.
    pub max: u64,
}
