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

    /// Marks a packet that would be dropped, or drops it where that is no answer.
    fn mark_or_drop<P: Clone>(
        &self,
        now: Nanos,
        mut packet: Packet<P>,
        ledger: &mut Ledger<P>,
    ) -> Option<Packet<P>> {
        if !self.ecn || !packet.train.is_ecn_capable() {
            ledger.drop_packet(now, Cause::Aqm, packet);
            return None;
        }
        ledger.counters.marked += u64::from(!packet.marked);
        packet.marked = true;
        Some(packet)
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
        let mut standing = self.judge(now, aim, backlog);
        if self.dropping {
            self.dropping = standing;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let marked = aim.mark_or_drop(now, backlog.pop()?, ledger);
                standing = marked.is_some() || self.judge(now, aim, backlog);
                self.dropping = standing;
                if standing {
                    self.drop_next = self.after(self.drop_next, aim.interval);
                }
                if marked.is_some() {
                    return marked;
                }
            }
        } else if standing {
            self.begin(now, aim.interval);
            let marked = aim.mark_or_drop(now, backlog.pop()?, ledger);
            if marked.is_some() {
                return marked;
            }
            // The next one passes, however long it waited.
            self.judge(now, aim, backlog);
        }
        backlog.pop()
    }

    /// Whether the first packet may be dropped: it and all before it waited
    /// for too long during a whole interval, and it leaves more than a packet.
    fn judge<P: Clone>(&mut self, now: Nanos, aim: &Aim, backlog: &Backlog<P>) -> bool {
        let Some((arrived, size)) = backlog.head() else {
            self.rest();
            return false;
        };
        if now.since(arrived) < aim.target || backlog.bytes() - size <= aim.largest {
            self.first_above = None;
            return false;
        }
        if let Some(time) = self.first_above {
            return now >= time;
        }
        self.first_above = Some(Nanos(now.0.saturating_add(aim.interval)));
        false
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
