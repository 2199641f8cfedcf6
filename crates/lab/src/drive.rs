//! Driving links in real time, some directions on each of a few threads.
//!
//! A thread sleeps until a packet comes or one is due, never per packet:
//! whatever has come is taken in, whatever is due is handed over, trains
//! together. What a link decided on its virtual clock and when it really
//! happened are compared all the while; that is the [`Tally`].

#[cfg(doc)]
use crate::buffers;
use crate::buffers::Pool;
use crate::watch::Teller;
use crate::way::{Ends, Tally, WayDriver};
use host::clock;
use host::memory::Region;
use host::wait::{self, Bell, Poller};
use link::{Link, Nanos, Schedule};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Trains taken in before what is due is looked at again. 16 trains of 64 KiB
/// are 0.8 ms at 10 Gbit/s: the most that reading alone can make a release late.
const BATCH: usize = 16;

/// A shorter wait is not slept: falling asleep and waking takes longer. At
/// 10 Gbit/s a train comes every 52 µs, and half of that is work.
const SHORT: Duration = Duration::from_micros(25);

/// Longest sleep: one that took longer tells that the thread was kept from
/// running, and what arrived meanwhile was read late. With [`HESITATION`] it is
/// the most that can go unseen, 2 ms: as late as a packet may be.
const LOOK: Duration = Duration::from_micros(1500);

/// How much longer a sleep may take before that is said of it.
const HESITATION: Duration = Duration::from_micros(500);

/// A wait that took less, in ns, was none: something was ready before it.
const INSTANT: u64 = 20_000;

/// Most that a sleep is cut short, see [`Sleep`].
const EARLY: Duration = Duration::from_micros(150);

/// What a driver is to begin with.
pub(crate) struct Work {
    pub(crate) ways: Vec<(Ends, Schedule)>,
    /// Room for the packets of full paths, see [`buffers::reserve`].
    pub(crate) room: Vec<Region>,
    pub(crate) orders: Arc<Orders>,
    /// Time zero of every link of the lab.
    pub(crate) epoch: Instant,
    /// Never sleep: spend a core on accuracy.
    pub(crate) accurate: bool,
}

/// What one thread did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) ways: Vec<Tally>,
    /// CPU time of the thread as a share of one core.
    pub(crate) cpu: f64,
}

/// What a running driver is told.
#[derive(Debug)]
pub(crate) struct Orders {
    stop: Bell,
    waiting: AtomicBool,
    orders: Mutex<Vec<Order>>,
}

/// A word to one direction, by its place in [`Work::ways`].
#[derive(Debug)]
pub(crate) enum Order {
    /// Other settings from here on; times of the schedule count from `origin`.
    Reschedule { way: usize, origin: Nanos, schedule: Box<Schedule> },
    /// Time zero: what came before was the lab's own.
    Begin { way: usize },
    /// Tell of each packet.
    Tell { way: usize, teller: Teller },
}

impl Orders {
    pub(crate) fn new() -> io::Result<Self> {
        let (waiting, orders) = (AtomicBool::new(false), Mutex::default());
        Ok(Orders { stop: Bell::new()?, waiting, orders })
    }

    /// Ends the driver.
    pub(crate) fn stop(&self) {
        self.stop.ring();
    }

    /// Gives an order; it is carried out within 2 ms.
    pub(crate) fn give(&self, order: Order) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).push(order);
        self.waiting.store(true, Ordering::Release);
    }

    /// What was not carried out yet.
    pub(crate) fn take(&self) -> Vec<Order> {
        if !self.waiting.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }
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

/// A real-time thread that leaves ordinary ones of its core less than 5 % of
/// the time is kept from running for 50 ms of every second (sched(7); seen on
/// Linux 6.18). So of every stint it rests this much, 6 %: late by 0.1 ms now
/// and then is better than late by 50.
const STINT: Duration = Duration::from_millis(2);
const REST: Duration = Duration::from_micros(120);

/// The shortest rest that is asked for: what a sleeper oversleeps is rest too.
const NAP: Duration = Duration::from_micros(50);

/// Where nobody else wants the core, stints become as long as this.
const LONGEST_STINT: Duration = Duration::from_millis(32);

/// A rest that took so much longer than asked shows that somebody did.
const WANTED: Duration = Duration::from_micros(150);

/// The stint under way.
struct Stint {
    length: Duration,
    began: Instant,
    rested: Duration,
    /// By how much rests are longer than asked, on average.
    overslept: Duration,
}

impl Stint {
    fn new() -> Self {
        let (rested, overslept) = (Duration::ZERO, Duration::ZERO);
        Stint { length: STINT, began: clock::now(), rested, overslept }
    }

    /// Rests where it is time to; tells whether it did.
    fn rest(&mut self) -> bool {
        let now = clock::now();
        if now.duration_since(self.began) < self.length {
            return false;
        }
        let missing = REST.saturating_sub(self.rested);
        if !missing.is_zero() {
            let nap = missing.saturating_sub(self.overslept).max(NAP);
            std::thread::sleep(nap);
            let longer = now.elapsed().saturating_sub(nap);
            self.overslept = (self.overslept * 7 + longer.min(REST)) / 8;
            self.length = if longer > WANTED { STINT } else { LONGEST_STINT.min(self.length * 2) };
        }
        self.began = clock::now();
        self.rested = Duration::ZERO;
        !missing.is_zero()
    }
}

struct Driver {
    ways: Vec<WayDriver>,
    /// Of each direction: whether its device may have something for us.
    ready: Vec<bool>,
    poller: Poller,
    pool: Pool,
    sleep: Sleep,
    stint: Stint,
    orders: Arc<Orders>,
    epoch: Instant,
    accurate: bool,
}

/// The bell's token; directions have theirs from 0 on.
const BELL: usize = usize::MAX;

impl Work {
    /// Carries packets until told to stop.
    pub(crate) fn drive(self) -> io::Result<Done> {
        wait::precise_timers();
        // Without the privilege it goes on at ordinary priority; the
        // certificate tells what became of it.
        let _ = wait::raise_priority();
        let begun = clock::now();
        let mut poller = Poller::new()?;
        poller.add(&self.orders.stop, BELL)?;
        let mut ways = Vec::new();
        for (ends, schedule) in self.ways {
            poller.add(&*ends.from, ways.len())?;
            ways.push(WayDriver::new(ends, Link::new(schedule))?);
        }
        let mut driver = Driver {
            ready: vec![true; ways.len()],
            ways,
            poller,
            pool: Pool::new(self.room),
            sleep: Sleep::default(),
            stint: Stint::new(),
            orders: self.orders,
            epoch: self.epoch,
            accurate: self.accurate,
        };
        driver.run()?;
        let used = host::cpu::this_thread().unwrap_or_default().as_secs_f64();
        let cpu = used / begun.elapsed().as_secs_f64().max(1e-9);
        Ok(Done { ways: driver.ways.into_iter().map(WayDriver::finish).collect(), cpu })
    }
}

impl Driver {
    fn run(&mut self) -> io::Result<()> {
        let mut woken = Vec::new();
        while !self.orders.stop.has_rung() {
            for order in self.orders.take() {
                self.obey(order);
            }
            let epoch = self.epoch;
            let clock = || since(epoch);
            let mut more = false;
            for (way, ready) in self.ways.iter_mut().zip(&mut self.ready) {
                if *ready {
                    *ready = way.take_in(&mut self.pool, BATCH, clock)?;
                    more |= *ready;
                }
                way.hand_over(&self.pool, clock);
                way.tell(&self.pool);
            }
            let now = clock();
            let due = self.ways.iter().filter_map(|way| way.link.next_due()).min();
            if self.stint.rest() || more {
                continue;
            }
            let Some(timeout) = self.timeout(now, due) else {
                // What is due in a moment is waited for awake; what comes
                // meanwhile is found by trying.
                self.ready.fill(true);
                continue;
            };
            self.poller.wait(Some(timeout), &mut woken)?;
            self.woke(now, timeout, &woken);
        }
        Ok(())
    }

    /// How long to sleep; `None` not to.
    fn timeout(&mut self, now: Nanos, due: Option<Nanos>) -> Option<Duration> {
        if self.accurate {
            return None;
        }
        match due {
            None => Some(LOOK),
            Some(due) => {
                let left = Duration::from_nanos(due.since(now));
                self.sleep.timeout(due, left).map(|timeout| timeout.min(LOOK))
            }
        }
    }

    fn woke(&mut self, slept_at: Nanos, timeout: Duration, woken: &[usize]) {
        let now = since(self.epoch);
        self.stint.rested += Duration::from_nanos(now.since(slept_at));
        let longer = Duration::from_nanos(now.since(slept_at)).saturating_sub(timeout);
        if woken.is_empty() {
            self.sleep.woke(longer);
        }
        let slept = now.since(slept_at) > INSTANT;
        // A direction that has something had nothing when we fell asleep, so
        // it came just now; or while we were kept from waking, and then the
        // others may have something by now as well.
        let empty = if longer > HESITATION { slept_at.plus(timeout) } else { now };
        for (index, way) in self.ways.iter_mut().enumerate() {
            self.ready[index] = woken.contains(&index);
            if slept || !self.ready[index] {
                way.seen_empty = empty;
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Reschedule { way, origin, schedule } => {
                if let Some(way) = self.ways.get_mut(way) {
                    way.link.reschedule(since(self.epoch), origin, *schedule);
                    way.settings_changed();
                }
            }
            Order::Begin { way } => {
                if let Some(way) = self.ways.get_mut(way) {
                    way.link.restart(since(self.epoch));
                    way.begin();
                }
            }
            Order::Tell { way, teller } => {
                if let Some(way) = self.ways.get_mut(way) {
                    way.add_teller(teller);
                }
            }
        }
    }
}

fn since(epoch: Instant) -> Nanos {
    let passed = clock::now().duration_since(epoch).as_nanos();
    Nanos(u64::try_from(passed).unwrap_or(u64::MAX))
}
