//! Random early detection (Floyd and Jacobson, "Random Early Detection Gateways
//! for Congestion Avoidance", IEEE/ACM ToN 1(4), 1993), with the gentle mode
//! (Floyd, "Recommendation on using the 'gentle_' variant of RED", 2000).
//!
//! ```text
//!   probability 1 ┤                    ╱─────
//!                 │                ╱
//!                 │            ╱
//!   `probability` ┤      ___╱
//!               0 ┼_____╱───┬──────────┬────> average queue, bytes
//!                      min max        2 max
//! ```
//!
//! Names are those of the paper's figure 2. With its counting, the number of packets from
//! one drop to the next is uniform over 1 .. 1/p_b - 1, so that drops are neither
//! clustered nor synchronised: a share of 2 p_b is dropped. Every packet counts the
//! same, whatever its size (RFC 7141).

use super::{Backlog, QueueContext, Verdict};
use crate::packet_fate::{Cause, FateLog, Packet, TrainRun};
use crate::{Red, random::unit};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use units::{BitRate, ByteCount, Nanos};

/// Size of a typical packet in bytes, to estimate the number of packets that could have
/// been sent while the queue was empty: the default of tc-red(8).
const TYPICAL: u64 = 1000;

#[derive(Debug)]
pub(crate) struct RedQueue<P> {
    settings: Red,
    average: Average,
    /// Packets since the last drop; `None` while the average is below `min`.
    count: Option<u64>,
    rng: Pcg64Mcg,
    pub(crate) backlog: Backlog<P>,
}

impl<P: Clone> RedQueue<P> {
    pub(crate) fn new(settings: Red, context: QueueContext) -> Self {
        RedQueue {
            settings,
            average: Average {
                bytes: 0.0,
                weight: libm::exp2(-f64::from(settings.weight)),
                packet_ns: packet_time(context.rate),
                empty_since: None,
            },
            count: None,
            rng: Pcg64Mcg::seed_from_u64(context.seed),
            backlog: Backlog::new(context.overhead),
        }
    }

    /// The bottleneck rate has changed.
    pub(crate) fn apply_settings(&mut self, context: QueueContext) {
        self.average.packet_ns = packet_time(context.rate);
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Nanos,
        run: TrainRun<P>,
        idle: bool,
        log: &mut FateLog<P>,
    ) {
        let RedQueue { settings, average, count, rng, backlog } = self;
        let ecn_capable = settings.ecn && run.train.is_ecn_capable();
        backlog.admit(now, run, idle, log, |view| {
            average.update(now, view.bytes);
            let verdict = match decide(settings, average.bytes, count, rng) {
                Decision::Pass => Verdict::Enqueue,
                Decision::Signal if ecn_capable => Verdict::EnqueueMarked,
                Decision::Signal | Decision::Drop => Verdict::Drop(Cause::Aqm),
            };
            if !matches!(verdict, Verdict::Drop(_)) && !view.fits(settings.limit) {
                return Verdict::Drop(Cause::QueueFull);
            }
            verdict
        });
    }

    pub(crate) fn dequeue(&mut self, now: Nanos) -> Option<Packet<P>> {
        let packet = self.backlog.pop();
        if self.backlog.packets() == 0 {
            self.average.empty_since = Some(now);
        }
        packet
    }
}

/// RED's decision about a packet.
enum Decision {
    Pass,
    /// Signal congestion, by a mark or a drop.
    Signal,
    /// Drop even if ECN-capable: the average is above twice `max` (RFC 3168, section 7).
    Drop,
}

fn decide(settings: &Red, average: f64, count: &mut Option<u64>, rng: &mut Pcg64Mcg) -> Decision {
    // At least one byte: avoids a division by zero if `max` is zero.
    let (min, max) = (settings.min.as_f64(), settings.max.as_f64().max(1.0));
    if average < min {
        *count = None;
        return Decision::Pass;
    }
    if average >= 2.0 * max {
        *count = Some(0);
        return Decision::Drop;
    }
    let most = settings.probability.fraction();
    let base = if average < max {
        most * (average - min) / (max - min)
    } else {
        most + (1.0 - most) * (average - max) / max
    };
    let passed = count.map_or(0, |count| count + 1);
    *count = Some(passed);
    #[expect(clippy::cast_precision_loss, reason = "a count of packets between two drops")]
    let left = 1.0 - passed as f64 * base;
    // left <= 0: so many packets have passed that this one is dropped for certain.
    if base > 0.0 && (left <= 0.0 || unit(rng) < base / left) {
        *count = Some(0);
        return Decision::Signal;
    }
    Decision::Pass
}

/// The average queue length, an exponentially weighted moving average.
#[derive(Debug)]
struct Average {
    bytes: f64,
    /// w_q of the paper.
    weight: f64,
    /// Transmission time of a typical packet, ns.
    packet_ns: f64,
    /// Since when the queue has been empty.
    empty_since: Option<Nanos>,
}

impl Average {
    /// Updates the average when a packet arrives. An empty queue counts as if typical packets
    /// had arrived continuously since it became empty.
    #[expect(clippy::cast_precision_loss, reason = "a queue, and a pause, are below 2^53")]
    fn update(&mut self, now: Nanos, queue: u64) {
        match self.empty_since.take() {
            Some(since) if queue == 0 => {
                let packets = now.nanos_since(since) as f64 / self.packet_ns;
                self.bytes *= libm::pow(1.0 - self.weight, packets);
                // The idle time up to now is included, even if this packet is dropped.
                self.empty_since = Some(now);
            }
            _ => self.bytes += self.weight * (queue as f64 - self.bytes),
        }
    }
}

/// Transmission time of a typical packet in ns; minimal without a rate limit.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn packet_time(rate: Option<BitRate>) -> f64 {
    let time = rate.map(|rate| rate.time_for(ByteCount::from_bytes(TYPICAL)));
    time.map_or(1.0, |time| crate::nanos(time).max(1) as f64)
}
