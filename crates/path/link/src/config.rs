//! Settings of a link.

use crate::{Loss, TokenBucket, Trace, nanos};
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount, LossRatio, Nanos, Probability};

/// The settings of one direction.
///
/// ```text
///  arrive -> MTU -> policer -> [ queue ] -> rate -> loss, corruption, copies -> delay, jitter -> release
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LinkConfig {
    /// Bottleneck rate. A packet counts with its length plus `overhead`.
    pub rate: Rate,
    /// Propagation delay, one-way, in addition to serialisation and queueing.
    pub delay: Duration,
    /// Random variation of the delay.
    pub jitter: Option<Jitter>,
    /// Random or listed packet loss.
    pub loss: Loss,
    /// Periodic bursts of packet loss.
    pub bursts: Option<Bursts>,
    /// Periodic outages.
    pub blackhole: Option<Blackhole>,
    /// Random reordering by additional delay.
    pub reorder: Option<Reorder>,
    /// Share of packets that are duplicated.
    pub duplicate: LossRatio,
    /// Share of packets with a bit error.
    pub corrupt: LossRatio,
    /// Rewriting of the window scale option (RFC 7323) of SYNs by a middlebox. The
    /// link only stores it; the caller, which has the bytes, applies it with
    /// [`crate::rewrite_window_scale`].
    pub window_scale: Option<WindowScale>,
    /// Maximum length of IP packets, bytes; longer ones are silently dropped, as in a
    /// PMTUD black hole (RFC 2923).
    pub mtu: Option<u32>,
    /// Policer: drops packets above a rate, without a queue (RFC 2475, section 2.3.3.3).
    pub policer: Option<TokenBucket>,
    /// What a middlebox does to the packets of each transport protocol, in the order of
    /// [`Protocol::ALL`](crate::Protocol::ALL).
    pub filters: [ProtocolFilter; 2],
    /// Queue in front of the bottleneck.
    pub queue: Queue,
    /// Framing bytes counted per packet: 0 counts IP packets, 38 adds Ethernet
    /// including preamble and interframe gap.
    pub overhead: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl LinkConfig {
    /// Mean one-way delay of packets that do not hold each other up, without serialisation
    /// and queueing: the delay, the mean of the jitter, and what reordering adds.
    #[must_use]
    pub fn mean_delay(&self) -> Duration {
        let base = self.delay.as_secs_f64();
        let delayed = self.jitter.map_or(base, |jitter| jitter.mean_delay_s(base));
        let held =
            self.reorder.map_or(0.0, |reorder| reorder.share.fraction() * reorder.by.as_secs_f64());
        Duration::try_from_secs_f64(delayed + held).unwrap_or(self.delay)
    }

    /// A link with this rate, delay and queue, and no other effects.
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
            filters: [ProtocolFilter::NONE; 2],
            queue,
            overhead: 0,
            seed: 0,
        }
    }
}

/// What a middlebox does to the packets of one transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolFilter {
    /// Policer of this protocol alone, before that of all packets.
    pub policer: Option<TokenBucket>,
    /// Drops every packet, as firewalls do that know only web traffic.
    pub blackhole: bool,
}

impl ProtocolFilter {
    /// Nothing.
    pub const NONE: ProtocolFilter = ProtocolFilter { policer: None, blackhole: false };
}

/// Bottleneck rate.
#[derive(Debug, Clone, PartialEq)]
pub enum Rate {
    /// No serialisation delay.
    Unlimited,
    /// Constant.
    Constant(BitRate),
    /// `TokenBucket::rate` on average; bursts at line rate after idle time.
    TokenBucket(TokenBucket),
    /// Delivery opportunities of a recorded link (mahimahi format).
    Trace(Arc<Trace>),
}

/// Random delay of each packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jitter {
    /// Distribution.
    pub distribution: Distribution,
    /// Standard deviation of `Normal`, half-width of `Uniform`, mean of `Exponential`
    /// and `Pareto`.
    pub scale: Duration,
    /// Whether packets may overtake each other. If not, a packet is delivered no
    /// earlier than the one before it.
    pub overtake: bool,
}

impl Jitter {
    /// Mean of a delay of `base` seconds with this jitter, in seconds. Delays below zero count
    /// as zero, so it is above `base` where the jitter is as large.
    fn mean_delay_s(&self, base: f64) -> f64 {
        let scale = self.scale.as_secs_f64();
        match self.distribution {
            _ if scale == 0.0 => base,
            Distribution::Exponential | Distribution::Pareto => base + scale,
            Distribution::Uniform if scale <= base => base,
            Distribution::Uniform => (base + scale) * (base + scale) / (4.0 * scale),
            // The mean of max(0, X) for a normal X: base Phi(base / scale) + scale phi(base / scale).
            Distribution::Normal => {
                let x = base / scale;
                let density = libm::exp(-x * x / 2.0) / std::f64::consts::TAU.sqrt();
                base * normal_cdf(x, density) + scale * density
            }
        }
    }
}

/// The standard normal distribution function at `x` >= 0, whose density there is `density`;
/// within 10^-7 (Abramowitz and Stegun, 26.2.17).
fn normal_cdf(x: f64, density: f64) -> f64 {
    const B: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    1.0 - density * B.iter().rev().fold(0.0, |sum, b| (sum + b) * t)
}

/// Distribution of delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Added to the link's delay; a negative sum counts as zero.
    Normal,
    /// Added to the link's delay.
    Uniform,
    /// Added to the link's delay; never negative.
    Exponential,
    /// Added to the link's delay; never negative, with a heavy tail: shape 3, so that
    /// mean and variance exist (as in netem's table).
    Pareto,
}

/// Periodic loss of consecutive packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bursts {
    /// Number of packets.
    pub packets: u32,
    /// Period.
    pub every: Duration,
}

/// Periodic outage: all packets are lost at the end of each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blackhole {
    /// Length of the outage.
    pub length: Duration,
    /// Period, including the outage.
    pub every: Duration,
}

/// Random reordering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// Share of packets, drawn independently.
    pub share: LossRatio,
    /// Additional delay: packets sent within this time overtake them.
    pub by: Duration,
}

/// Rewriting of the window scale option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowScale {
    /// Removes it: windows are limited to 65 535 bytes.
    Strip,
    /// Sets the shift count, 0 to 14.
    Set(u8),
}

/// Limit of a queue, excluding the packet being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Bytes, including framing.
    Bytes(ByteCount),
    /// Packets of at most MTU size.
    Packets(u64),
}

impl Limit {
    /// Whether a packet of `size` fits in addition to what is queued.
    #[must_use]
    pub const fn admits(self, queued: Occupancy, size: ByteCount) -> bool {
        match self {
            Limit::Bytes(limit) => queued.bytes.plus(size).bytes() <= limit.bytes(),
            Limit::Packets(limit) => queued.packets < limit,
        }
    }

    /// Whether `queued` exceeds the limit.
    #[must_use]
    pub const fn is_exceeded(self, queued: Occupancy) -> bool {
        match self {
            Limit::Bytes(limit) => queued.bytes.bytes() > limit.bytes(),
            Limit::Packets(limit) => queued.packets > limit,
        }
    }
}

/// Occupancy of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Bytes, including framing.
    pub bytes: ByteCount,
    /// Packets.
    pub packets: u64,
}

impl Occupancy {
    /// An occupancy of `bytes`, including framing, and `packets`.
    pub(crate) const fn new(bytes: u64, packets: u64) -> Self {
        Occupancy { bytes: ByteCount::from_bytes(bytes), packets }
    }
}

/// A queue and its discipline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Queue {
    /// Drops arriving packets that do not fit.
    DropTail(Fifo),
    /// Drops the oldest packets to make room.
    DropHead(Fifo),
    /// Controlled delay (RFC 8289).
    CoDel(CoDel),
    /// Flow queues with controlled delay (RFC 8290).
    FqCoDel(FqCoDel),
    /// Random early detection (Floyd and Jacobson 1993; gentle: Floyd 2000).
    Red(Red),
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(Pie),
    /// Coupled queues for L4S and classic traffic (RFC 9332).
    DualPi2(DualPi2),
    /// A router of XCP (Katabi, Handley and Rohrs 2002); needs a rate.
    Xcp(Xcp),
}

impl Queue {
    /// A drop-tail queue.
    #[must_use]
    pub const fn drop_tail(limit: Limit) -> Self {
        Queue::DropTail(Fifo { limit, mark: None })
    }

    /// Limit of the queue.
    #[must_use]
    pub const fn limit(&self) -> Limit {
        match self {
            Queue::DropTail(fifo) | Queue::DropHead(fifo) => fifo.limit,
            Queue::CoDel(codel) => codel.limit,
            Queue::FqCoDel(fq) => fq.codel.limit,
            Queue::Red(red) => red.limit,
            Queue::Pie(pie) => pie.limit,
            Queue::DualPi2(dual) => dual.limit,
            Queue::Xcp(xcp) => xcp.limit,
        }
    }
}

/// First in, first out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fifo {
    /// Limit of the queue.
    pub limit: Limit,
    /// Queue length above which arriving ECN-capable packets are marked: the step
    /// marking of DCTCP (RFC 8257, section 3.1).
    pub mark: Option<Limit>,
}

/// Parameters of CoDel, named as in RFC 8289.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable standing queueing delay; default 5 ms.
    pub target: Duration,
    /// Time within which a good queue falls below the target; default 100 ms.
    pub interval: Duration,
    /// Limit of the queue.
    pub limit: Limit,
    /// Whether to mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

/// Parameters of FQ-CoDel, named as in RFC 8290.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCoDel {
    /// CoDel of each flow queue; the limit applies to all queues together.
    pub codel: CoDel,
    /// Number of flow queues; default 1024.
    pub flows: u32,
    /// Bytes a queue may send per round, including framing (see
    /// [`LinkConfig::overhead`]); default 1514.
    pub quantum: u32,
}

/// Parameters of RED.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// Average queue length below which nothing is dropped, bytes.
    pub min: ByteCount,
    /// Average queue length at which `probability` is reached, bytes; from here to
    /// twice this length the probability rises to 1 (gentle mode).
    pub max: ByteCount,
    /// Drop probability at `max`.
    pub probability: Probability,
    /// Exponent of the averaging weight 2^-weight per packet: 9 is Floyd's 0.002.
    pub weight: u8,
    /// Limit of the queue.
    pub limit: Limit,
    /// Whether to mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

/// Parameters of PIE, named as in RFC 8033.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pie {
    /// Target queueing delay; default 15 ms.
    pub target: Duration,
    /// Update interval of the drop probability; default 15 ms, at least 1 ms. The
    /// gains are scaled with it (section 4.2).
    pub update: Duration,
    /// Burst allowance; default 150 ms.
    pub burst: Duration,
    /// Limit of the queue.
    pub limit: Limit,
    /// Whether to mark ECN-capable packets instead of dropping them, while the
    /// probability is at most 10 %.
    pub ecn: bool,
}

/// Parameters of `DualPI2`, named as in RFC 9332, appendix A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DualPi2 {
    /// Target delay of the classic queue; default 15 ms.
    pub target: Duration,
    /// Update interval of the base probability (`Tupdate`); default 16 ms, at least 1 ms.
    /// The integral gain is scaled with it.
    pub update: Duration,
    /// Delay of an L4S packet above which it is marked; default 1 ms.
    pub step: Duration,
    /// Coupling factor k: marks of L4S packets by base probability, at least 1; default 2.
    pub coupling: u32,
    /// Share of the rate that classic packets get while both queues have packets;
    /// default 10 %.
    pub classic_share: Probability,
    /// Limit of both queues together.
    pub limit: Limit,
}

/// Settings of an XCP router, whose gains the paper fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xcp {
    /// Limit of the queue.
    pub limit: Limit,
}

/// Settings of a link over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Settings from time zero.
    pub start: LinkConfig,
    /// Changes, in chronological order; none at time zero.
    pub changes: Vec<(Nanos, LinkConfig)>,
    /// Period after which the schedule repeats; longer than the time of the last change.
    pub repeat: Option<Duration>,
}

impl From<LinkConfig> for Schedule {
    fn from(start: LinkConfig) -> Self {
        Schedule { start, changes: Vec::new(), repeat: None }
    }
}

impl Schedule {
    /// The settings at a time, and the time of the next change.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    /// The mean delay, beside that of draws.
    fn check(distribution: Distribution, scale_ms: u64, delay_ms: u64, expected_ms: f64) {
        let scale = Duration::from_millis(scale_ms);
        let jitter = Jitter { distribution, scale, overtake: true };
        let queue = Queue::drop_tail(Limit::Packets(1));
        let delay = Duration::from_millis(delay_ms);
        let config =
            LinkConfig { jitter: Some(jitter), ..LinkConfig::new(Rate::Unlimited, delay, queue) };
        let mean = config.mean_delay().as_secs_f64() * 1e3;
        assert!((mean - expected_ms).abs() < 1e-3, "{distribution:?}: {mean} ms");
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(7);
        let draws = 200_000;
        let drawn = (0..draws)
            .map(|_| crate::wire::delayed(Nanos(0), nanos(delay), jitter, &mut rng).0 as f64);
        let drawn = drawn.sum::<f64>() / f64::from(draws) / 1e6;
        assert!((drawn - mean).abs() < 0.02 * scale_ms as f64, "{distribution:?}: {drawn} ms");
    }

    #[test]
    fn the_mean_delay_is_that_of_the_draws() {
        check(Distribution::Normal, 5, 20, 20.0);
        // max(0, X): 20 Phi(1) + 20 phi(1).
        check(Distribution::Normal, 20, 20, 21.666_3);
        check(Distribution::Normal, 20, 0, 7.978_8);
        check(Distribution::Uniform, 20, 20, 20.0);
        check(Distribution::Uniform, 20, 10, 11.25);
        check(Distribution::Exponential, 5, 20, 25.0);
        check(Distribution::Pareto, 5, 20, 25.0);
    }

    #[test]
    fn reordered_packets_count_by_their_share() {
        let queue = Queue::drop_tail(Limit::Packets(1));
        let reorder = Some(Reorder { share: "10%".parse().unwrap(), by: Duration::from_millis(5) });
        let delay = Duration::from_millis(20);
        let config = LinkConfig { reorder, ..LinkConfig::new(Rate::Unlimited, delay, queue) };
        assert_eq!(config.mean_delay(), Duration::from_micros(20_500));
    }
}
