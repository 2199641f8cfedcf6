//! The queue of an XCP router (Katabi, Handley, Rohrs: "Congestion control for high
//! bandwidth-delay product networks", SIGCOMM 2002, sections 3.2 to 3.5): first in, first
//! out, and feedback to each packet that has a [`CongestionHeader`].
//!
//! ```text
//!                     sums of RTT, window, size
//!   arrival ──> [ queue ] ──────────────> at the end of a mean RTT d:
//!                   │                       phi = ALPHA d S - BETA Q       efficiency
//!                   │                       h   = max(0, GAMMA y - |phi|)  shuffled: fairness
//!                   v                       xi+ = (h + phi+) / (d sum(R s / w))
//!   departure: xi+ R^2 s / w - xi- R s      xi- = (h + phi-) / (d sum(s))
//! ```
//!
//! S is the spare rate, Q the persistent queue, y the bytes that arrived, and R, w, s are
//! RTT, window and size of a packet. What is positive is shared equally among flows, what is
//! negative in proportion to their rates. Over an interval the feedback changes the rate of
//! all flows together by phi / d.

use super::{Backlog, QueueContext};
use crate::packet_fate::{FateLog, Packet, TrainRun};
use crate::{CongestionHeader, Train, WindowFeedback, Xcp};
use units::{BitRate, Nanos};

/// Gains of the spare rate and of the queue (section 4: stable at any delay, rate and number
/// of flows), and the share of the traffic that is shuffled (section 3.5).
const ALPHA: f64 = 0.4;
const BETA: f64 = 0.226;
const GAMMA: f64 = 0.1;

/// Shortest interval, ns: bounds the work where headers have no sensible RTT.
const MIN_INTERVAL: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct XcpQueue<P> {
    settings: Xcp,
    router: Router,
    pub(crate) backlog: Backlog<P>,
}

impl<P: Clone> XcpQueue<P> {
    pub(crate) fn new(settings: Xcp, context: QueueContext) -> Self {
        XcpQueue {
            settings,
            router: Router::new(context.rate),
            backlog: Backlog::new(context.overhead),
        }
    }

    /// The rate of the link has changed.
    pub(crate) fn apply_settings(&mut self, context: QueueContext) {
        self.router.capacity = bytes_per_s(context.rate);
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Nanos,
        run: TrainRun<P>,
        idle: bool,
        log: &mut FateLog<P>,
    ) {
        let queued = self.backlog.bytes() as f64;
        self.router.advance(now, queued);
        let bytes = self.backlog.bytes_of(&run) as f64;
        self.router.arrived(now, run.train, run.count() as f64, bytes);
        self.router.queue.seen(queued);
        self.backlog.admit_within(self.settings.limit, now, run, idle, log);
    }

    pub(crate) fn dequeue(&mut self, now: Nanos) -> Option<Packet<P>> {
        self.router.advance(now, self.backlog.bytes() as f64);
        let packet = self.backlog.pop()?;
        let Some(header) = packet.train.congestion_header() else { return Some(packet) };
        let size = self.backlog.framed(packet.train.size(packet.index)) as f64;
        let feedback = self.router.feedback(header, size);
        Some(Packet { feedback: WindowFeedback::of_packets(feedback / size), ..packet })
    }
}

/// The controllers; times in s and sizes in bytes unless named otherwise.
#[derive(Debug)]
struct Router {
    /// Bytes/s; none of an unlimited link, which has no spare rate to give.
    capacity: Option<f64>,
    sums: Sums,
    queue: PersistentQueue,
    /// The mean RTT, which is the length of an interval; 0 before the first header.
    mean_rtt: f64,
    began: Nanos,
    /// When it ends; none before the first header.
    ends: Option<Nanos>,
    /// xi+ and xi-.
    shares: [f64; 2],
    /// Positive and negative changes of the rate of all flows that are left to give, bytes/s.
    left: [f64; 2],
}

/// What arrived in the interval.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// y, with packets without a header.
    bytes: f64,
    /// Of packets with one: sums of s, R s / w and R^2 s / w.
    headed: f64,
    rtts: f64,
    rtt_squares: f64,
}

impl Router {
    fn new(rate: Option<BitRate>) -> Self {
        Router {
            capacity: bytes_per_s(rate),
            sums: Sums::default(),
            queue: PersistentQueue::default(),
            mean_rtt: 0.0,
            began: Nanos(0),
            ends: None,
            shares: [0.0; 2],
            left: [0.0; 2],
        }
    }

    /// Ends the interval if it is over; `queued` is the length of the queue now.
    fn advance(&mut self, now: Nanos, queued: f64) {
        let delay = self.capacity.map_or(0.0, |capacity| queued / capacity);
        self.queue.advance(now, queued, self.mean_rtt - delay);
        if self.ends.is_some_and(|at| at <= now) {
            self.end_interval(now);
        }
    }

    /// Packets of one train arrive, `bytes` in all.
    fn arrived(&mut self, now: Nanos, train: Train, packets: f64, bytes: f64) {
        self.sums.bytes += bytes;
        let Some(header) = train.congestion_header() else { return };
        let (rtt, window) = (header.rtt_s(), header.window());
        // s / w, where the window is counted in packets of this size.
        let share = packets / window;
        self.sums.headed += bytes;
        self.sums.rtts += rtt * share;
        self.sums.rtt_squares += rtt * rtt * share;
        if self.ends.is_none() {
            self.mean_rtt = rtt;
            (self.began, self.ends) = (now, Some(now.plus_nanos(interval_ns(rtt))));
        }
    }

    fn end_interval(&mut self, now: Nanos) {
        let sums = std::mem::take(&mut self.sums);
        // As long as it was: packets may have come late.
        let length = now.nanos_since(self.began) as f64 / 1e9;
        if sums.rtts > 0.0 {
            self.mean_rtt = sums.rtt_squares / sums.rtts;
        }
        (self.began, self.ends) = (now, Some(now.plus_nanos(interval_ns(self.mean_rtt))));
        let d = self.mean_rtt;
        let arrived = sums.bytes / length.max(1e-9);
        let spare = self.capacity.map_or(0.0, |capacity| capacity - arrived);
        let phi = ALPHA * d * spare - BETA * self.queue.persistent;
        let shuffled = (GAMMA * arrived * d - phi.abs()).max(0.0);
        // The sums are those of `length`, so that the next interval of d has d / length of them.
        let of_next = |sum: f64| sum * d / length.max(1e-9);
        let change = |part: f64| shuffled + part.max(0.0);
        self.left = [change(phi) / d, change(-phi) / d];
        self.shares = [
            divided(change(phi), d * of_next(sums.rtts)),
            divided(change(-phi), d * of_next(sums.headed)),
        ];
    }

    /// The change of the window that goes with a packet of `size`, bytes.
    fn feedback(&mut self, header: CongestionHeader, size: f64) -> f64 {
        let (rtt, window) = (header.rtt_s(), header.window());
        let [positive, negative] = self.shares;
        let [more, less] = &mut self.left;
        // No more than the interval has to give: a packet changes its flow's rate by p / R.
        let take = |wanted: f64, left: &mut f64| {
            let taken = wanted.min(*left * rtt).max(0.0);
            *left -= taken / rtt;
            taken
        };
        take(positive * rtt * rtt / window, more) - take(negative * rtt * size, less)
    }
}

/// The least queue that arriving packets have seen within the last propagation delay
/// (section 3.5.1): what does not go away by itself.
#[derive(Debug, Default)]
struct PersistentQueue {
    persistent: f64,
    least: f64,
    ends: Nanos,
}

impl PersistentQueue {
    /// Shortest time over which the least is taken, ns.
    const MIN: u64 = 2_000_000;

    fn advance(&mut self, now: Nanos, queued: f64, propagation: f64) {
        if now >= self.ends {
            self.persistent = self.least.min(queued);
            self.least = queued;
            self.ends = now.plus_nanos(nanos_of(propagation).max(PersistentQueue::MIN));
        }
    }

    fn seen(&mut self, queued: f64) {
        self.least = self.least.min(queued);
    }
}

/// A quotient; 0 of nothing.
fn divided(part: f64, by: f64) -> f64 {
    if by > 0.0 { part / by } else { 0.0 }
}

fn interval_ns(seconds: f64) -> u64 {
    nanos_of(seconds).max(MIN_INTERVAL)
}

fn nanos_of(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn bytes_per_s(rate: Option<BitRate>) -> Option<f64> {
    rate.map(|rate| rate.as_f64() / 8.0)
}
