//! An emulated link: a bottleneck with a queue, then a wire.
//!
//! ```text
//!      too long?  policed?   full, AQM?             lost?
//!          ^         ^           ^                    ^
//!  arrive ─┴─────────┴────> [ queue ] ──> rate ──> wire (delay, jitter) ──> release
//! ```
//!
//! Pure: no I/O, no system clock, no thread. The caller passes the time as [`Nanos`],
//! which never decreases (but see [`Link::arrive`]), and random numbers derive from a seed;
//! the same code runs with real packets, in a simulator and in tests.
//!
//! Operating systems pass *trains*: one buffer of up to 64 KiB that stands for many
//! packets (segmentation offload). The link treats each packet of MTU size
//! separately: serialisation, queue, marks, loss. (An emulator that treats trains as
//! packets loses 45 packets instead of one.) Adjacent packets of a train that leave
//! within [`COALESCE`] are released together when the last one is due: no packet is
//! early, and none is late by more than that.
//!
//! Storage for packets on the wire is separate from the queue and never drops.

mod config;
mod congestion_header;
mod loss;
mod middlebox;
mod packet_fate;
mod queue;
pub mod random;
mod shaper;
mod trace;
mod train;
mod wire;

pub use config::*;
pub use congestion_header::{CongestionHeader, WindowFeedback};
pub use loss::{DATA_ABOVE, GilbertElliott, Loss, PacketList};
pub use middlebox::rewrite_window_scale;
pub use packet_fate::{Cause, Counters, Fate, FateKind};
pub use shaper::TokenBucket;
pub use trace::{Trace, TraceError};
pub use train::{Delivery, EcnCodepoint, Protocol, Train};

use packet_fate::{FateLog, TrainRun};
use queue::{Discipline, QueueContext};
use shaper::{Shaper, Tokens};
use std::time::Duration;
use units::{ByteCount, Nanos, nanos};
use wire::{Sent, Wire};

/// Maximum time that a packet is delayed to be delivered in one train with the
/// following ones: the timing error of the emulation, always positive. 60 µs keeps a
/// train of 64 KiB whole at 10 Gbit/s (52 µs), and releases packets one by one below
/// 200 Mbit/s, which preserves the spacing of ACKs.
pub const COALESCE: Duration = Duration::from_micros(60);

/// One direction of a path. `P` is the caller's handle to a train's bytes.
#[derive(Debug)]
pub struct Link<P> {
    schedule: Schedule,
    config: LinkConfig,
    /// Time zero of the schedule, and of periodic effects (bursts, outages).
    origin: Nanos,
    /// Time of the next change of settings.
    next_change: Option<Nanos>,
    policer: Option<Tokens>,
    /// The policers of single protocols.
    protocol_policers: [Option<Tokens>; 2],
    queue: Discipline<P>,
    shaper: Shaper,
    /// When the bottleneck has finished sending the current packet. While the queue is
    /// not empty, this is after the last arrival.
    free_at: Nanos,
    /// Queueing delay of the packet sent last.
    last_wait: Duration,
    wire: Wire<P>,
    /// Number of busy periods of the bottleneck so far.
    busy_periods: u64,
    /// Number of trains so far, which is the serial number of the latest.
    trains: u64,
    log: FateLog<P>,
}

impl<P: Clone> Link<P> {
    /// An idle link at time zero.
    #[must_use]
    pub fn new(schedule: impl Into<Schedule>) -> Self {
        let schedule = schedule.into();
        let (config, next_change) = schedule.at(Nanos(0));
        let config = config.clone();
        Link {
            origin: Nanos(0),
            next_change,
            policer: config.policer.map(|bucket| Tokens::full(bucket, Nanos(0))),
            protocol_policers: protocol_policers(&config, Nanos(0)),
            queue: Discipline::new(&config.queue, queue_context(&config)),
            shaper: Shaper::new(config.rate.clone(), Nanos(0)),
            free_at: Nanos(0),
            last_wait: Duration::ZERO,
            wire: Wire::new(&config),
            busy_periods: 0,
            trains: 0,
            log: FateLog::new(),
            config,
            schedule,
        }
    }

    /// Resets counters, packet numbers and random numbers. Packets in the queue and on
    /// the wire are kept.
    pub fn restart(&mut self, now: Nanos) {
        self.advance(now);
        self.log.counters = Counters::default();
        self.wire.restart(&self.config);
    }

    /// Replaces the schedule, whose times count from `origin`. Packets in the queue and
    /// on the wire are kept; the packet being sent is completed at its old rate.
    pub fn reschedule(&mut self, now: Nanos, origin: Nanos, schedule: impl Into<Schedule>) {
        self.advance(now);
        self.schedule = schedule.into();
        self.origin = origin;
        self.wire.restart_bursts(&self.config, now.nanos_since(origin));
        self.apply_settings(now);
    }

    /// A train arrives. Packets that do not fit are dropped.
    ///
    /// `now` may be earlier than the time of other calls, not than that of an earlier arrival:
    /// a driver may read a packet after it arrived. The packet leaves the bottleneck when it
    /// would have, had it been read in time, under the settings of the later time; a queue with
    /// a limit has the length of the later time.
    pub fn arrive(&mut self, now: Nanos, train: Train, payload: P) {
        self.advance(now);
        let first_number = self.log.counters.arrived + 1;
        self.log.counters.arrived += u64::from(train.packets());
        self.trains += 1;
        let run = TrainRun {
            serial: self.trains,
            payload,
            train,
            packets: 0..train.packets(),
            first_number,
            arrived: now,
            marked: false,
        };
        if self.config.mtu.is_none() && self.policer.is_none() && !self.is_filtered(train) {
            self.admit(now, run);
        } else {
            self.filter(now, &run);
        }
    }

    /// The next packets due at the far end by `now`, in order of release.
    pub fn release(&mut self, now: Nanos) -> Option<Delivery<P>> {
        self.advance(now);
        if self.wire.front_due()? > now {
            return None;
        }
        self.wire.pop()
    }

    /// When to call [`Link::release`] next: a packet is due, or the bottleneck starts to
    /// send one. `None` while the link is empty.
    #[must_use]
    pub fn next_due(&self) -> Option<Nanos> {
        let front = self.wire.front_due();
        if self.queue.packets() == 0 {
            return front;
        }
        let Some(front) = front else { return Some(self.free_at) };
        // Queued packets may overtake those on the wire, under these settings or the
        // next.
        let earliest_due = self.wire.earliest_due(&self.config, self.free_at);
        Some(front.min(earliest_due).min(self.next_change.unwrap_or(front)))
    }

    /// Since when the bottleneck has been idle; `None` while it sends.
    pub fn idle_since(&mut self, now: Nanos) -> Option<Nanos> {
        self.advance(now);
        self.is_idle(now).then_some(self.free_at)
    }

    /// The counters so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.log.counters
    }

    /// The settings in effect.
    #[must_use]
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Bytes queued, including framing.
    #[must_use]
    pub fn queued_bytes(&self) -> ByteCount {
        ByteCount::from_bytes(self.queue.bytes())
    }

    /// Packets queued.
    #[must_use]
    pub fn queued_packets(&self) -> u64 {
        self.queue.packets()
    }

    /// Queueing delay of the packet sent last.
    #[must_use]
    pub const fn last_wait(&self) -> Duration {
        self.last_wait
    }

    /// Starts or stops recording the fates of packets.
    pub fn watch(&mut self, watch: bool) {
        self.log.fates = watch.then(Vec::new);
        self.log.drops_only = false;
    }

    /// The same for packets that are dropped or lost alone, which costs nothing for the
    /// others.
    pub fn watch_drops(&mut self, watch: bool) {
        self.watch(watch);
        self.log.drops_only = watch;
    }

    /// Releases every packet by itself, when it is due: none is late, and each costs the
    /// receiving end a call.
    pub fn release_singly(&mut self, singly: bool) {
        self.wire.release_singly(singly);
    }

    /// The fates recorded since the last call, in order; none unless recording was
    /// started with [`Link::watch`] or [`Link::watch_drops`].
    pub fn fates(&mut self) -> impl Iterator<Item = Fate<P>> {
        self.log.fates.iter_mut().flat_map(|fates| fates.drain(..))
    }

    fn is_idle(&self, now: Nanos) -> bool {
        self.queue.packets() == 0 && self.free_at <= now
    }

    /// Whether a middlebox does anything to packets of a train's protocol.
    fn is_filtered(&self, train: Train) -> bool {
        let filter = train.protocol().map(|protocol| self.config.filters[protocol as usize]);
        filter.is_some_and(|filter| filter != ProtocolFilter::NONE)
    }

    /// Whether a middlebox of its protocol or the policer drops a packet of `framed` bytes.
    fn is_policed(&mut self, now: Nanos, train: Train, framed: u64) -> bool {
        let exceeds = |policer: &mut Option<Tokens>| {
            policer.as_mut().is_some_and(|tokens| !tokens.take(now, framed))
        };
        let by_protocol = train.protocol().map(|protocol| protocol as usize).is_some_and(|index| {
            self.config.filters[index].blackhole || exceeds(&mut self.protocol_policers[index])
        });
        by_protocol || exceeds(&mut self.policer)
    }

    /// Applies MTU and policers to the packets of a train.
    fn filter(&mut self, now: Nanos, run: &TrainRun<P>) {
        let mut passed = run.packets.start;
        for index in run.packets.clone() {
            let size = run.train.size(index);
            let framed = u64::from(size) + u64::from(self.config.overhead);
            let cause = if self.config.mtu.is_some_and(|mtu| size > mtu) {
                packet_fate::Cause::TooLong
            } else if self.is_policed(now, run.train, framed) {
                packet_fate::Cause::Policed
            } else {
                continue;
            };
            self.admit(now, run.part(passed..index));
            passed = index + 1;
            self.log.drop_packet(now, cause, run.packet(index));
        }
        self.admit(now, run.part(passed..run.packets.end));
    }

    fn admit(&mut self, now: Nanos, run: TrainRun<P>) {
        if run.packets.is_empty() {
            return;
        }
        let idle = self.is_idle(now);
        if idle {
            // A new busy period: no fractional nanoseconds are carried over.
            self.free_at = now;
            self.shaper.start_busy_period();
            self.busy_periods += 1;
        }
        if idle && matches!(self.config.rate, Rate::Unlimited) {
            // Without a rate limit every packet leaves before the next one: nothing is queued.
            for index in run.packets.clone() {
                self.queue.enqueue(now, run.part(index..index + 1), true, &mut self.log);
                self.pump(now);
            }
            return;
        }
        self.queue.enqueue(now, run, idle, &mut self.log);
        self.pump(now);
    }

    /// Advances the time to `now`: the bottleneck starts to send queued packets, under
    /// the settings of each moment.
    fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.next_change.filter(|at| *at <= now) {
            // A packet that starts at the time of a change has the new settings.
            self.pump(Nanos(at.0.saturating_sub(1)));
            self.apply_settings(at);
        }
        self.pump(now);
    }

    fn pump(&mut self, now: Nanos) {
        let plain = self.wire.is_delay_only() && !self.log.records_deliveries();
        while self.free_at <= now && self.queue.packets() > 0 {
            if plain && self.pump_run(now) {
                continue;
            }
            let start = self.free_at;
            let Some(packet) = self.queue.dequeue(start, &mut self.log) else { return };
            let size = u64::from(packet.train.size(packet.index)) + u64::from(self.config.overhead);
            let end = self.shaper.serve(start, size);
            self.free_at = end;
            self.last_wait = start.since(packet.arrived);
            let counters = &mut self.log.counters;
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
            self.wire.carry(&self.config, packet, &sent, &mut self.log);
        }
    }

    /// Sends the packets of the queue's first run that start by `now`, where neither queue
    /// nor wire decides about single packets; returns whether that is so.
    fn pump_run(&mut self, now: Nanos) -> bool {
        let Some(backlog) = self.queue.as_plain() else { return false };
        let Some(run) = backlog.first() else { return false };
        let begin = self.free_at;
        let (mut start, mut index) = (begin, run.packets.start);
        let mut sent_bytes = self.log.counters.sent_bytes;
        while self.free_at <= now && index < run.packets.end {
            start = self.free_at;
            let size = u64::from(run.train.size(index)) + u64::from(self.config.overhead);
            self.free_at = self.shaper.serve(start, size);
            sent_bytes += size;
            let sent = Sent {
                start,
                end: self.free_at,
                origin: self.origin,
                busy_period: self.busy_periods,
                sent_bytes,
            };
            self.wire.carry_plain(run, index, &sent);
            index += 1;
        }
        self.last_wait = start.since(run.arrived);
        let counters = &mut self.log.counters;
        counters.sent += u64::from(index - run.packets.start);
        counters.busy += self.free_at.since(begin);
        let bytes = sent_bytes - counters.sent_bytes;
        counters.sent_bytes = sent_bytes;
        backlog.pop_to(index, bytes);
        true
    }

    /// Applies the settings in effect now.
    fn apply_settings(&mut self, now: Nanos) {
        let (config, next_change) = self.schedule.at(Nanos(now.nanos_since(self.origin)));
        self.next_change = next_change.map(|at| Nanos(at.0.saturating_add(self.origin.0)));
        let old = std::mem::replace(&mut self.config, config.clone());
        let context = queue_context(&self.config);
        if old.rate != self.config.rate {
            self.shaper = Shaper::new(self.config.rate.clone(), now);
            self.queue.apply_settings(context);
        }
        if old.policer != self.config.policer {
            self.policer = self.config.policer.map(|bucket| Tokens::full(bucket, now));
        }
        if old.filters != self.config.filters {
            self.protocol_policers = protocol_policers(&self.config, now);
        }
        if old.queue != self.config.queue || old.overhead != self.config.overhead {
            let mut queue = Discipline::new(&self.config.queue, context);
            for run in self.queue.drain() {
                queue.enqueue(now, run, false, &mut self.log);
            }
            self.queue = queue;
        }
        if old.bursts != self.config.bursts {
            self.wire.restart_bursts(&self.config, now.nanos_since(self.origin));
        }
        self.wire.apply_settings(&self.config);
    }
}

fn protocol_policers(config: &LinkConfig, now: Nanos) -> [Option<Tokens>; 2] {
    config.filters.map(|filter| filter.policer.map(|bucket| Tokens::full(bucket, now)))
}

fn queue_context(config: &LinkConfig) -> QueueContext {
    QueueContext {
        overhead: config.overhead,
        rate: QueueContext::rate_of(&config.rate),
        // Independent of the wire's random numbers.
        seed: config.seed.rotate_left(32),
    }
}
