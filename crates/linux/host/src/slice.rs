//! Scheduling slices: how soon a thread runs after it wakes.
//!
//! Linux runs the thread with the earliest virtual deadline (EEVDF). A thread with
//! short slices gets deadlines sooner, and no larger share of the CPU (sched(7);
//! Linux 6.12, ignored before).

use crate::sys;
use std::io;
use std::time::Duration;

/// Slice of threads that exchange messages, 100 µs: the kernel's minimum. Their
/// streams keep it: with a thousand threads on two cores each runs many times a
/// second, so their shares are even (Jain 0.985 of 500; 0.95 with default slices).
const SHORT: Duration = Duration::from_micros(100);

/// The first version of Linux's `struct sched_attr`, which every kernel accepts.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// While this exists, the calling thread and those that it starts have short slices.
#[derive(Debug)]
pub struct ShortSlices(());

impl ShortSlices {
    /// Starts now. Has no effect if the kernel does not support slices.
    #[must_use]
    pub fn begin() -> Self {
        let _ = set(SHORT);
        ShortSlices(())
    }
}

/// Gives the calling thread, which may have been started with short slices, the system's default.
pub fn use_default() {
    let _ = set(Duration::ZERO);
}

impl Drop for ShortSlices {
    fn drop(&mut self) {
        use_default();
    }
}

/// Sets the slice of the calling thread and of threads that it starts from now
/// on; zero is the system's default. The nice value stays; threads of another
/// scheduling class are left alone.
fn set(slice: Duration) -> io::Result<()> {
    // SAFETY: plain numbers; zero is the calling thread.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        return Ok(());
    }
    let nice = rustix::process::getpriority_process(None).unwrap_or_default();
    let attr = SchedAttr {
        size: u32::try_from(size_of::<SchedAttr>()).unwrap_or_default(),
        policy: libc::SCHED_OTHER.cast_unsigned(),
        flags: 0,
        nice,
        priority: 0,
        runtime: u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX),
        deadline: 0,
        period: 0,
    };
    // SAFETY: a live structure that carries its own size.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    sys::check(libc::c_int::try_from(result).unwrap_or(-1)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_sets_and_resets_its_slice() {
        set(SHORT).unwrap();
        set(Duration::ZERO).unwrap();
    }
}
