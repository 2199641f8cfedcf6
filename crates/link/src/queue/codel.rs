//! Controlled delay (RFC 8289).
//!
//! What a packet has waited is known when it leaves. If even the shortest wait
//! within `interval` was longer than `target`, the queue stands, and packets
//! are dropped (or marked) at its head, ever closer together:
//!
//! ```text
//!               above target for a whole interval: drop
//!    resting ────────────────────────────────────────────> dropping ──┐ drop at
//!            <────────────────────────────────────────────            │ t + interval / sqrt(count)
//!               a packet waited less, or one packet is left   <───────┘
//! ```
//!
//! The spacing interval / sqrt(count) makes the throughput of TCP, which goes
//! with 1 / sqrt(loss), fall linearly in time (section 3.1, "control law"). One
//! who comes back to dropping within 16 intervals goes on near the rate of
//! before (section 5.5, the variant of Linux).

use super::{Backlog, Surroundings};
use crate::fate::{Cause, Ledger, Packet, Run};
use crate::{CoDel, Limit, Nanos, nanos};

/// Intervals after the last drop for which its rate is a good first guess.
const MEMORY: u64 = 16;

#[derive(Debug)]
pub(crate) struct CoDelQueue<P> {
    limit: Limit,
    aim: Aim,
    control: Control,
    pub(crate) backlog: Backlog<P>,
}

impl<P: Clone> CoDelQueue<P> {
    pub(crate) fn new(settings: CoDel, around: Surroundings) -> Self {
        CoDelQueue {
            limit: settings.limit,
            aim: Aim::new(settings),
            control: Control::default(),
            backlog: Backlog::new(around.overhead),
        }
    }

    pub(crate) fn enqueue(&mut self, now: Nanos, run: Run<P>, idle: bool, ledger: &mut Ledger<P>) {
        if idle {
            self.control.rest();
        }
        self.aim.see(self.backlog.size(&run, run.packets.start));
        self.backlog.admit_within(self.limit, now, run, idle, ledger);
    }

    pub(crate) fn dequeue(&mut self, now: Nanos, ledger: &mut Ledger<P>) -> Option<Packet<P>> {
        self.control.dequeue(now, &self.aim, &mut self.backlog, ledger)
    }
}

/// What CoDel aims at, for one queue or for many.
#[derive(Debug)]
pub(crate) struct Aim {
    /// In ns.
    target: u64,
    /// In ns.
    interval: u64,
    /// Mark where the sender understands marks.
    ecn: bool,
    /// The largest packet so far, framing included: it stands for the MTU,
    /// and no queue is too long with one of it (section 5.2).
    largest: u64,
}

impl Aim {
    pub(crate) fn new(settings: CoDel) -> Self {
        Aim {
            target: nanos(settings.target),
            interval: nanos(settings.interval),
            ecn: settings.ecn,
            largest: 0,
        }
    }

    /// A packet of that size came.
    pub(crate) fn see(&mut self, size: u64) {
        self.largest = self.largest.max(size);
    }

    /// Marks a packet where that does instead of a drop.
    fn mark<P: Clone>(&self, packet: &mut Packet<P>, ledger: &mut Ledger<P>) -> bool {
        let may = self.ecn && packet.train.is_ecn_capable();
        if may && !packet.marked {
            packet.marked = true;
            ledger.counters.marked += 1;
        }
        may
    }
}

/// CoDel's state for one queue, by the names of section 5.2.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// When the wait will have been above the target for a whole interval;
    /// `None` while it is not above.
    first_above: Option<Nanos>,
    dropping: bool,
    /// When to drop next.
    drop_next: Nanos,
    /// Drops since dropping began, and what it began with.
    count: u32,
    /// `count` when dropping last began.
    last_count: u32,
}

impl Control {
    /// The queue was found empty.
    pub(crate) fn rest(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// Takes the first packet that is not dropped (section 5.5).
    pub(crate) fn dequeue<P: Clone>(
        &mut self,
        now: Nanos,
        aim: &Aim,
        backlog: &mut Backlog<P>,
        ledger: &mut Ledger<P>,
    ) -> Option<Packet<P>> {
        let (mut packet, mut standing) = self.take(now, aim, backlog)?;
        if self.dropping {
            self.dropping = standing;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if aim.mark(&mut packet, ledger) {
                    self.drop_next = self.after(self.drop_next, aim.interval);
                    break;
                }
                ledger.drop_packet(now, Cause::Aqm, packet);
                (packet, standing) = self.take(now, aim, backlog)?;
                self.dropping = standing;
                if standing {
                    self.drop_next = self.after(self.drop_next, aim.interval);
                }
            }
        } else if standing {
            self.begin(now, aim.interval);
            if !aim.mark(&mut packet, ledger) {
                ledger.drop_packet(now, Cause::Aqm, packet);
                // The next one passes, however long it waited.
                (packet, _) = self.take(now, aim, backlog)?;
            }
        }
        Some(packet)
    }

    /// Takes the first packet; tells whether it may be dropped.
    fn take<P: Clone>(
        &mut self,
        now: Nanos,
        aim: &Aim,
        backlog: &mut Backlog<P>,
    ) -> Option<(Packet<P>, bool)> {
        let Some(packet) = backlog.pop() else {
            self.rest();
            return None;
        };
        let short = now.since(packet.arrived) < aim.target || backlog.bytes() <= aim.largest;
        let standing = !short && self.first_above.is_some_and(|time| now >= time);
        if short {
            self.first_above = None;
        } else if self.first_above.is_none() {
            self.first_above = Some(Nanos(now.0.saturating_add(aim.interval)));
        }
        Some((packet, standing))
    }

    /// Goes over to dropping.
    fn begin(&mut self, now: Nanos, interval: u64) {
        self.dropping = true;
        let drops = self.count - self.last_count;
        let recent = now.since(self.drop_next) < interval.saturating_mul(MEMORY);
        self.count = if drops > 1 && recent { drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.after(now, interval);
    }

    /// The control law: when to drop after `time`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "positive, and an interval is far below 2^53 ns, which are 104 days"
    )]
    fn after(&self, time: Nanos, interval: u64) -> Nanos {
        let spacing = interval as f64 / f64::from(self.count).sqrt();
        Nanos(time.0.saturating_add(spacing as u64))
    }
}
