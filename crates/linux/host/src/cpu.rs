//! CPU time of threads, of this process and of the whole machine.

use crate::clock;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use std::{fs, io, mem::MaybeUninit, thread, time::Duration};

/// CPU clock of a thread, readable from any thread of the same process while
/// that thread runs.
#[derive(Debug, Clone, Copy)]
pub struct ThreadClock {
    clock: libc::clockid_t,
    /// Thread ID.
    number: libc::pid_t,
}

impl ThreadClock {
    /// The calling thread's clock.
    ///
    /// # Errors
    /// The system error if the kernel has no such clock.
    pub fn of_this_thread() -> io::Result<Self> {
        let mut clock: libc::clockid_t = 0;
        // SAFETY: pthread_self names the calling thread, which is alive, and
        // `clock` outlives the call.
        let code = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        Ok(ThreadClock { clock, number: this_thread_id() })
    }

    /// CPU time used since the thread started; `None` once it has ended.
    #[must_use]
    pub fn read(self) -> Option<Duration> {
        read_clock(self.clock).ok()
    }

    /// Time the thread was runnable but not running (second field of
    /// `/proc/PID/task/TID/schedstat`); `None` once it has ended, and if the kernel
    /// does not keep this statistic.
    #[must_use]
    pub fn waited(self) -> Option<Duration> {
        let text = fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.number)).ok()?;
        let nanos = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(Duration::from_nanos(nanos))
    }
}

/// CPU time used by the calling thread since it started.
///
/// # Errors
/// The system error if the kernel has no such clock.
pub fn this_thread() -> io::Result<Duration> {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read_clock(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that outlives the call; an unknown
    // clock is answered with an error, not touched.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Ok(Duration::new(seconds, nanos))
}

/// CPU time of this process, over all threads, since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessCpu {
    /// User mode.
    pub user: Duration,
    /// Kernel mode.
    pub system: Duration,
}

impl ProcessCpu {
    /// User and kernel mode.
    #[must_use]
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// CPU time used since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        ProcessCpu {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// CPU time used by this process so far (`getrusage`).
///
/// # Errors
/// The system error; none is expected.
pub fn this_process() -> io::Result<ProcessCpu> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid rusage for the kernel to fill and outlives the call.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed is a valid rusage (plain integers), and the call filled it.
    let usage = unsafe { usage.assume_init() };
    Ok(ProcessCpu { user: from_timeval(usage.ru_utime), system: from_timeval(usage.ru_stime) })
}

pub(crate) fn from_timeval(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// Pins the calling thread to one core, counted from 0.
///
/// # Errors
/// `InvalidInput` if this process may not run on that core.
pub fn pin_to(core: u32) -> io::Result<()> {
    allow(0, &[core])
}

/// Allows a thread of this process, or the calling one (0), some cores.
fn allow(thread: libc::pid_t, cores: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        let core = usize::try_from(*core).unwrap_or(usize::MAX);
        if core >= CpuSet::MAX_CPU {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        set.set(core);
    }
    Ok(sched_setaffinity(Pid::from_raw(thread), &set)?)
}

fn this_thread_id() -> libc::pid_t {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Whether this process may be pinned to a core: one of its cpuset (cpuset(7)), whether the calling
/// thread is allowed it at present or not.
#[must_use]
pub fn is_available(core: u32) -> bool {
    // Not `thread::spawn`, which panics where no further thread can be started.
    let pinned = thread::Builder::new().spawn(move || pin_to(core).is_ok());
    pinned.is_ok_and(|pinned| pinned.join().unwrap_or(false))
}

/// While this exists, the thread that created it, and the threads and programs that it starts from
/// then on, run on some of the cores only. Of several of a thread, the last one ends first.
#[derive(Debug)]
pub struct Confinement {
    thread: libc::pid_t,
    cores: Vec<u32>,
    /// The cores that it was allowed before.
    before: Vec<u32>,
}

impl Confinement {
    /// Confines the calling thread to these cores.
    ///
    /// # Errors
    /// `InvalidInput` if it may run on none of them.
    pub fn begin(cores: &[u32]) -> io::Result<Self> {
        let before = allowed()?;
        let thread = this_thread_id();
        allow(0, cores)?;
        Ok(Confinement { thread, cores: cores.to_vec(), before })
    }

    /// The cores.
    #[must_use]
    pub fn cores(&self) -> &[u32] {
        &self.cores
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        // A thread that has ended may have left its number to another process.
        if fs::exists(format!("/proc/self/task/{}", self.thread)).unwrap_or(false) {
            let _ = allow(self.thread, &self.before);
        }
    }
}

/// The cores that the calling thread may run on, counted from 0, in order.
///
/// # Errors
/// The system error: on a machine of more than 1024 cores it is `InvalidInput`.
pub fn allowed() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    let cores = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    Ok(cores.filter_map(|core| u32::try_from(core).ok()).collect())
}

/// Number of cores this process may run on; at least one.
#[must_use]
pub fn cores() -> u32 {
    thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// The host's CPU counters since boot, in clock ticks (10 ms), over all cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineTicks {
    idle: u64,
    all: u64,
}

impl MachineTicks {
    /// Reads `/proc/stat`; `None` if it is missing or has another format.
    #[must_use]
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.lines().next()?.split_ascii_whitespace();
        if fields.next() != Some("cpu") {
            return None;
        }
        // guest and guest_nice are included in user and nice: the first eight fields are the total.
        let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let idle = ticks.get(3)?.saturating_add(ticks.get(4).copied().unwrap_or(0));
        Some(MachineTicks { idle, all: ticks.iter().sum() })
    }

    /// Share of all cores in use since an earlier reading, 0 to 1; `None` if less
    /// than one tick has passed. Time stolen by a hypervisor counts as used.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "tick counts of a short interval are small")]
    pub fn busy_since(self, earlier: Self) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all)?;
        // The idle counter may decrease slightly (iowait is not monotonic).
        let idle = self.idle.saturating_sub(earlier.idle).min(all);
        (all > 0).then(|| (all - idle) as f64 / all as f64)
    }
}

/// Share of the host's CPU in use over the next `interval`, 0 to 1. With the
/// usual tick of 10 ms, the error over 150 ms is about 5 %.
#[must_use]
pub fn machine_busy(interval: Duration) -> Option<f64> {
    let before = MachineTicks::read()?;
    let end = clock::now() + interval;
    while let left = end.saturating_duration_since(clock::now())
        && !left.is_zero()
    {
        thread::sleep(left);
    }
    MachineTicks::read()?.busy_since(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin() -> u64 {
        let start = this_thread().unwrap();
        let mut count = 0u64;
        while this_thread().unwrap() < start + Duration::from_millis(5) {
            count = std::hint::black_box(count + 1);
        }
        count
    }

    #[test]
    fn work_is_counted_by_every_clock() {
        let before = this_process().unwrap();
        assert!(spin() > 0);
        assert!(this_process().unwrap().since(before).total() >= Duration::from_millis(4));
    }

    #[test]
    fn another_threads_clock_is_readable_while_it_lives() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            spin();
            tell.send(ThreadClock::of_this_thread().unwrap()).unwrap();
            let _ = ended.recv();
        });
        let clock = told.recv().unwrap();
        assert!(clock.read().unwrap() >= Duration::from_millis(5));
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn what_a_confined_thread_starts_is_confined_too() {
        // Threads of other tests keep their cores.
        let checked = thread::spawn(|| {
            let before = allowed().unwrap();
            let some = &before[..1];
            let confinement = Confinement::begin(some).unwrap();
            assert_eq!(allowed().unwrap(), some);
            assert_eq!(thread::spawn(|| allowed().unwrap()).join().unwrap(), some);
            assert_eq!(confinement.cores(), some);
            assert!(before.iter().all(|core| is_available(*core)), "they are of the cpuset");
            // Another thread may end it.
            thread::spawn(move || drop(confinement)).join().unwrap();
            assert_eq!(allowed().unwrap(), before);
        });
        checked.join().unwrap();
        assert!(Confinement::begin(&[u32::MAX]).is_err());
        assert!(!is_available(u32::MAX));
    }

    #[test]
    fn proc_stat_of_any_age_is_read() {
        let ticks = |line: &str| MachineTicks::parse(line);
        let before = ticks("cpu  100 0 100 700 100 0 0 0 0 0\n").unwrap();
        let after = ticks("cpu  150 0 150 790 110 0 0 0 50 0\n").unwrap();
        assert_eq!(after.busy_since(before), Some(0.5));
        assert_eq!(after.busy_since(after), None);
        for odd in ["", "cpu", "cpu  1 2", "intr 1 2 3 4", "cpu x y z"] {
            assert_eq!(ticks(odd), None, "{odd}");
        }
        assert!(cores() >= 1);
    }
}
