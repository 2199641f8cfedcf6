//! Coupled queues for L4S and classic traffic with a PI2 controller (RFC 9332, appendix A).
//!
//! ```text
//!                 ┌─> [ L4S ]     mark: delay above the step, or k p' ──┐
//!   ECT(1) or CE? │                        ↑ coupled                    ├─ weighted
//!                 └─> [ classic ] drop or mark: p'^2 ──────────────────┘  round robin
//! ```
//!
//! Both queues follow one base probability p', which a controller adapts to the delay:
//!
//! ```text
//!   p' += alpha (delay - target) + beta (delay - previous delay)
//! ```
//!
//! A classic flow sends at a rate of about 1/sqrt(p'^2), a scalable one at 2/(k p'): with
//! k = 2 flows of either kind with the same RTT get the same rate. Once k p' reaches 1 marks
//! cannot rise any further: both queues then drop with p'^2, whatever the ECN field says
//! (section A.2). Probabilities are turned into signals without random numbers, by adding
//! them up (`recur` of figure 5).

use super::{Backlog, QueueContext, Verdict};
use crate::packet_fate::{Cause, FateLog, Packet, TrainRun};
use crate::{DualPi2, Limit, nanos};
use units::Nanos;

/// Gains in 1/s for an update interval of 16 ms and an RTT of at most 100 ms (section A.1);
/// alpha scales with the interval.
const ALPHA: f64 = 0.16;
const BETA: f64 = 3.2;
const UPDATE_NS: u64 = 16_000_000;

/// Minimum update interval, ns.
const MIN_UPDATE_NS: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct DualPi2Queue<P> {
    limit: Limit,
    step_ns: u64,
    controller: Controller,
    scheduler: Scheduler,
    l4s: SignalledQueue<P>,
    classic: SignalledQueue<P>,
}

/// One of the two queues, with what its signals add up to.
#[derive(Debug)]
struct SignalledQueue<P> {
    backlog: Backlog<P>,
    signals: Accumulator,
    /// Drops of packets that would be marked without overload.
    drops: Accumulator,
}

impl<P: Clone> SignalledQueue<P> {
    fn new(overhead: u32) -> Self {
        SignalledQueue {
            backlog: Backlog::new(overhead),
            signals: Accumulator::default(),
            drops: Accumulator::default(),
        }
    }

    fn head(&self) -> Option<Nanos> {
        self.backlog.head().map(|(arrived, _)| arrived)
    }
}

impl<P: Clone> DualPi2Queue<P> {
    pub(crate) fn new(settings: DualPi2, context: QueueContext) -> Self {
        DualPi2Queue {
            limit: settings.limit,
            step_ns: nanos(settings.step),
            controller: Controller::new(settings),
            scheduler: Scheduler::new(settings.classic_share.fraction()),
            l4s: SignalledQueue::new(context.overhead),
            classic: SignalledQueue::new(context.overhead),
        }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Nanos,
        run: TrainRun<P>,
        idle: bool,
        log: &mut FateLog<P>,
    ) {
        self.advance(now);
        let limit = self.limit;
        let (own, other) = if run.train.is_l4s() {
            (&mut self.l4s, &self.classic)
        } else {
            (&mut self.classic, &self.l4s)
        };
        let other = other.backlog.occupancy();
        own.backlog.admit(now, run, idle, log, |view| {
            if view.beside(other).fits(limit) {
                Verdict::Enqueue
            } else {
                Verdict::Drop(Cause::QueueFull)
            }
        });
    }

    pub(crate) fn dequeue(&mut self, now: Nanos, log: &mut FateLog<P>) -> Option<Packet<P>> {
        self.advance(now);
        loop {
            let l4s = self.l4s.backlog.head().map(|(_, size)| size);
            let classic = self.classic.backlog.head().map(|(_, size)| size);
            let passed = match self.scheduler.next(l4s, classic)? {
                TrafficClass::L4s => self.next_l4s(now, log),
                TrafficClass::Classic => self.next_classic(now, log),
            };
            if passed.is_some() {
                return passed;
            }
        }
    }

    /// The next L4S packet, marked where due; `None` if it was dropped.
    fn next_l4s(&mut self, now: Nanos, log: &mut FateLog<P>) -> Option<Packet<P>> {
        let queue = &mut self.l4s;
        let packet = queue.backlog.pop()?;
        if self.controller.is_overloaded() {
            if queue.drops.signals(self.controller.classic()) {
                log.drop_packet(now, Cause::Aqm, packet);
                return None;
            }
        } else if queue.backlog.packets() > 0 && now.nanos_since(packet.arrived) > self.step_ns {
            // The step; a single packet is no queue, however slow the link (Th_len).
            queue.signals.signals(1.0);
            return Some(mark(packet, log));
        }
        let marks = queue.signals.signals(self.controller.coupled());
        Some(if marks { mark(packet, log) } else { packet })
    }

    /// The next classic packet, marked where due; `None` if it was dropped.
    fn next_classic(&mut self, now: Nanos, log: &mut FateLog<P>) -> Option<Packet<P>> {
        let packet = self.classic.backlog.pop()?;
        if !self.classic.signals.signals(self.controller.classic()) {
            return Some(packet);
        }
        if packet.train.is_ecn_capable() && !self.controller.is_overloaded() {
            return Some(mark(packet, log));
        }
        log.drop_packet(now, Cause::Aqm, packet);
        None
    }

    fn advance(&mut self, now: Nanos) {
        let heads = [self.l4s.head(), self.classic.head()];
        self.controller.advance(now, heads.into_iter().flatten().min());
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.l4s.backlog.bytes() + self.classic.backlog.bytes()
    }

    pub(crate) const fn packets(&self) -> u64 {
        self.l4s.backlog.packets() + self.classic.backlog.packets()
    }

    /// Removes all packets, in order of arrival.
    pub(crate) fn drain(&mut self) -> Vec<TrainRun<P>> {
        let mut runs = self.l4s.backlog.drain();
        runs.append(&mut self.classic.backlog.drain());
        runs.sort_by_key(|run| (run.serial, run.packets.start));
        runs
    }
}

fn mark<P>(mut packet: Packet<P>, log: &mut FateLog<P>) -> Packet<P> {
    log.counters.marked += u64::from(!packet.marked);
    packet.marked = true;
    packet
}

/// Turns probabilities into signals at even distances.
#[derive(Debug, Default)]
struct Accumulator(f64);

impl Accumulator {
    fn signals(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let due = self.0 >= 1.0;
        if due {
            self.0 -= 1.0;
        }
        due
    }
}

/// The class whose queue may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrafficClass {
    L4s,
    Classic,
}

/// Weighted round robin by bytes: L4S packets first, while classic ones get their share.
#[derive(Debug)]
struct Scheduler {
    /// Share of the classic queue in thousandths.
    classic: i64,
    /// What L4S packets have passed on to the classic queue, in bytes and thousandths;
    /// above zero it is the classic queue's turn.
    credit: i64,
}

impl Scheduler {
    const WHOLE: i64 = 1000;

    fn new(classic_share: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a share of 1000")]
        let classic = (classic_share * 1000.0).round() as i64;
        Scheduler { classic, credit: 0 }
    }

    /// Whose turn it is, with the sizes of the first packets; `None` if both are empty.
    fn next(&mut self, l4s: Option<u64>, classic: Option<u64>) -> Option<TrafficClass> {
        let weight = |size: u64, share: i64| i64::try_from(size).unwrap_or(i64::MAX / 2000) * share;
        let debt = |size| -weight(size, Scheduler::WHOLE - self.classic);
        match (l4s, classic) {
            (None, None) => None,
            // A queue that was alone starts as if a classic packet had just been sent, so
            // that a short burst of L4S packets does not wait.
            (Some(size), None) => {
                self.credit = debt(size);
                Some(TrafficClass::L4s)
            }
            (None, Some(size)) => {
                self.credit = debt(size);
                Some(TrafficClass::Classic)
            }
            (Some(_), Some(size)) if self.credit > 0 => {
                self.credit += debt(size);
                Some(TrafficClass::Classic)
            }
            (Some(size), Some(_)) => {
                self.credit += weight(size, self.classic);
                Some(TrafficClass::L4s)
            }
        }
    }
}

/// The PI controller of the base probability; times in ns.
#[derive(Debug)]
struct Controller {
    target: u64,
    update: u64,
    alpha: f64,
    coupling: f64,
    next_update: Nanos,
    /// Delay at the last update.
    delay: u64,
    /// p' of the RFC.
    base: f64,
}

impl Controller {
    fn new(settings: DualPi2) -> Self {
        let update = nanos(settings.update).max(MIN_UPDATE_NS);
        Controller {
            target: nanos(settings.target),
            update,
            alpha: ALPHA * seconds(update) / seconds(UPDATE_NS),
            coupling: f64::from(settings.coupling.max(1)),
            next_update: Nanos(update),
            delay: 0,
            base: 0.0,
        }
    }

    /// Makes the updates due by `now`; `head` is the arrival time of the packet that has
    /// waited longest since the last update.
    fn advance(&mut self, now: Nanos, head: Option<Nanos>) {
        while self.next_update <= now {
            if head.is_none() && self.delay == 0 && self.base == 0.0 {
                // Nothing changes any more.
                let updates = now.nanos_since(self.next_update) / self.update + 1;
                let time = updates.saturating_mul(self.update);
                self.next_update = Nanos(self.next_update.0.saturating_add(time));
                return;
            }
            let delay = head.map_or(0, |arrived| self.next_update.nanos_since(arrived));
            self.compute(delay);
            self.next_update = Nanos(self.next_update.0.saturating_add(self.update));
        }
    }

    /// One update (figure 6). With both queues in view the longer delay counts
    /// (section A.2).
    fn compute(&mut self, delay: u64) {
        let off = seconds(delay) - seconds(self.target);
        let change = seconds(delay) - seconds(self.delay);
        self.base = (self.base + self.alpha * off + BETA * change).clamp(0.0, 1.0);
        self.delay = delay;
    }

    /// Probability of signals to classic packets.
    fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// Probability of coupled marks of L4S packets.
    fn coupled(&self) -> f64 {
        (self.coupling * self.base).min(1.0)
    }

    /// Whether marks have reached their maximum (`p_CL` at `p_Lmax`, `p_C` at `p_Cmax`).
    fn is_overloaded(&self) -> bool {
        self.coupling * self.base >= 1.0
    }
}

/// Nanoseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "delays are far below 2^53 ns, which are 104 days")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use units::Probability;

    const MS: u64 = 1_000_000;

    fn controller(update_ms: u64) -> Controller {
        Controller::new(DualPi2 {
            target: Duration::from_millis(15),
            update: Duration::from_millis(update_ms),
            step: Duration::from_millis(1),
            coupling: 2,
            classic_share: Probability::ALWAYS,
            limit: Limit::Packets(100),
        })
    }

    #[test]
    fn an_update_is_that_of_the_rfc() {
        // A head that waits since 8 ms: delays of 8, 24 and 40 ms at updates 1 to 3.
        let mut controller = controller(16);
        let mut expected: f64 = 0.0;
        for (update, delay, before) in [(1, 8.0, 0.0), (2, 24.0, 8.0), (3, 40.0, 24.0)] {
            controller.advance(Nanos(update * 16 * MS), Some(Nanos(8 * MS)));
            expected += 0.16 * (delay - 15.0) * 1e-3 + 3.2 * (delay - before) * 1e-3;
            assert!((controller.base - expected).abs() < 1e-12, "{update}: {}", controller.base);
        }
        assert!((controller.classic() - expected * expected).abs() < 1e-12);
        assert!((controller.coupled() - 2.0 * expected).abs() < 1e-12);
        // Half the interval has half the integral gain.
        assert!((self::controller(8).alpha - 0.08).abs() < 1e-12);
    }

    #[test]
    fn an_empty_queue_forgets_congestion() {
        let mut controller = controller(16);
        controller.base = 0.1;
        controller.advance(Nanos(1_000 * MS), None);
        assert!(controller.base < 1e-12 && controller.next_update > Nanos(1_000 * MS));
    }

    #[test]
    fn signals_are_at_even_distances() {
        let mut signals = Accumulator::default();
        let at: Vec<u32> = (1..=20).filter(|_| signals.signals(0.25)).collect();
        assert_eq!(at, [4, 8, 12, 16, 20]);
    }

    #[test]
    fn classic_packets_get_their_share() {
        let mut scheduler = Scheduler::new(0.1);
        let turns: Vec<TrafficClass> =
            (0..1000).filter_map(|_| scheduler.next(Some(1500), Some(1500))).collect();
        let classic = turns.iter().filter(|turn| **turn == TrafficClass::Classic).count();
        assert!((99..=101).contains(&classic), "{classic}");
        // By bytes: L4S packets of a tenth of the size.
        let mut bytes = [0; 2];
        for _ in 0..1000 {
            match scheduler.next(Some(150), Some(1500)) {
                Some(TrafficClass::L4s) => bytes[0] += 150,
                _ => bytes[1] += 1500,
            }
        }
        let share = f64::from(bytes[1]) / f64::from(bytes[0] + bytes[1]);
        assert!((share - 0.1).abs() < 0.02, "{share}");
    }

    #[test]
    fn a_burst_does_not_wait_for_classic_packets() {
        let mut scheduler = Scheduler::new(0.1);
        assert_eq!(scheduler.next(None, Some(1500)), Some(TrafficClass::Classic));
        assert!((0..8).all(|_| scheduler.next(Some(1500), Some(1500)) == Some(TrafficClass::L4s)));
        assert_eq!(scheduler.next(None, None), None);
    }
}
