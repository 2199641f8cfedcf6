//! Controlled delay (RFC 8289).
//!
//! The queueing delay of a packet is known when it is dequeued. If even the minimum
//! delay within `interval` exceeds `target`, there is a standing queue, and packets
//! are dropped (or marked) at its head at decreasing distances:
//!
//! ```text
//!               above target for a whole interval: drop
//!    resting ────────────────────────────────────────────> dropping ──┐ drop at
//!            <────────────────────────────────────────────            │ t + interval / sqrt(count)
//!               delay below target, or one packet left        <───────┘
//! ```
//!
//! The distance interval / sqrt(count) makes the throughput of TCP, which is
//! proportional to 1 / sqrt(loss), decrease linearly with time (section 3.1, "control
//! law"). If dropping starts again within 16 intervals, it continues near the previous
//! drop rate (section 5.5, in Linux's variant).

use super::{Backlog, QueueContext};
use crate::packet_fate::{Cause, FateLog, Packet, TrainRun};
use crate::{CoDel, Limit, nanos};
use units::Nanos;

/// Time after the last drop for which its drop rate is reused, in intervals.
const REUSE_INTERVALS: u64 = 16;

#[derive(Debug)]
pub(crate) struct CoDelQueue<P> {
    limit: Limit,
    parameters: Parameters,
    control: Control,
    pub(crate) backlog: Backlog<P>,
}

impl<P: Clone> CoDelQueue<P> {
    pub(crate) fn new(settings: CoDel, context: QueueContext) -> Self {
        CoDelQueue {
            limit: settings.limit,
            parameters: Parameters::new(settings),
            control: Control::default(),
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
        if idle {
            self.control.reset();
        }
        self.parameters.note_size(self.backlog.size(&run, run.packets.start));
        self.backlog.admit_within(self.limit, now, run, idle, log);
    }

    pub(crate) fn dequeue(&mut self, now: Nanos, log: &mut FateLog<P>) -> Option<Packet<P>> {
        self.control.dequeue(now, &self.parameters, &mut self.backlog, log)
    }
}

/// Parameters of CoDel, for one queue or many.
#[derive(Debug)]
pub(crate) struct Parameters {
    /// In ns.
    target: u64,
    /// In ns.
    interval: u64,
    /// Whether to mark ECN-capable packets.
    ecn: bool,
    /// Size of the largest packet so far, including framing: it stands for the MTU. A
    /// queue of at most this size is never too long (section 5.2).
    largest: u64,
}

impl Parameters {
    pub(crate) fn new(settings: CoDel) -> Self {
        Parameters {
            target: nanos(settings.target),
            interval: nanos(settings.interval),
            ecn: settings.ecn,
            largest: 0,
        }
    }

    /// Notes the size of a packet.
    pub(crate) fn note_size(&mut self, size: u64) {
        self.largest = self.largest.max(size);
    }

    /// Marks a packet that would be dropped, or drops it if that is not possible.
    fn mark_or_drop<P: Clone>(
        &self,
        now: Nanos,
        mut packet: Packet<P>,
        log: &mut FateLog<P>,
    ) -> Option<Packet<P>> {
        if !self.ecn || !packet.train.is_ecn_capable() {
            log.drop_packet(now, Cause::Aqm, packet);
            return None;
        }
        log.counters.marked += u64::from(!packet.marked);
        packet.marked = true;
        Some(packet)
    }
}

/// CoDel's state for one queue, named as in section 5.2.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// When the delay will have been above the target for a whole interval; `None` while
    /// it is below.
    first_above: Option<Nanos>,
    dropping: bool,
    /// Time of the next drop.
    drop_next: Nanos,
    /// Drops since dropping started, plus the initial count.
    count: u32,
    /// `count` when dropping last started.
    last_count: u32,
}

impl Control {
    /// The queue is empty.
    pub(crate) fn reset(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// Dequeues the first packet that is not dropped (section 5.5).
    pub(crate) fn dequeue<P: Clone>(
        &mut self,
        now: Nanos,
        parameters: &Parameters,
        backlog: &mut Backlog<P>,
        log: &mut FateLog<P>,
    ) -> Option<Packet<P>> {
        let mut standing = self.may_drop(now, parameters, backlog);
        if self.dropping {
            self.dropping = standing;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let marked = parameters.mark_or_drop(now, backlog.pop()?, log);
                standing = marked.is_some() || self.may_drop(now, parameters, backlog);
                self.dropping = standing;
                if standing {
                    self.drop_next = self.next_drop_time(self.drop_next, parameters.interval);
                }
                if marked.is_some() {
                    return marked;
                }
            }
        } else if standing {
            self.start_dropping(now, parameters.interval);
            let marked = parameters.mark_or_drop(now, backlog.pop()?, log);
            if marked.is_some() {
                return marked;
            }
            // The next packet is sent, whatever its delay.
            self.may_drop(now, parameters, backlog);
        }
        backlog.pop()
    }

    /// Whether the first packet may be dropped: the delay was above the target for a whole
    /// interval, and more than one packet would remain.
    fn may_drop<P: Clone>(
        &mut self,
        now: Nanos,
        parameters: &Parameters,
        backlog: &Backlog<P>,
    ) -> bool {
        let Some((arrived, size)) = backlog.head() else {
            self.reset();
            return false;
        };
        if now.nanos_since(arrived) < parameters.target
            || backlog.bytes() - size <= parameters.largest
        {
            self.first_above = None;
            return false;
        }
        if let Some(time) = self.first_above {
            return now >= time;
        }
        self.first_above = Some(Nanos(now.0.saturating_add(parameters.interval)));
        false
    }

    /// Starts dropping.
    fn start_dropping(&mut self, now: Nanos, interval: u64) {
        self.dropping = true;
        let drops = self.count - self.last_count;
        let recent = now.nanos_since(self.drop_next) < interval.saturating_mul(REUSE_INTERVALS);
        self.count = if drops > 1 && recent { drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.next_drop_time(now, interval);
    }

    /// The control law: time of the drop that follows one at `time`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "positive, and an interval is far below 2^53 ns, which are 104 days"
    )]
    fn next_drop_time(&self, time: Nanos, interval: u64) -> Nanos {
        let spacing = interval as f64 / f64::from(self.count).sqrt();
        Nanos(time.0.saturating_add(spacing as u64))
    }
}
