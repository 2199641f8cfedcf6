//! An emulated link: a bottleneck of constant rate with a drop-tail queue,
//! then a wire with a propagation delay and random loss.
//!
//! ```text
//!             full? drop          lost? drop
//!                 ^                   ^
//!  arrive --> [ queue ] --> rate --> wire (delay) --> release
//! ```
//!
//! Pure: no I/O, no system clock, no thread. Time comes in as [`Nanos`] and
//! only moves forward, chance comes from a seed; the same code runs under real
//! packets, in a simulator and in tests.
//!
//! What operating systems hand over is a *train*: one buffer of up to 64 KiB
//! that stands for many packets (segmentation offload). Everything here counts
//! the single packets of MTU size: serialisation, queue, loss. (An emulator
//! that counts the trains loses 45 packets where it was asked to lose one.)
//! Neighbours of one train that leave within [`COALESCE`] are released
//! together, at the time of the last: no packet is ever early, and none is
//! late by more than that.
//!
//! Storage for packets on the wire is separate from the queue and never drops.

mod config;
mod train;

pub use config::{LinkConfig, Queue};
pub use train::{Delivery, Train};

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use std::time::Duration;

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
        Nanos(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Longest time, in ns, by which a packet may wait for its neighbours so that
/// they are handed over as one train. 60 µs lets a train of 64 KiB pass whole
/// at 10 Gbit/s (52 µs) and leaves every packet single below 200 Mbit/s, so
/// that acknowledgements keep their spacing. It is the error of the emulation
/// in time: at most this, and only ever late.
pub const COALESCE: u64 = 60_000;

/// What a link has done so far, in packets of MTU size and bytes with framing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets that went through the bottleneck: delivered or lost after it.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Packets lost on the wire.
    pub lost: u64,
    /// Time the bottleneck was sending, in ns.
    pub busy: u64,
}

/// One direction of a path. `P` is the caller's handle on a train's bytes.
#[derive(Debug)]
pub struct Link<P> {
    config: LinkConfig,
    delay: u64,
    queue: VecDeque<Waiting<P>>,
    queued_bytes: u64,
    queued_packets: u64,
    wire: VecDeque<Delivery<P>>,
    /// When the bottleneck has sent what it is sending.
    free_at: Nanos,
    /// Bits times 10^9 that did not fill a whole nanosecond yet, so that the
    /// rate has no rounding error however long a busy period lasts.
    carry: u64,
    chance: Pcg64Mcg,
    /// Times the bottleneck went from idle to sending.
    busy_periods: u64,
    /// Trains admitted so far; numbers them.
    trains: u64,
    /// The train that the newest entry of `wire` belongs to.
    last_on_wire: u64,
    counters: Counters,
}

/// The part of a train that has not reached the bottleneck yet.
#[derive(Debug)]
struct Waiting<P> {
    serial: u64,
    payload: P,
    train: Train,
    next: u32,
    end: u32,
    arrived: Nanos,
}

impl<P: Clone> Link<P> {
    /// An idle, empty link at time zero.
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        Link {
            delay: u64::try_from(config.delay.as_nanos()).unwrap_or(u64::MAX / 2),
            queue: VecDeque::new(),
            queued_bytes: 0,
            queued_packets: 0,
            wire: VecDeque::new(),
            free_at: Nanos(0),
            carry: 0,
            chance: Pcg64Mcg::seed_from_u64(config.seed),
            busy_periods: 0,
            trains: 0,
            last_on_wire: 0,
            counters: Counters::default(),
            config,
        }
    }

    /// A train arrives at the queue; the packets that do not fit are dropped
    /// from its tail.
    pub fn arrive(&mut self, now: Nanos, train: Train, payload: P) {
        self.advance(now);
        self.counters.arrived += u64::from(train.packets());
        let mut admitted = 0;
        for index in 0..train.packets() {
            let size = self.wire_size(train, index);
            // A packet that finds queue and bottleneck idle is sent at once
            // and never stands in the queue.
            let idle = index == 0 && self.queue.is_empty() && self.free_at <= now;
            if !idle && !self.config.queue.admits(self.queued_bytes, self.queued_packets, size) {
                break;
            }
            self.queued_bytes += size;
            self.queued_packets += 1;
            admitted += 1;
        }
        self.counters.queue_drops += u64::from(train.packets() - admitted);
        if admitted > 0 {
            self.trains += 1;
            self.queue.push_back(Waiting {
                serial: self.trains,
                payload,
                train,
                next: 0,
                end: admitted,
                arrived: now,
            });
            self.advance(now);
        }
    }

    /// The next packets due at the far end by `now`, in order.
    pub fn release(&mut self, now: Nanos) -> Option<Delivery<P>> {
        self.advance(now);
        if self.wire.front()?.due > now {
            return None;
        }
        self.wire.pop_front()
    }

    /// When `release` next has something, or `None` while the link is empty.
    #[must_use]
    pub fn next_due(&self) -> Option<Nanos> {
        if let Some(front) = self.wire.front() {
            return Some(front.due);
        }
        let first = self.queue.front()?;
        let (end, _) =
            self.service(self.free_at.max(first.arrived), self.wire_size(first.train, first.next));
        Some(Nanos(end.0 + self.delay))
    }

    /// Since when the bottleneck has had nothing to send; `None` while it sends.
    pub fn idle_since(&mut self, now: Nanos) -> Option<Nanos> {
        self.advance(now);
        (self.queue.is_empty() && self.free_at <= now).then_some(self.free_at)
    }

    /// What the link has done so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Bytes waiting before the bottleneck.
    #[must_use]
    pub const fn queued_bytes(&self) -> u64 {
        self.queued_bytes
    }

    /// Lets the bottleneck take from the queue all that it begins to send by `now`.
    fn advance(&mut self, now: Nanos) {
        while let Some(front) = self.queue.front_mut() {
            let mut start = self.free_at;
            if start < front.arrived {
                // The bottleneck has been idle: a new busy period, nothing carried over.
                start = front.arrived;
                self.carry = 0;
                self.busy_periods += 1;
            }
            if start > now {
                return;
            }
            let index = front.next;
            let train = front.train;
            let serial = front.serial;
            front.next += 1;
            let payload = if front.next == front.end {
                self.queue.pop_front().map(|done| done.payload)
            } else {
                Some(front.payload.clone())
            };
            let Some(payload) = payload else { return };
            self.send(start, serial, train, index, payload);
        }
    }

    fn send(&mut self, start: Nanos, serial: u64, train: Train, index: u32, payload: P) {
        let size = self.wire_size(train, index);
        self.queued_bytes -= size;
        self.queued_packets -= 1;
        let (end, carry) = self.service(start, size);
        self.free_at = end;
        self.carry = carry;
        self.counters.sent += 1;
        self.counters.sent_bytes += size;
        self.counters.busy += end.since(start);
        if self.config.loss.takes(self.chance.next_u64()) {
            self.counters.lost += 1;
            return;
        }
        let due = Nanos(end.0 + self.delay);
        match self.wire.back_mut() {
            Some(run)
                if self.last_on_wire == serial
                    && run.packets.end == index
                    && due.since(run.first_due) <= COALESCE =>
            {
                run.packets.end += 1;
                run.due = due;
                run.sent_bytes = self.counters.sent_bytes;
            }
            _ => {
                self.last_on_wire = serial;
                self.wire.push_back(Delivery {
                    payload,
                    train,
                    packets: index..index + 1,
                    first_due: due,
                    due,
                    busy_period: self.busy_periods,
                    sent_bytes: self.counters.sent_bytes,
                });
            }
        }
    }

    /// End of sending `size` bytes from `start`, and the fraction left over.
    fn service(&self, start: Nanos, size: u64) -> (Nanos, u64) {
        let rate = self.config.rate.bps();
        // At most 65 535 + framing bytes: 5.3e5 bits * 1e9 + 1e14 stays far below 2^64.
        let work = size * 8 * 1_000_000_000 + self.carry;
        (Nanos(start.0 + work / rate), work % rate)
    }

    fn wire_size(&self, train: Train, index: u32) -> u64 {
        u64::from(train.size(index)) + u64::from(self.config.overhead)
    }
}
