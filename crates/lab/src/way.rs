//! One direction of a link: packets from one TUN device through a [`Link`] to
//! another, and what there is to tell of it.

use crate::buffers::{Pool, Slot};
use crate::packet::{Layout, change};
use crate::watch::{QueueSample, Seen, Teller, Way};
use hdrhistogram::Histogram;
use host::tun::{Tun, VNET_HEADER};
use link::{Counters, Delivery, Fate, Link, Nanos};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;

/// Trains up to this size (bytes) are copied out of their slot: a slot holds
/// 64 KiB, and a path full of small packets would waste most of its memory.
const COPIED: usize = 16 * 1024;

/// A busy period shorter than this tells nothing of the rate: its ends are
/// late by up to the wake-up time of a thread.
const TELLING: u64 = 200_000_000;

/// How often the queue is looked at, in ns: 10 ms.
const SAMPLE: u64 = 10_000_000;

/// Most samples kept: an hour's. Then every second one is left out, again and
/// again, so that a long run stays drawn whole.
const SAMPLES: usize = 360_000;

/// Where a direction begins and ends, and whose it is.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) link: usize,
    pub(crate) way: Way,
    pub(crate) from: Arc<Tun>,
    pub(crate) to: Arc<Tun>,
}

/// What one direction did, in real time.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) link: usize,
    pub(crate) way: Way,
    /// The link's own counters.
    pub(crate) counters: Counters,
    /// Lateness of release against the virtual clock, in µs, weighted by packets.
    pub(crate) lateness: Histogram<u64>,
    /// Packets that came whole from one host and were not taken by the other.
    pub(crate) refused: u64,
    /// Buffers whose headers could not be read.
    pub(crate) unreadable: u64,
    /// Bytes and real ns of busy periods long enough to tell the rate.
    pub(crate) busy_bytes: u64,
    pub(crate) busy_ns: u64,
    /// The queue over time.
    pub(crate) samples: Vec<QueueSample>,
}

/// One train on its way.
#[derive(Debug)]
pub(crate) struct Packet {
    bytes: Bytes,
    length: usize,
    layout: Layout,
    /// How late it may have come to the bottleneck, in ns, because it was read late.
    late: u64,
}

/// Where its bytes are.
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

/// The busy period under way: its number, and time and bytes at its first and latest release.
#[derive(Debug, Default)]
struct Period {
    number: u64,
    first: (u64, u64),
    latest: (u64, u64),
}

/// A direction at work.
pub(crate) struct WayDriver {
    pub(crate) ends: Ends,
    pub(crate) link: Link<Rc<Packet>>,
    tellers: Vec<Teller>,
    /// When the device was last known to have nothing for us.
    pub(crate) seen_empty: Nanos,
    /// How late the busy period under way may have begun, in ns.
    began_late: u64,
    scratch: Vec<u8>,
    period: Period,
    next_sample: Nanos,
    sample_every: u64,
    tally: Tally,
}

impl WayDriver {
    pub(crate) fn new(ends: Ends, link: Link<Rc<Packet>>) -> io::Result<Self> {
        let tally = Tally {
            link: ends.link,
            way: ends.way,
            counters: Counters::default(),
            lateness: Histogram::new(2).map_err(io::Error::other)?,
            refused: 0,
            unreadable: 0,
            busy_bytes: 0,
            busy_ns: 0,
            samples: Vec::new(),
        };
        Ok(WayDriver {
            ends,
            link,
            tellers: Vec::new(),
            seen_empty: Nanos(0),
            began_late: 0,
            scratch: Vec::new(),
            period: Period::default(),
            next_sample: Nanos(0),
            sample_every: SAMPLE,
            tally,
        })
    }

    /// Takes in at most `batch` trains that the sending host has sent; tells
    /// whether there may be more.
    pub(crate) fn take_in(
        &mut self,
        pool: &mut Pool,
        batch: usize,
        now: impl Fn() -> Nanos,
    ) -> io::Result<bool> {
        for _ in 0..batch {
            let mut slot = pool.take()?;
            let length = match self.ends.from.receive(pool.bytes_mut(&mut slot)) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.seen_empty = now();
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            let now = now();
            if let Some(wish) = self.link.config().window_scale {
                change::window_scale(&mut pool.bytes_mut(&mut slot)[..length], wish);
            }
            let bytes = &pool.bytes(&slot)[..length];
            let Some(layout) = Layout::of(bytes) else {
                self.tally.unreadable += 1;
                continue;
            };
            let train = layout.train_of(bytes);
            let bytes =
                if length <= COPIED { Bytes::Copied(bytes.into()) } else { Bytes::Pooled(slot) };
            // Behind a busy bottleneck it does not matter when it was read; but
            // what made a busy period begin late made all of it late.
            if let Some(idle) = self.link.idle_since(now) {
                self.began_late = now.since(idle).min(now.since(self.seen_empty));
            }
            let packet = Packet { bytes, length, layout, late: self.began_late };
            self.link.arrive(now, train, Rc::new(packet));
        }
        Ok(true)
    }

    /// Hands over what is due.
    pub(crate) fn hand_over(&mut self, pool: &Pool, clock: impl Fn() -> Nanos) {
        let mut now = clock();
        while let Some(delivery) = self.link.release(now) {
            let sent = self.send(pool, &delivery);
            now = clock();
            let packets = u64::from(delivery.packets.end - delivery.packets.start);
            if sent.is_err() {
                self.tally.refused += packets;
            }
            // The histogram grows as it must; nothing is too late for it.
            let late = now.since(delivery.due) + delivery.payload.late;
            let _ = self.tally.lateness.record_n(late / 1000, packets);
            self.follow_rate(now, &delivery);
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

    fn follow_rate(&mut self, now: Nanos, delivery: &Delivery<Rc<Packet>>) {
        let at = (now.0, delivery.sent_bytes);
        if delivery.busy_period != self.period.number {
            self.close_period();
            self.period = Period { number: delivery.busy_period, first: at, latest: at };
        }
        self.period.latest = at;
    }

    fn close_period(&mut self) {
        let Period { first, latest, .. } = self.period;
        let time = latest.0.saturating_sub(first.0);
        if time >= TELLING {
            self.tally.busy_ns += time;
            self.tally.busy_bytes += latest.1.saturating_sub(first.1);
        }
    }

    /// Time zero: what was carried before was the lab's own.
    pub(crate) fn begin(&mut self) {
        self.tally.lateness.reset();
    }

    /// The settings changed: what was sent before says nothing of the new rate.
    pub(crate) fn settings_changed(&mut self) {
        self.close_period();
        self.period = Period::default();
    }

    fn sample(&mut self, now: Nanos) {
        let Counters { queue_drops, aqm_drops, policed, too_long, .. } = self.link.counters();
        let Counters { lost, burst_lost, dark_lost, sent_bytes, marked, .. } = self.link.counters();
        let sample = QueueSample {
            at: now.0,
            bytes: self.link.queued_bytes(),
            packets: self.link.queued_packets(),
            sojourn: self.link.last_wait(),
            sent_bytes,
            dropped: queue_drops + aqm_drops + policed + too_long,
            lost: lost + burst_lost + dark_lost,
            marked,
        };
        // Between two equal ones nothing happened.
        let samples = &mut self.tally.samples;
        let same = |a: &QueueSample| QueueSample { at: sample.at, ..*a } == sample;
        if samples.len() >= 2 && samples.iter().rev().take(2).all(same) {
            samples.pop();
        }
        samples.push(sample);
        if samples.len() == SAMPLES {
            let mut index = 0;
            samples.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.sample_every *= 2;
        }
        self.next_sample = Nanos(now.0 + self.sample_every);
    }

    /// Tells of each packet from here on.
    pub(crate) fn add_teller(&mut self, teller: Teller) {
        self.link.watch(true);
        self.tellers.push(teller);
    }

    /// Tells the watchers what was decided since they were last told.
    pub(crate) fn tell(&mut self, pool: &Pool) {
        if self.tellers.is_empty() {
            return;
        }
        let wanted = self.tellers.iter().map(|teller| teller.bytes).max().unwrap_or_default();
        let (link, way, scratch) = (self.ends.link, self.ends.way, &mut self.scratch);
        let seen = |fate: Fate<Rc<Packet>>| {
            let packet = &fate.payload;
            let length = fate.train.size(fate.index);
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
            Seen {
                link,
                way,
                number: fate.number,
                length,
                arrived: fate.arrived.0,
                decided: fate.decided.0,
                kind: fate.kind,
                bytes,
            }
        };
        let batch: Vec<Seen> = self.link.fates().map(seen).collect();
        if batch.is_empty() {
            return;
        }
        self.tellers.retain(|teller| teller.tell(batch.clone()));
        if self.tellers.is_empty() {
            self.link.watch(false);
        }
    }

    pub(crate) fn finish(mut self) -> Tally {
        self.close_period();
        self.tally.counters = self.link.counters();
        self.tally
    }
}

impl AsFd for WayDriver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ends.from.as_fd()
    }
}
