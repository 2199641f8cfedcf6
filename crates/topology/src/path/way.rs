//! One direction of a path, from some moment on.

use super::error::PathError;
use super::key::Key;
use super::loss::{self, LossAsked};
use super::queues::{Bottleneck, QueueAsked};
use super::setting::{Delay, RateAsked, Setting};
use super::words;
use link::{
    Blackhole, Bucket, Bursts, Distribution, Jitter, Limit, LinkConfig, Queue, Rate, Reorder,
    WindowScale,
};
use std::time::Duration;
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// What a link without a rate of its own is taken to carry where memory is
/// counted: more than two TUN devices and their hosts were ever seen to carry
/// on one machine (16.4 Gbit/s).
const UNLIMITED: BitRate = BitRate::from_bps(20_000_000_000);

/// What is asked of one direction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) rate: RateAsked,
    pub(super) burst: Option<ByteCount>,
    pub(super) delay: Rtt,
    pub(super) jitter: Option<(Distribution, Rtt)>,
    pub(super) overtake: bool,
    pub(super) loss: LossAsked,
    pub(super) bursts: Option<Bursts>,
    pub(super) blackhole: Option<Blackhole>,
    pub(super) reorder: Option<Reorder>,
    pub(super) duplicate: LossRatio,
    pub(super) corrupt: LossRatio,
    pub(super) window_scale: Option<WindowScale>,
    pub(super) mtu: Option<u32>,
    pub(super) police: Option<Bucket>,
    pub(super) queue: QueueAsked,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            rate: RateAsked::Unlimited,
            burst: None,
            delay: Rtt::ZERO,
            jitter: None,
            overtake: false,
            loss: LossAsked::default(),
            bursts: None,
            blackhole: None,
            reorder: None,
            duplicate: LossRatio::NONE,
            corrupt: LossRatio::NONE,
            window_scale: None,
            mtu: None,
            police: None,
            queue: QueueAsked::default(),
        }
    }
}

impl Asked {
    /// Takes over a setting; a queue given anew begins without options.
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
            Setting::Queue(discipline, size) => self.queue = QueueAsked::new(discipline, size),
            option => self.queue.set(key, option),
        }
    }
}

/// What a direction needs to know of the rest of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Around {
    /// Delay of both ways, ns.
    pub(super) rtt: u64,
    /// MTU of the hosts' devices, bytes.
    pub(super) mtu: u32,
    /// Framing bytes counted on each packet.
    pub(super) overhead: u32,
}

/// One direction of a path, from some moment on: the link that was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    pub(super) asked: Asked,
    pub(super) around: Around,
    config: LinkConfig,
}

impl Way {
    pub(super) fn new(asked: Asked, around: Around) -> Self {
        let rate = match (&asked.rate, asked.burst) {
            (RateAsked::Unlimited, _) => Rate::Unlimited,
            (RateAsked::Constant(rate), None) => Rate::Constant(*rate),
            (RateAsked::Constant(rate), Some(burst)) => Rate::Bucket(Bucket { rate: *rate, burst }),
            (RateAsked::Trace(trace, _), _) => Rate::Trace(trace.clone()),
        };
        let queue = match bottleneck(&asked, around) {
            Some(at) => asked.queue.queue(&at),
            // Nothing ever waits, but a train must fit while it is taken apart.
            None => Queue::drop_tail(Limit::Packets(u64::MAX)),
        };
        let config = LinkConfig {
            jitter: asked.jitter.map(|(distribution, scale)| Jitter {
                distribution,
                scale: scale.duration(),
                overtake: asked.overtake,
            }),
            loss: asked.loss.model.clone(),
            bursts: asked.bursts,
            blackhole: asked.blackhole,
            reorder: asked.reorder,
            duplicate: asked.duplicate,
            corrupt: asked.corrupt,
            window_scale: asked.window_scale,
            mtu: asked.mtu,
            policer: asked.police,
            overhead: around.overhead,
            ..LinkConfig::new(rate, asked.delay.duration(), queue)
        };
        Way { asked, around, config }
    }

    /// The link's settings, with a seed of zero.
    #[must_use]
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Rate in the long run, a trace's mean; `None` where it is unlimited.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        bottleneck(&self.asked, self.around).map(|at| at.rate)
    }

    /// Delay of this way without serialisation and queueing.
    #[must_use]
    pub const fn delay(&self) -> Rtt {
        self.asked.delay
    }

    /// Share of packets that its model of loss takes in the long run. A list,
    /// being finite, takes none; bursts and times of darkness are not counted.
    #[must_use]
    pub fn mean_loss(&self) -> LossRatio {
        loss::mean(&self.asked.loss.model)
    }

    /// Bandwidth-delay product: this way's rate times the path's round trip;
    /// zero where the rate is unlimited.
    #[must_use]
    pub fn bdp(&self) -> ByteCount {
        bottleneck(&self.asked, self.around).map_or(ByteCount::ZERO, |at| at.bdp())
    }

    /// The most bytes its queue can hold; none where the rate is unlimited.
    #[must_use]
    pub fn queue_bytes(&self) -> ByteCount {
        bottleneck(&self.asked, self.around)
            .map_or(ByteCount::ZERO, |at| at.bytes(self.config.queue.limit()))
    }

    /// The queue in words: `1 BDP (2.16 MB)`.
    #[must_use]
    pub fn queue_in_words(&self) -> String {
        match bottleneck(&self.asked, self.around) {
            Some(at) => self.asked.queue.in_words(&at),
            None => "none, as nothing waits".to_owned(),
        }
    }

    /// What it does beside its rate, delay and queue, in words: `loss 1 %`,
    /// `jitter normal 5 ms`.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        words::effects(&self.asked)
    }

    /// Whether packets wait for their turn at a size that was asked in packets.
    #[must_use]
    pub fn counts_packets(&self) -> bool {
        matches!(self.config.queue.limit(), Limit::Packets(_))
    }

    /// The most bytes on the wire behind the bottleneck, but for one draw of
    /// jitter in a million.
    pub(super) fn in_flight(&self) -> ByteCount {
        let scale = |factor: u32, time: Rtt| time.duration().saturating_mul(factor);
        // 1 - 10^-6 of the draws, in units of the scale: 4.9 (normal),
        // ln 10^6 = 13.8 (exponential), 2 * (10^2 - 1) = 198 (Pareto, shape 3).
        let jitter = match self.asked.jitter {
            None => Duration::ZERO,
            Some((Distribution::Uniform, time)) => scale(1, time),
            Some((Distribution::Normal, time)) => scale(5, time),
            Some((Distribution::Exponential, time)) => scale(14, time),
            Some((Distribution::Pareto, time)) => scale(198, time),
        };
        let held = self.asked.reorder.map_or(Duration::ZERO, |reorder| reorder.by);
        let time = self.asked.delay.duration().saturating_add(jitter).saturating_add(held);
        let rate = self.rate().unwrap_or(UNLIMITED);
        rate.bytes_in(time).plus(self.asked.burst.unwrap_or_default())
    }

    /// What of it cannot be.
    pub(super) fn check(&self) -> Result<(), PathError> {
        let asked = &self.asked;
        let without = match asked.rate {
            RateAsked::Constant(_) => None,
            RateAsked::Unlimited => Some("an unlimited rate has none"),
            RateAsked::Trace(..) => Some("a trace has its own"),
        };
        if let (Some(reason), Some(_)) = (without, asked.burst) {
            let wrong = format!("{reason}; leave it out, or write burst=none");
            return Err(PathError::at("burst", wrong));
        }
        let longest = u64::from(self.around.mtu);
        if let Some(bucket) = asked.police.filter(|bucket| bucket.burst.bytes() < longest) {
            let wrong = format!(
                "a burst of {} lets no packet of {longest} bytes through; write more, as in 10mbit:64KiB",
                bucket.burst
            );
            return Err(PathError::at("police", wrong));
        }
        asked.queue.check(bottleneck(asked, self.around).as_ref())
    }
}

/// Where packets wait; nowhere while the rate is unlimited.
fn bottleneck(asked: &Asked, around: Around) -> Option<Bottleneck> {
    let rate = match &asked.rate {
        RateAsked::Unlimited => return None,
        RateAsked::Constant(rate) => *rate,
        RateAsked::Trace(trace, _) => trace.mean_rate(),
    };
    let packet = u64::from(around.mtu) + u64::from(around.overhead);
    Some(Bottleneck { rate, rtt: Duration::from_nanos(around.rtt), packet })
}
