//! What is asked of a link.

use crate::{Bucket, Loss, Nanos, Trace, nanos};
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount, LossRatio, Probability};

/// The settings of one direction.
///
/// ```text
///  arrive -> MTU -> policer -> [ queue ] -> rate -> loss, corruption, copies -> delay, jitter -> release
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LinkConfig {
    /// How fast the bottleneck sends, counting each packet's bytes plus `overhead`.
    pub rate: Rate,
    /// Propagation delay, one way, beside serialisation and queueing.
    pub delay: Duration,
    /// Delay that varies from packet to packet.
    pub jitter: Option<Jitter>,
    /// Packets lost on the wire.
    pub loss: Loss,
    /// Packets lost in a row, again and again.
    pub bursts: Option<Bursts>,
    /// Times in which nothing comes through.
    pub blackhole: Option<Blackhole>,
    /// Packets held back, so that later ones pass them.
    pub reorder: Option<Reorder>,
    /// Share of packets that come twice.
    pub duplicate: LossRatio,
    /// Share of packets that come with one bit turned over.
    pub corrupt: LossRatio,
    /// What a middlebox does to the window scale option (RFC 7323) of a SYN.
    /// The link carries the wish; who has the bytes fulfils it, see
    /// [`crate::rewrite_window_scale`].
    pub window_scale: Option<WindowScale>,
    /// Longer IP packets are dropped, in bytes: a black hole for those who do
    /// not probe (RFC 2923).
    pub mtu: Option<u32>,
    /// Drops what exceeds a rate, without a queue (RFC 2475, section 2.3.3.3).
    pub policer: Option<Bucket>,
    /// Room before the bottleneck, and how it is managed.
    pub queue: Queue,
    /// Framing bytes counted on each packet: 0 counts IP packets, 38 Ethernet
    /// with preamble and gap.
    pub overhead: u32,
    /// Seed of the draws.
    pub seed: u64,
}

impl LinkConfig {
    /// A link of that rate, delay and queue, and nothing else.
    #[must_use]
    pub const fn new(rate: Rate, delay: Duration, queue: Queue) -> Self {
        LinkConfig {
            rate,
            delay,
            jitter: None,
            loss: Loss::None,
            bursts: None,
            blackhole: None,
            reorder: None,
            duplicate: LossRatio::NONE,
            corrupt: LossRatio::NONE,
            window_scale: None,
            mtu: None,
            policer: None,
            queue,
            overhead: 0,
            seed: 0,
        }
    }
}

/// How fast the bottleneck sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Rate {
    /// At once: packets take no time.
    Unlimited,
    /// Always as fast.
    Constant(BitRate),
    /// At `Bucket::rate` in the long run; after a pause a burst at once.
    Bucket(Bucket),
    /// When a recorded link could send (the mahimahi format).
    Trace(Arc<Trace>),
}

/// Delay added to each packet by a draw of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jitter {
    /// How the draws are spread.
    pub distribution: Distribution,
    /// Standard deviation of `Normal`, half the width of `Uniform`, mean of
    /// `Exponential` and `Pareto`.
    pub scale: Duration,
    /// Whether packets may overtake each other. Where not, one that would is
    /// delivered right after the one before it.
    pub overtake: bool,
}

/// A distribution of delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Around the link's delay; what would come before zero comes at zero.
    Normal,
    /// Around the link's delay.
    Uniform,
    /// On top of the link's delay.
    Exponential,
    /// On top of the link's delay, with a heavy tail: shape 3, so that mean
    /// and variance exist (netem's table has the same shape).
    Pareto,
}

/// `packets` lost in a row from the first after every `every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bursts {
    /// How many.
    pub packets: u32,
    /// How often.
    pub every: Duration,
}

/// Of every `every`, the last `dark` lets nothing through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blackhole {
    /// How long it is dark.
    pub dark: Duration,
    /// The whole period, light and dark.
    pub every: Duration,
}

/// Packets held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// Share of packets, each by an independent draw.
    pub share: LossRatio,
    /// For how long: packets sent within that time pass them.
    pub by: Duration,
}

/// What a middlebox does to the window scale option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowScale {
    /// Takes it out: windows end at 65 535 bytes.
    Strip,
    /// Writes another shift count, 0 to 14.
    Set(u8),
}

/// Most that a queue holds; the packet being sent is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// So many bytes, framing included.
    Bytes(ByteCount),
    /// So many packets of MTU size or less.
    Packets(u64),
}

impl Limit {
    /// Whether `size` more bytes fit beside what is there.
    #[must_use]
    pub const fn admits(self, bytes: u64, packets: u64, size: u64) -> bool {
        match self {
            Limit::Bytes(limit) => bytes + size <= limit.bytes(),
            Limit::Packets(limit) => packets < limit,
        }
    }

    /// Whether that is more than it admits.
    #[must_use]
    pub const fn is_exceeded(self, bytes: u64, packets: u64) -> bool {
        match self {
            Limit::Bytes(limit) => bytes > limit.bytes(),
            Limit::Packets(limit) => packets > limit,
        }
    }
}

/// A queue before the bottleneck and its management.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Queue {
    /// What does not fit is dropped.
    DropTail(Fifo),
    /// What is oldest makes room.
    DropHead(Fifo),
    /// Controlled delay (RFC 8289).
    CoDel(CoDel),
    /// Flow queues with controlled delay (RFC 8290).
    FqCoDel(FqCoDel),
    /// Random early detection (Floyd and Jacobson 1993; gentle: Floyd 2000).
    Red(Red),
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(Pie),
}

impl Queue {
    /// A drop-tail queue.
    #[must_use]
    pub const fn drop_tail(limit: Limit) -> Self {
        Queue::DropTail(Fifo { limit, mark: None })
    }

    /// The most it holds.
    #[must_use]
    pub const fn limit(&self) -> Limit {
        match self {
            Queue::DropTail(fifo) | Queue::DropHead(fifo) => fifo.limit,
            Queue::CoDel(codel) => codel.limit,
            Queue::FqCoDel(fq) => fq.codel.limit,
            Queue::Red(red) => red.limit,
            Queue::Pie(pie) => pie.limit,
        }
    }
}

/// First in, first out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fifo {
    /// The most it holds.
    pub limit: Limit,
    /// A packet that finds more than this waiting is marked, where its sender
    /// understands marks: the step that DCTCP wants (RFC 8257, section 3.1).
    pub mark: Option<Limit>,
}

/// Settings of CoDel, by the names of RFC 8289.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// The standing delay that is fine: 5 ms.
    pub target: Duration,
    /// The time in which a good queue empties once: 100 ms.
    pub interval: Duration,
    /// The most it holds.
    pub limit: Limit,
    /// Mark instead of drop, where the sender understands marks.
    pub ecn: bool,
}

/// Settings of FQ-CoDel, by the names of RFC 8290.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCoDel {
    /// Each flow queue's CoDel; the limit is that of all together.
    pub codel: CoDel,
    /// Number of flow queues: 1024.
    pub flows: u32,
    /// Bytes a queue may send before the next has its turn: 1514. Framing is
    /// counted as everywhere, see [`LinkConfig::overhead`].
    pub quantum: u32,
}

/// Settings of RED.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// Average queue below which nothing is dropped, bytes.
    pub min: ByteCount,
    /// Average queue at which `probability` is reached, bytes; between it and
    /// twice it the probability goes on to 1 (gentle).
    pub max: ByteCount,
    /// Probability at `max`.
    pub probability: Probability,
    /// The average follows the queue by 2^-weight a packet: 9 is Floyd's 0.002.
    pub weight: u8,
    /// The most it holds.
    pub limit: Limit,
    /// Mark instead of drop, where the sender understands marks.
    pub ecn: bool,
}

/// Settings of PIE, by the names of RFC 8033.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pie {
    /// The delay it aims at: 15 ms.
    pub target: Duration,
    /// How often the probability is computed: 15 ms. At least 1 ms is used;
    /// the controller's gains follow it as section 4.2 says.
    pub update: Duration,
    /// Longest burst that passes without drops: 150 ms.
    pub burst: Duration,
    /// The most it holds.
    pub limit: Limit,
    /// Mark instead of drop, where the sender understands marks, while the
    /// probability is at most 10 %.
    pub ecn: bool,
}

/// A link's settings over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// From time zero.
    pub start: LinkConfig,
    /// From those times on, in order; none at zero.
    pub changes: Vec<(Nanos, LinkConfig)>,
    /// After so long it begins again; after every change.
    pub repeat: Option<Duration>,
}

impl From<LinkConfig> for Schedule {
    fn from(start: LinkConfig) -> Self {
        Schedule { start, changes: Vec::new(), repeat: None }
    }
}

impl Schedule {
    /// The settings at a moment, and when they next change.
    #[must_use]
    pub fn at(&self, now: Nanos) -> (&LinkConfig, Option<Nanos>) {
        let period = self.repeat.map(nanos);
        let period = period.filter(|time| *time > 0);
        let lap = period.map_or(0, |period| now.0 - now.0 % period);
        let within = Nanos(now.0 - lap);
        let passed = self.changes.partition_point(|(at, _)| *at <= within);
        let config = match passed.checked_sub(1) {
            Some(last) => &self.changes[last].1,
            None => &self.start,
        };
        let end = period.filter(|_| !self.changes.is_empty());
        let change = self.changes.get(passed).map(|(at, _)| at.0);
        let next = [change, end].into_iter().flatten().min();
        (config, next.map(|next| Nanos(lap.saturating_add(next))))
    }
}
