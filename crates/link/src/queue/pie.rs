//! Proportional integral controller enhanced (RFC 8033).
//!
//! Every `update` the probability of a drop moves by what the delay is off its
//! target and by how it changed:
//!
//! ```text
//!   p += alpha (delay - target) + beta (delay - delay before)
//! ```
//!
//! The delay is how long the packet at the head has waited (section 4.3,
//! time stamps instead of an estimated rate). In it: the scaling of the gains
//! (4.2), the burst allowance (4.4), marks (5.1), spacing of drops (5.4), the
//! cap on a step (5.5) and the safeguards of `drop_early` (appendix A).

use super::{Backlog, Surroundings, Verdict};
use crate::fate::{Cause, Ledger, Packet, Run};
use crate::{Nanos, Pie, chance::unit, nanos};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// Gains in 1/s at an update every 15 ms (section 4.2): alpha follows the
/// update, beta makes up for the half of what alpha loses.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
const UPDATE: f64 = 0.015;

/// By how much a step is scaled while the probability is below that: small
/// probabilities want small steps (section 4.2).
const SCALES: [(f64, f64); 6] = [
    (0.000_001, 1.0 / 2048.0),
    (0.000_01, 1.0 / 512.0),
    (0.000_1, 1.0 / 128.0),
    (0.001, 1.0 / 32.0),
    (0.01, 1.0 / 8.0),
    (0.1, 1.0 / 2.0),
];

/// From that probability on a step is at most `STEP` (section 5.5).
const CAPPED_FROM: f64 = 0.1;
const STEP: f64 = 0.02;

/// What is left of the probability after an update without any delay (4.2).
const DECAY: f64 = 0.98;

/// Below this probability a delay under half the target drops nothing.
const SAFE: f64 = 0.2;

/// Bytes that may always wait: two packets of the mean size of 1024.
const ALWAYS: u64 = 2 * 1024;

/// Up to this probability packets are marked, above it dropped: one who goes
/// on in spite of the marks is to feel it (`mark_ecnth`, section 5.1).
const MARKS: f64 = 0.1;

/// The sum of probabilities since the last drop below which none follows, and
/// at which one follows for certain (section 5.4).
const TOO_EARLY: f64 = 0.85;
const OVERDUE: f64 = 8.5;

/// Shortest time between updates, in ns.
const SHORTEST: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct PieQueue<P> {
    settings: Pie,
    controller: Controller,
    pub(crate) backlog: Backlog<P>,
}

impl<P: Clone> PieQueue<P> {
    pub(crate) fn new(settings: Pie, around: Surroundings) -> Self {
        PieQueue {
            settings,
            controller: Controller::new(settings, around.seed),
            backlog: Backlog::new(around.overhead),
        }
    }

    pub(crate) fn enqueue(&mut self, now: Nanos, run: Run<P>, idle: bool, ledger: &mut Ledger<P>) {
        let PieQueue { settings, controller, backlog } = self;
        let head = backlog.head().map(|(arrived, _)| arrived);
        controller.advance(now, head);
        let delay = head.map_or(0, |arrived| now.since(arrived));
        let ecn_capable = settings.ecn && run.train.is_ecn_capable();
        backlog.admit(now, run, idle, ledger, |found| {
            if !found.room(settings.limit) {
                Verdict::Drop(Cause::QueueFull)
            } else if !controller.signals(delay, found.bytes) {
                Verdict::Enter
            } else if ecn_capable && controller.probability <= MARKS {
                Verdict::EnterMarked
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

/// The controller; times are in ns.
#[derive(Debug)]
struct Controller {
    target: u64,
    update: u64,
    burst: u64,
    alpha: f64,
    beta: f64,
    next_update: Nanos,
    /// The delay at the latest update.
    delay: u64,
    probability: f64,
    /// Sum of the probabilities of the packets that passed since the last drop.
    sum: f64,
    /// What is left of the burst allowance.
    allowance: u64,
    chance: Pcg64Mcg,
}

impl Controller {
    fn new(settings: Pie, seed: u64) -> Self {
        let update = nanos(settings.update).max(SHORTEST);
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
            sum: 0.0,
            allowance: nanos(settings.burst),
            chance: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    /// Makes the updates due by `now`; `head` is when the packet arrived that
    /// was at the head all the while.
    fn advance(&mut self, now: Nanos, head: Option<Nanos>) {
        while self.next_update <= now {
            if head.is_none() && self.delay == 0 && self.probability == 0.0 {
                // Nothing changes any more but the allowance.
                let updates = now.since(self.next_update) / self.update + 1;
                let time = updates.saturating_mul(self.update);
                self.allowance = self.allowance.saturating_sub(time);
                self.next_update = Nanos(self.next_update.0.saturating_add(time));
                return;
            }
            let delay = head.map_or(0, |arrived| self.next_update.since(arrived));
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
            step = step.min(STEP);
        }
        self.probability += step;
        if delay == 0 && self.delay == 0 {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay = delay;
        self.allowance = self.allowance.saturating_sub(self.update);
    }

    /// Whether the sender of an arriving packet is to be told; `delay` is that
    /// of the head now, `waiting` the bytes that the packet finds.
    fn signals(&mut self, delay: u64, waiting: u64) -> bool {
        let calm = self.delay < self.target / 2;
        if self.probability == 0.0 {
            self.sum = 0.0;
            if calm && delay < self.target / 2 {
                self.allowance = self.burst;
            }
        }
        if self.allowance > 0 || calm && self.probability < SAFE || waiting <= ALWAYS {
            return false;
        }
        self.sum += self.probability;
        let signals = self.sum >= OVERDUE
            || self.sum >= TOO_EARLY && unit(&mut self.chance) < self.probability;
        if signals {
            self.sum = 0.0;
        }
        signals
    }
}

/// Seconds of a time in ns.
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

    /// The probability after an update that finds these delays, in ms.
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
            // On target and steady: nothing moves.
            (0.02, 15, 15, 0.02),
            // Steps up are capped from 10 % on, steps down are not.
            (0.1, 0, 30, 0.12),
            (0.5, 30, 0, 0.5 - 0.001_875 - 0.037_5),
            // Decay where there was no delay twice.
            (0.5, 0, 0, (0.5 - 0.001_875) * 0.98),
            // It is a probability.
            (0.99, 0, 400, 1.0),
            (0.01, 400, 0, 0.0),
        ] {
            let came = after(probability, before, now, UPDATES);
            assert!((came - expected).abs() < 1e-12, "{probability}: {came}, not {expected}");
        }
        // Updates twice as often: alpha halved, beta up by a quarter of alpha.
        let expected = 0.02 + (0.062_5 * 0.015 + 1.281_25 * 0.03) / 2.0;
        let halved = after(0.02, 0, 30, UPDATES / 2);
        assert!((halved - expected).abs() < 1e-12, "{halved}, not {expected}");
    }
}
