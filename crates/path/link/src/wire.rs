//! The wire after the bottleneck: loss, corruption, duplication and delay.

mod in_flight;

use crate::loss::LossState;
use crate::packet_fate::{Cause, FateKind, FateLog, Packet, TrainRun};
use crate::{
    COALESCE, Delivery, Distribution, Jitter, LinkConfig, Loss, WindowFeedback, nanos, random,
};
use in_flight::{Arrival, InFlight};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use units::{LossRatio, Nanos};

/// [`COALESCE`] in ns.
const COALESCE_NS: u64 = COALESCE.as_nanos() as u64;

#[derive(Debug)]
pub(crate) struct Wire<P> {
    in_flight: InFlight<P>,
    /// Serial number of the train of the last delivery of `in_flight`; 0 if that must not be
    /// extended.
    newest: u64,
    /// Due time of the latest packet in order, without the additional delay of random
    /// reordering.
    latest: Nanos,
    /// Propagation delay, ns.
    delay: u64,
    /// Whether delay is the only effect.
    delay_only: bool,
    /// Whether every packet is released by itself.
    singly: bool,
    loss_state: LossState,
    /// The current burst: its number, and the packets that it has yet to drop.
    burst: (u64, u32),
    draws: Draws,
}

/// One random number generator per effect: enabling one effect leaves the draws of the
/// others unchanged.
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
        // Spreads the seeds: 2^64 / golden ratio.
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

/// The transmission of a packet by the bottleneck.
pub(crate) struct Sent {
    /// When it started.
    pub(crate) start: Nanos,
    /// When the last bit had left.
    pub(crate) end: Nanos,
    /// Time zero of the schedule.
    pub(crate) origin: Nanos,
    pub(crate) busy_period: u64,
    pub(crate) sent_bytes: u64,
}

impl<P: Clone> Wire<P> {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        Wire {
            in_flight: InFlight::new(),
            newest: 0,
            latest: Nanos(0),
            delay: nanos(config.delay),
            delay_only: is_delay_only(config),
            singly: false,
            loss_state: LossState::new(config.loss.clone()),
            burst: (0, 0),
            draws: Draws::new(config.seed),
        }
    }

    /// Applies changed settings.
    pub(crate) fn apply_settings(&mut self, config: &LinkConfig) {
        self.delay = nanos(config.delay);
        self.delay_only = is_delay_only(config);
        if self.loss_state.model != config.loss {
            self.loss_state = LossState::new(config.loss.clone());
        }
    }

    /// The earliest due time of a packet that the bottleneck starts to send at `start`. It
    /// may be before packets that are on the wire already.
    pub(crate) fn earliest_due(&self, config: &LinkConfig, start: Nanos) -> Nanos {
        let ahead = config.jitter.map_or(0, |jitter| match jitter.distribution {
            Distribution::Normal => self.delay,
            Distribution::Uniform => nanos(jitter.scale).min(self.delay),
            Distribution::Exponential | Distribution::Pareto => 0,
        });
        let earliest_due = Nanos(start.0.saturating_add(self.delay - ahead));
        let overtakes = config.jitter.is_some_and(|jitter| jitter.overtake);
        if overtakes { earliest_due } else { earliest_due.max(self.latest) }
    }

    /// Whether every packet is released by itself.
    pub(crate) fn release_singly(&mut self, singly: bool) {
        self.singly = singly;
    }

    /// Whether delay is the only effect.
    pub(crate) const fn is_delay_only(&self) -> bool {
        self.delay_only
    }

    /// Resets the random numbers.
    pub(crate) fn restart(&mut self, config: &LinkConfig) {
        self.loss_state = LossState::new(config.loss.clone());
        self.draws = Draws::new(config.seed);
    }

    /// Restarts bursts with the next one after `since` ns.
    pub(crate) fn restart_bursts(&mut self, config: &LinkConfig, since: u64) {
        let passed = config.bursts.map_or(0, |bursts| since / nanos(bursts.every).max(1));
        self.burst = (passed, 0);
    }

    pub(crate) fn front_due(&self) -> Option<Nanos> {
        self.in_flight.front_due()
    }

    pub(crate) fn pop(&mut self) -> Option<Delivery<P>> {
        let first = self.in_flight.pop();
        if self.in_flight.is_empty() {
            self.newest = 0;
        }
        first
    }

    /// Carries a packet of a run over a wire without other effects than delay, as
    /// [`Wire::carry`] does.
    pub(crate) fn carry_plain(&mut self, run: &TrainRun<P>, index: u32, sent: &Sent) {
        let due = Nanos(sent.end.0.saturating_add(self.delay)).max(self.latest);
        self.latest = due;
        let told = (run.marked, WindowFeedback::NONE);
        if !self.extend(run.serial, index, told, due, sent) {
            self.append(run.packet(index), due, None, sent);
        }
    }

    /// Carries a packet sent by the bottleneck.
    pub(crate) fn carry(
        &mut self,
        config: &LinkConfig,
        packet: Packet<P>,
        sent: &Sent,
        log: &mut FateLog<P>,
    ) {
        if self.delay_only {
            let due = Nanos(sent.end.0.saturating_add(self.delay)).max(self.latest);
            self.latest = due;
            if log.records_deliveries() {
                log.write(sent.end, packet.clone(), delivered(&packet, sent, due, None, false));
            }
            return self.enqueue(packet, due, None, sent);
        }
        let since = sent.end.nanos_since(sent.origin);
        if let Some(cause) = self.loses(config, &packet, since, log) {
            log.drop_packet(sent.end, cause, packet);
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
            // Relative to its place in the order: delayed, it overtakes nothing.
            due = due.plus(reorder.by);
        }
        let counters = &mut log.counters;
        counters.corrupted += u64::from(flip.is_some());
        counters.duplicated += u64::from(twice);
        counters.reordered += u64::from(held.is_some());
        if log.records_deliveries() {
            let kind = delivered(&packet, sent, due, flip, twice);
            log.write(sent.end, packet.clone(), kind);
        }
        let copy = twice.then(|| packet.clone());
        self.enqueue(packet, due, flip, sent);
        if let Some(copy) = copy {
            // Not part of a run: its neighbours would not be contiguous.
            self.newest = 0;
            self.enqueue(copy, due, flip, sent);
            self.newest = 0;
        }
    }

    fn loses(
        &mut self,
        config: &LinkConfig,
        packet: &Packet<P>,
        end: u64,
        log: &mut FateLog<P>,
    ) -> Option<Cause> {
        let size = packet.train.size(packet.index);
        let draw = self.loss_state.draw(packet.number, size, &mut self.draws.loss);
        if draw.probability > 0.0 {
            log.counters.loss_expected += draw.probability;
            log.counters.loss_variance += draw.probability * (1.0 - draw.probability);
        }
        if draw.lost {
            return Some(Cause::Lost);
        }
        if let Some(blackhole) = config.blackhole {
            let every = nanos(blackhole.every).max(1);
            if end % every >= every.saturating_sub(nanos(blackhole.length)) {
                return Some(Cause::Blackhole);
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

    fn enqueue(&mut self, packet: Packet<P>, due: Nanos, flip: Option<u64>, sent: &Sent) {
        let Packet { serial, index, marked, feedback, .. } = packet;
        if flip.is_some() || !self.extend(serial, index, (marked, feedback), due, sent) {
            self.append(packet, due, flip, sent);
        }
    }

    /// Adds a packet to the last delivery, if it is the next one of its train, has the same mark
    /// and feedback and may be released with it.
    fn extend(
        &mut self,
        serial: u64,
        index: u32,
        told: (bool, WindowFeedback),
        due: Nanos,
        sent: &Sent,
    ) -> bool {
        if self.newest != serial || self.singly {
            return false;
        }
        let continues = self.in_flight.newest().is_some_and(|newest| {
            newest.end == index
                && (newest.marked, newest.feedback) == told
                && newest.due <= due
                && due.nanos_since(newest.first_due) <= COALESCE_NS
        });
        if continues {
            self.in_flight.extend(due, sent.sent_bytes);
        }
        continues
    }

    fn append(&mut self, packet: Packet<P>, due: Nanos, flip: Option<u64>, sent: &Sent) {
        let serial = packet.serial;
        let follows = self.newest == serial;
        let overtakes = self.in_flight.back_due().is_some_and(|last| last > due);
        self.newest = if overtakes || flip.is_some() { 0 } else { serial };
        let arrival =
            Arrival { due, flip, busy_period: sent.busy_period, sent_bytes: sent.sent_bytes };
        self.in_flight.insert(packet, &arrival, follows);
    }
}

/// Whether delay is the only effect.
fn is_delay_only(config: &LinkConfig) -> bool {
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

/// Due time of a packet sent at `end`, with a random delay.
pub(crate) fn delayed(end: Nanos, delay: u64, jitter: Jitter, rng: &mut Pcg64Mcg) -> Nanos {
    let scale = jitter.scale.as_secs_f64() * 1e9;
    let draw = scale
        * match jitter.distribution {
            Distribution::Normal => random::normal(rng),
            Distribution::Uniform => random::unit(rng) * 2.0 - 1.0,
            Distribution::Exponential => random::exponential(rng),
            Distribution::Pareto => random::pareto(rng),
        };
    #[expect(clippy::cast_possible_truncation, reason = "`as` holds at the limits, as it should")]
    let draw = draw as i64;
    Nanos(end.0.saturating_add(delay.saturating_add_signed(draw)))
}
