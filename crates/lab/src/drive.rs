//! Driving one direction of a path: packets from one TUN device through a
//! [`Link`] to another, in real time, on a thread of its own.
//!
//! The thread sleeps until a packet comes or one is due, never per packet:
//! whatever has come is taken in, whatever is due is handed over, trains
//! together. What the link decided on its virtual clock and when it really
//! happened are compared all the while; that is the [`Tally`].

use crate::packet::Layout;
use hdrhistogram::Histogram;
use host::tun::{self, Tun};
use host::{clock, wait};
use link::{Counters, Delivery, Link, LinkConfig, Nanos};
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Trains taken in before what is due is looked at again. 16 trains of 64 KiB
/// are 0.8 ms at 10 Gbit/s: the most that reading alone can make a release late.
const BATCH: usize = 16;

/// Trains up to this size (bytes) are copied out of the read buffer; a copy of
/// 16 KiB costs less than the cache misses of a fresh 64 KiB buffer.
const COPIED: usize = 16 * 1024;

/// Buffers kept for reuse: 64 of 64 KiB.
const SPARE: usize = 64;

/// A busy period shorter than this tells nothing of the rate: its ends are
/// late by up to the wake-up time of a thread.
const TELLING: u64 = 200_000_000;

/// What one direction did, in real time.
#[derive(Debug)]
pub(crate) struct Tally {
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
    /// CPU time of the thread as a share of one core.
    pub(crate) cpu: f64,
}

pub(crate) struct Direction {
    pub(crate) from: Arc<Tun>,
    pub(crate) to: Arc<Tun>,
    pub(crate) link: LinkConfig,
    pub(crate) stop: Arc<wait::Bell>,
}

/// One buffer with a train in it.
struct Packet {
    bytes: Box<[u8]>,
    length: usize,
    layout: Layout,
}

struct Driver {
    direction: Direction,
    link: Link<Rc<Packet>>,
    start: Instant,
    spare: Vec<Box<[u8]>>,
    scratch: Vec<u8>,
    period: Period,
    tally: Tally,
}

/// The busy period under way: its number, and time and bytes at its first and latest release.
#[derive(Default)]
struct Period {
    number: u64,
    first: (u64, u64),
    latest: (u64, u64),
}

impl Direction {
    /// Carries packets until the bell rings.
    pub(crate) fn drive(self) -> io::Result<Tally> {
        wait::precise_timers();
        // Without the privilege it goes on at ordinary priority; the
        // certificate tells what became of it.
        let _ = wait::raise_priority();
        let mut driver = Driver {
            link: Link::new(self.link.clone()),
            direction: self,
            start: clock::now(),
            spare: Vec::new(),
            scratch: Vec::new(),
            period: Period::default(),
            tally: Tally {
                counters: Counters::default(),
                lateness: Histogram::new(2).map_err(io::Error::other)?,
                refused: 0,
                unreadable: 0,
                busy_bytes: 0,
                busy_ns: 0,
                cpu: 0.0,
            },
        };
        driver.run()?;
        Ok(driver.finish())
    }
}

impl Driver {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let more = self.take_in()?;
            self.hand_over();
            let timeout = match (more, self.link.next_due()) {
                (true, _) => Some(Duration::ZERO),
                (false, None) => None,
                (false, Some(due)) => Some(Duration::from_nanos(due.since(self.now()))),
            };
            let files = [self.direction.stop.as_fd(), self.direction.from.as_fd()];
            if wait::readable(files, timeout)?[0] {
                return Ok(());
            }
        }
    }

    /// Takes in what the sending host has sent; tells whether there may be more.
    fn take_in(&mut self) -> io::Result<bool> {
        for _ in 0..BATCH {
            let mut buffer = self.spare.pop().unwrap_or_else(|| vec![0; tun::MAX_READ].into());
            let length = match self.direction.from.receive(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.spare.push(buffer);
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            let now = self.now();
            let Some(layout) = Layout::of(&buffer[..length]) else {
                self.tally.unreadable += 1;
                self.spare.push(buffer);
                continue;
            };
            let bytes = if length <= COPIED {
                let copy = buffer[..length].into();
                self.spare.push(buffer);
                copy
            } else {
                buffer
            };
            self.link.arrive(now, layout.train(), Rc::new(Packet { bytes, length, layout }));
        }
        Ok(true)
    }

    /// Hands over what is due.
    fn hand_over(&mut self) {
        let mut now = self.now();
        while let Some(delivery) = self.link.release(now) {
            let packet = &delivery.payload;
            let buffer = &packet.bytes[..packet.length];
            let piece = packet.layout.cut(buffer, delivery.packets.clone(), &mut self.scratch);
            let sent =
                self.direction.to.send(&[IoSlice::new(piece.headers), IoSlice::new(piece.payload)]);
            now = self.now();
            let packets = u64::from(delivery.packets.end - delivery.packets.start);
            if sent.is_err() {
                self.tally.refused += packets;
            }
            // The histogram grows as it must; nothing is too late for it.
            let _ = self.tally.lateness.record_n(now.since(delivery.due) / 1000, packets);
            self.follow_rate(now, &delivery);
            if let Some(packet) = Rc::into_inner(delivery.payload)
                && packet.bytes.len() == tun::MAX_READ
                && self.spare.len() < SPARE
            {
                self.spare.push(packet.bytes);
            }
        }
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
        let time = latest.0 - first.0;
        if time >= TELLING {
            self.tally.busy_ns += time;
            self.tally.busy_bytes += latest.1 - first.1;
        }
    }

    fn finish(mut self) -> Tally {
        self.close_period();
        self.tally.counters = self.link.counters();
        let used = host::cpu::this_thread().unwrap_or_default().as_secs_f64();
        self.tally.cpu = used / self.start.elapsed().as_secs_f64().max(1e-9);
        self.tally
    }

    fn now(&self) -> Nanos {
        let passed = clock::now().duration_since(self.start).as_nanos();
        Nanos(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}
