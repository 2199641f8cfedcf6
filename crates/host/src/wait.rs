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
    let time = timeout.map(timespec);
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

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(time.subsec_nanos().cast_signed()),
    }
}

/// Events that one call reports at most.
const MOST_EVENTS: usize = 1024;

/// Waits for any of many files. What it costs does not depend on how many are
/// quiet (epoll(7)).
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    /// Room for what one call reports; the kernel takes turns among the rest.
    events: Vec<libc::epoll_event>,
    /// `epoll_pwait2` came with Linux 5.11.
    knows_nanoseconds: bool,
}

impl Poller {
    /// One that waits for nothing yet.
    ///
    /// # Errors
    /// The system's own where it is out of descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain flags.
        let raw = sys::check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and ours.
        let epoll = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Poller { epoll, events: Vec::new(), knows_nanoseconds: true })
    }

    /// Waits for `file` too, and calls it `token`. It is forgotten once its
    /// last descriptor is closed.
    ///
    /// # Errors
    /// `AlreadyExists` where it waits for that descriptor already;
    /// `PermissionDenied` for a file that is always ready, such as one on a
    /// disk; otherwise the system's own.
    pub fn add(&mut self, file: &impl AsFd, token: usize) -> io::Result<()> {
        self.add_for(libc::EPOLLIN, file, token)
    }

    /// The same for a socket that is connecting: it is ready once it has
    /// connected or failed to.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn add_connecting(&mut self, file: &impl AsFd, token: usize) -> io::Result<()> {
        self.add_for(libc::EPOLLOUT, file, token)
    }

    fn add_for(&mut self, what: libc::c_int, file: &impl AsFd, token: usize) -> io::Result<()> {
        let mut event = libc::epoll_event { events: what.cast_unsigned(), u64: token as u64 };
        let (epoll, file) = (self.epoll.as_raw_fd(), file.as_fd().as_raw_fd());
        // SAFETY: both descriptors are open and the event lives across the call.
        sys::check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, file, &raw mut event) })?;
        // Files come and go; what one call does not report the next one does.
        if self.events.len() < MOST_EVENTS {
            self.events.push(libc::epoll_event { events: 0, u64: 0 });
        }
        Ok(())
    }

    /// Waits until a file is readable, has failed or was hung up on, or
    /// `timeout` has passed (`None`: for as long as it takes), and puts the
    /// tokens of those that are into `ready`. A file that is left unread is
    /// told again.
    ///
    /// # Errors
    /// The system's own; an interruption by a signal counts as none ready.
    pub fn wait(&mut self, timeout: Option<Duration>, ready: &mut Vec<usize>) -> io::Result<()> {
        ready.clear();
        let count = match self.poll(timeout) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let told = self.events.iter().take(count);
        ready.extend(told.map(|event| usize::try_from(event.u64).unwrap_or_default()));
        Ok(())
    }

    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        if self.events.is_empty() {
            // The kernel insists on room for one.
            self.events.push(libc::epoll_event { events: 0, u64: 0 });
        }
        if self.knows_nanoseconds {
            match self.poll_precisely(timeout) {
                // Older kernels and some containers' filters.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    self.knows_nanoseconds = false;
                }
                result => return result,
            }
        }
        self.poll_as_a_file(timeout)
    }

    fn poll_precisely(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let time = timeout.map(timespec);
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the list has the room it is said to have, `time` is null or
        // points to a live timespec, and no signals are named.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.room(),
                time,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// An epoll file is itself readable when one of its files is.
    fn poll_as_a_file(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        if timeout != Some(Duration::ZERO) && readable([self.epoll.as_fd()], timeout)? == [false] {
            return Ok(0);
        }
        let (epoll, room) = (self.epoll.as_raw_fd(), self.room());
        // SAFETY: the list has the room it is said to have.
        let result =
            sys::check(unsafe { libc::epoll_wait(epoll, self.events.as_mut_ptr(), room, 0) })?;
        Ok(usize::try_from(result).unwrap_or_default())
    }

    fn room(&self) -> libc::c_int {
        libc::c_int::try_from(self.events.len()).unwrap_or(libc::c_int::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const LONG: Duration = Duration::from_secs(10);

    /// Both ways of waiting, by a system that knows the newer call and by one
    /// that does not.
    fn each_way(test: impl Fn(Poller)) {
        test(Poller::new().unwrap());
        test(Poller { knows_nanoseconds: false, ..Poller::new().unwrap() });
    }

    #[test]
    fn the_ready_are_told_until_they_are_read() {
        each_way(|mut poller| {
            let bells: Vec<Bell> = (0..100).map(|_| Bell::new().unwrap()).collect();
            for (token, bell) in bells.iter().enumerate() {
                poller.add(bell, token).unwrap();
            }
            let mut ready = vec![7];
            poller.wait(Some(Duration::ZERO), &mut ready).unwrap();
            assert_eq!(ready, []);
            bells[3].ring();
            bells[70].ring();
            for _ in 0..2 {
                poller.wait(Some(LONG), &mut ready).unwrap();
                ready.sort_unstable();
                assert_eq!(ready, [3, 70]);
            }
            bells.iter().for_each(Bell::ring);
            poller.wait(None, &mut ready).unwrap();
            assert_eq!(ready.len(), 100);
        });
    }

    #[test]
    fn a_closed_file_is_forgotten() {
        each_way(|mut poller| {
            let (kept, closed) = (Bell::new().unwrap(), Bell::new().unwrap());
            poller.add(&kept, 0).unwrap();
            poller.add(&closed, 1).unwrap();
            assert!(poller.add(&kept, 2).is_err());
            kept.ring();
            closed.ring();
            drop(closed);
            let mut ready = Vec::new();
            poller.wait(Some(LONG), &mut ready).unwrap();
            assert_eq!(ready, [0]);
        });
    }

    #[test]
    fn a_timeout_is_never_cut_short() {
        each_way(|mut poller| {
            let mut ready = Vec::new();
            // Nothing to wait for but time, and a part of a millisecond of that.
            for timeout in [1, 300, 1_700].map(Duration::from_micros) {
                let before = clock::now();
                poller.wait(Some(timeout), &mut ready).unwrap();
                assert!(before.elapsed() >= timeout);
                assert_eq!(ready, []);
            }
        });
    }
}
