//! Waiting for files with nanosecond timeouts, and waking up waiting threads.

use crate::sys;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{self, EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Waits until one of the files is readable or `timeout` has passed (`None`:
/// without limit). Returns which are readable.
///
/// # Errors
/// The system error; after an interruption by a signal none is readable.
pub fn readable<const N: usize>(
    files: [BorrowedFd<'_>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let mut list = files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
    match event::poll(&mut list, timeout.map(limit).as_ref()) {
        Ok(_) => Ok(list.map(|entry| !entry.revents().is_empty())),
        Err(Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a file is readable, or writable where that is asked for, or `timeout` has
/// passed.
///
/// # Errors
/// The system error, but none for an interruption by a signal.
pub fn ready(file: &impl AsFd, for_writing: bool, timeout: Duration) -> io::Result<()> {
    let events = if for_writing { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    match event::poll(&mut [PollFd::new(file, events)], Some(&limit(timeout))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// True if the peer of a socket has closed it, or its connection has failed, whatever is still
/// unread.
pub fn is_hung_up(file: &impl AsFd) -> bool {
    let mut list = [PollFd::new(file, PollFlags::empty())];
    let zero = limit(Duration::ZERO);
    event::poll(&mut list, Some(&zero)).is_ok_and(|count| count > 0)
}

fn limit(time: Duration) -> Timespec {
    Timespec::try_from(time).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(time.subsec_nanos().cast_signed()),
    }
}

/// Maximum number of events per call.
const MAX_EVENTS: usize = 1024;

/// Waits for any of many files, at a cost independent of the number of idle ones
/// (epoll(7)).
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    /// Buffer for the events of one call; the kernel rotates among the rest.
    events: Vec<libc::epoll_event>,
    /// Whether `epoll_pwait2` is available (Linux 5.11).
    has_pwait2: bool,
}

impl Poller {
    /// A poller without files.
    ///
    /// # Errors
    /// The system error if descriptors have run out.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, events: Vec::new(), has_pwait2: true })
    }

    /// Adds `file` as `token`. It is removed when its last descriptor is closed.
    ///
    /// # Errors
    /// `AlreadyExists` if that descriptor was added already; `PermissionDenied` for a
    /// file that is always ready, such as a regular one; otherwise the system error.
    pub fn add(&mut self, file: &impl AsFd, token: usize) -> io::Result<()> {
        self.add_for(EventFlags::IN, file, token)
    }

    /// Adds a socket that is ready when it can be written to; a connecting one, once it has
    /// connected or failed.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn add_for_writing(&mut self, file: &impl AsFd, token: usize) -> io::Result<()> {
        self.add_for(EventFlags::OUT, file, token)
    }

    /// Removes `file`.
    ///
    /// # Errors
    /// `NotFound` if it was not added; otherwise the system error.
    pub fn remove(&mut self, file: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, file)?)
    }

    fn add_for(&mut self, what: EventFlags, file: &impl AsFd, token: usize) -> io::Result<()> {
        epoll::add(&self.epoll, file, EventData::new_u64(token as u64), what)?;
        // Events that do not fit are reported by the next call.
        if self.events.len() < MAX_EVENTS {
            self.events.push(libc::epoll_event { events: 0, u64: 0 });
        }
        Ok(())
    }

    /// Waits until a file is readable or, if added for writing, writable, has failed or was
    /// closed by its peer, or `timeout` has passed (`None`: without limit), and puts the tokens
    /// of ready files into `ready`. Level-triggered: an unread file is reported again.
    ///
    /// # Errors
    /// The system error; after an interruption by a signal none is ready.
    pub fn wait(&mut self, timeout: Option<Duration>, ready: &mut Vec<usize>) -> io::Result<()> {
        ready.clear();
        let count = match self.poll(timeout) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let reported = self.events.iter().take(count);
        ready.extend(reported.map(|event| usize::try_from(event.u64).unwrap_or_default()));
        Ok(())
    }

    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        if self.events.is_empty() {
            // The kernel requires space for at least one event.
            self.events.push(libc::epoll_event { events: 0, u64: 0 });
        }
        if self.has_pwait2 {
            match self.poll_precisely(timeout) {
                // Older kernels and seccomp filters of some containers.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    self.has_pwait2 = false;
                }
                result => return result,
            }
        }
        self.poll_epoll_file(timeout)
    }

    fn poll_precisely(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let time = timeout.map(timespec);
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the list has the capacity passed, `time` is null or points to a live
        // timespec, and there is no signal mask.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.capacity(),
                time,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// An epoll descriptor is itself readable when one of its files is.
    fn poll_epoll_file(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        if timeout != Some(Duration::ZERO) && readable([self.epoll.as_fd()], timeout)? == [false] {
            return Ok(0);
        }
        let (epoll, capacity) = (self.epoll.as_raw_fd(), self.capacity());
        // SAFETY: the list has the capacity passed.
        let result =
            sys::check(unsafe { libc::epoll_wait(epoll, self.events.as_mut_ptr(), capacity, 0) })?;
        Ok(usize::try_from(result).unwrap_or_default())
    }

    fn capacity(&self) -> libc::c_int {
        libc::c_int::try_from(self.events.len()).unwrap_or(libc::c_int::MAX)
    }
}

/// Lets the calling thread's timers fire to the nanosecond instead of within
/// the 50 µs by which the kernel groups wake-ups (`PR_SET_TIMERSLACK`).
pub fn precise_timers() {
    // It cannot fail for a slack of 1 ns.
    let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
}

/// Raises the priority of the calling thread: a real-time class if permitted,
/// otherwise a lower nice value. Returns whether either succeeded.
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

/// Wakes up threads that wait for it (eventfd(2)); once set it stays readable.
#[derive(Debug)]
pub struct EventFd {
    event: OwnedFd,
    is_set: AtomicBool,
}

impl EventFd {
    /// An event that is not set.
    ///
    /// # Errors
    /// The system error if descriptors have run out.
    pub fn new() -> io::Result<Self> {
        let event = event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(EventFd { event, is_set: AtomicBool::new(false) })
    }

    /// Wakes up all waiting threads.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
        // If the counter is full it is readable already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Whether it was set; makes no system call.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const LONG: Duration = Duration::from_secs(10);

    /// Runs a test with both system calls: the newer one, and the one before it.
    fn each_way(test: impl Fn(Poller)) {
        test(Poller::new().unwrap());
        test(Poller { has_pwait2: false, ..Poller::new().unwrap() });
    }

    #[test]
    fn ready_files_are_reported_until_read() {
        each_way(|mut poller| {
            let bells: Vec<EventFd> = (0..100).map(|_| EventFd::new().unwrap()).collect();
            for (token, bell) in bells.iter().enumerate() {
                poller.add(bell, token).unwrap();
            }
            let mut ready = vec![7];
            poller.wait(Some(Duration::ZERO), &mut ready).unwrap();
            assert!(ready.is_empty());
            bells[3].set();
            bells[70].set();
            for _ in 0..2 {
                poller.wait(Some(LONG), &mut ready).unwrap();
                ready.sort_unstable();
                assert_eq!(ready, [3, 70]);
            }
            bells.iter().for_each(EventFd::set);
            poller.wait(None, &mut ready).unwrap();
            assert_eq!(ready.len(), 100);
        });
    }

    #[test]
    fn a_closed_file_is_forgotten() {
        each_way(|mut poller| {
            let (kept, closed) = (EventFd::new().unwrap(), EventFd::new().unwrap());
            poller.add(&kept, 0).unwrap();
            poller.add(&closed, 1).unwrap();
            assert!(poller.add(&kept, 2).is_err());
            kept.set();
            closed.set();
            drop(closed);
            let mut ready = Vec::new();
            poller.wait(Some(LONG), &mut ready).unwrap();
            assert_eq!(ready, [0]);
        });
    }

    #[test]
    fn a_timeout_is_never_early() {
        each_way(|mut poller| {
            let mut ready = Vec::new();
            // Nothing to wait for, and timeouts that are not whole milliseconds.
            for timeout in [1, 300, 1_700].map(Duration::from_micros) {
                let before = clock::now();
                poller.wait(Some(timeout), &mut ready).unwrap();
                assert!(before.elapsed() >= timeout);
                assert!(ready.is_empty());
            }
        });
    }
}
