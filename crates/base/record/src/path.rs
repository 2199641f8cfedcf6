//! An emulated path: as requested, and as achieved by the lab.

use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// An emulated path, requested and achieved.
///
/// The first fields are those that the diagnosis of a transfer from client to server
/// needs; `asked` has both directions and every effect.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Mean bottleneck rate from client to server, in IP bytes plus `overhead_bytes` per
    /// packet; `None` if unlimited.
    pub rate_bps: Option<BitRate>,
    /// RTT without transmission time and queueing delay.
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    #[serde(rename = "rtt_ms", with = "crate::millis")]
    pub rtt: Rtt,
    /// Random loss requested from client to server, per MTU packet.
    pub loss: LossRatio,
    /// The bottleneck queue as text: `1 BDP (2.16 MB)`.
    pub queue: String,
    /// Its size in bytes, if it is a drop-tail queue.
    pub queue_bytes: Option<ByteCount>,
    /// Framing bytes counted per packet in addition to the IP packet.
    pub overhead_bytes: u32,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Whether the emulation was valid.
    pub valid: bool,
    /// The reasons if it was not.
    pub reasons: Vec<String>,
    /// The complete request.
    #[serde(default)]
    pub asked: RequestedPath,
    /// What the lab measured.
    pub achieved: Achieved,
    /// CPU time of the emulator's busiest thread, as a share of one core.
    #[serde(default)]
    pub cpu: f64,
}

/// The complete request for an emulated path.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestedPath {
    /// The path in the syntax of `--link`.
    pub link: String,
    /// From client to server, or from a link's first end to its second.
    pub up: RequestedDirection,
    /// The opposite direction.
    pub down: RequestedDirection,
    /// Whether the emulator was requested to busy-poll a core for accuracy.
    pub accurate: bool,
    /// Seconds from the start of the lab's clock that were declared not to be covered by
    /// validity and [`Achieved`].
    #[serde(default)]
    pub omit_s: f64,
    /// What carries the packets.
    #[serde(default)]
    pub driver: PathDriver,
    /// Why that driver: a clause without a full stop. Empty in files of earlier versions.
    #[serde(default)]
    pub driver_reason: String,
    /// Mean RTT of the idle path, in ms: `rtt_ms` with the means of jitter and reordering. Zero
    /// in files of earlier versions.
    #[serde(default)]
    pub mean_rtt_ms: f64,
    /// Tolerance of the idle RTT in this mode, in ms.
    pub idle_rtt_within_ms: f64,
    /// Changes during the run, in order.
    pub changes: Vec<PathChange>,
}

impl PathReport {
    /// Whether it was simulated in virtual time: nothing of it was measured.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.asked.driver == PathDriver::Simulator
    }
}

/// What carries the packets of an emulated path.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathDriver {
    /// They are copied through TUN devices.
    #[default]
    Tun,
    /// They are held in the kernel (NFQUEUE).
    Nfqueue,
    /// There are none: the path is simulated in virtual time.
    Simulator,
}

impl PathDriver {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PathDriver::Tun => "TUN",
            PathDriver::Nfqueue => "NFQUEUE",
            PathDriver::Simulator => "simulator",
        }
    }
}

/// One direction of the request.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestedDirection {
    /// Mean rate; `None` if unlimited.
    pub rate_bps: Option<BitRate>,
    /// One-way delay in ms.
    pub delay_ms: f64,
    /// The queue as text.
    pub queue: String,
    /// The other effects as text.
    pub effects: Vec<String>,
}

/// A change of a path's settings.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathChange {
    /// Time in seconds since the path started.
    pub at_s: f64,
    /// What was set, such as `loss=1%`.
    pub set: String,
}

/// The achieved path, as measured by the lab. Figures are those of the worse direction;
/// counters are sums.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Achieved {
    /// Where the figures begin, in seconds from the start of the lab's clock.
    pub from_s: f64,
    /// Rate while the bottleneck was busy, in real time, of the busier direction; `None`
    /// if it was not busy for long enough.
    pub rate_bps: Option<BitRate>,
    /// Idle RTT without transmission time, to be compared with
    /// [`RequestedPath::mean_rtt_ms`]: the median of the echoes, or, where the configured delay
    /// varies, their mean. `None` without a probe reply.
    pub idle_rtt_ms: Option<f64>,
    /// Standard error of `idle_rtt_ms` where that is a mean.
    pub idle_rtt_error_ms: Option<f64>,
    /// Packets forwarded.
    pub packets: u64,
    /// Bytes forwarded, including headers and framing.
    pub bytes: u64,
    /// Packets dropped by the requested loss model.
    pub lost: u64,
    /// Their share of the packets sent; `None` if none was sent.
    pub loss: Option<f64>,
    /// The share that the configured models lose in the long run; with listed packets or
    /// settings that change, the share that they lose of the packets sent.
    pub loss_expected: Option<f64>,
    /// Dropped packets, by cause.
    pub drops: Drops,
    /// Packets marked CE (congestion experienced).
    pub marked: u64,
    /// Duplicate packets.
    pub duplicated: u64,
    /// Packets delivered with a flipped bit.
    pub corrupted: u64,
    /// Packets delayed so that later ones overtook them.
    pub reordered: u64,
    /// Lateness of packets against the virtual clock, in µs.
    pub lateness_us: Lateness,
}

/// Packets dropped, by cause.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Queue drops: the emulated queue was full.
    pub queue: u64,
    /// Active queue management.
    pub aqm: u64,
    /// Policer drops.
    pub policer: u64,
    /// Packets longer than the path MTU.
    pub too_long: u64,
    /// Burst losses.
    pub bursts: u64,
    /// Blackholes.
    pub blackhole: u64,
    /// Packets lost by the emulator itself.
    #[serde(rename = "unasked")]
    pub unintended: u64,
}

/// How late packets were released, in µs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
}
