//! One direction of a link: packets from one host through a [`Link`] to another, with counters,
//! samples and taps.

use crate::arrivals::Arrivals;
use crate::buffers::Pool;
use crate::carried::{Arrived, Packet};
use crate::carrier::{Carrier, CarrierEnds};
use crate::catch_up::CatchUp;
use crate::interval_log::{IntervalLog, IntervalLogger, LinkState};
use crate::packet::change;
use crate::packet::change::FlowKey;
use crate::watch::{LinkDirection, PacketRecord, QueueSample, Tap};
use hdrhistogram::Histogram;
use host::packet_queue::PacketQueue;
use host::transmit_times::TransmitTimes;
use host::tun::VNET_HEADER;
use link::{Counters, Delivery, Fate, FateKind, Link, Rate};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;
use units::{ByteCount, Nanos};

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

/// A direction of a link, and what carries its packets.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) link: usize,
    pub(crate) direction: LinkDirection,
    pub(crate) carrier: CarrierEnds,
}

/// Counters of one direction, in real time.
#[derive(Debug)]
pub(crate) struct DirectionCounters {
    pub(crate) link: usize,
    pub(crate) direction: LinkDirection,
    /// The link's own counters.
    pub(crate) counters: Counters,
    /// Release delay relative to the virtual clock, in µs, per packet.
    pub(crate) lateness: Histogram<u64>,
    /// Packets that the receiving device refused.
    pub(crate) refused: u64,
    /// Buffers with malformed headers.
    pub(crate) unreadable: u64,
    /// Trains that counted as one packet, as it was not known for how many they stand.
    pub(crate) uncounted: u64,
    /// Bytes and real time of the busy periods that are long enough to derive a
    /// rate from.
    pub(crate) busy_bytes: ByteCount,
    pub(crate) busy: Duration,
    /// Samples of the queue.
    pub(crate) samples: Vec<QueueSample>,
    /// What happened to each flow, if it was logged.
    pub(crate) intervals: IntervalLog,
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
    carrier: Carrier,
    pub(crate) link: Link<Rc<Packet>>,
    taps: Vec<Tap>,
    intervals: Option<IntervalLogger>,
    pub(crate) arrivals: Arrivals,
    /// Every packet that arrived before this time was read: the link is not advanced beyond it,
    /// as another packet may have arrived since.
    read_until: Nanos,
    /// How late the current busy period may have begun.
    start_delay: Duration,
    catch_up: CatchUp,
    scratch: Vec<u8>,
    /// Deliveries that the link released, and that wait for the rest of their train.
    released: Vec<Delivery<Rc<Packet>>>,
    period: Period,
    next_sample: Nanos,
    sample_every: Duration,
    /// The link's counters where the report begins.
    omitted: Counters,
    totals: DirectionCounters,
}

impl DirectionDriver {
    pub(crate) fn new(ends: Ends, mut link: Link<Rc<Packet>>) -> io::Result<Self> {
        let Ends { link: number, direction, carrier } = ends;
        let mut carrier = Carrier::new(carrier);
        let arrivals = Arrivals::new(carrier.take_times());
        link.watch_drops(carrier.needs_drops());
        let totals = DirectionCounters {
            link: number,
            direction,
            counters: Counters::default(),
            lateness: Histogram::new(2).map_err(io::Error::other)?,
            refused: 0,
            unreadable: 0,
            uncounted: 0,
            busy_bytes: ByteCount::ZERO,
            busy: Duration::ZERO,
            samples: Vec::new(),
            intervals: IntervalLog::default(),
        };
        Ok(DirectionDriver {
            carrier,
            link,
            taps: Vec::new(),
            intervals: None,
            arrivals,
            read_until: Nanos(0),
            start_delay: Duration::ZERO,
            catch_up: CatchUp::default(),
            scratch: Vec::new(),
            released: Vec::new(),
            period: Period::default(),
            next_sample: Nanos(0),
            sample_every: SAMPLE_INTERVAL,
            omitted: Counters::default(),
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
            let window_scale = self.link.config().window_scale;
            let arrived = self.carrier.next(pool, window_scale)?;
            let Some(Arrived { length, time, is_counted, train }) = arrived else {
                self.arrivals.found_empty(before);
                self.read_until = before;
                return Ok(false);
            };
            self.totals.uncounted += u64::from(!is_counted);
            let arrival = self.arrivals.next(length, time, &now);
            let Some((body, layout, train)) = train else {
                self.totals.unreadable += 1;
                continue;
            };
            // While the bottleneck is busy, the time of arrival matters little; but a late
            // start of a busy period delays all of it.
            if let Some(idle) = self.link.idle_since(arrival.at) {
                self.start_delay = arrival.at.since(idle).min(arrival.uncertainty);
            }
            let packet = Rc::new(Packet { body, layout, late: self.start_delay });
            self.carrier.entered(&packet);
            self.link.arrive(arrival.at, train, packet);
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
    pub(crate) fn deliver(&mut self, pool: &Pool, clock: impl Fn() -> Nanos) -> io::Result<()> {
        // A carrier has to know what was dropped before it passes on the rest.
        self.record_fates(pool, &clock);
        let mut now = clock();
        let until = self.deliver_until(now);
        let mut more = true;
        while more {
            more = self.release(until);
            let complete = self.released.iter().take_while(|it| it.payload.is_complete()).count();
            let deliveries = &self.released[..complete];
            self.totals.refused += self.carrier.deliver(pool, deliveries, &mut self.scratch)?;
            if complete > 0 {
                now = clock();
            }
            for index in 0..complete {
                self.delivered(now, index);
            }
            self.released.drain(..complete);
        }
        if now >= self.next_sample {
            self.sample(now);
        }
        Ok(())
    }

    /// Until when deliveries are passed on that are due by `now`.
    fn deliver_until(&mut self, now: Nanos) -> Nanos {
        let until = now.min(self.read_until);
        if self.carrier.paces_late_deliveries() {
            self.catch_up.until(now, until, self.link.next_due())
        } else {
            until
        }
    }

    /// Takes the next due packets from the link; true if there may be more.
    fn release(&mut self, until: Nanos) -> bool {
        for _ in 0..self.carrier.at_once() {
            let Some(delivery) = self.link.release(until) else { return false };
            delivery.payload.packets_released(delivery.packets.end - delivery.packets.start);
            self.released.push(delivery);
        }
        true
    }

    /// Counts a delivery of [`DirectionDriver::released`].
    fn delivered(&mut self, now: Nanos, index: usize) {
        let delivery = &self.released[index];
        let packets = u64::from(delivery.packets.end - delivery.packets.start);
        // The histogram resizes itself.
        let late = now.since(delivery.due) + delivery.payload.late;
        let late = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        let _ = self.totals.lateness.record_n(late, packets);
        let at = (now, delivery.sent_bytes);
        self.update_rate(at, delivery.busy_period, delivery.due);
    }

    /// Extends the busy period by a delivery. After a stall packets are delivered late until
    /// all that are due are delivered: the period is measured from its first delivery on time.
    fn update_rate(&mut self, at: (Nanos, u64), busy_period: u64, due: Nanos) {
        if busy_period != self.period.number {
            self.close_period();
            self.period = Period { number: busy_period, began: due, first: None, latest: at };
        }
        let on_time = at.0.since(due) <= STALL;
        if on_time || due.since(self.period.began) > CATCH_UP {
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

    /// What was counted so far is not reported.
    pub(crate) fn omit(&mut self) {
        self.settings_changed();
        self.omitted = self.link.counters();
        let totals = &mut self.totals;
        totals.lateness.reset();
        (totals.refused, totals.unreadable, totals.uncounted) = (0, 0, 0);
        (totals.busy, totals.busy_bytes) = (Duration::ZERO, ByteCount::ZERO);
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
    pub(crate) fn add_tap(&mut self, tap: Tap) -> io::Result<()> {
        if tap.bytes > 0 {
            self.carrier.read_content(true)?;
        }
        self.watch();
        self.taps.push(tap);
        Ok(())
    }

    /// Logs intervals from here on.
    pub(crate) fn log_intervals(&mut self) {
        self.watch();
        self.intervals.get_or_insert_default();
    }

    /// Records the fates of all packets from here on.
    fn watch(&mut self) {
        // Fates so far would be lost.
        self.count_drops();
        self.link.watch(true);
    }

    fn count_drops(&mut self) {
        self.link.fates().for_each(|fate| count_drop(&mut self.carrier, &fate));
    }

    /// Passes the new fates of packets to the carrier, the taps and the log.
    pub(crate) fn record_fates(&mut self, pool: &Pool, clock: impl Fn() -> Nanos) {
        if self.taps.is_empty() && self.intervals.is_none() {
            return self.count_drops();
        }
        let wanted = self.taps.iter().map(|tap| tap.bytes).max();
        let (link, direction) = (self.totals.link, self.totals.direction);
        let mut batch = Vec::new();
        for fate in self.link.fates() {
            count_drop(&mut self.carrier, &fate);
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
            self.link.watch_drops(self.carrier.needs_drops());
        }
        if wanted.is_some_and(|bytes| bytes > 0) && self.taps.iter().all(|tap| tap.bytes == 0) {
            // Without it, packets are read with more bytes than anyone needs.
            let _ = self.carrier.read_content(false);
        }
    }

    pub(crate) fn finish(mut self) -> Finished {
        self.close_period();
        self.totals.counters = self.link.counters().since(&self.omitted);
        self.totals.intervals =
            self.intervals.take().map(IntervalLogger::finish).unwrap_or_default();
        Finished {
            counters: self.totals,
            queues: self.carrier.into_queues(),
            recording: self.arrivals.finish(),
        }
    }
}

/// What is left of a direction.
pub(crate) struct Finished {
    pub(crate) counters: DirectionCounters,
    /// See [`Carrier::into_queues`].
    pub(crate) queues: Vec<PacketQueue>,
    /// Its end takes the kernel some time.
    pub(crate) recording: Option<TransmitTimes>,
}

fn count_drop(carrier: &mut Carrier, fate: &Fate<Rc<Packet>>) {
    if matches!(fate.kind, FateKind::Dropped(_)) {
        carrier.packet_dropped(&fate.payload);
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
    direction: LinkDirection,
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
        // Of packets that arrived before the tap was added, the kernel has passed on headers alone.
        if whole.len() >= VNET_HEADER + fate.train.size(fate.index) as usize {
            change::complete_checksum(&mut whole);
        }
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
        self.carrier.as_fd()
    }
}
