//! Proportional integral controller enhanced (RFC 8033).
//!
//! At each `update` the drop probability changes with the deviation of the delay from
//! its target, and with the change of the delay:
//!
//! ```text
//!   p += alpha (delay - target) + beta (delay - previous delay)
//! ```
//!
//! The delay is how long the packet at the head has waited (section 4.3: timestamps
//! instead of a rate estimate). Included are the scaling of the gains (4.2), the burst
//! allowance (4.4), marks (5.1), spacing of drops (5.4), the cap on increases (5.5) and
//! the safeguards of `drop_early` (appendix A).

use super::{Backlog, QueueContext, Verdict};
use crate::packet_fate::{Cause, FateLog, Packet, TrainRun};
use crate::{Pie, nanos, random::unit};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use units::Nanos;

/// Gains in 1/s for an update interval of 15 ms (section 4.2). With another interval,
/// alpha scales with it, and beta changes by minus half the change of alpha.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
const UPDATE: f64 = 0.015;

/// Scale factors of a step for probabilities below a threshold (section 4.2).
const SCALES: [(f64, f64); 6] = [
    (0.000_001, 1.0 / 2048.0),
    (0.000_01, 1.0 / 512.0),
    (0.000_1, 1.0 / 128.0),
    (0.001, 1.0 / 32.0),
    (0.01, 1.0 / 8.0),
    (0.1, 1.0 / 2.0),
];

/// Probability from which an increase is at most `MAX_INCREASE` (section 5.5).
const CAPPED_FROM: f64 = 0.1;
const MAX_INCREASE: f64 = 0.02;

/// Factor applied to the probability if two consecutive delays are zero (section 4.2).
const DECAY: f64 = 0.98;

/// Below this probability nothing is dropped while the delay is under half the target.
const SAFE_PROBABILITY: f64 = 0.2;

/// Bytes queued up to which nothing is dropped: two packets of the mean size of 1024.
const MIN_BACKLOG: u64 = 2 * 1024;

/// Probability up to which packets are marked; above it they are dropped, against
/// senders that ignore marks (`mark_ecnth`, section 5.1).
const MAX_MARKING_PROBABILITY: f64 = 0.1;

/// Bounds of the accumulated probability since the last drop: below the first no packet
/// is dropped, at the second one is for certain (section 5.4).
const MIN_ACCUMULATED: f64 = 0.85;
const MAX_ACCUMULATED: f64 = 8.5;

/// Minimum update interval, ns.
const MIN_UPDATE: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct PieQueue<P> {
    settings: Pie,
    controller: Controller,
    pub(crate) backlog: Backlog<P>,
}

impl<P: Clone> PieQueue<P> {
    pub(crate) fn new(settings: Pie, context: QueueContext) -> Self {
        PieQueue {
            settings,
            controller: Controller::new(settings, context.seed),
            backlog: Backlog::new(context.overhead),
        }
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Nanos,
        run: TrainRun<P>,
        idle: bool,
        log: &mut FateLog<P>,
    ) {
        let PieQueue { settings, controller, backlog } = self;
        let head = backlog.head().map(|(arrived, _)| arrived);
        controller.advance(now, head);
        let delay = head.map_or(0, |arrived| now.nanos_since(arrived));
        let ecn_capable = settings.ecn && run.train.is_ecn_capable();
        backlog.admit(now, run, idle, log, |view| {
            if !view.fits(settings.limit) {
                Verdict::Drop(Cause::QueueFull)
            } else if !controller.is_signalled(delay, view.bytes) {
                Verdict::Enqueue
            } else if ecn_capable && controller.probability <= MAX_MARKING_PROBABILITY {
                Verdict::EnqueueMarked
            } else {
                Verdict::Drop(Cause::Aqm)
            }
        });
    }

    pub(crate) fn dequeue(&mut self, now: Nanos) -> Option<Packet<P>> {
        let head = self.backlog.head().map(|(arrived, _)| arrived);
        self.controller.advance(now, head);
        self.backlog.pop()
    }
}

/// The controller; times in ns.
#[derive(Debug)]
struct Controller {
    target: u64,
    update: u64,
    burst: u64,
    alpha: f64,
    beta: f64,
    next_update: Nanos,
    /// Delay at the last update.
    delay: u64,
    probability: f64,
    /// Accumulated probability since the last drop.
    accumulated: f64,
    /// Remaining burst allowance.
    allowance: u64,
    rng: Pcg64Mcg,
}

impl Controller {
    fn new(settings: Pie, seed: u64) -> Self {
        let update = nanos(settings.update).max(MIN_UPDATE);
        let alpha = ALPHA * seconds(update) / UPDATE;
        Controller {
            target: nanos(settings.target),
            update,
            burst: nanos(settings.burst),
            alpha,
            beta: (BETA + (ALPHA - alpha) / 2.0).max(0.0),
            next_update: Nanos(update),
            delay: 0,
            probability: 0.0,
            accumulated: 0.0,
            allowance: nanos(settings.burst),
            rng: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    /// Makes the updates due by `now`; `head` is the arrival time of the packet that has
    /// been at the head since the last update.
    fn advance(&mut self, now: Nanos, head: Option<Nanos>) {
        while self.next_update <= now {
            if head.is_none() && self.delay == 0 && self.probability == 0.0 {
                // At these values nothing changes any more except the allowance.
                let updates = now.nanos_since(self.next_update) / self.update + 1;
                let time = updates.saturating_mul(self.update);
                self.allowance = self.allowance.saturating_sub(time);
                self.next_update = Nanos(self.next_update.0.saturating_add(time));
                return;
            }
            let delay = head.map_or(0, |arrived| self.next_update.nanos_since(arrived));
            self.compute(delay);
            self.next_update = Nanos(self.next_update.0.saturating_add(self.update));
        }
    }

    /// One update (section 4.2).
    fn compute(&mut self, delay: u64) {
        let off = seconds(delay) - seconds(self.target);
        let change = seconds(delay) - seconds(self.delay);
        let scale = SCALES.iter().find(|(below, _)| self.probability < *below);
        let mut step = (self.alpha * off + self.beta * change) * scale.map_or(1.0, |(_, by)| *by);
        if self.probability >= CAPPED_FROM {
            step = step.min(MAX_INCREASE);
        }
        self.probability += step;
        if delay == 0 && self.delay == 0 {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay = delay;
        self.allowance = self.allowance.saturating_sub(self.update);
    }

    /// Whether to drop or mark an arriving packet; `delay` is the current delay of the head
    /// packet, `waiting` the bytes queued.
    fn is_signalled(&mut self, delay: u64, waiting: u64) -> bool {
        let calm = self.delay < self.target / 2;
        if self.probability == 0.0 {
            self.accumulated = 0.0;
            if calm && delay < self.target / 2 {
                self.allowance = self.burst;
            }
        }
        if self.allowance > 0
            || calm && self.probability < SAFE_PROBABILITY
            || waiting <= MIN_BACKLOG
        {
            return false;
        }
        self.accumulated += self.probability;
        let signals = self.accumulated >= MAX_ACCUMULATED
            || self.accumulated >= MIN_ACCUMULATED && unit(&mut self.rng) < self.probability;
        if signals {
            self.accumulated = 0.0;
        }
        signals
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
    use crate::Limit;
    use std::time::Duration;

    const MILLISECOND: u64 = 1_000_000;
    const UPDATES: Duration = Duration::from_millis(15);

    /// The probability after an update with these delays, in ms.
    fn after(probability: f64, before: u64, now: u64, update: Duration) -> f64 {
        let settings = Pie {
            target: Duration::from_millis(15),
            update,
            burst: Duration::ZERO,
            limit: Limit::Packets(0),
            ecn: false,
        };
        let mut controller = Controller::new(settings, 0);
        (controller.probability, controller.delay) = (probability, before * MILLISECOND);
        controller.compute(now * MILLISECOND);
        controller.probability
    }

    #[test]
    fn an_update_is_that_of_the_rfc() {
        // 0.125 × (30 - 15 ms) + 1.25 × (30 - 0 ms) = 0.039375, scaled by the table.
        let step = 0.039_375;
        for (probability, scale) in [
            (0.0, 2048.0),
            (0.000_002, 512.0),
            (0.000_02, 128.0),
            (0.000_2, 32.0),
            (0.002, 8.0),
            (0.02, 2.0),
        ] {
            let expected = probability + step / scale;
            assert!((after(probability, 0, 30, UPDATES) - expected).abs() < 1e-12, "{probability}");
        }
        for (probability, before, now, expected) in [
            // Delay on target and constant: no change.
            (0.02, 15, 15, 0.02),
            // Increases are capped from 10 % on, decreases are not.
            (0.1, 0, 30, 0.12),
            (0.5, 30, 0, 0.5 - 0.001_875 - 0.037_5),
            // Decay after two delays of zero.
            (0.5, 0, 0, (0.5 - 0.001_875) * 0.98),
            // Never above 1.
            (0.99, 0, 400, 1.0),
            (0.01, 400, 0, 0.0),
        ] {
            let result = after(probability, before, now, UPDATES);
            assert!((result - expected).abs() < 1e-12, "{probability}: {result}, not {expected}");
        }
        // Half the update interval: alpha halved, beta increased by a quarter of alpha.
        let expected = 0.02 + (0.062_5 * 0.015 + 1.281_25 * 0.03) / 2.0;
        let halved = after(0.02, 0, 30, UPDATES / 2);
        assert!((halved - expected).abs() < 1e-12, "{halved}, not {expected}");
    }
}
