//! One direction of a path, from one moment on.

use super::bottleneck::Bottleneck;
use super::error::PathError;
use super::key::Key;
use super::loss::{self, LossSetting};
use super::queues::QueueSetting;
use super::setting::{Delay, RateSetting, Setting};
use link::{
    Blackhole, Bursts, Distribution, Jitter, Limit, LinkConfig, ProtocolFilter, Queue, Rate,
    Reorder, TokenBucket, WindowScale,
};
use std::time::Duration;
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Rate of an unlimited link for the purpose of counting memory: above the
/// 16.4 Gbit/s that two TUN devices and their hosts reach on one machine.
const UNLIMITED: BitRate = BitRate::from_bps(20_000_000_000);

/// The settings of one direction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DirectionSettings {
    pub(super) rate: RateSetting,
    pub(super) burst: Option<ByteCount>,
    pub(super) delay: Rtt,
    pub(super) jitter: Option<(Distribution, Rtt)>,
    pub(super) overtake: bool,
    pub(super) loss: LossSetting,
    pub(super) bursts: Option<Bursts>,
    pub(super) blackhole: Option<Blackhole>,
    pub(super) reorder: Option<Reorder>,
    pub(super) duplicate: LossRatio,
    pub(super) corrupt: LossRatio,
    pub(super) window_scale: Option<WindowScale>,
    pub(super) mtu: Option<u32>,
    pub(super) police: Option<TokenBucket>,
    pub(super) filters: [ProtocolFilter; 2],
    pub(super) queue: QueueSetting,
}

impl Default for DirectionSettings {
    fn default() -> Self {
        DirectionSettings {
            rate: RateSetting::Unlimited,
            burst: None,
            delay: Rtt::ZERO,
            jitter: None,
            overtake: false,
            loss: LossSetting::default(),
            bursts: None,
            blackhole: None,
            reorder: None,
            duplicate: LossRatio::NONE,
            corrupt: LossRatio::NONE,
            window_scale: None,
            mtu: None,
            police: None,
            filters: [ProtocolFilter::NONE; 2],
            queue: QueueSetting::default(),
        }
    }
}

impl DirectionSettings {
    /// Applies a setting; a new queue discipline starts without options.
    pub(super) fn set(&mut self, key: Key, setting: &Setting) {
        match setting.clone() {
            Setting::Rate(rate) => self.rate = rate,
            Setting::Burst(burst) => self.burst = burst,
            Setting::Delay(Delay { time, .. }) => self.delay = time,
            Setting::Jitter(jitter) => self.jitter = jitter,
            Setting::Overtake(overtake) => self.overtake = overtake,
            Setting::Loss(loss) => self.loss = loss,
            Setting::Bursts(bursts) => self.bursts = bursts,
            Setting::Blackhole(blackhole) => self.blackhole = blackhole,
            Setting::Reorder(reorder) => self.reorder = reorder,
            Setting::Duplicate(share) => self.duplicate = share,
            Setting::Corrupt(share) => self.corrupt = share,
            Setting::WindowScale(wish) => self.window_scale = wish,
            Setting::Mtu(mtu) => self.mtu = mtu,
            Setting::Police(bucket) => self.police = bucket,
            Setting::ProtocolPolice(protocol, bucket) => {
                self.filters[protocol as usize].policer = bucket;
            }
            Setting::ProtocolBlackhole(protocol, drop) => {
                self.filters[protocol as usize].blackhole = drop;
            }
            Setting::Queue(discipline, size) => self.queue = QueueSetting::new(discipline, size),
            option => self.queue.set(key, option),
        }
    }
}

/// The properties of the path that a direction depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PathContext {
    /// Delay of both directions, ns.
    pub(super) rtt: u64,
    /// MTU of the hosts' devices, bytes.
    pub(super) mtu: u32,
    /// Framing bytes counted on each packet.
    pub(super) overhead: u32,
}

/// One direction of a path, from one moment on.
#[derive(Debug, Clone, PartialEq)]
pub struct PathDirection {
    pub(super) settings: DirectionSettings,
    pub(super) context: PathContext,
    config: LinkConfig,
}

impl PathDirection {
    pub(super) fn new(settings: DirectionSettings, context: PathContext) -> Self {
        let rate = match (&settings.rate, settings.burst) {
            (RateSetting::Unlimited, _) => Rate::Unlimited,
            (RateSetting::Constant(rate), None) => Rate::Constant(*rate),
            (RateSetting::Constant(rate), Some(burst)) => {
                Rate::TokenBucket(TokenBucket { rate: *rate, burst })
            }
            (RateSetting::Trace(trace, _), _) => Rate::Trace(trace.clone()),
        };
        let queue = match bottleneck(&settings, context) {
            Some(at) => settings.queue.queue(&at),
            // Nothing queues, but a train must fit while it is split.
            None => Queue::drop_tail(Limit::Packets(u64::MAX)),
        };
        let config = LinkConfig {
            jitter: settings.jitter.map(|(distribution, scale)| Jitter {
                distribution,
                scale: scale.duration(),
                overtake: settings.overtake,
            }),
            loss: settings.loss.model.clone(),
            bursts: settings.bursts,
            blackhole: settings.blackhole,
            reorder: settings.reorder,
            duplicate: settings.duplicate,
            corrupt: settings.corrupt,
            window_scale: settings.window_scale,
            mtu: settings.mtu,
            policer: settings.police,
            filters: settings.filters,
            overhead: context.overhead,
            ..LinkConfig::new(rate, settings.delay.duration(), queue)
        };
        PathDirection { settings, context, config }
    }

    /// The link's settings, with a seed of zero.
    #[must_use]
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Long-term rate (mean rate of a trace); `None` if unlimited.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        bottleneck(&self.settings, self.context).map(|at| at.rate)
    }

    /// Delay of this direction without serialisation and queueing.
    #[must_use]
    pub const fn delay(&self) -> Rtt {
        self.settings.delay
    }

    /// Long-term loss ratio of the loss model. A list, being finite, counts as
    /// none; bursts and blackholes are not counted.
    #[must_use]
    pub fn mean_loss(&self) -> LossRatio {
        loss::mean(&self.settings.loss.model)
    }

    /// Bandwidth-delay product: the rate of this direction times the RTT of the
    /// path; zero if the rate is unlimited.
    #[must_use]
    pub fn bdp(&self) -> ByteCount {
        bottleneck(&self.settings, self.context).map_or(ByteCount::ZERO, |at| at.bdp())
    }

    /// Capacity of its queue; zero if the rate is unlimited.
    #[must_use]
    pub fn queue_bytes(&self) -> ByteCount {
        bottleneck(&self.settings, self.context)
            .map_or(ByteCount::ZERO, |at| at.bytes(self.config.queue.limit()))
    }

    /// True if its bottleneck is a router with XCP; without a rate it is none.
    #[must_use]
    pub const fn has_xcp_router(&self) -> bool {
        matches!(self.config.queue, Queue::Xcp(_))
    }

    /// True if its queue has a part of its own for L4S (RFC 9332).
    #[must_use]
    pub const fn has_l4s_queue(&self) -> bool {
        matches!(self.config.queue, Queue::DualPi2(_))
    }

    /// The queue in words: `1 BDP (2.16 MB)`.
    #[must_use]
    pub fn queue_in_words(&self) -> String {
        match bottleneck(&self.settings, self.context) {
            Some(at) => self.settings.queue.in_words(&at),
            None => "none (unlimited rate)".to_owned(),
        }
    }

    /// Whether the limit of the queue is in packets.
    #[must_use]
    pub fn counts_packets(&self) -> bool {
        matches!(self.config.queue.limit(), Limit::Packets(_))
    }

    /// Upper bound of the bytes in flight after the bottleneck, without one draw
    /// of jitter in a million.
    pub(super) fn in_flight(&self) -> ByteCount {
        let scale = |factor: u32, time: Rtt| time.duration().saturating_mul(factor);
        // 1 - 10^-6 of the draws, in units of the scale: 4.9 (normal),
        // ln 10^6 = 13.8 (exponential), 2 * (10^2 - 1) = 198 (Pareto, shape 3).
        let jitter = match self.settings.jitter {
            None => Duration::ZERO,
            Some((Distribution::Uniform, time)) => scale(1, time),
            Some((Distribution::Normal, time)) => scale(5, time),
            Some((Distribution::Exponential, time)) => scale(14, time),
            Some((Distribution::Pareto, time)) => scale(198, time),
        };
        let held = self.settings.reorder.map_or(Duration::ZERO, |reorder| reorder.by);
        let time = self.settings.delay.duration().saturating_add(jitter).saturating_add(held);
        let rate = self.rate().unwrap_or(UNLIMITED);
        rate.bytes_in(time).plus(self.settings.burst.unwrap_or_default())
    }

    /// Checks that the settings are consistent.
    pub(super) fn check(&self) -> Result<(), PathError> {
        let settings = &self.settings;
        let without = match settings.rate {
            RateSetting::Constant(_) => None,
            RateSetting::Unlimited => Some("not valid with an unlimited rate"),
            RateSetting::Trace(..) => Some("not valid with a trace"),
        };
        if let (Some(reason), Some(_)) = (without, settings.burst) {
            let wrong = format!("{reason}; omit it, or write burst=none");
            return Err(PathError::at("burst", wrong));
        }
        let longest = u64::from(self.context.mtu);
        let names = ["police", "udp.police", "tcp.police"];
        let policers = [settings.police, settings.filters[0].policer, settings.filters[1].policer];
        for (name, bucket) in names.into_iter().zip(policers) {
            let Some(bucket) = bucket.filter(|bucket| bucket.burst.bytes() < longest) else {
                continue;
            };
            let wrong = format!(
                "a burst of {} drops every packet of {longest} bytes; use a larger burst, such as 10mbit:64KiB",
                bucket.burst
            );
            return Err(PathError::at(name, wrong));
        }
        settings.queue.check(bottleneck(settings, self.context).as_ref())
    }
}

/// The bottleneck; none if the rate is unlimited.
fn bottleneck(settings: &DirectionSettings, context: PathContext) -> Option<Bottleneck> {
    let rate = match &settings.rate {
        RateSetting::Unlimited => return None,
        RateSetting::Constant(rate) => *rate,
        RateSetting::Trace(trace, _) => trace.mean_rate(),
    };
    let packet = u64::from(context.mtu) + u64::from(context.overhead);
    Some(Bottleneck { rate, rtt: Duration::from_nanos(context.rtt), packet })
}
