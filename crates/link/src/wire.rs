//! The wire behind the bottleneck: what is lost, changed, doubled and delayed.

use crate::chance::unit;
use crate::fate::{Cause, FateKind, Ledger, Packet};
use crate::loss::Losing;
use crate::{COALESCE, Delivery, Distribution, Jitter, LinkConfig, Loss, Nanos, nanos};
use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution as _, Exp1, Pareto, StandardNormal};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use units::LossRatio;

/// Shape of the Pareto distribution: the least whole number with a variance.
const SHAPE: f64 = 3.0;

#[derive(Debug)]
pub(crate) struct Wire<P> {
    /// In the order of their release.
    on_it: VecDeque<Delivery<P>>,
    /// The train that the newest entry of `on_it` belongs to; 0: none that
    /// could go on.
    newest: u64,
    /// When the latest packet that keeps the order is due, or would be were it
    /// not held back.
    latest: Nanos,
    /// Propagation delay in ns.
    delay: u64,
    /// Nothing happens on it but delay.
    plain: bool,
    losing: Losing,
    /// The burst under way: its number, and packets it has yet to take.
    burst: (u64, u32),
    draws: Draws,
}

/// One stream of chance for each effect: adding an effect leaves the draws of
/// the others as they were.
#[derive(Debug)]
struct Draws {
    loss: Pcg64Mcg,
    corrupt: Pcg64Mcg,
    duplicate: Pcg64Mcg,
    reorder: Pcg64Mcg,
    jitter: Pcg64Mcg,
}

impl Draws {
    fn new(seed: u64) -> Self {
        // The seeds differ in more than one bit pattern: 2^64 / golden ratio.
        let stream = |number: u64| {
            Pcg64Mcg::seed_from_u64(seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        };
        Draws {
            loss: stream(0),
            corrupt: stream(1),
            duplicate: stream(2),
            reorder: stream(3),
            jitter: stream(4),
        }
    }
}

/// What the bottleneck tells of a packet it has sent.
pub(crate) struct Sent {
    /// When it began to send.
    pub(crate) start: Nanos,
    /// When the last bit left.
    pub(crate) end: Nanos,
    /// When the schedule's time began.
    pub(crate) origin: Nanos,
    pub(crate) busy_period: u64,
    pub(crate) sent_bytes: u64,
}

impl<P: Clone> Wire<P> {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        Wire {
            on_it: VecDeque::new(),
            newest: 0,
            latest: Nanos(0),
            delay: nanos(config.delay),
            plain: is_plain(config),
            losing: Losing::new(config.loss.clone()),
            burst: (0, 0),
            draws: Draws::new(config.seed),
        }
    }

    /// Takes over changed settings.
    pub(crate) fn adopt(&mut self, config: &LinkConfig) {
        self.delay = nanos(config.delay);
        self.plain = is_plain(config);
        if self.losing.model != config.loss {
            self.losing = Losing::new(config.loss.clone());
        }
    }

    /// The earliest that a packet which the bottleneck sends from `start` on
    /// can come. It may come before others that are on the wire already.
    pub(crate) fn soonest(&self, config: &LinkConfig, start: Nanos) -> Nanos {
        let ahead = config.jitter.map_or(0, |jitter| match jitter.distribution {
            Distribution::Normal => self.delay,
            Distribution::Uniform => nanos(jitter.scale).min(self.delay),
            Distribution::Exponential | Distribution::Pareto => 0,
        });
        let soonest = Nanos(start.0.saturating_add(self.delay - ahead));
        let overtakes = config.jitter.is_some_and(|jitter| jitter.overtake);
        if overtakes { soonest } else { soonest.max(self.latest) }
    }

    /// Draws as at the beginning.
    pub(crate) fn restart(&mut self, config: &LinkConfig) {
        self.losing = Losing::new(config.loss.clone());
        self.draws = Draws::new(config.seed);
    }

    /// Bursts come again from the next one on, `since` ns after time zero.
    pub(crate) fn restart_bursts(&mut self, config: &LinkConfig, since: u64) {
        let passed = config.bursts.map_or(0, |bursts| since / nanos(bursts.every).max(1));
        self.burst = (passed, 0);
    }

    pub(crate) fn front_due(&self) -> Option<Nanos> {
        self.on_it.front().map(|delivery| delivery.due)
    }

    pub(crate) fn pop(&mut self) -> Option<Delivery<P>> {
        let first = self.on_it.pop_front();
        if self.on_it.is_empty() {
            self.newest = 0;
        }
        first
    }

    /// Carries a packet that the bottleneck has sent.
    pub(crate) fn carry(
        &mut self,
        config: &LinkConfig,
        packet: Packet<P>,
        sent: &Sent,
        ledger: &mut Ledger<P>,
    ) {
        if self.plain {
            let due = Nanos(sent.end.0.saturating_add(self.delay)).max(self.latest);
            self.latest = due;
            if ledger.fates.is_some() {
                ledger.write(sent.end, packet.clone(), delivered(&packet, sent, due, None, false));
            }
            return self.put(packet, due, None, sent);
        }
        let since = sent.end.since(sent.origin);
        if let Some(cause) = self.loses(config, packet.number, since, ledger) {
            ledger.drop_packet(sent.end, cause, packet);
            return;
        }
        let draws = &mut self.draws;
        let flip = (config.corrupt != LossRatio::NONE
            && config.corrupt.takes(draws.corrupt.next_u64()))
        .then(|| draws.corrupt.next_u64());
        let twice = config.duplicate != LossRatio::NONE
            && config.duplicate.takes(draws.duplicate.next_u64());
        let held = config.reorder.filter(|reorder| reorder.share.takes(draws.reorder.next_u64()));

        let mut due = Nanos(sent.end.0.saturating_add(self.delay));
        if let Some(jitter) = config.jitter {
            due = delayed(sent.end, self.delay, jitter, &mut draws.jitter);
        }
        if config.jitter.is_none_or(|jitter| !jitter.overtake) {
            due = due.max(self.latest);
            self.latest = due;
        }
        if let Some(reorder) = held {
            // From its place in the order: held back, it overtakes nobody.
            due = due.plus(reorder.by);
        }
        let counters = &mut ledger.counters;
        counters.corrupted += u64::from(flip.is_some());
        counters.duplicated += u64::from(twice);
        counters.reordered += u64::from(held.is_some());
        if ledger.fates.is_some() {
            let kind = delivered(&packet, sent, due, flip, twice);
            ledger.write(sent.end, packet.clone(), kind);
        }
        let copy = twice.then(|| packet.clone());
        self.put(packet, due, flip, sent);
        if let Some(copy) = copy {
            // Never part of a run: its neighbours would not be contiguous.
            self.newest = 0;
            self.put(copy, due, flip, sent);
            self.newest = 0;
        }
    }

    fn loses(
        &mut self,
        config: &LinkConfig,
        number: u64,
        end: u64,
        ledger: &mut Ledger<P>,
    ) -> Option<Cause> {
        let draw = self.losing.takes(number, &mut self.draws.loss);
        if draw.probability > 0.0 {
            ledger.counters.loss_expected += draw.probability;
            ledger.counters.loss_variance += draw.probability * (1.0 - draw.probability);
        }
        if draw.lost {
            return Some(Cause::Lost);
        }
        if let Some(dark) = config.blackhole {
            let every = nanos(dark.every).max(1);
            if end % every >= every.saturating_sub(nanos(dark.dark)) {
                return Some(Cause::Dark);
            }
        }
        if let Some(bursts) = config.bursts {
            let number = end / nanos(bursts.every).max(1);
            if number > self.burst.0 {
                self.burst = (number, bursts.packets);
            }
            if self.burst.1 > 0 {
                self.burst.1 -= 1;
                return Some(Cause::Burst);
            }
        }
        None
    }

    fn put(&mut self, packet: Packet<P>, due: Nanos, flip: Option<u64>, sent: &Sent) {
        let Packet { serial, payload, train, index, marked, .. } = packet;
        if let Some(run) = self.on_it.back_mut()
            && self.newest == serial
            && run.packets.end == index
            && run.marked == marked
            && flip.is_none()
            && run.flip.is_none()
            && run.due <= due
            && due.since(run.first_due) <= COALESCE
        {
            run.packets.end += 1;
            run.due = due;
            run.sent_bytes = sent.sent_bytes;
            return;
        }
        let delivery = Delivery {
            payload,
            train,
            packets: index..index + 1,
            first_due: due,
            due,
            marked,
            flip,
            busy_period: sent.busy_period,
            sent_bytes: sent.sent_bytes,
        };
        if self.on_it.back().is_none_or(|last| last.due <= due) {
            self.newest = serial;
            self.on_it.push_back(delivery);
        } else {
            // It overtakes: after all that is due as early.
            let place = self.on_it.partition_point(|other| other.due <= due);
            self.on_it.insert(place, delivery);
            self.newest = 0;
        }
    }
}

/// Whether nothing happens to packets but delay.
fn is_plain(config: &LinkConfig) -> bool {
    config.loss == Loss::None
        && config.jitter.is_none()
        && config.bursts.is_none()
        && config.blackhole.is_none()
        && config.reorder.is_none()
        && config.duplicate == LossRatio::NONE
        && config.corrupt == LossRatio::NONE
}

fn delivered<P>(
    packet: &Packet<P>,
    sent: &Sent,
    due: Nanos,
    flip: Option<u64>,
    duplicated: bool,
) -> FateKind {
    FateKind::Delivered {
        due,
        queued: sent.start.since(packet.arrived),
        marked: packet.marked,
        corrupted: flip.is_some(),
        duplicated,
    }
}

/// When a packet sent at `end` comes, by a draw of its own.
fn delayed(end: Nanos, delay: u64, jitter: Jitter, chance: &mut Pcg64Mcg) -> Nanos {
    let scale = jitter.scale.as_secs_f64() * 1e9;
    let draw = match jitter.distribution {
        Distribution::Normal => {
            let standard: f64 = StandardNormal.sample(chance);
            standard * scale
        }
        Distribution::Uniform => (unit(chance) * 2.0 - 1.0) * scale,
        Distribution::Exponential => {
            let standard: f64 = Exp1.sample(chance);
            standard * scale
        }
        // A Pareto variable from 1 on has mean shape / (shape - 1): taken from
        // its least value and scaled, it begins at 0 and has mean 1.
        Distribution::Pareto => Pareto::new(1.0, SHAPE)
            .map_or(0.0, |pareto| (pareto.sample(chance) - 1.0) * (SHAPE - 1.0) * scale),
    };
    #[expect(clippy::cast_possible_truncation, reason = "`as` holds at the limits, as it should")]
    let draw = draw as i64;
    Nanos(end.0.saturating_add(delay.saturating_add_signed(draw)))
}
