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
//! The names are those of the paper's figure 2. With its counting the number of
//! packets from one drop to the next is uniform over 1 .. 1/p_b - 1, so that
//! drops are neither in clusters nor in step: a share of 2 p_b is dropped.
//! Every packet counts the same, whatever its size (RFC 7141).

use super::{Backlog, Surroundings, Verdict};
use crate::fate::{Cause, Ledger, Packet, Run};
use crate::{Nanos, Red, chance::unit};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use units::{BitRate, ByteCount};

/// A typical packet in bytes, for how many could have been sent while the
/// queue was empty: what the manual of tc-red proposes.
const TYPICAL: u64 = 1000;

#[derive(Debug)]
pub(crate) struct RedQueue<P> {
    settings: Red,
    average: Average,
    /// Packets since the last drop; `None` while the average is below `min`.
    count: Option<u64>,
    chance: Pcg64Mcg,
    pub(crate) backlog: Backlog<P>,
}

impl<P: Clone> RedQueue<P> {
    pub(crate) fn new(settings: Red, around: Surroundings) -> Self {
        RedQueue {
            settings,
            average: Average {
                bytes: 0.0,
                weight: (-f64::from(settings.weight)).exp2(),
                typical: typical_time(around.rate),
                empty_since: None,
            },
            count: None,
            chance: Pcg64Mcg::seed_from_u64(around.seed),
            backlog: Backlog::new(around.overhead),
        }
    }

    /// The bottleneck has another rate.
    pub(crate) fn adopt(&mut self, around: Surroundings) {
        self.average.typical = typical_time(around.rate);
    }

    pub(crate) fn enqueue(&mut self, now: Nanos, run: Run<P>, idle: bool, ledger: &mut Ledger<P>) {
        let RedQueue { settings, average, count, chance, backlog } = self;
        let ecn_capable = settings.ecn && run.train.is_ecn_capable();
        backlog.admit(now, run, idle, ledger, |found| {
            average.follow(now, found.bytes);
            let verdict = match judge(settings, average.bytes, count, chance) {
                Judgement::Pass => Verdict::Enter,
                Judgement::Signal if ecn_capable => Verdict::EnterMarked,
                Judgement::Signal | Judgement::Drop => Verdict::Drop(Cause::Aqm),
            };
            if !matches!(verdict, Verdict::Drop(_)) && !found.room(settings.limit) {
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

/// What RED says of a packet.
enum Judgement {
    Pass,
    /// Let the sender know, by a mark or a drop.
    Signal,
    /// Beyond all marks: the average is above twice `max` (RFC 3168, section 7).
    Drop,
}

fn judge(
    settings: &Red,
    average: f64,
    count: &mut Option<u64>,
    chance: &mut Pcg64Mcg,
) -> Judgement {
    // A byte at least: a `max` of zero is to divide nothing by zero.
    let (min, max) = (settings.min.as_f64(), settings.max.as_f64().max(1.0));
    if average < min {
        *count = None;
        return Judgement::Pass;
    }
    if average >= 2.0 * max {
        *count = Some(0);
        return Judgement::Drop;
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
    // Not left > 0: so many have passed that this one's turn is certain.
    if base > 0.0 && (left <= 0.0 || unit(chance) < base / left) {
        *count = Some(0);
        return Judgement::Signal;
    }
    Judgement::Pass
}

/// The average queue, an exponentially weighted one.
#[derive(Debug)]
struct Average {
    bytes: f64,
    /// w_q of the paper.
    weight: f64,
    /// Time that a typical packet takes, in ns.
    typical: f64,
    /// When the queue became empty.
    empty_since: Option<Nanos>,
}

impl Average {
    /// Follows the queue as an arriving packet finds it. An empty one counts
    /// as if typical packets had come all the while and found it empty.
    #[expect(clippy::cast_precision_loss, reason = "a queue, and a pause, are below 2^53")]
    fn follow(&mut self, now: Nanos, queue: u64) {
        match self.empty_since.take() {
            Some(since) if queue == 0 => {
                let packets = now.since(since) as f64 / self.typical;
                self.bytes *= (1.0 - self.weight).powf(packets);
                // Whatever becomes of this packet, the pause up to here has counted.
                self.empty_since = Some(now);
            }
            _ => self.bytes += self.weight * (queue as f64 - self.bytes),
        }
    }
}

/// Time of a typical packet in ns; a moment where the rate has no limit.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn typical_time(rate: Option<BitRate>) -> f64 {
    let time = rate.map(|rate| rate.time_for(ByteCount::from_bytes(TYPICAL)));
    time.map_or(1.0, |time| crate::nanos(time).max(1) as f64)
}
