//! One direction of a link: packets from one TUN device through a [`Link`] to
//! another, with counters, samples and taps.

use crate::arrivals::Arrivals;
use crate::at_once;
use crate::buffers::{Pool, Slot};
use crate::hosts::LabHost;
use crate::interval_log::{IntervalLog, IntervalLogger, LinkState};
use crate::packet::change::FlowKey;
use crate::packet::{Layout, change};
use crate::watch::{Direction, PacketRecord, QueueSample, Tap};
use hdrhistogram::Histogram;
use host::transmit_times::TransmitTimes;
use host::tun::{Tun, VNET_HEADER};
use link::{Counters, Delivery, Fate, Link, Rate};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{ByteCount, Nanos};

/// Trains up to this size (bytes) are copied out of their slot: a slot holds
/// 64 KiB, and a path full of small packets would waste most of its memory.
const COPY_LIMIT: usize = 16 * 1024;

/// A delivery that is later shows that the thread was held up.
const STALL: Duration = Duration::from_micros(500);

/// How long after the beginning of a busy period deliveries may all be late; a longer delay is
/// part of the period.
const CATCH_UP: Duration = Duration::from_millis(100);

/// Shortest busy period from which a rate is derived: its ends are late by up to
/// the wake-up time of a thread.
const MIN_BUSY_PERIOD: Duration = Duration::from_millis(200);

/// Time between two samples of the queue.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum number of samples: one hour. Beyond it every second sample is discarded
/// and the interval doubled, so that the samples cover the whole run.
const MAX_SAMPLES: usize = 360_000;

/// The devices of a direction, and its link.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) link: usize,
    pub(crate) direction: Direction,
    pub(crate) from: Arc<Tun>,
    /// When packets were put into `from`, where the system permits to know.
    pub(crate) times: Option<TransmitTimes>,
    pub(crate) to: Arc<Tun>,
}

impl Ends {
    /// Those of both directions of each link between `hosts`; a direction is missing where a
    /// host has no device for it. `links` are the numbers of the hosts at the ends.
    pub(crate) fn of_links(hosts: &[LabHost], links: &[[usize; 2]]) -> Vec<[Option<Self>; 2]> {
        let both =
            |link: usize| [Direction::Up, Direction::Down].map(|direction| (link, direction));
        let all: Vec<_> = (0..links.len()).flat_map(both).collect();
        let ends =
            at_once::each(all, |(link, direction)| Ends::of(hosts, link, links[link], direction));
        let mut ends = ends.into_iter().map(Option::flatten);
        links.iter().map(|_| [ends.next().flatten(), ends.next().flatten()]).collect()
    }

    fn of(
        hosts: &[LabHost],
        link: usize,
        between: [usize; 2],
        direction: Direction,
    ) -> Option<Self> {
        let [from, to] = match direction {
            Direction::Up => between,
            Direction::Down => [between[1], between[0]],
        };
        let device = |host: usize| hosts[host].device(link).map(|device| Arc::clone(&device.tun));
        let times = hosts[from].transmit_times(link);
        Some(Ends { link, direction, from: device(from)?, times, to: device(to)? })
    }
}

/// Counters of one direction, in real time.
#[derive(Debug)]
pub(crate) struct DirectionCounters {
    pub(crate) link: usize,
    pub(crate) direction: Direction,
    /// The link's own counters.
    pub(crate) counters: Counters,
    /// Release delay relative to the virtual clock, in µs, per packet.
    pub(crate) lateness: Histogram<u64>,
    /// Packets that the receiving device refused.
    pub(crate) refused: u64,
    /// Buffers with malformed headers.
    pub(crate) unreadable: u64,
    /// Bytes and real time of the busy periods that are long enough to derive a
    /// rate from.
    pub(crate) busy_bytes: ByteCount,
    pub(crate) busy: Duration,
    /// Samples of the queue.
    pub(crate) samples: Vec<QueueSample>,
    /// What happened to each flow, if it was logged.
    pub(crate) intervals: IntervalLog,
}

/// One train in flight.
#[derive(Debug)]
pub(crate) struct Packet {
    bytes: Bytes,
    length: usize,
    layout: Layout,
    /// How late it may have arrived at the bottleneck because it was read late.
    late: Duration,
}

/// Storage of its bytes.
#[derive(Debug)]
enum Bytes {
    Copied(Box<[u8]>),
    Pooled(Slot),
}

impl Packet {
    fn buffer<'a>(&'a self, pool: &'a Pool) -> &'a [u8] {
        match &self.bytes {
            Bytes::Copied(bytes) => &bytes[..self.length],
            Bytes::Pooled(slot) => &pool.bytes(slot)[..self.length],
        }
    }
}

/// The current busy period.
#[derive(Debug, Default)]
struct Period {
    number: u64,
    /// When its first packet was due.
    began: Nanos,
    /// Time, and bytes sent so far, at its first delivery on time and its latest one.
    first: Option<(Nanos, u64)>,
    latest: (Nanos, u64),
}

/// A running direction.
pub(crate) struct DirectionDriver {
    pub(crate) ends: Ends,
    pub(crate) link: Link<Rc<Packet>>,
    taps: Vec<Tap>,
    intervals: Option<IntervalLogger>,
    pub(crate) arrivals: Arrivals,
    /// Every packet that arrived before this time was read: the link is not advanced beyond it,
    /// as another packet may have arrived since.
    read_until: Nanos,
    /// How late the current busy period may have begun.
    start_delay: Duration,
    scratch: Vec<u8>,
    period: Period,
    next_sample: Nanos,
    sample_every: Duration,
    totals: DirectionCounters,
}

impl DirectionDriver {
    pub(crate) fn new(mut ends: Ends, link: Link<Rc<Packet>>) -> io::Result<Self> {
        let arrivals = Arrivals::new(ends.times.take());
        let totals = DirectionCounters {
            link: ends.link,
            direction: ends.direction,
            counters: Counters::default(),
            lateness: Histogram::new(2).map_err(io::Error::other)?,
            refused: 0,
            unreadable: 0,
            busy_bytes: ByteCount::ZERO,
            busy: Duration::ZERO,
            samples: Vec::new(),
            intervals: IntervalLog::default(),
        };
        Ok(DirectionDriver {
            ends,
            link,
            taps: Vec::new(),
            intervals: None,
            arrivals,
            read_until: Nanos(0),
            start_delay: Duration::ZERO,
            scratch: Vec::new(),
            period: Period::default(),
            next_sample: Nanos(0),
            sample_every: SAMPLE_INTERVAL,
            totals,
        })
    }

    /// Reads at most `batch` trains from the sending host; true if there may be
    /// more.
    pub(crate) fn receive(
        &mut self,
        pool: &mut Pool,
        batch: usize,
        now: impl Fn() -> Nanos,
    ) -> io::Result<bool> {
        for _ in 0..batch {
            let before = now();
            let mut slot = pool.take()?;
            let length = match self.ends.from.receive(pool.bytes_mut(&mut slot)) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.arrivals.found_empty(before);
                    self.read_until = before;
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            let arrival = self.arrivals.next(length - VNET_HEADER.min(length), &now);
            if let Some(wish) = self.link.config().window_scale {
                change::window_scale(&mut pool.bytes_mut(&mut slot)[..length], wish);
            }
            let bytes = &pool.bytes(&slot)[..length];
            let Some(layout) = Layout::of(bytes) else {
                self.totals.unreadable += 1;
                continue;
            };
            let train = layout.train_of(bytes);
            let bytes = if length <= COPY_LIMIT {
                Bytes::Copied(bytes.into())
            } else {
                Bytes::Pooled(slot)
            };
            // While the bottleneck is busy, the time of arrival matters little; but a late
            // start of a busy period delays all of it.
            if let Some(idle) = self.link.idle_since(arrival.at) {
                self.start_delay = arrival.at.since(idle).min(arrival.uncertainty);
            }
            let packet = Packet { bytes, length, layout, late: self.start_delay };
            self.link.arrive(arrival.at, train, Rc::new(packet));
            if let Some(intervals) = &mut self.intervals {
                intervals.arrived(self.link.queued_bytes());
            }
        }
        self.read_until = self.arrivals.latest();
        Ok(true)
    }

    /// The device had no packet when the driver woke up.
    pub(crate) fn not_woken(&mut self, now: Nanos) {
        self.read_until = now;
    }

    /// Delivers the packets that are due, as far as all arrivals are known.
    pub(crate) fn deliver(&mut self, pool: &Pool, clock: impl Fn() -> Nanos) {
        let mut now = clock();
        let until = now.min(self.read_until);
        while let Some(delivery) = self.link.release(until) {
            let sent = self.send(pool, &delivery);
            now = clock();
            let packets = u64::from(delivery.packets.end - delivery.packets.start);
            if sent.is_err() {
                self.totals.refused += packets;
            }
            // The histogram resizes itself.
            let late = now.since(delivery.due) + delivery.payload.late;
            let late = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
            let _ = self.totals.lateness.record_n(late, packets);
            self.update_rate(now, &delivery);
        }
        if now >= self.next_sample {
            self.sample(now);
        }
    }

    fn send(&mut self, pool: &Pool, delivery: &Delivery<Rc<Packet>>) -> io::Result<usize> {
        let packet = &delivery.payload;
        let buffer = packet.buffer(pool);
        let range = delivery.packets.clone();
        let piece = packet.layout.cut(buffer, range, delivery.marked, &mut self.scratch);
        let Some(draw) = delivery.flip else {
            return self.ends.to.send(&[IoSlice::new(piece.headers), IoSlice::new(piece.payload)]);
        };
        let mut changed = [piece.headers, piece.payload].concat();
        change::flip(&mut changed, draw);
        self.ends.to.send(&[IoSlice::new(&changed)])
    }

    /// Extends the busy period by a delivery. After a stall packets are delivered late until
    /// all that are due are delivered: the period is measured from its first delivery on time.
    fn update_rate(&mut self, now: Nanos, delivery: &Delivery<Rc<Packet>>) {
        let at = (now, delivery.sent_bytes);
        if delivery.busy_period != self.period.number {
            self.close_period();
            let (number, began) = (delivery.busy_period, delivery.due);
            self.period = Period { number, began, first: None, latest: at };
        }
        let on_time = now.since(delivery.due) <= STALL;
        if on_time || delivery.due.since(self.period.began) > CATCH_UP {
            self.period.first.get_or_insert(at);
        }
        self.period.latest = at;
    }

    fn close_period(&mut self) {
        let Period { first, latest, .. } = self.period;
        let first = first.unwrap_or(latest);
        let time = latest.0.since(first.0);
        if time >= MIN_BUSY_PERIOD {
            self.totals.busy += time;
            let bytes = ByteCount::from_bytes(latest.1.saturating_sub(first.1));
            self.totals.busy_bytes = self.totals.busy_bytes.plus(bytes);
        }
    }

    /// Time zero: earlier packets were those of the lab itself.
    pub(crate) fn begin(&mut self) {
        self.totals.lateness.reset();
    }

    /// The settings changed: the busy period so far is not one of the new rate.
    pub(crate) fn settings_changed(&mut self) {
        self.close_period();
        self.period = Period::default();
    }

    fn sample(&mut self, now: Nanos) {
        let Counters { queue_drops, aqm_drops, policed, too_long, .. } = self.link.counters();
        let Counters { lost, burst_lost, blackhole_lost, sent_bytes, marked, .. } =
            self.link.counters();
        let sample = QueueSample {
            at: now,
            bytes: self.link.queued_bytes(),
            packets: self.link.queued_packets(),
            sojourn: self.link.last_wait(),
            sent_bytes: ByteCount::from_bytes(sent_bytes),
            dropped: queue_drops + aqm_drops + policed + too_long,
            lost: lost + burst_lost + blackhole_lost,
            marked,
        };
        // Of a run of equal samples the first and the last suffice.
        let samples = &mut self.totals.samples;
        let same = |a: &QueueSample| QueueSample { at: sample.at, ..*a } == sample;
        if samples.len() >= 2 && samples.iter().rev().take(2).all(same) {
            samples.pop();
        }
        samples.push(sample);
        if samples.len() == MAX_SAMPLES {
            let mut index = 0;
            samples.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.sample_every *= 2;
        }
        self.next_sample = now.plus(self.sample_every);
    }

    /// Adds a tap, which gets the records from here on.
    pub(crate) fn add_tap(&mut self, tap: Tap) {
        self.link.watch(true);
        self.taps.push(tap);
    }

    /// Logs intervals from here on.
    pub(crate) fn log_intervals(&mut self) {
        self.link.watch(true);
        self.intervals.get_or_insert_default();
    }

    /// Passes the new fates of packets to the taps and the log.
    pub(crate) fn record_fates(&mut self, pool: &Pool, clock: impl Fn() -> Nanos) {
        if self.taps.is_empty() && self.intervals.is_none() {
            return;
        }
        let wanted = self.taps.iter().map(|tap| tap.bytes).max();
        let (link, direction) = (self.ends.link, self.ends.direction);
        let mut batch = Vec::new();
        for fate in self.link.fates() {
            if let Some(log) = &mut self.intervals {
                let length = fate.train.size(fate.index);
                log.count(fate.train.flow(), length, fate.kind, || {
                    FlowKey::of(fate.payload.buffer(pool).get(VNET_HEADER..)?)
                });
            }
            if let Some(wanted) = wanted {
                batch.push(record(link, direction, &fate, pool, wanted, &mut self.scratch));
            }
        }
        if let Some(log) = &mut self.intervals {
            let now = clock();
            if log.is_due(now) {
                log.end_interval(now, link_state(&mut self.link, now.min(self.read_until)));
            }
        }
        if batch.is_empty() {
            return;
        }
        self.taps.retain(|tap| tap.send(batch.clone()));
        if self.taps.is_empty() && self.intervals.is_none() {
            self.link.watch(false);
        }
    }

    /// Its counters, and the recording, whose end takes the kernel some time.
    pub(crate) fn finish(mut self) -> (DirectionCounters, Option<TransmitTimes>) {
        self.close_period();
        self.totals.counters = self.link.counters();
        self.totals.intervals =
            self.intervals.take().map(IntervalLogger::finish).unwrap_or_default();
        (self.totals, self.arrivals.finish())
    }
}

fn link_state(link: &mut Link<Rc<Packet>>, now: Nanos) -> LinkState {
    // The link advances when it is asked.
    link.idle_since(now);
    let rate = match &link.config().rate {
        Rate::Unlimited => None,
        Rate::Constant(rate) => Some(*rate),
        Rate::TokenBucket(bucket) => Some(bucket.rate),
        Rate::Trace(trace) => Some(trace.mean_rate()),
    };
    LinkState {
        counters: link.counters(),
        rate,
        delay: link.config().delay,
        queued_bytes: link.queued_bytes(),
    }
}

/// The record of a packet with its first `wanted` bytes.
fn record(
    link: usize,
    direction: Direction,
    fate: &Fate<Rc<Packet>>,
    pool: &Pool,
    wanted: usize,
    scratch: &mut Vec<u8>,
) -> PacketRecord {
    let packet = &fate.payload;
    let bytes = if wanted == 0 {
        Box::default()
    } else {
        let range = fate.index..fate.index + 1;
        let piece = packet.layout.cut(packet.buffer(pool), range, false, scratch);
        let mut whole = [piece.headers, piece.payload].concat();
        change::complete_checksum(&mut whole);
        let end = whole.len().min(VNET_HEADER.saturating_add(wanted));
        whole[VNET_HEADER.min(end)..end].into()
    };
    PacketRecord {
        link,
        direction,
        number: fate.number,
        length: fate.train.size(fate.index),
        arrived: fate.arrived,
        decided: fate.decided,
        kind: fate.kind,
        bytes,
    }
}

impl AsFd for DirectionDriver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ends.from.as_fd()
    }
}
