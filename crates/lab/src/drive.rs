//! Driving one direction of a path: packets from one TUN device through a
//! [`Link`] to another, in real time, on a thread of its own.
//!
//! The thread sleeps until a packet comes or one is due, never per packet:
//! whatever has come is taken in, whatever is due is handed over, trains
//! together. What the link decided on its virtual clock and when it really
//! happened are compared all the while; that is the [`Tally`].

#[cfg(doc)]
use crate::buffers;
use crate::buffers::{Pool, Slot};
use crate::packet::Layout;
use hdrhistogram::Histogram;
use host::memory::Region;
use host::tun::Tun;
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

/// Trains up to this size (bytes) are copied out of their slot: a slot holds
/// 64 KiB, and a path full of small packets would waste most of its memory.
const COPIED: usize = 16 * 1024;

/// A shorter wait is not slept: falling asleep and waking takes longer. At
/// 10 Gbit/s a train comes every 52 µs, and half of that is work.
const SHORT: Duration = Duration::from_micros(25);

/// Longest sleep: one that took longer tells that the thread was kept from
/// running, and what arrived meanwhile was read late. With [`HESITATION`] it is
/// the most that can go unseen, 2 ms: as late as a packet may be.
const LOOK: Duration = Duration::from_micros(1500);

/// How much longer a sleep may take before that is said of it.
const HESITATION: Duration = Duration::from_micros(500);

/// Most that a sleep is cut short, see [`Sleep`].
const EARLY: Duration = Duration::from_micros(150);

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
    /// Room for the packets of a full path, see [`buffers::reserve`].
    pub(crate) room: Vec<Region>,
    pub(crate) stop: Arc<wait::Bell>,
}

/// One train on its way.
struct Packet {
    bytes: Bytes,
    length: usize,
    layout: Layout,
    /// How late it may have come to the bottleneck, in ns, because it was read late.
    late: u64,
}

/// Where its bytes are.
enum Bytes {
    Copied(Box<[u8]>),
    Pooled(Slot),
}

/// Sleeping until a moment. A sleeper wakes late, by 50 to 100 µs on a virtual
/// machine; so it asks to be woken by as much earlier as it was late before,
/// and then looks again and again without sleeping.
#[derive(Default)]
struct Sleep {
    late: Duration,
    /// The moment that was slept towards and is now waited for awake.
    awake_for: Option<Nanos>,
}

impl Sleep {
    /// How long to sleep for `due`, which is so far away; `None` not to. Waits
    /// of a busy link are slept in full: waiting awake would take a whole core
    /// from the hosts.
    fn timeout(&mut self, due: Nanos, left: Duration) -> Option<Duration> {
        if left <= SHORT || (left <= EARLY && self.awake_for == Some(due)) {
            return None;
        }
        if left <= EARLY * 2 {
            return Some(left);
        }
        self.awake_for = Some(due);
        Some(left - self.late)
    }

    fn woke(&mut self, late_by: Duration) {
        self.late = ((self.late + late_by) / 2).min(EARLY);
    }
}

struct Driver {
    direction: Direction,
    link: Link<Rc<Packet>>,
    start: Instant,
    pool: Pool,
    sleep: Sleep,
    /// When the device was last known to have nothing for us.
    seen_empty: Nanos,
    /// How late the busy period under way may have begun, in ns.
    began_late: u64,
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
    pub(crate) fn drive(mut self) -> io::Result<Tally> {
        wait::precise_timers();
        // Without the privilege it goes on at ordinary priority; the
        // certificate tells what became of it.
        let _ = wait::raise_priority();
        let room = std::mem::take(&mut self.room);
        let mut driver = Driver {
            link: Link::new(self.link.clone()),
            direction: self,
            start: clock::now(),
            pool: Pool::new(room),
            sleep: Sleep::default(),
            seen_empty: Nanos(0),
            began_late: 0,
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
        while !self.direction.stop.has_rung() {
            let more = self.take_in()?;
            self.hand_over();
            let now = self.now();
            if more {
                continue;
            }
            let timeout = match self.link.next_due() {
                None => LOOK,
                Some(due) => {
                    let left = Duration::from_nanos(due.since(now));
                    match self.sleep.timeout(due, left) {
                        None => continue,
                        Some(timeout) => timeout.min(LOOK),
                    }
                }
            };
            let files = [self.direction.stop.as_fd(), self.direction.from.as_fd()];
            let [_, packet] = wait::readable(files, Some(timeout))?;
            let woken = self.now();
            let longer = Duration::from_nanos(woken.since(now)).saturating_sub(timeout);
            if !packet {
                self.sleep.woke(longer);
            }
            self.seen_empty = if longer > HESITATION { now.plus(timeout) } else { woken };
        }
        Ok(())
    }

    /// Takes in what the sending host has sent; tells whether there may be more.
    fn take_in(&mut self) -> io::Result<bool> {
        for _ in 0..BATCH {
            let mut slot = self.pool.take()?;
            let length = match self.direction.from.receive(self.pool.bytes_mut(&mut slot)) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.seen_empty = self.now();
                    return Ok(false);
                }
                Err(error) => return Err(error),
            };
            let now = self.now();
            let bytes = &self.pool.bytes(&slot)[..length];
            let Some(layout) = Layout::of(bytes) else {
                self.tally.unreadable += 1;
                continue;
            };
            let bytes =
                if length <= COPIED { Bytes::Copied(bytes.into()) } else { Bytes::Pooled(slot) };
            // Behind a busy bottleneck it does not matter when it was read; but
            // what made a busy period begin late made all of it late.
            if let Some(idle) = self.link.idle_since(now) {
                self.began_late = now.since(idle).min(now.since(self.seen_empty));
            }
            let packet = Packet { bytes, length, layout, late: self.began_late };
            self.link.arrive(now, layout.train(), Rc::new(packet));
        }
        Ok(true)
    }

    /// Hands over what is due.
    fn hand_over(&mut self) {
        let mut now = self.now();
        while let Some(delivery) = self.link.release(now) {
            let packet = &delivery.payload;
            let buffer = match &packet.bytes {
                Bytes::Copied(bytes) => &bytes[..packet.length],
                Bytes::Pooled(slot) => &self.pool.bytes(slot)[..packet.length],
            };
            let piece = packet.layout.cut(buffer, delivery.packets.clone(), &mut self.scratch);
            let sent =
                self.direction.to.send(&[IoSlice::new(piece.headers), IoSlice::new(piece.payload)]);
            now = self.now();
            let packets = u64::from(delivery.packets.end - delivery.packets.start);
            if sent.is_err() {
                self.tally.refused += packets;
            }
            // The histogram grows as it must; nothing is too late for it.
            let late = now.since(delivery.due) + packet.late;
            let _ = self.tally.lateness.record_n(late / 1000, packets);
            self.follow_rate(now, &delivery);
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
