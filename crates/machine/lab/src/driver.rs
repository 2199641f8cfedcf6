//! Drives links in real time, several directions on each of a few threads.
//!
//! A thread sleeps until a packet arrives or is due, then reads all that arrived
//! and delivers all that is due, in trains. The release times of the virtual clock
//! are compared with the real ones; see [`DirectionCounters`].

use crate::at_once;
#[cfg(doc)]
use crate::buffers;
use crate::buffers::Pool;
use crate::direction::{DirectionCounters, DirectionDriver, Ends};
use crate::watch::Tap;
use host::lock::lock;
use host::memory::Region;
use host::packet_queue::PacketQueue;
use host::wait::{self, EventFd, Poller};
use host::{clock, cpu};
use link::{Link, Schedule};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::Nanos;

/// Trains read before due packets are delivered again. 16 trains of 64 KiB are
/// 0.8 ms at 10 Gbit/s: the largest release delay that reading can cause.
const BATCH: usize = 16;

/// Shortest sleep: falling asleep and waking takes about that long. At 10 Gbit/s a
/// train arrives every 52 µs, and half of that is work.
const MIN_SLEEP: Duration = Duration::from_micros(25);

/// Longest sleep: after a longer one, the thread was not scheduled and packets were
/// read late. With [`OVERSLEEP_TOLERANCE`] it bounds an undetected delay to 2 ms,
/// the limit of a valid run.
const MAX_SLEEP: Duration = Duration::from_micros(1500);

/// How much longer a sleep may take than requested before it counts as late.
const OVERSLEEP_TOLERANCE: Duration = Duration::from_micros(500);

/// A shorter wait did not sleep: an event was ready.
const MIN_SLEPT: Duration = Duration::from_micros(20);

/// Longest time by which a sleep is shortened, see [`Sleep`].
const MAX_EARLY_WAKE: Duration = Duration::from_micros(150);

/// The work of one driver thread.
pub(crate) struct Work {
    pub(crate) directions: Vec<(Ends, Schedule)>,
    /// Memory for the packets in flight, see [`buffers::reserve`].
    pub(crate) memory: Vec<Region>,
    pub(crate) commands: Arc<CommandQueue>,
    /// Time zero of every link of the lab.
    pub(crate) epoch: Instant,
    /// Never sleep: busy-wait for accuracy.
    pub(crate) accurate: bool,
    /// The core that it runs on; `None`: any.
    pub(crate) core: Option<u32>,
}

/// The result of one thread.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) directions: Vec<DirectionCounters>,
    /// The kernel's queues, which it counts the losses of as long as they are open.
    pub(crate) queues: Vec<PacketQueue>,
    /// CPU time of the thread as a share of one core.
    pub(crate) cpu: f64,
}

/// Commands to a running driver.
#[derive(Debug)]
pub(crate) struct CommandQueue {
    stop: EventFd,
    waiting: AtomicBool,
    commands: Mutex<Vec<Command>>,
}

/// A command to one direction, by its index in [`Work::directions`].
#[derive(Debug)]
pub(crate) enum Command {
    /// Change the settings; times of the schedule count from `origin`.
    Reschedule { direction: usize, origin: Nanos, schedule: Box<Schedule> },
    /// Time zero: earlier packets were those of the lab itself.
    Begin { direction: usize },
    /// The report begins here.
    Omit { direction: usize },
    /// Send a record of each packet to a tap.
    AddTap { direction: usize, tap: Tap },
    /// Log what happens to each flow.
    LogIntervals { direction: usize },
}

impl CommandQueue {
    pub(crate) fn new() -> io::Result<Self> {
        let (waiting, commands) = (AtomicBool::new(false), Mutex::default());
        Ok(CommandQueue { stop: EventFd::new()?, waiting, commands })
    }

    /// Ends the driver.
    pub(crate) fn stop(&self) {
        self.stop.set();
    }

    /// Sends a command; it is executed within 2 ms.
    pub(crate) fn send(&self, command: Command) {
        lock(&self.commands).push(command);
        self.waiting.store(true, Ordering::Release);
    }

    /// The pending commands.
    pub(crate) fn take(&self) -> Vec<Command> {
        if !self.waiting.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut lock(&self.commands))
    }
}

/// Precise sleep. A thread wakes 50 to 100 µs late on a virtual machine, so it
/// wakes earlier by its average delay, and busy-waits for the rest.
#[derive(Default)]
struct Sleep {
    late: Duration,
    /// The deadline for which it now busy-waits.
    awake_for: Option<Nanos>,
}

impl Sleep {
    /// How long to sleep until `due`, which is `left` away; `None`: busy-wait.
    /// Short waits of a busy link are slept in full: busy-waiting would take a
    /// core from the hosts.
    fn timeout(&mut self, due: Nanos, left: Duration) -> Option<Duration> {
        if left <= MIN_SLEEP || (left <= MAX_EARLY_WAKE && self.awake_for == Some(due)) {
            return None;
        }
        if left <= MAX_EARLY_WAKE * 2 {
            return Some(left);
        }
        self.awake_for = Some(due);
        Some(left - self.late)
    }

    fn woke(&mut self, late_by: Duration) {
        self.late = ((self.late + late_by) / 2).min(MAX_EARLY_WAKE);
    }
}

/// Real-time threads that leave less than 5 % of a core to ordinary ones are
/// throttled for 50 ms of every second (sched(7)). So the thread rests for 6 % of
/// each work period: an occasional delay of 0.1 ms instead of 50 ms.
const WORK_PERIOD: Duration = Duration::from_millis(2);
const REST_PERIOD: Duration = Duration::from_micros(120);

/// The shortest requested rest: oversleeping counts as rest, too.
const NAP: Duration = Duration::from_micros(50);

/// Longest work period, while no other thread wants the core.
const MAX_WORK_PERIOD: Duration = Duration::from_millis(32);

/// Oversleeping by this much shows that another thread wanted the core.
const CONTENDED: Duration = Duration::from_micros(150);

/// The current work period.
struct WorkPeriod {
    length: Duration,
    began: Instant,
    rested: Duration,
    /// Average oversleeping of the rests.
    overslept: Duration,
}

impl WorkPeriod {
    fn new() -> Self {
        let (rested, overslept) = (Duration::ZERO, Duration::ZERO);
        WorkPeriod { length: WORK_PERIOD, began: clock::now(), rested, overslept }
    }

    /// Rests if it is time to; true if it did.
    fn rest(&mut self) -> bool {
        let now = clock::now();
        if now.duration_since(self.began) < self.length {
            return false;
        }
        let missing = REST_PERIOD.saturating_sub(self.rested);
        if !missing.is_zero() {
            let nap = missing.saturating_sub(self.overslept).max(NAP);
            std::thread::sleep(nap);
            let longer = now.elapsed().saturating_sub(nap);
            self.overslept = (self.overslept * 7 + longer.min(REST_PERIOD)) / 8;
            self.length =
                if longer > CONTENDED { WORK_PERIOD } else { MAX_WORK_PERIOD.min(self.length * 2) };
        }
        self.began = clock::now();
        self.rested = Duration::ZERO;
        !missing.is_zero()
    }
}

struct Driver {
    directions: Vec<DirectionDriver>,
    /// Of each direction: whether its device may have packets.
    ready: Vec<bool>,
    poller: Poller,
    pool: Pool,
    sleep: Sleep,
    work_period: WorkPeriod,
    commands: Arc<CommandQueue>,
    epoch: Instant,
    accurate: bool,
}

/// Poll token of the stop event; directions have theirs from 0.
const STOP_TOKEN: usize = usize::MAX;

impl Work {
    /// Forwards packets until stopped.
    pub(crate) fn drive(self) -> io::Result<Done> {
        wait::precise_timers();
        // Without the privilege it runs at ordinary priority; the report shows
        // the resulting release delay.
        let _ = wait::raise_priority();
        if let Some(core) = self.core {
            // It was allowed when the cores were divided.
            let _ = cpu::pin_to(core);
        }
        let begun = clock::now();
        let mut poller = Poller::new()?;
        poller.add(&self.commands.stop, STOP_TOKEN)?;
        let mut directions = Vec::new();
        for (ends, schedule) in self.directions {
            let direction = DirectionDriver::new(ends, Link::new(schedule))?;
            poller.add(&direction, directions.len())?;
            directions.push(direction);
        }
        let mut driver = Driver {
            ready: vec![true; directions.len()],
            directions,
            poller,
            pool: Pool::new(self.memory),
            sleep: Sleep::default(),
            work_period: WorkPeriod::new(),
            commands: self.commands,
            epoch: self.epoch,
            accurate: self.accurate,
        };
        driver.run()?;
        let used = cpu::this_thread().unwrap_or_default().as_secs_f64();
        let cpu = used / begun.elapsed().as_secs_f64().max(1e-9);
        let (mut directions, mut queues, mut recordings) = (Vec::new(), Vec::new(), Vec::new());
        for direction in driver.directions {
            let finished = direction.finish();
            directions.push(finished.counters);
            queues.extend(finished.queues);
            recordings.extend(finished.recording);
        }
        at_once::drop_each(recordings);
        Ok(Done { directions, queues, cpu })
    }
}

impl Driver {
    fn run(&mut self) -> io::Result<()> {
        let mut woken = Vec::new();
        while !self.commands.stop.is_set() {
            for command in self.commands.take() {
                self.apply(command)?;
            }
            let epoch = self.epoch;
            let clock = || since(epoch);
            let mut more = false;
            for (direction, ready) in self.directions.iter_mut().zip(&mut self.ready) {
                if *ready {
                    *ready = direction.receive(&mut self.pool, BATCH, clock)?;
                    more |= *ready;
                }
                direction.deliver(&self.pool, clock)?;
                direction.record_fates(&self.pool, clock);
            }
            let now = clock();
            let due =
                self.directions.iter().filter_map(|direction| direction.link.next_due()).min();
            if self.work_period.rest() || more {
                continue;
            }
            let Some(timeout) = self.timeout(now, due) else {
                // Busy-wait for a close deadline, and poll all devices meanwhile.
                self.ready.fill(true);
                continue;
            };
            self.poller.wait(Some(timeout), &mut woken)?;
            self.woke(now, timeout, &woken);
        }
        Ok(())
    }

    /// How long to sleep; `None`: not at all.
    fn timeout(&mut self, now: Nanos, due: Option<Nanos>) -> Option<Duration> {
        if self.accurate {
            return None;
        }
        match due {
            None => Some(MAX_SLEEP),
            Some(due) => {
                let left = due.since(now);
                self.sleep.timeout(due, left).map(|timeout| timeout.min(MAX_SLEEP))
            }
        }
    }

    fn woke(&mut self, slept_at: Nanos, timeout: Duration, woken: &[usize]) {
        let now = since(self.epoch);
        self.work_period.rested += now.since(slept_at);
        let longer = now.since(slept_at).saturating_sub(timeout);
        if woken.is_empty() {
            self.sleep.woke(longer);
        }
        let slept = now.since(slept_at) > MIN_SLEPT;
        // A ready device was empty when the thread fell asleep, so its packet
        // arrived just now; or while the thread overslept, and then the other
        // devices may have packets as well.
        let empty = if longer > OVERSLEEP_TOLERANCE { slept_at.plus(timeout) } else { now };
        for (index, direction) in self.directions.iter_mut().enumerate() {
            self.ready[index] = woken.contains(&index);
            if slept || !self.ready[index] {
                direction.arrivals.known_empty(empty);
            }
            if !self.ready[index] {
                direction.not_woken(now);
            }
        }
    }

    fn apply(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Reschedule { direction, origin, schedule } => {
                if let Some(direction) = self.directions.get_mut(direction) {
                    direction.link.reschedule(since(self.epoch), origin, *schedule);
                    direction.settings_changed();
                }
            }
            Command::Begin { direction } => {
                if let Some(direction) = self.directions.get_mut(direction) {
                    direction.link.restart(since(self.epoch));
                    direction.begin();
                }
            }
            Command::Omit { direction } => {
                if let Some(direction) = self.directions.get_mut(direction) {
                    direction.omit();
                }
            }
            Command::AddTap { direction, tap } => {
                if let Some(direction) = self.directions.get_mut(direction) {
                    direction.add_tap(tap)?;
                }
            }
            Command::LogIntervals { direction } => {
                if let Some(direction) = self.directions.get_mut(direction) {
                    direction.log_intervals();
                }
            }
        }
        Ok(())
    }
}

fn since(epoch: Instant) -> Nanos {
    let passed = clock::now().duration_since(epoch).as_nanos();
    Nanos(u64::try_from(passed).unwrap_or(u64::MAX))
}
