//! An emulated link: a bottleneck with a queue, then a wire.
//!
//! ```text
//!      too long?  policed?   full, AQM?             lost?
//!          ^         ^           ^                    ^
//!  arrive ─┴─────────┴────> [ queue ] ──> rate ──> wire (delay, jitter) ──> release
//! ```
//!
//! Pure: no I/O, no system clock, no thread. Time comes in as [`Nanos`] and
//! only moves forward, chance comes from a seed; the same code runs under real
//! packets, in a simulator and in tests.
//!
//! What operating systems hand over is a *train*: one buffer of up to 64 KiB
//! that stands for many packets (segmentation offload). Everything here counts
//! the single packets of MTU size: serialisation, queue, marks, loss. (An
//! emulator that counts the trains loses 45 packets where it was asked to lose
//! one.) Neighbours of one train that leave within [`COALESCE`] are released
//! together, at the time of the last: no packet is ever early, and none is
//! late by more than that.
//!
//! Storage for packets on the wire is separate from the queue and never drops.

mod chance;
mod config;
mod fate;
mod loss;
mod middlebox;
mod queue;
mod shaper;
mod trace;
mod train;
mod wire;

pub use config::{
    Blackhole, Bursts, CoDel, Distribution, Fifo, FqCoDel, Jitter, Limit, LinkConfig, Pie, Queue,
    Rate, Red, Reorder, Schedule, WindowScale,
};
pub use fate::{Cause, Counters, Fate, FateKind};
pub use loss::{GilbertElliott, Loss, PacketList};
pub use middlebox::rewrite_window_scale;
pub use shaper::Bucket;
pub use trace::{Trace, TraceError};
pub use train::{Delivery, Train};

use fate::{Ledger, Run};
use queue::{Discipline, Surroundings};
use shaper::{Shaper, Tokens};
use std::time::Duration;
use wire::{Sent, Wire};

/// A moment on the virtual clock, in nanoseconds since the link was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Nanoseconds from `earlier` to here; zero if that lies later.
    #[must_use]
    pub const fn since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// So much later; held at the largest value.
    #[must_use]
    pub fn plus(self, time: Duration) -> Nanos {
        Nanos(self.0.saturating_add(nanos(time)))
    }
}

/// A time in ns; held at the largest value, which is 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Longest time, in ns, by which a packet may wait for its neighbours so that
/// they are handed over as one train. 60 µs lets a train of 64 KiB pass whole
/// at 10 Gbit/s (52 µs) and leaves every packet single below 200 Mbit/s, so
/// that acknowledgements keep their spacing. It is the error of the emulation
/// in time: at most this, and only ever late.
pub const COALESCE: u64 = 60_000;

/// One direction of a path. `P` is the caller's handle on a train's bytes.
#[derive(Debug)]
pub struct Link<P> {
    schedule: Schedule,
    config: LinkConfig,
    /// When the schedule's time began; its changes and what comes again and
    /// again (bursts, blackholes) are counted from there.
    origin: Nanos,
    /// When the schedule next changes the settings.
    next_change: Option<Nanos>,
    policer: Option<Tokens>,
    queue: Discipline<P>,
    shaper: Shaper,
    /// When the bottleneck has sent what it is sending. While anything waits,
    /// this lies after the last arrival.
    free_at: Nanos,
    /// How long the packet sent last had waited, in ns.
    last_wait: u64,
    wire: Wire<P>,
    /// Times the bottleneck went from idle to sending.
    busy_periods: u64,
    /// Trains that arrived so far; numbers them.
    trains: u64,
    ledger: Ledger<P>,
}

impl<P: Clone> Link<P> {
    /// An idle, empty link at time zero.
    #[must_use]
    pub fn new(schedule: impl Into<Schedule>) -> Self {
        let schedule = schedule.into();
        let (config, next_change) = schedule.at(Nanos(0));
        let config = config.clone();
        Link {
            origin: Nanos(0),
            next_change,
            policer: config.policer.map(|bucket| Tokens::full(bucket, Nanos(0))),
            queue: Discipline::new(&config.queue, surroundings(&config)),
            shaper: Shaper::new(config.rate.clone(), Nanos(0)),
            free_at: Nanos(0),
            last_wait: 0,
            wire: Wire::new(&config),
            busy_periods: 0,
            trains: 0,
            ledger: Ledger::new(),
            config,
            schedule,
        }
    }

    /// Begins anew, as if nothing had come so far: sums, numbers and draws.
    /// What waits and what is on the wire stays.
    pub fn restart(&mut self, now: Nanos) {
        self.advance(now);
        self.ledger.counters = Counters::default();
        self.wire.restart(&self.config);
    }

    /// Goes over to other settings, whose times count from `origin`. What waits
    /// and what is on the wire stays; the packet being sent is sent to its end
    /// as it began.
    pub fn reschedule(&mut self, now: Nanos, origin: Nanos, schedule: impl Into<Schedule>) {
        self.advance(now);
        self.schedule = schedule.into();
        self.origin = origin;
        self.wire.restart_bursts(&self.config, now.since(origin));
        self.adopt(now);
    }

    /// A train arrives; the packets that do not fit are dropped from its tail.
    pub fn arrive(&mut self, now: Nanos, train: Train, payload: P) {
        self.advance(now);
        let first_number = self.ledger.counters.arrived + 1;
        self.ledger.counters.arrived += u64::from(train.packets());
        self.trains += 1;
        let run = Run {
            serial: self.trains,
            payload,
            train,
            packets: 0..train.packets(),
            first_number,
            arrived: now,
            marked: false,
        };
        if self.config.mtu.is_none() && self.policer.is_none() {
            self.admit(now, run);
        } else {
            self.filter(now, &run);
        }
    }

    /// The next packets due at the far end by `now`, in order.
    pub fn release(&mut self, now: Nanos) -> Option<Delivery<P>> {
        self.advance(now);
        if self.wire.front_due()? > now {
            return None;
        }
        self.wire.pop()
    }

    /// When to look again: `release` has something then, or the bottleneck
    /// goes on. `None` while the link is empty.
    #[must_use]
    pub fn next_due(&self) -> Option<Nanos> {
        let front = self.wire.front_due();
        if self.queue.packets() == 0 {
            return front;
        }
        let Some(front) = front else { return Some(self.free_at) };
        // What waits may overtake what is on the wire, under these settings
        // or under the next.
        let soonest = self.wire.soonest(&self.config, self.free_at);
        Some(front.min(soonest).min(self.next_change.unwrap_or(front)))
    }

    /// Since when the bottleneck has had nothing to send; `None` while it sends.
    pub fn idle_since(&mut self, now: Nanos) -> Option<Nanos> {
        self.advance(now);
        self.is_idle(now).then_some(self.free_at)
    }

    /// What the link has done so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.ledger.counters
    }

    /// The settings in force.
    #[must_use]
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Bytes waiting before the bottleneck, framing included.
    #[must_use]
    pub fn queued_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Packets waiting before the bottleneck.
    #[must_use]
    pub fn queued_packets(&self) -> u64 {
        self.queue.packets()
    }

    /// How long the packet that was sent last had waited for the bottleneck, in ns.
    #[must_use]
    pub const fn last_wait(&self) -> u64 {
        self.last_wait
    }

    /// Writes down the fate of each packet from here on, or no longer.
    pub fn watch(&mut self, watch: bool) {
        self.ledger.fates = watch.then(Vec::new);
    }

    /// The fates decided since this was last asked, in the order of decision;
    /// none while nobody watches.
    pub fn fates(&mut self) -> impl Iterator<Item = Fate<P>> {
        self.ledger.fates.iter_mut().flat_map(|fates| fates.drain(..))
    }

    fn is_idle(&self, now: Nanos) -> bool {
        self.queue.packets() == 0 && self.free_at <= now
    }

    /// Takes packets past MTU and policer.
    fn filter(&mut self, now: Nanos, run: &Run<P>) {
        let mut passed = run.packets.start;
        for index in run.packets.clone() {
            let size = run.train.size(index);
            let framed = u64::from(size) + u64::from(self.config.overhead);
            let cause = if self.config.mtu.is_some_and(|mtu| size > mtu) {
                fate::Cause::TooLong
            } else if self.policer.as_mut().is_some_and(|tokens| !tokens.take(now, framed)) {
                fate::Cause::Policed
            } else {
                continue;
            };
            self.admit(now, run.part(passed..index));
            passed = index + 1;
            self.ledger.drop_packet(now, cause, run.packet(index));
        }
        self.admit(now, run.part(passed..run.packets.end));
    }

    fn admit(&mut self, now: Nanos, run: Run<P>) {
        if run.packets.is_empty() {
            return;
        }
        let idle = self.is_idle(now);
        if idle {
            // A new busy period, nothing carried over.
            self.free_at = now;
            self.shaper.wake();
            self.busy_periods += 1;
        }
        if idle && matches!(self.config.rate, Rate::Unlimited) {
            // Each is gone before the next one comes: nothing ever waits.
            for index in run.packets.clone() {
                self.queue.enqueue(now, run.part(index..index + 1), true, &mut self.ledger);
                self.pump(now);
            }
            return;
        }
        self.queue.enqueue(now, run, idle, &mut self.ledger);
        self.pump(now);
    }

    /// Lets time pass: the bottleneck takes from the queue all that it begins
    /// to send by `now`, under the settings of each moment.
    fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.next_change.filter(|at| *at <= now) {
            // What begins at this very moment begins under the new settings.
            self.pump(Nanos(at.0.saturating_sub(1)));
            self.adopt(at);
        }
        self.pump(now);
    }

    fn pump(&mut self, now: Nanos) {
        while self.free_at <= now && self.queue.packets() > 0 {
            let start = self.free_at;
            let Some(packet) = self.queue.dequeue(start, &mut self.ledger) else { return };
            let size = u64::from(packet.train.size(packet.index)) + u64::from(self.config.overhead);
            let end = self.shaper.serve(start, size);
            self.free_at = end;
            self.last_wait = start.since(packet.arrived);
            let counters = &mut self.ledger.counters;
            counters.sent += 1;
            counters.sent_bytes += size;
            counters.busy += end.since(start);
            let sent = Sent {
                start,
                end,
                origin: self.origin,
                busy_period: self.busy_periods,
                sent_bytes: counters.sent_bytes,
            };
            self.wire.carry(&self.config, packet, &sent, &mut self.ledger);
        }
    }

    /// Takes over the settings of this moment.
    fn adopt(&mut self, now: Nanos) {
        let (config, next_change) = self.schedule.at(Nanos(now.since(self.origin)));
        self.next_change = next_change.map(|at| Nanos(at.0.saturating_add(self.origin.0)));
        let old = std::mem::replace(&mut self.config, config.clone());
        let around = surroundings(&self.config);
        if old.rate != self.config.rate {
            self.shaper = Shaper::new(self.config.rate.clone(), now);
            self.queue.adopt(around);
        }
        if old.policer != self.config.policer {
            self.policer = self.config.policer.map(|bucket| Tokens::full(bucket, now));
        }
        if old.queue != self.config.queue || old.overhead != self.config.overhead {
            let mut queue = Discipline::new(&self.config.queue, around);
            for run in self.queue.drain() {
                queue.enqueue(now, run, false, &mut self.ledger);
            }
            self.queue = queue;
        }
        if old.bursts != self.config.bursts {
            self.wire.restart_bursts(&self.config, now.since(self.origin));
        }
        self.wire.adopt(&self.config);
    }
}

fn surroundings(config: &LinkConfig) -> Surroundings {
    Surroundings {
        overhead: config.overhead,
        rate: Surroundings::rate_of(&config.rate),
        // Apart from the wire's draws.
        seed: config.seed.rotate_left(32),
    }
}
