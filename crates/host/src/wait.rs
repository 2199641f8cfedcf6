//! Waiting with nanosecond deadlines, and waking who waits.

use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Waits until one of the files is readable or `timeout` has passed
/// (`None`: for as long as it takes). Tells which are readable.
///
/// # Errors
/// The system's own; an interruption by a signal counts as nothing readable.
pub fn readable<const N: usize>(
    files: [BorrowedFd<'_>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut list =
        files.map(|file| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let time = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the list holds N entries, `time` is null or points to a live timespec.
    let result = sys::check(unsafe {
        libc::ppoll(list.as_mut_ptr(), N as libc::nfds_t, time, std::ptr::null())
    });
    match result {
        Ok(_) => Ok(list.map(|entry| entry.revents != 0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
    }
}

/// Lets the calling thread's timers fire to the nanosecond instead of within
/// the 50 µs by which the kernel groups wake-ups (`PR_SET_TIMERSLACK`).
pub fn precise_timers() {
    // SAFETY: prctl with plain numbers. It cannot fail for a slack of 1 ns.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Asks for the calling thread to be served before ordinary ones: by a
/// real-time class where the system allows it, else by a nice value. Tells
/// whether it agreed to either.
#[must_use]
pub fn raise_priority() -> bool {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: a live parameter and plain numbers; on Linux `0` is the calling thread.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const lowest)
            == 0
            || libc::setpriority(libc::PRIO_PROCESS, 0, -15) == 0
    }
}

/// A bell: once rung it stays readable.
#[derive(Debug)]
pub struct Bell {
    event: OwnedFd,
    rung: AtomicBool,
}

impl Bell {
    /// A bell that has not rung.
    ///
    /// # Errors
    /// The system's own where it is out of descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain numbers.
        let raw = sys::check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the descriptor is new and ours.
        Ok(Bell { event: unsafe { OwnedFd::from_raw_fd(raw) }, rung: AtomicBool::new(false) })
    }

    /// Rings it.
    pub fn ring(&self) {
        self.rung.store(true, Ordering::Relaxed);
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight valid bytes. A full counter has rung already.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}

impl Bell {
    /// Whether it has rung, without asking the kernel.
    #[must_use]
    pub fn has_rung(&self) -> bool {
        self.rung.load(Ordering::Relaxed)
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
